/* The rows [A B D r] of windows, from the derivatives of their steps and errors:

     J_k = H_k S_k + [0 E_k],  S_{k+1} = F_k (S_k - g w_k J_k) + [0 G_k],  S_0 = [I 0]

   J_k in sigma, 0 where there is no measurement. F, G, H, E lie with a row for each number that they are derivatives by, steps
   from one row of a window to the next. Of G and E: first `own` numbers; then `first` inputs that move with `by` numbers, by
   slopes at the row of E and at the next row for G; and further inputs that are numbers themselves, `direct` of them. */
#include <stdint.h>
#include <string.h>

typedef double eight __attribute__((vector_size(64)));

/* to += a x */
static inline void add(int64_t n, double a, const eight *x, eight *to) {
  if (a != 0.0)
    for (int64_t i = 0; i < n; i++) to[i] += a * x[i];
}

/* to += column i of what lies with a row of so many for each number, and which the inputs move */
static inline void add_numbers(
    const double *of, int64_t i, int64_t width, int64_t own, int64_t first, int64_t by, int64_t count, const int64_t *direct,
    const double *slopes, double *to) {
  for (int64_t k = 0; k < own; k++) to[k] += of[k * width + i];
  for (int64_t k = 0; k < first; k++) {
    const double a = of[(own + k) * width + i];
    if (a != 0.0)
      for (int64_t j = 0; j < by; j++) to[own + j] += a * slopes[k * by + j];
  }
  for (int64_t k = 0; k < count; k++) to[own + by + k] += of[(own + direct[k]) * width + i];
}

__attribute__((visibility("default"))) void sensitivities(
    int64_t windows, int64_t rows, int64_t n, int64_t m, int64_t own, int64_t first, int64_t by, int64_t count,
    const int64_t *direct, const double *F, int64_t f, const double *G, int64_t g, const double *H, int64_t h, const double *E,
    int64_t e, const double *slopes, const double *gain, const double *weight, const double *sigma, const double *r,
    double *found) {
  const int64_t c = n + own + by + count, v = (c + 7) / 8, of = first * by;
  eight one[n * v], other[n * v], J[m * v], *S = one, *T = other;
  for (int64_t window = 0; window < windows; window++) {
    memset(S, 0, sizeof one);
    for (int64_t i = 0; i < n; i++) ((double *)(S + i * v))[i] = 1.0;
    for (int64_t k = 0; k < rows; k++) {
      const int64_t row = window * rows + k;
      memset(J, 0, sizeof J);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) add(v, H[row * h + j * m + i], S + j * v, J + i * v);
      for (int64_t i = 0; i < m; i++)
        add_numbers(E + row * e, i, m, own, first, by, count, direct, slopes + row * of, (double *)(J + i * v) + n);
      if (k + 1 < rows) {
        if (gain)
          for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) add(v, -gain[i * m + j] * weight[row * m + j], J + j * v, S + i * v);
        memset(T, 0, sizeof one);
        for (int64_t j = 0; j < n; j++)
          for (int64_t i = 0; i < n; i++) add(v, F[row * f + j * n + i], S + j * v, T + i * v);
        for (int64_t i = 0; i < n; i++) {
          const double *next = slopes + (row + 1) * of;
          add_numbers(G + row * g, i, n, own, first, by, count, direct, next, (double *)(T + i * v) + n);
        }
        eight *before = S;
        S = T;
        T = before;
      }
      for (int64_t i = 0; i < m; i++) {
        double *to = found + (row * m + i) * (c + 1), size = weight[row * m + i] / sigma[i];
        for (int64_t q = 0; q < v; q++) J[i * v + q] *= size;
        memcpy(to, J + i * v, c * sizeof *to);
        to[c] = r[row * m + i];
      }
    }
  }
}
