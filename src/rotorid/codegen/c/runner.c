/* A filter over flights, LANES of them side by side, and sample by sample.

   Its numbers lie in two columns:  x = [fixed, sample, state],  y = [state, estimate].
   init: [fixed, sample] -> state.  step: x -> y.  m is their memory. */
#include "num.h"
#include <stdlib.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

SEEN const long memory_size = M_SIZE;

enum { STATE_AT = X_SIZE - STATE_SIZE };

void init(const num *x, num *y, num *m);
void step(const num *x, num *y, num *m);

enum kind { FLOAT, INTEGER, TRUTH };

/* Numbers of every flight and step: those of flight f and step k start f * flight + k * step elements after data. */
typedef struct {
  void *data;
  int64_t count, flight, step, kind;
} leaf;

/* COPY for all numbers i of a leaf, with its data as the type of its kind. */
#define OF_KIND(l, start, COPY)                                                     \
  switch ((l)->kind) {                                                              \
    case FLOAT: { double *p = (double *)(l)->data + (start); COPY(double) break; }  \
    case INTEGER: { int64_t *p = (int64_t *)(l)->data + (start); COPY(int64_t) break; } \
    default: { uint8_t *p = (uint8_t *)(l)->data + (start); COPY(uint8_t) }         \
  }
#define READ(type) for (int64_t i = 0; i < count; i++) lane[i * LANES] = (real)p[i];
#define WRITE(type) for (int64_t i = 0; i < count; i++) p[i] = (type)lane[i * LANES];

/* Lanes past the last flight repeat it. */
static num *gather(num *x, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k) {
  for (const leaf *l = leaves; l < leaves + n; l++) {
    const int64_t count = l->count;
    for (int64_t j = 0; j < LANES; j++) {
      const int64_t f = flight + j < flights ? flight + j : flights - 1;
      real *lane = (real *)x + j;
      OF_KIND(l, f * l->flight + k * l->step, READ)
    }
    x += count;
  }
  return x;
}

static void scatter(const num *y, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k) {
  for (const leaf *l = leaves; l < leaves + n; l++) {
    const int64_t count = l->count;
    for (int64_t j = 0; j < LANES && flight + j < flights; j++) {
      const real *lane = (const real *)y + j;
      OF_KIND(l, (flight + j) * l->flight + k * l->step, WRITE)
    }
    y += count;
  }
}

/* Estimates after every sample of every flight. Whether there was memory for it. The state that a step writes is that of the
   next column x. */
SEEN int run_flights(int64_t flights, int64_t steps, int64_t n_fixed, const leaf *fixed, int64_t n_samples,
                 const leaf *samples, int64_t n_estimates, const leaf *estimates) {
  num columns[2][STATE_AT + Y_SIZE], *m = aligned_alloc(sizeof(num), (M_SIZE + 1) * sizeof(num));
  if (!m) return 0;
  for (int64_t flight = 0; flight < flights; flight += LANES) {
    num *sample;
    for (int i = 1; i >= 0; i--) sample = gather(columns[i], fixed, n_fixed, flight, flights, 0);
    gather(sample, samples, n_samples, flight, flights, 0);
    init(columns[0], columns[0] + STATE_AT, m);
    for (int64_t k = 0; k < steps; k++) {
      num *x = columns[k % 2], *y = columns[(k + 1) % 2] + STATE_AT;
      gather(x + (sample - columns[0]), samples, n_samples, flight, flights, k);
      step(x, y, m);
      scatter(y + STATE_SIZE, estimates, n_estimates, flight, flights, k);
    }
  }
  free(m);
  return 1;
}

#if LANES == 1
/* The state before the first sample. */
SEEN void start(double *x, double *m) { init(x, x + STATE_AT, m); }

/* One more sample: the state in x moves on, and the estimate is written. */
SEEN void advance(double *x, double *m, int64_t n, const leaf *estimate) {
  double y[Y_SIZE];
  step(x, y, m);
  memcpy(x + STATE_AT, y, STATE_SIZE * sizeof(double));
  scatter(y + STATE_SIZE, estimate, n, 0, 1, 0);
}
#endif
