/* Epochs of Adam on the weights of a learned residual, and its losses (rotorid.learning.compiled).

   LANES windows are a vector, SIDE vectors a block. The blocks of a batch are divided into groups in a way that depends on the
   size of the batch alone. Threads take whole groups, and sums over groups have a fixed order, so the result does not depend on
   the number of threads. The gradient is that of the discrete steps: they are kept on a tape and run backwards.

   X, U: states and inputs; C, HELD, Z, O: constants, held values, varying inputs and outputs of the networks; HEADS; HIDDEN: nodes
   of all heads; WEIGHTS; M_SIZE: memory of the functions that are generated, whose first numbers are c, h and `extra`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define EXTRA (C + HELD)
#define BLOCK (SIDE * LANES)

/* A step on the tape: dt, held values, x z o of each stage, and y, the state before `end`. */
#define STAGE (X + Z + O)
#define AT_HELD 1
#define AT_STAGE(s) (1 + HELD + (s) * STAGE)
#define AT_Y AT_STAGE(4)
#define STEP (AT_Y + X)

typedef struct {
  const real *x, *u, *dt; /* rows */
  const int64_t *starts;  /* first rows of the windows, batch after batch */
  int64_t batches, size, horizon, group;
  const real *constants;
  const real *costs; /* weights of the squared errors after each step, of each head */
  real *weights, *mean, *square;
  double rate;
  int64_t count; /* steps of Adam before */
  double *gradients, *group_losses; /* of each group */
  double *losses;                   /* of each batch */
  int64_t threads;
  _Atomic int64_t next, arrived, turn, failed;
} job;

typedef struct {
  num *tape[SIDE], *m[SIDE];
  num *base, *start, *hidden_sums, *output_sums, *gradient;
  int64_t rows[BLOCK];
  num mask[SIDE];
} worker;

void stage_held(const num *x, num *y, num *m);
void stage_inputs(const num *x, num *y, num *m);
void stage_slope(const num *x, num *y, num *m);
void stage_slope_adjoint(const num *x, num *y, num *m);
void stage_inputs_adjoint(const num *x, num *y, num *m);
void stage_end(const num *x, num *y, num *m);
void stage_end_adjoint(const num *x, num *y, num *m);
void stage_cost(const num *x, num *y, num *m);

/* Weights of the slopes in the step, and of each in the next stage. */
static const double SHARE[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}, NEXT[3] = {0.5, 0.5, 1.0};

static void gather(const real *rows, int64_t width, const int64_t *starts, int64_t step, num *to) {
  for (int lane = 0; lane < LANES; lane++) {
    const real *from = rows + width * (starts[lane] + step);
    for (int64_t i = 0; i < width; i++) LANE(to[i], lane) = from[i];
  }
}

#define EACH(v) for (int v = 0; v < SIDE; v++)

/* The step `step` (from 1) of a block: t is its place on the tape, next the state after it. */
static void step_forward(const job *j, worker *k, int64_t step, num *const t[SIDE], num *const next[SIDE]) {
  const num *h[SIDE];
  EACH(v) {
    const int64_t *starts = k->rows + LANES * v;
    gather(j->u, U, starts, step, k->m[v] + EXTRA);
    gather(j->dt, 1, starts, step, t[v]);
    stage_held(NULL, t[v] + AT_HELD, k->m[v]);
    memcpy(k->m[v] + C, t[v] + AT_HELD, HELD * sizeof(num));
    h[v] = t[v] + AT_HELD;
  }
  networks_held(j->weights, h, k->base, k->start);
  for (int s = 0; s < 4; s++) {
    const num *z[SIDE];
    num *o[SIDE];
    EACH(v) {
      num *stage = t[v] + AT_STAGE(s);
      stage_inputs(stage, stage + X, k->m[v]);
      z[v] = stage + X;
      o[v] = stage + X + Z;
    }
    networks_forward(j->weights, k->base, k->start, z, o);
    EACH(v) {
      num *x = t[v] + AT_STAGE(0), *y = t[v] + AT_Y, slope[X];
      stage_slope(t[v] + AT_STAGE(s), slope, k->m[v]);
      const num share = t[v][0] * NUM(SHARE[s]);
      for (int i = 0; i < X; i++) y[i] = (s ? y[i] : x[i]) + share * slope[i];
      if (s == 3) continue;
      num *later = t[v] + AT_STAGE(s + 1);
      const num ahead = t[v][0] * NUM(NEXT[s]);
      for (int i = 0; i < X; i++) later[i] = x[i] + ahead * slope[i];
    }
  }
  EACH(v) stage_end(t[v] + AT_Y, next[v], k->m[v]);
}

/* From the gradient with respect to the state after a step to that before it, in place; adds to the gradient of the weights. */
static void step_adjoint(const job *j, worker *k, num *const t[SIDE], num (*bar)[X]) {
  const num *h[SIDE];
  num y_bar[SIDE][X], later[SIDE][X];
  EACH(v) {
    h[v] = t[v] + AT_HELD;
    memcpy(k->m[v] + C, h[v], HELD * sizeof(num));
    memcpy(k->m[v] + EXTRA, bar[v], sizeof bar[v]);
    stage_end_adjoint(t[v] + AT_Y, y_bar[v], k->m[v]);
    memcpy(bar[v], y_bar[v], sizeof bar[v]);
  }
  networks_held(j->weights, h, k->base, k->start);
  memset(k->hidden_sums, 0, SIDE * HIDDEN * sizeof(num));
  memset(k->output_sums, 0, SIDE * O * sizeof(num));
  for (int s = 3; s >= 0; s--) {
    num bars[SIDE][X + Z + O];
    const num *z[SIDE], *o_bar[SIDE];
    num *z_bar[SIDE];
    EACH(v) {
      num *slope_bar = k->m[v] + EXTRA;
      const num share = t[v][0] * NUM(SHARE[s]);
      for (int i = 0; i < X; i++) slope_bar[i] = share * y_bar[v][i];
      if (s < 3) {
        const num ahead = t[v][0] * NUM(NEXT[s]);
        for (int i = 0; i < X; i++) slope_bar[i] += ahead * later[v][i];
      }
      const num *stage = t[v] + AT_STAGE(s);
      stage_slope_adjoint(stage, bars[v], k->m[v]);
      z[v] = stage + X;
      z_bar[v] = bars[v] + X;
      o_bar[v] = bars[v] + X + Z;
    }
    networks_adjoint(j->weights, k->base, z, o_bar, z_bar, k->gradient, k->hidden_sums, k->output_sums);
    EACH(v) {
      memcpy(k->m[v] + EXTRA, z_bar[v], Z * sizeof(num));
      stage_inputs_adjoint(t[v] + AT_STAGE(s), later[v], k->m[v]);
      for (int i = 0; i < X; i++) {
        later[v][i] += bars[v][i];
        bar[v][i] += later[v][i];
      }
    }
  }
  networks_held_adjoint(j->weights, k->hidden_sums, k->output_sums, h, k->gradient);
}

/* The weighted squared error after a step, and its gradient with respect to the state x. */
static num cost(const job *j, worker *k, int v, int64_t step, const num *x, num *bar) {
  num *extra = k->m[v] + EXTRA, found[1 + X];
  gather(j->x, X, k->rows + LANES * v, step, extra);
  for (int b = 0; b < HEADS; b++) extra[X + b] = k->mask[v] * j->costs[HEADS * (step - 1) + b];
  stage_cost(x, found, k->m[v]);
  memcpy(bar, found + 1, X * sizeof(num));
  return found[0];
}

static double sum_of_lanes(num a) {
  double total = 0.0;
  for (int lane = 0; lane < LANES; lane++) total += LANE(a, lane);
  return total;
}

/* The loss of the block that begins at window `first` of those in starts .. starts + size. */
static double block(const job *j, worker *k, const int64_t *starts, int64_t first, int64_t size, int with_gradient) {
  for (int i = 0; i < BLOCK; i++) {
    k->rows[i] = starts[first + i < size ? first + i : size - 1];
    LANE(k->mask[i / LANES], i % LANES) = first + i < size;
  }
  num *t[SIDE], *next[SIDE], bar[SIDE][X], of_cost[X];
  double total = 0.0;
  EACH(v) gather(j->x, X, k->rows + LANES * v, 0, k->tape[v] + AT_STAGE(0));
  for (int64_t step = 1; step <= j->horizon; step++) {
    EACH(v) {
      t[v] = k->tape[v] + (with_gradient ? STEP * (step - 1) : 0);
      next[v] = with_gradient ? t[v] + STEP + AT_STAGE(0) : t[v] + AT_STAGE(0);
    }
    step_forward(j, k, step, t, next);
    if (!with_gradient) EACH(v) total += sum_of_lanes(cost(j, k, v, step, next[v], of_cost));
  }
  if (!with_gradient) return total;
  memset(bar, 0, sizeof bar);
  for (int64_t step = j->horizon; step >= 1; step--) {
    EACH(v) {
      t[v] = k->tape[v] + STEP * (step - 1);
      total += sum_of_lanes(cost(j, k, v, step, t[v] + STEP + AT_STAGE(0), of_cost));
      for (int i = 0; i < X; i++) bar[v][i] += of_cost[i];
    }
    step_adjoint(j, k, t, bar);
  }
  return total;
}

/* Take groups of a batch until none is left. */
static void groups(job *j, worker *k, const int64_t *starts, int with_gradient) {
  for (;;) {
    const int64_t group = atomic_fetch_add(&j->next, 1), first = group * j->group;
    if (first >= j->size) return;
    const int64_t last = first + j->group < j->size ? first + j->group : j->size;
    double total = 0.0;
    if (with_gradient) memset(k->gradient, 0, WEIGHTS * sizeof(num));
    for (int64_t i = first; i < last; i += BLOCK) total += block(j, k, starts, i, last, with_gradient);
    j->group_losses[group] = total;
    if (with_gradient)
      for (int i = 0; i < WEIGHTS; i++) j->gradients[group * WEIGHTS + i] = sum_of_lanes(k->gradient[i]);
  }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;

/* Where cores are free, the others arrive within microseconds; a thread that waits longer sleeps. */
static void wait_for_all(job *j) {
  const int64_t turn = atomic_load(&j->turn);
  if (atomic_fetch_add(&j->arrived, 1) == j->threads - 1) {
    pthread_mutex_lock(&mutex);
    atomic_store(&j->arrived, 0);
    atomic_store(&j->next, 0);
    atomic_fetch_add(&j->turn, 1);
    pthread_cond_broadcast(&all_here);
    pthread_mutex_unlock(&mutex);
    return;
  }
  for (int tries = 0; tries < 20000; tries++)
    if (atomic_load(&j->turn) != turn) return;
  pthread_mutex_lock(&mutex);
  while (atomic_load(&j->turn) == turn) pthread_cond_wait(&all_here, &mutex);
  pthread_mutex_unlock(&mutex);
}

static double sum_of_groups(const job *j, const double *values, int64_t step) {
  double total = 0.0;
  for (int64_t group = 0; group * j->group < j->size; group++) total += values[group * step];
  return total;
}

/* A step of Adam (D. P. Kingma, J. Ba, 2015) on a part of the weights. */
static void adam(job *j, int64_t batch, int64_t part) {
  const double count = (double)(j->count + batch + 1);
  const real a = 0.9, b = 0.999, a_left = 1.0 - pow(0.9, count), b_left = 1.0 - pow(0.999, count), rate = j->rate;
  for (int64_t i = WEIGHTS * part / j->threads; i < WEIGHTS * (part + 1) / j->threads; i++) {
    const real g = sum_of_groups(j, j->gradients + i, WEIGHTS);
    j->mean[i] = (1 - a) * g + a * j->mean[i];
    j->square[i] = (1 - b) * (g * g) + b * j->square[i];
    j->weights[i] -= rate * (j->mean[i] / a_left) / (IN_REAL(sqrt)(j->square[i] / b_left) + (real)1e-8);
  }
}

static num *numbers(int64_t count) { return aligned_alloc(64, (count * sizeof(num) / 64 + 1) * 64); }

static int allocate(const job *j, worker *k, int64_t steps) {
  memset(k, 0, sizeof *k);
  int complete = 1;
  EACH(v) {
    complete &= (k->tape[v] = numbers((steps + 1) * STEP)) && (k->m[v] = numbers(M_SIZE));
    if (k->m[v])
      for (int i = 0; i < C; i++) k->m[v][i] = NUM(j->constants[i]);
  }
  num **const arrays[] = {&k->base, &k->start, &k->hidden_sums, &k->output_sums, &k->gradient};
  const int64_t sizes[] = {SIDE * HIDDEN, SIDE * O, SIDE * HIDDEN, SIDE * O, WEIGHTS};
  for (int i = 0; i < 5; i++) complete &= (*arrays[i] = numbers(sizes[i])) != NULL;
  return complete;
}

static void release(worker *k) {
  EACH(v) free(k->tape[v]), free(k->m[v]);
  free(k->base), free(k->start), free(k->hidden_sums), free(k->output_sums), free(k->gradient);
}

/* An epoch, or (with_gradient 0) the loss of each batch. All threads call it with the same job. Not 0 if memory is missing. */
EXPORTED int run(job *j, int64_t thread, int with_gradient) {
  worker k;
  if (!allocate(j, &k, with_gradient ? j->horizon : 1)) atomic_store(&j->failed, 1);
  wait_for_all(j);
  for (int64_t batch = 0; batch < j->batches && !atomic_load(&j->failed); batch++) {
    groups(j, &k, j->starts + batch * j->size, with_gradient);
    wait_for_all(j);
    if (thread == 0) j->losses[batch] = sum_of_groups(j, j->group_losses, 1);
    if (with_gradient) adam(j, batch, thread);
    wait_for_all(j);
  }
  release(&k);
  return (int)atomic_load(&j->failed);
}
