/* A filter over flights, LANES of them side by side, and sample by sample.

   Its numbers lie in two columns:  x = [fixed, sample, state],  y = [state, estimate].
   init: [fixed, sample] -> state.  step: x -> y.  m is their memory. */
#include "num.h"
#include <stdlib.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

SEEN const long memory_size = M_SIZE;

void init(const num *x, num *y, num *m);
void step(const num *x, num *y, num *m);

enum kind { FLOAT, INTEGER, TRUTH };

/* Numbers of every flight and step: those of flight f and step k start f * flight + k * step elements after data. */
typedef struct {
  void *data;
  int64_t count, flight, step, kind;
} leaf;

static double get(const leaf *l, int64_t i) {
  switch (l->kind) {
    case FLOAT: return ((const double *)l->data)[i];
    case INTEGER: return (double)((const int64_t *)l->data)[i];
    default: return (double)((const uint8_t *)l->data)[i];
  }
}

static void set(const leaf *l, int64_t i, double value) {
  switch (l->kind) {
    case FLOAT: ((double *)l->data)[i] = value; break;
    case INTEGER: ((int64_t *)l->data)[i] = (int64_t)value; break;
    default: ((uint8_t *)l->data)[i] = value != 0.0;
  }
}

/* Lanes past the last flight repeat it. */
static num *gather(num *x, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < leaves[j].count; i++, x++)
      for (int64_t lane = 0; lane < LANES; lane++) {
        const int64_t f = flight + lane < flights ? flight + lane : flights - 1;
        LANE(*x, lane) = get(&leaves[j], f * leaves[j].flight + k * leaves[j].step + i);
      }
  return x;
}

static void scatter(const num *y, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < leaves[j].count; i++, y++)
      for (int64_t lane = 0; lane < LANES && flight + lane < flights; lane++)
        set(&leaves[j], (flight + lane) * leaves[j].flight + k * leaves[j].step + i, LANE(*y, lane));
}

/* Estimates after every sample of every flight. Whether there was memory for it. */
SEEN int run_flights(int64_t flights, int64_t steps, int64_t n_fixed, const leaf *fixed, int64_t n_samples,
                 const leaf *samples, int64_t n_estimates, const leaf *estimates) {
  num x[X_SIZE], y[Y_SIZE], *m = aligned_alloc(sizeof(num), (M_SIZE + 1) * sizeof(num));
  if (!m) return 0;
  for (int64_t flight = 0; flight < flights; flight += LANES) {
    num *sample = gather(x, fixed, n_fixed, flight, flights, 0);
    num *state = gather(sample, samples, n_samples, flight, flights, 0);
    init(x, state, m);
    for (int64_t k = 0; k < steps; k++) {
      gather(sample, samples, n_samples, flight, flights, k);
      step(x, y, m);
      memcpy(state, y, STATE_SIZE * sizeof(num));
      scatter(y + STATE_SIZE, estimates, n_estimates, flight, flights, k);
    }
  }
  free(m);
  return 1;
}

#if LANES == 1
/* The state before the first sample. */
SEEN void start(double *x, double *m) { init(x, x + X_SIZE - STATE_SIZE, m); }

/* One more sample: the state in x moves on, and the estimate is written. */
SEEN void advance(double *x, double *m, int64_t n, const leaf *estimate) {
  double y[Y_SIZE];
  step(x, y, m);
  memcpy(x + X_SIZE - STATE_SIZE, y, STATE_SIZE * sizeof(double));
  scatter(y + STATE_SIZE, estimate, n, 0, 1, 0);
}
#endif
