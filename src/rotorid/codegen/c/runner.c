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

#if LANES == 8 && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) && __has_builtin(__builtin_convertvector)
#define HAS_BLOCKS
#endif
#endif

#ifdef HAS_BLOCKS
/* Lane j of v[i] becomes lane i of v[j]. */
static inline void transpose(num *v) {
#define SWAP(distance, low, high)                                                  \
  for (int i = 0; i < 8; i++)                                                      \
    if (!(i & distance)) {                                                         \
      const num a = v[i], b = v[i + distance];                                     \
      v[i] = __builtin_shufflevector(a, b, low);                                   \
      v[i + distance] = __builtin_shufflevector(a, b, high);                       \
    }
#define THESE(...) __VA_ARGS__
  SWAP(1, THESE(0, 8, 2, 10, 4, 12, 6, 14), THESE(1, 9, 3, 11, 5, 13, 7, 15))
  SWAP(2, THESE(0, 1, 8, 9, 4, 5, 12, 13), THESE(2, 3, 10, 11, 6, 7, 14, 15))
  SWAP(4, THESE(0, 1, 2, 3, 8, 9, 10, 11), THESE(4, 5, 6, 7, 12, 13, 14, 15))
}

static inline num of_double(const double *p) {
  num v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline num of_int64_t(const int64_t *p) {
  mask m;
  memcpy(&m, p, sizeof m);
  return __builtin_convertvector(m, num);
}

static inline num of_uint8_t(const uint8_t *p) {
  int64_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector((((mask){0} + bytes) >> (mask){0, 8, 16, 24, 32, 40, 48, 56}) & 255, num);
}

static inline void put_double(double *p, num v) { memcpy(p, &v, sizeof v); }

static inline void put_int64_t(int64_t *p, num v) {
  const mask m = __builtin_convertvector(v, mask);
  memcpy(p, &m, sizeof m);
}

static inline void put_uint8_t(uint8_t *p, num v) {
  for (int i = 0; i < 8; i++) p[i] = (uint8_t)v[i];
}

/* Eight numbers at once, where those of following steps are neighbours. */
#define BY_BLOCKS(type, COPY)                                               \
  if (l->step == l->count)                                                  \
    for (; at + 8 <= total; at += 8) {                                      \
      num v[8], *places[8];                                                 \
      for (int j = 0; j < 8; j++, NEXT) places[j] = row + i;                \
      COPY##_BLOCK(type)                                                    \
    }
#define READ_BLOCK(type)                                                    \
  for (int j = 0; j < 8; j++) v[j] = of_##type(p[j] + at);                  \
  transpose(v);                                                             \
  for (int j = 0; j < 8; j++) *places[j] = v[j];
#define WRITE_BLOCK(type)                                                   \
  for (int j = 0; j < 8; j++) v[j] = *places[j];                            \
  transpose(v);                                                             \
  for (int j = 0; j < 8; j++) put_##type(p[j] + at, v[j]);
#else
#define BY_BLOCKS(type, COPY)
#endif

/* COPY for all numbers of some steps of a leaf, a row for each step, with its data as the type of its kind. */
#define NEXT (++i == l->count ? (i = 0, s++, row += size) : row)
#define FOR_ALL(type, COPY)                                              \
  {                                                                        \
    type *p[LANES];                                                        \
    for (int j = 0; j < LANES; j++) p[j] = (type *)l->data + start[j];     \
    int64_t at = 0, s = 0, i = 0;                                          \
    num *row = rows;                                                       \
    BY_BLOCKS(type, COPY)                                                     \
    for (; at < total; at++, NEXT)                                         \
      for (int j = 0; j < LANES; j++) COPY(type, p[j][s * l->step + i], LANE(row[i], j)) \
  }
#define READ(type, number, lane) lane = (real)number;
#define WRITE(type, number, lane) number = (type)lane;
#define FOR_LEAVES(COPY)                                                       \
  for (const leaf *l = leaves; l < leaves + n; rows += l->count, l++) {        \
    const int64_t total = steps * l->count;                                    \
    int64_t start[LANES];                                                      \
    for (int64_t j = 0; j < LANES; j++)                                        \
      start[j] = (flight + j < flights ? flight + j : flights - 1) * l->flight + k * l->step; \
    switch (l->kind) {                                                         \
      case FLOAT: FOR_ALL(double, COPY) break;                                 \
      case INTEGER: FOR_ALL(int64_t, COPY) break;                              \
      default: FOR_ALL(uint8_t, COPY)                                          \
    }                                                                          \
  }

enum { STEPS = 16 };

static int64_t width(const leaf *leaves, int64_t n) {
  int64_t total = 0;
  for (const leaf *l = leaves; l < leaves + n; l++) total += l->count;
  return total;
}

/* Numbers of steps k to k + steps, a row for each; lanes past the last flight repeat it. A leaf is read for several steps, since
   the processor fetches memory ahead only for a few places at a time. */
static void gather(num *rows, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k, int64_t steps) {
  const int64_t size = width(leaves, n);
  FOR_LEAVES(READ)
}

static void scatter(num *rows, const leaf *leaves, int64_t n, int64_t flight, int64_t flights, int64_t k,
                    int64_t steps) {
  const int64_t size = width(leaves, n);
  FOR_LEAVES(WRITE)
}

/* Estimates after every sample of every flight. Whether there was memory for it. The state that a step writes is that of the
   next column x. */
SEEN int run_flights(int64_t flights, int64_t steps, int64_t n_fixed, const leaf *fixed, int64_t n_samples,
                 const leaf *samples, int64_t n_estimates, const leaf *estimates) {
  const int64_t sample_at = width(fixed, n_fixed), sample_size = width(samples, n_samples);
  const int64_t estimate_size = width(estimates, n_estimates);
  num columns[2][STATE_AT + Y_SIZE];
  num *m = aligned_alloc(sizeof(num), (M_SIZE + 1 + STEPS * (sample_size + estimate_size)) * sizeof(num));
  if (!m) return 0;
  num *sample_rows = m + M_SIZE + 1, *estimate_rows = sample_rows + STEPS * sample_size;
  for (int64_t flight = 0; flight < flights; flight += LANES) {
    for (int i = 0; i < 2; i++) gather(columns[i], fixed, n_fixed, flight, flights, 0, 1);
    gather(columns[0] + sample_at, samples, n_samples, flight, flights, 0, 1);
    init(columns[0], columns[0] + STATE_AT, m);
    for (int64_t first = 0; first < steps; first += STEPS) {
      const int64_t count = steps - first < STEPS ? steps - first : STEPS;
      gather(sample_rows, samples, n_samples, flight, flights, first, count);
      for (int64_t k = 0; k < count; k++) {
        num *x = columns[(first + k) % 2], *y = columns[(first + k + 1) % 2] + STATE_AT;
        memcpy(x + sample_at, sample_rows + k * sample_size, sample_size * sizeof(num));
        step(x, y, m);
        memcpy(estimate_rows + k * estimate_size, y + STATE_SIZE, estimate_size * sizeof(num));
      }
      scatter(estimate_rows, estimates, n_estimates, flight, flights, first, count);
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
  scatter(y + STATE_SIZE, estimate, n, 0, 1, 0, 1);
}
#endif
