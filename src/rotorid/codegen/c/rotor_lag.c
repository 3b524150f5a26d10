/* Thrusts of rotors that follow their commands with a lag, their integrals, and the derivatives of both by some numbers.

     T' = (c - T) / tau         tau_up where c > T, else tau_down       c held from one command to the next
     or, with `speed`, the same of the roots of T and c

   See rotorid/numerics/lag.py for the closed form of a step. Arrays of derivatives have the numbers last. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Derivatives of a result of a step, by T and c at its start, by tau and by the length of the step. */
typedef struct {
  double by_thrust, by_command, by_lag, by_length;
} slope;

typedef struct {
  double end, integral;
  slope of_end, of_integral;
  int falls;
} step;

/* exp(-h / tau) with both lags. */
static void decays(double h, const double *lag, double *decay) {
  decay[0] = exp(-h / lag[0]);
  decay[1] = lag[1] == lag[0] ? decay[0] : exp(-h / lag[1]);
}

static step follow(int64_t speed, double least, double y, double c, double h, const double *lag, const double *decay) {
  double by_y = 1.0, by_c = 1.0;
  if (speed) {
    by_y = y > least ? 1.0 : y == least ? 0.5 : 0.0;
    by_c = c > least ? 1.0 : c == least ? 0.5 : 0.0;
    y = sqrt(y > least ? y : least);
    c = sqrt(c > least ? c : least);
    by_y *= 0.5 / y;
    by_c *= 0.5 / c;
  }
  step s;
  s.falls = !(c > y);
  const double tau = lag[s.falls], a = decay[s.falls], d = y - c, e = c + d * a, left = 1.0 - a;
  const double a_by_lag = a * h / (tau * tau), a_by_length = -a / tau;
  if (!speed) {
    s.end = e;
    s.integral = c * h + d * tau * left;
    s.of_end = (slope){a, left, d * a_by_lag, d * a_by_length};
    s.of_integral = (slope){tau * left, h - tau * left, d * (left - tau * a_by_lag), c - d * tau * a_by_length};
    return s;
  }
  const double square = 1.0 - a * a, by_a = -2.0 * c * d * tau - d * d * tau * a;
  s.end = e * e;
  s.integral = c * c * h + 2.0 * c * d * tau * left + 0.5 * (d * d) * tau * square;
  s.of_end = (slope){2.0 * e * a * by_y, 2.0 * e * left * by_c, 2.0 * e * d * a_by_lag, 2.0 * e * d * a_by_length};
  s.of_integral = (slope){
      (2.0 * c * tau * left + d * tau * square) * by_y,
      (2.0 * c * h + 2.0 * (y - 2.0 * c) * tau * left - d * tau * square) * by_c,
      2.0 * c * d * left + 0.5 * d * d * square + by_a * a_by_lag,
      c * c + by_a * a_by_length,
  };
  return s;
}

static void apply(
    int64_t count, slope s, const double *thrust, const double *command, const double *lag, const double *length, double factor,
    double *result) {
  const double by_length = factor * s.by_length;
  for (int64_t p = 0; p < count; p++)
    result[p] = s.by_thrust * thrust[p] + s.by_command * command[p] + s.by_lag * lag[p] + by_length * length[p];
}

/* Means over steps that end at given times, and thrusts at their ends. 0 without memory.

   n commands at times t: c and dc (of `rotors` each). lag: tau_up and tau_down, d_lag: their derivatives. steps: how many; each
   of the length dt (0: the mean is the thrust at its end) ends at `end`, at the command `last`, and begins at the command
   `first`. d_end: derivatives of both of its times. value, slopes: means of all rotors, then thrusts at the end. */
__attribute__((visibility("default"))) int rotor_lag(
    int64_t n, int64_t rotors, int64_t count, int64_t speed, double least, const double *t, const double *c, const double *dc,
    const double *lag, const double *d_lag, int64_t steps, const double *end, const double *dt, const int64_t *first,
    const int64_t *last, const double *d_end, double *value, double *slopes) {
  const int64_t width = rotors * count;
  double *T = malloc(sizeof(double) * (2 * n * (rotors + width) + 2 * count));
  if (!T) return 0;
  double *S = T + n * rotors, *dT = S + n * rotors, *dS = dT + n * width, *one = dS + n * width, *other = one + count;
  for (int64_t i = 0; i < rotors; i++) T[i] = c[i], S[i] = 0.0;
  for (int64_t i = 0; i < width; i++) dT[i] = dc[i], dS[i] = 0.0;
  double decay[2];
  for (int64_t k = 0; k + 1 < n; k++) {
    const double h = t[k + 1] - t[k];
    decays(h, lag, decay);
    for (int64_t i = 0; i < rotors; i++) {
      const int64_t now = k * rotors + i, next = now + rotors;
      const step s = follow(speed, least, T[now], c[now], h, lag, decay);
      const double *by_lag = d_lag + s.falls * count, *d_command = dc + now * count, *d_thrust = dT + now * count;
      T[next] = s.end;
      S[next] = S[now] + s.integral;
      apply(count, s.of_end, d_thrust, d_command, by_lag, d_end, 0.0, dT + next * count);
      apply(count, s.of_integral, d_thrust, d_command, by_lag, d_end, 0.0, dS + next * count);
      for (int64_t p = 0; p < count; p++) dS[next * count + p] += dS[now * count + p];
    }
  }
  for (int64_t k = 0; k < steps; k++) {
    double elapsed[2], after[2], decay_of[2][2];
    for (int before = 0; before <= (dt[k] > 0.0); before++) {
      elapsed[before] = (before ? end[k] - dt[k] : end[k]) - t[(before ? first : last)[k]];
      after[before] = elapsed[before] > 0.0 ? elapsed[before] : 0.0;
      decays(after[before], lag, decay_of[before]);
    }
    for (int64_t i = 0; i < rotors; i++) {
      double *mean = value + k * 2 * rotors + i, *thrust = mean + rotors;
      double *d_mean = slopes + (k * 2 * rotors + i) * count, *d_thrust = d_mean + width;
      double sum[2] = {0.0, 0.0};
      for (int before = 0; before <= (dt[k] > 0.0); before++) {
        const int64_t at = (before ? first : last)[k], row = at * rotors + i;
        const double moves = elapsed[before] > 0.0 ? 1.0 : elapsed[before] == 0.0 ? 0.5 : 0.0;
        const double early = elapsed[before] - after[before];
        const step s = follow(speed, least, T[row], c[row], after[before], lag, decay_of[before]);
        const double *by_lag = d_lag + s.falls * count, *d_command = dc + row * count;
        double *d_sum = before ? other : one;
        sum[before] = S[row] + s.integral + c[row] * early;
        apply(count, s.of_integral, dT + row * count, d_command, by_lag, d_end, moves, d_sum);
        for (int64_t p = 0; p < count; p++)
          d_sum[p] += dS[row * count + p] + d_command[p] * early + (1.0 - moves) * c[row] * d_end[p];
        if (!before) {
          *thrust = s.end;
          apply(count, s.of_end, dT + row * count, d_command, by_lag, d_end, moves, d_thrust);
        }
      }
      *mean = dt[k] > 0.0 ? (sum[0] - sum[1]) / dt[k] : *thrust;
      for (int64_t p = 0; p < count; p++) d_mean[p] = dt[k] > 0.0 ? (one[p] - other[p]) / dt[k] : d_thrust[p];
    }
  }
  free(T);
  return 1;
}
