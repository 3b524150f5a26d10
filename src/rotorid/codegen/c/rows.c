/* A function over rows, LANES of them side by side. The last ones repeat the last row. */
#include "num.h"

void row(const num *x, num *y, num *m);

/* columns: where each argument begins; sizes: its numbers; steps: from one row to the next, 0 where all have the same. */
__attribute__((visibility("default"))) void rows(
    int64_t n, int64_t count, const double *const *columns, const int64_t *sizes, const int64_t *steps, double *found) {
  num x[X_SIZE], y[Y_SIZE], m[M_SIZE];
  for (int64_t i = 0; i < n; i += LANES) {
    num *to = x;
    for (int64_t k = 0; k < count; k++)
      for (int64_t j = 0; j < sizes[k]; j++, to++)
        for (int lane = 0; lane < LANES; lane++) {
          const int64_t at = i + lane < n ? i + lane : n - 1;
          LANE(*to, lane) = columns[k][at * steps[k] + j];
        }
    row(x, y, m);
    for (int lane = 0; lane < LANES && i + lane < n; lane++)
      for (int64_t j = 0; j < Y_SIZE; j++) found[(i + lane) * Y_SIZE + j] = LANE(y[j], lane);
  }
}
