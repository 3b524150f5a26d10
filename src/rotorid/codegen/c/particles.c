/* What is done to a cloud of particles whatever its System, as custom calls of XLA. */
#include "custom_call.h"
#include "normals.h"
#include "num.h"
#include <math.h>
#include <stdlib.h>

/* stream -> standard normal numbers */
SEEN XLA_FFI_Error *draw(frame *f) {
  if (asked(f)) return 0;
  const int64_t n = size_of(result(f, 0), 1), filters = leading(result(f, 0), 1);
  for (int64_t filter = 0; filter < filters; filter++) {
    double *out = (double *)result(f, 0)->data + filter * n;
    source s;
    memcpy(&s, (const char *)argument(f, 0)->data + filter * sizeof s, sizeof s);
    for (int64_t i = 0; i < n; i += 8) {
      const eight e = normals(s, i);
      memcpy(out + i, &e, (n - i < 8 ? n - i : 8) * sizeof(double));
    }
  }
  return 0;
}

#define CHAINS 4

/* C_i = w_1 + ... + w_i; the total. In several chains, which need not wait for each other. */
static double prefix_sum(const double *w, double *C, int64_t n) {
  const int64_t size = n / CHAINS;
  double sums[CHAINS] = {0}, before = 0.0;
  for (int64_t i = 0; i < size; i++)
    for (int k = 0; k < CHAINS; k++) C[k * size + i] = sums[k] += w[k * size + i];
  for (int k = 0; k < CHAINS; k++) {
    for (int64_t i = 0; i < size; i++) C[k * size + i] += before;
    before += sums[k];
  }
  for (int64_t i = CHAINS * size; i < n; i++) C[i] = before += w[i];
  return before;
}

/* whether to resample, u, weights (sum 1) and their logarithms -> places of ancestors by the systematic scheme, and equal
   weights; else each particle's own */
SEEN XLA_FFI_Error *resample(frame *f) {
  if (asked(f)) return 0;
  const int64_t n = size_of(result(f, 0), 1), filters = leading(result(f, 0), 1);
  double *C = malloc(n * (sizeof(double) + sizeof(int32_t)));
  if (!C) return no_memory(f);
  int32_t *under = (int32_t *)(C + n); /* how many points lie under C_i */
  for (int64_t filter = 0; filter < filters; filter++) {
    int32_t *out = (int32_t *)result(f, 0)->data + filter * n;
    const double *weights = (const double *)argument(f, 2)->data + filter * n;
    double *w = (double *)result(f, 1)->data + filter * n, *l = (double *)result(f, 2)->data + filter * n;
    if (!((const uint8_t *)argument(f, 0)->data)[filter]) {
      for (int64_t i = 0; i < n; i++) out[i] = i;
      memcpy(w, weights, n * sizeof(double));
      memcpy(l, (const double *)argument(f, 3)->data + filter * n, n * sizeof(double));
      continue;
    }
    const double u = ((const double *)argument(f, 1)->data)[filter], points = n;
    const double total = prefix_sum(weights, C, n);
    for (int64_t i = 0; i < n; i++) {
      const double c = C[i] >= total || C[i] > 1.0 ? 1.0 : C[i], k = ceil(points * c - u);
      under[i] = (int32_t)(k < 0.0 ? 0.0 : k < points ? k : points);
    }
    /* The last that starts at a point has it, and those up to the next start. */
    memset(out, 0, n * sizeof(int32_t));
    int32_t start = 0, last = 0;
    for (int64_t i = 0; i < n && start < n; i++) {
      out[start] = i;
      start = under[i] > start ? under[i] : start;
    }
    for (int64_t i = 0; i < n; i++) out[i] = last = out[i] > last ? out[i] : last;
    const double equal = 1.0 / points, log_equal = -log(points);
    for (int64_t i = 0; i < n; i++) w[i] = equal, l[i] = log_equal;
  }
  free(C);
  return 0;
}

/* Numbers from place i on, -INFINITY past the last. */
static inline num some(const double *from, int64_t i, int64_t n) {
  num v = NUM(-INFINITY);
  if (n - i >= LANES)
    memcpy(&v, from + i, sizeof v);
  else
    memcpy(&v, from + i, (n - i) * sizeof(double));
  return v;
}

static inline void put(double *to, int64_t i, int64_t n, num v) {
  if (n - i >= LANES)
    memcpy(to + i, &v, sizeof v);
  else
    memcpy(to + i, &v, (n - i) * sizeof(double));
}

/* logarithms of weights, what they grow by, the weights before and their logarithms -> weights (sum 1), their logarithms,
   the logarithm of their sum before, whether there was any weight (else they are as before), 1 / sum of squares */
SEEN XLA_FFI_Error *weigh(frame *f) {
  if (asked(f)) return 0;
  const int64_t n = size_of(result(f, 0), 1), filters = leading(result(f, 0), 1);
  for (int64_t filter = 0; filter < filters; filter++) {
    const double *old = (const double *)argument(f, 0)->data + filter * n;
    const double *density = (const double *)argument(f, 1)->data + filter * n;
    const double *before = (const double *)argument(f, 2)->data + filter * n;
    double *w = (double *)result(f, 0)->data + filter * n, *l = (double *)result(f, 1)->data + filter * n;
    double *gained = (double *)result(f, 2)->data + filter, *size = (double *)result(f, 4)->data + filter;
    uint8_t *alive = (uint8_t *)result(f, 3)->data + filter;
    double top = -INFINITY, total = 0.0, squares = 0.0;
    num tops = NUM(-INFINITY);
    for (int64_t i = 0; i < n; i += LANES) {
      const num v = some(old, i, n) + some(density, i, n);
      const num sound = SELECT(MASK(v < NUM(INFINITY)), v, NUM(-INFINITY)); /* so where it is no number, too */
      tops = SELECT(MASK(sound > tops), sound, tops);
      put(l, i, n, sound);
    }
    for (int i = 0; i < LANES; i++) top = tops[i] > top ? tops[i] : top;
    *alive = top > -INFINITY;
    num sums = {0}, of_squares = {0};
    for (int64_t i = 0; *alive && i < n; i += LANES) {
      const num v = num_exp(some(l, i, n) - NUM(top));
      sums += v;
      of_squares += v * v;
      put(w, i, n, v);
    }
    if (*alive) {
      for (int i = 0; i < LANES; i++) total += sums[i], squares += of_squares[i];
      *gained = top + log(total);
      *size = total * total / squares;
      const double share = 1.0 / total, g = *gained;
      for (int64_t i = 0; i < n; i++) w[i] *= share, l[i] -= g;
    } else {
      memcpy(w, before, n * sizeof(double));
      memcpy(l, old, n * sizeof(double));
      *gained = -INFINITY;
      for (int64_t i = 0; i < n; i++) squares += w[i] * w[i];
      *size = 1.0 / squares;
    }
  }
  return 0;
}

#define PIECE 512

static inline eight load(const double *from) {
  eight v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* Of two pieces. */
static double product(const double *a, const double *b) {
  eight s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (int i = 0; i < PIECE; i += 32) {
    s0 += load(a + i) * load(b + i);
    s1 += load(a + i + 8) * load(b + i + 8);
    s2 += load(a + i + 16) * load(b + i + 16);
    s3 += load(a + i + 24) * load(b + i + 24);
  }
  const eight s = (s0 + s1) + (s2 + s3);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* A piece of a row, with zeros past its end. */
static const double *piece(const double *row, int64_t start, int64_t n, double *scratch) {
  if (n - start >= PIECE) return row + start;
  memset(scratch, 0, PIECE * sizeof(double));
  memcpy(scratch, row + start, (n - start) * sizeof(double));
  return scratch;
}

/* numbers (k a particle), weights (sum 1) -> their mean and covariance */
SEEN XLA_FFI_Error *moments(frame *f) {
  if (asked(f)) return 0;
  const XLA_FFI_Buffer *numbers = argument(f, 0);
  const int64_t n = size_of(numbers, 1), k = size_of(numbers, 2), filters = leading(numbers, 2);
  double *away = aligned_alloc(64, (k + 3) * PIECE * sizeof(double));
  if (!away) return no_memory(f);
  double *weighted = away + k * PIECE, *of_x = weighted + PIECE, *of_w = of_x + PIECE;
  for (int64_t filter = 0; filter < filters; filter++) {
    const double *x = (const double *)numbers->data + filter * k * n;
    const double *weights = (const double *)argument(f, 1)->data + filter * n;
    double *mean = (double *)result(f, 0)->data + filter * k, *P = (double *)result(f, 1)->data + filter * k * k;
    memset(mean, 0, k * sizeof(double));
    memset(P, 0, k * k * sizeof(double));
    for (int64_t start = 0; start < n; start += PIECE) {
      const double *w = piece(weights, start, n, of_w);
      for (int64_t r = 0; r < k; r++) mean[r] += product(w, piece(x + r * n, start, n, of_x));
    }
    for (int64_t start = 0; start < n; start += PIECE) {
      const double *w = piece(weights, start, n, of_w);
      for (int64_t r = 0; r < k; r++) {
        const double *row = piece(x + r * n, start, n, of_x);
        double *d = away + r * PIECE;
        const eight m = (eight){0} + mean[r];
        for (int i = 0; i < PIECE; i += 8) {
          const eight v = load(row + i) - m, u = v * load(w + i);
          memcpy(d + i, &v, sizeof v);
          memcpy(weighted + i, &u, sizeof u);
        }
        for (int64_t c = 0; c <= r; c++) P[r * k + c] += product(weighted, away + c * PIECE);
      }
    }
    for (int64_t r = 0; r < k; r++)
      for (int64_t c = 0; c < r; c++) P[c * k + r] = P[r * k + c];
  }
  free(away);
  return 0;
}
