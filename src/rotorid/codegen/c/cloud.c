/* A function of one particle over many, LANES at a time, as a custom call of XLA.

   FUNCTION takes x = [shared, drawn, columns] to y. Operands: the shared numbers; where COPIED > 0, the place of each
   particle's ancestor, of which the first COPIED operands of columns are taken; where DRAWN > 0, a stream of normal numbers
   and whether to draw them (else they are 0); then columns, a particle a column. Results: columns. */
#include "custom_call.h"
#include "normals.h"
#include "num.h"
#include <stdlib.h>
#include <string.h>

void FUNCTION(const num *x, num *y, num *m);

static inline num load(const double *from) {
  num v;
  memcpy(&v, from, sizeof v);
  return v;
}

SEEN XLA_FFI_Error *cloud(frame *f) {
  if (asked(f)) return 0;
  const int first = 1 + (COPIED > 0) + 2 * (DRAWN > 0), operands = f->args.size, results = f->rets.size;
  const int64_t n = size_of(result(f, 0), 1), filters = leading(result(f, 0), 2), whole = n - n % LANES;
  num *x = aligned_alloc(sizeof(num), (X_SIZE + Y_SIZE + M_SIZE + 1) * sizeof(num)), *y = x + X_SIZE, *m = y + Y_SIZE;
  if (!x) return no_memory(f);
  for (int64_t filter = 0; filter < filters; filter++) {
    const double *shared = (const double *)argument(f, 0)->data + filter * SHARED, *in[X_SIZE];
    const int32_t *ancestors = COPIED ? (const int32_t *)argument(f, 1)->data + filter * n : 0;
    source s = {0};
    const int draws = DRAWN && ((const uint8_t *)argument(f, first - 1)->data)[filter];
    if (DRAWN) memcpy(&s, (const char *)argument(f, first - 2)->data + filter * sizeof s, sizeof s);
    double *out[Y_SIZE];
    int fetched = 0, ins = 0, outs = 0;
    for (int k = first; k < operands; k++) {
      const int64_t rows = size_of(argument(f, k), 2);
      for (int64_t r = 0; r < rows; r++) in[ins++] = (const double *)argument(f, k)->data + (filter * rows + r) * n;
      if (k < first + COPIED) fetched = ins;
    }
    for (int k = 0; k < results; k++) {
      const int64_t rows = size_of(result(f, k), 2);
      for (int64_t r = 0; r < rows; r++) out[outs++] = (double *)result(f, k)->data + (filter * rows + r) * n;
    }
    for (int i = 0; i < SHARED; i++) x[i] = NUM(shared[i]);
    num *const drawn = x + SHARED, *const columns = drawn + DRAWN;
    memset(drawn, 0, DRAWN * sizeof(num));
    for (int64_t i = 0; i < n; i += LANES) {
      if (draws)
        for (int k = 0; k < DRAWN; k++) drawn[k] = (num)normals(s, k * n + i);
      if (i < whole) {
        if (COPIED) {
          const int32_t *a = ancestors + i;
          for (int k = 0; k < fetched; k++) {
            const double *from = in[k];
            columns[k] = (num){from[a[0]], from[a[1]], from[a[2]], from[a[3]], from[a[4]], from[a[5]], from[a[6]], from[a[7]]};
          }
        }
        for (int k = fetched; k < ins; k++) columns[k] = load(in[k] + i);
        FUNCTION(x, y, m);
        for (int k = 0; k < outs; k++) memcpy(out[k] + i, &y[k], sizeof(num));
      } else {
        for (int64_t lane = 0; lane < LANES; lane++) {
          const int64_t j = lane < n - i ? i + lane : i;
          for (int k = 0; k < ins; k++) columns[k][lane] = in[k][k < fetched ? ancestors[j] : j];
        }
        FUNCTION(x, y, m);
        for (int k = 0; k < outs; k++) memcpy(out[k] + i, &y[k], (n - i) * sizeof(double));
      }
    }
  }
  free(x);
  return 0;
}
