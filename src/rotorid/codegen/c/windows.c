/* A function applied row after row to windows, LANES windows side by side. The last ones repeat the last window. */
#include "num.h"

void row(const num *x, num *y, num *m);

/* The function takes numbers that all windows share, the state, 1 in the first row and else 0, and the row's columns; it gives
   the next state and further results. sizes, found_sizes: of columns and results. */
__attribute__((visibility("default"))) void windows(
    int64_t windows, int64_t rows, const double *shared, const double *starts, int64_t count, const double *const *columns,
    const int64_t *sizes, int64_t found_count, double *const *found, const int64_t *found_sizes) {
  num x[X_SIZE], y[Y_SIZE], m[M_SIZE], *const state = x + SHARED, *const first = state + STATES;
  for (int j = 0; j < SHARED; j++) x[j] = NUM(shared[j]);
  for (int64_t i = 0; i < windows; i += LANES) {
    int64_t window[LANES];
    for (int lane = 0; lane < LANES; lane++) window[lane] = i + lane < windows ? i + lane : windows - 1;
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < STATES; j++) LANE(state[j], lane) = starts[window[lane] * STATES + j];
    *first = ONE;
    for (int64_t k = 0; k < rows; k++) {
      num *to = first + 1;
      for (int64_t c = 0; c < count; to += sizes[c], c++)
        for (int lane = 0; lane < LANES; lane++) {
          const double *from = columns[c] + (window[lane] * rows + k) * sizes[c];
          for (int64_t j = 0; j < sizes[c]; j++) LANE(to[j], lane) = from[j];
        }
      row(x, y, m);
      const num *result = y;
      for (int64_t c = 0; c < found_count; result += found_sizes[c], c++)
        for (int lane = 0; lane < LANES && i + lane < windows; lane++) {
          double *into = found[c] + (window[lane] * rows + k) * found_sizes[c];
          for (int64_t j = 0; j < found_sizes[c]; j++) into[j] = LANE(result[j], lane);
        }
      for (int j = 0; j < STATES; j++) state[j] = y[j];
      *first = ZERO;
    }
  }
}
