/* The rows [A B D r] of windows, from the derivatives of their steps and errors:

     J_k = H_k S_k + [0 E_k],  S_{k+1} = F_k (S_k - g w_k J_k) + [0 G_k],  S_0 = [I 0]

   J_k in sigma, 0 where there is no measurement. F, G, H, E lie with a row for each number that they are derivatives by, steps
   from one row of a window to the next. Of G and E: first `own` numbers; then `first` inputs that move with `by` numbers, by
   slopes at the row of E and at the next row for G; and further inputs that are numbers themselves, `direct` of them.

   The triangular factors of windows come from Householder reflections, of some rows at a time together with the triangle of
   all rows before: these rows stay in the first cache, and rows without a measurement cost nothing. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST 64 /* rows that are reduced at a time */

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

/* [to; rows] -= tau [1; v] [1; v]^T [to; rows], in so many vectors of columns; v numbers `width` apart in memory */
static inline __attribute__((always_inline)) void reflect_some(
    int64_t vectors, int64_t count, int64_t v, double tau, const double *reflector, eight *to, eight *rows) {
  eight w[4];
  for (int64_t q = 0; q < vectors; q++) w[q] = to[q];
  for (int64_t i = 0; i < count; i++)
    for (int64_t q = 0; q < vectors; q++) w[q] += reflector[i] * rows[i * v + q];
  for (int64_t q = 0; q < vectors; q++) {
    w[q] *= tau;
    to[q] -= w[q];
  }
  for (int64_t i = 0; i < count; i++)
    for (int64_t q = 0; q < vectors; q++) rows[i * v + q] -= reflector[i] * w[q];
}

static void reflect(
    int64_t vectors, int64_t count, int64_t v, double tau, const double *reflector, eight *to, eight *rows) {
  for (; vectors >= 4; vectors -= 4, to += 4, rows += 4) reflect_some(4, count, v, tau, reflector, to, rows);
  if (vectors == 3) reflect_some(3, count, v, tau, reflector, to, rows);
  if (vectors == 2) reflect_some(2, count, v, tau, reflector, to, rows);
  if (vectors == 1) reflect_some(1, count, v, tau, reflector, to, rows);
}

/* R of the QR decomposition of [R; rows], of `size` columns in v vectors */
static void reduce(int64_t size, int64_t count, int64_t v, eight *R, eight *rows) {
  double reflector[MOST];
  for (int64_t j = 0; j < size; j++) {
    double *column = (double *)rows + j, *head = (double *)(R + j * v) + j, squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
      reflector[i] = column[8 * v * i];
      squares += reflector[i] * reflector[i];
    }
    if (squares == 0.0) continue;
    const double norm = sqrt(squares + *head * *head), top = *head > 0.0 ? -norm : norm, first = *head - top;
    for (int64_t i = 0; i < count; i++) reflector[i] /= first;
    reflect(v - j / 8, count, v, -first / top, reflector, R + j * v + j / 8, rows + j / 8);
    *head = top;
  }
}

/* What the windows are computed from; the meaning of the members is that of the arguments of `sensitivities`. */
struct windows {
  int64_t rows, n, m, own, first, by, count;
  const int64_t *direct;
  const double *F, *G, *H, *E;
  int64_t f, g, h, e;
  const double *slopes, *gain, *weight, *sigma, *r;
};

static inline int64_t columns(const struct windows *a) { return a->n + a->own + a->by + a->count; }

/* J of a row of a window, where there is a measurement. J and S have v vectors for each of their rows. */
static void outputs(const struct windows *a, int64_t v, int64_t row, const eight *S, eight *J) {
  memset(J, 0, a->m * v * sizeof *J);
  const double *weight = a->weight + row * a->m;
  for (int64_t j = 0; j < a->n; j++)
    for (int64_t i = 0; i < a->m; i++)
      if (weight[i] != 0.0) add(v, a->H[row * a->h + j * a->m + i], S + j * v, J + i * v);
  for (int64_t i = 0; i < a->m; i++)
    if (weight[i] != 0.0)
      add_numbers(
          a->E + row * a->e, i, a->m, a->own, a->first, a->by, a->count, a->direct, a->slopes + row * a->first * a->by,
          (double *)(J + i * v) + a->n);
}

/* T: S of the next row. S is corrected by the measurements. */
static void next(const struct windows *a, int64_t v, int64_t row, const eight *J, eight *S, eight *T) {
  if (a->gain)
    for (int64_t i = 0; i < a->n; i++)
      for (int64_t j = 0; j < a->m; j++) add(v, -a->gain[i * a->m + j] * a->weight[row * a->m + j], J + j * v, S + i * v);
  memset(T, 0, a->n * v * sizeof *T);
  for (int64_t j = 0; j < a->n; j++)
    for (int64_t i = 0; i < a->n; i++) add(v, a->F[row * a->f + j * a->n + i], S + j * v, T + i * v);
  for (int64_t i = 0; i < a->n; i++)
    add_numbers(
        a->G + row * a->g, i, a->n, a->own, a->first, a->by, a->count, a->direct, a->slopes + (row + 1) * a->first * a->by,
        (double *)(T + i * v) + a->n);
}

static inline void start(const struct windows *a, int64_t v, eight *S) {
  memset(S, 0, a->n * v * sizeof *S);
  for (int64_t i = 0; i < a->n; i++) ((double *)(S + i * v))[i] = 1.0;
}

static inline void exchange(eight **S, eight **T) {
  eight *before = *S;
  *S = *T;
  *T = before;
}

/* found: the rows of each window. */
__attribute__((visibility("default"))) void sensitivities(int64_t windows, const struct windows *a, double *found) {
  const int64_t c = columns(a), v = (c + 7) / 8;
  eight one[a->n * v], other[a->n * v], J[a->m * v], *S = one, *T = other;
  for (int64_t window = 0; window < windows; window++) {
    start(a, v, S);
    for (int64_t k = 0; k < a->rows; k++) {
      const int64_t row = window * a->rows + k;
      outputs(a, v, row, S, J);
      if (k + 1 < a->rows) {
        next(a, v, row, J, S, T);
        exchange(&S, &T);
      }
      for (int64_t i = 0; i < a->m; i++) {
        double *to = found + (row * a->m + i) * (c + 1), size = a->weight[row * a->m + i] / a->sigma[i];
        for (int64_t q = 0; q < v; q++) J[i * v + q] *= size;
        memcpy(to, J + i * v, c * sizeof *to);
        to[c] = a->r[row * a->m + i];
      }
    }
  }
}

/* found: the triangular factor of the rows of each window, and of `more` further rows of each. */
__attribute__((visibility("default"))) void triangles(
    int64_t windows, const struct windows *a, int64_t more, const double *further, double *found) {
  const int64_t c = columns(a), v = c / 8 + 1;
  eight one[a->n * v], other[a->n * v], J[a->m * v], R[(c + 1) * v], block[MOST * v], *S = one, *T = other;
  for (int64_t window = 0; window < windows; window++) {
    int64_t filled = 0;
    memset(R, 0, sizeof R);
    memset(block, 0, sizeof block);
    for (int64_t i = 0; i < more; i++, filled++) {
      if (filled == MOST) {
        reduce(c + 1, filled, v, R, block);
        filled = 0;
      }
      memcpy(block + filled * v, further + (window * more + i) * (c + 1), (c + 1) * sizeof *further);
    }
    start(a, v, S);
    for (int64_t k = 0; k < a->rows; k++) {
      const int64_t row = window * a->rows + k;
      outputs(a, v, row, S, J);
      if (k + 1 < a->rows) {
        next(a, v, row, J, S, T);
        exchange(&S, &T);
      }
      for (int64_t i = 0; i < a->m; i++) {
        const double size = a->weight[row * a->m + i] / a->sigma[i];
        if (size == 0.0) continue;
        if (filled == MOST) {
          reduce(c + 1, filled, v, R, block);
          filled = 0;
        }
        for (int64_t q = 0; q < v; q++) block[filled * v + q] = size * J[i * v + q];
        ((double *)(block + filled * v))[c] = a->r[row * a->m + i];
        filled++;
      }
    }
    reduce(c + 1, filled, v, R, block);
    for (int64_t i = 0; i <= c; i++)
      for (int64_t j = 0; j <= c; j++)
        found[(window * (c + 1) + i) * (c + 1) + j] = j < i ? 0.0 : ((double *)(R + i * v))[j];
  }
}
