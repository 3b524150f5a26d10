/* Rows of the torque balance, its filters, and the hypotheses of a loss of thrust.

   See torque_rows.py and filter_bank.py in rotorid/estimators/rotor_faults for the equations; names are those of their attributes.
   Arrays of a bank are by axis and filter first. Those of hypotheses then have sudden and gradual losses, onsets and rotors; xi has its states before these. */
#include <math.h>
#include <stdint.h>

enum { AXES = 3, STATES = 4, KINDS = 2 };

typedef struct {
  int64_t filters, onsets, rotors;
  double ramp, beta_drift, damping_drift, noise_time, likelihood_time, outlier;
  const double *g, *drifts;
  double *x, *P, *R, *likelihood, *correlation, *power, *last_e;
  double *correlation_before, *power_before, *R_before, *rows_since, *E, *lagged_E, *onset_times;
  double *S, *D, *last_nu, *lagged_S, *lagged_D, *xi;
} bank;

/* A new onset in a slot. */
static void begin(const bank *b, int64_t slot, double t) {
  const int64_t filters = AXES * b->filters, size = b->onsets * b->rotors;
  b->onset_times[slot] = t;
  b->rows_since[slot] = 0.0;
  for (int64_t k = 0; k < filters; k++) {
    b->correlation_before[slot * filters + k] = b->correlation[k];
    b->power_before[slot * filters + k] = b->power[k];
    b->R_before[slot * filters + k] = b->R[k];
    b->E[k * b->onsets + slot] = b->lagged_E[k * b->onsets + slot] = 0.0;
    for (int64_t kind = 0; kind < KINDS; kind++)
      for (int64_t r = 0; r < b->rotors; r++) {
        const int64_t at = (k * KINDS + kind) * size + slot * b->rotors + r;
        b->S[at] = b->D[at] = b->last_nu[at] = b->lagged_S[at] = b->lagged_D[at] = 0.0;
        for (int64_t s = 0; s < STATES; s++)
          b->xi[((k * STATES + s) * KINDS + kind) * size + slot * b->rotors + r] = 0.0;
      }
  }
}

/* The hypotheses of a kind, of a filter. torque: by each rotor. share: of the loss, by onset. */
static void advance(const bank *b, int64_t k, int64_t kind, int64_t used, const double *restrict torque, const double *share,
                    const double *H, const double *K, double root, double now, double before) {
  const int64_t size = b->onsets * b->rotors, at = (k * KINDS + kind) * size;
  double *restrict S = b->S + at, *restrict D = b->D + at, *restrict lagged_S = b->lagged_S + at;
  double *restrict lagged_D = b->lagged_D + at, *restrict last_nu = b->last_nu + at;
  double *restrict x0 = b->xi + (k * STATES * KINDS + kind) * size, *restrict x1 = x0 + KINDS * size;
  double *restrict x2 = x1 + KINDS * size, *restrict x3 = x2 + KINDS * size;
  for (int64_t onset = 0; onset < used; onset++)
    for (int64_t r = 0; r < b->rotors; r++) {
      const int64_t j = onset * b->rotors + r;
      const double nu = share[onset] * torque[r] - (H[0] * x0[j] + H[1] * x1[j] + H[2] * x2[j] + H[3] * x3[j]);
      const double scaled = nu / root, last = last_nu[j];
      S[j] += scaled * scaled;
      D[j] += scaled * now;
      lagged_S[j] += scaled * last;
      lagged_D[j] += 0.5 * (scaled * before + last * now);
      last_nu[j] = scaled;
      x0[j] += K[0] * nu;
      x1[j] += K[1] * nu;
      x2[j] += K[2] * nu;
      x3[j] += K[3] * nu;
    }
}

/* used: slots of onsets that were used. slot: of an onset that begins with this row, -1 for none. row: acceleration, thrust of
   each rotor, rate, products. loss_slot: of a loss that is taken as true, -1 for none. count: of the rows, with this one.
   shares, torque: room for KINDS of each onset, and for each rotor. */
__attribute__((visibility("default"))) void rotor_fault_step(
    const bank *b, int64_t used, int64_t slot, double t, double dt, const double *row, int64_t loss_slot, int64_t loss_rotor,
    double delta, double count, double *shares, double *torque) {
  if (slot >= 0) begin(b, slot, t);
  const double *acceleration = row, *thrust = row + AXES, *rate = thrust + b->rotors, *products = rate + AXES;
  for (int64_t onset = 0; onset < used; onset++) {
    const double since = (t + 0.5 * dt - b->onset_times[onset]) / b->ramp;
    shares[onset] = since >= 0.0 ? 1.0 : 0.0;
    shares[b->onsets + onset] = since >= 0.0 ? (since < 1.0 ? since : 1.0) : 0.0;
    b->rows_since[onset] += 1.0;
  }
  const double drift[STATES] = {0.0, b->beta_drift * b->beta_drift * dt, b->damping_drift * b->damping_drift * dt, 0.0};
  const double portion = fmax(dt / b->noise_time, 1.0 / (count + 2.0)), forgotten = exp(-dt / b->likelihood_time);
  for (int64_t axis = 0; axis < AXES; axis++) {
    const double H[STATES] = {1.0, acceleration[axis], rate[axis], products[axis]};
    double total = 0.0;
    for (int64_t r = 0; r < b->rotors; r++) total += torque[r] = b->g[axis * b->rotors + r] * thrust[r];
    for (int64_t filter = 0; filter < b->filters; filter++) {
      const int64_t k = axis * b->filters + filter;
      double *x = b->x + k * STATES, *P = b->P + k * STATES * STATES, PH[STATES], K[STATES];
      double V = b->R[k], e = total;
      P[0] += b->drifts[filter] * b->R[k] * dt;
      for (int64_t i = 1; i < STATES; i++) P[i * STATES + i] += drift[i];
      for (int64_t i = 0; i < STATES; i++) {
        PH[i] = 0.0;
        for (int64_t j = 0; j < STATES; j++) PH[i] += P[i * STATES + j] * H[j];
        V += PH[i] * H[i];
        e -= x[i] * H[i];
      }
      const double root = sqrt(V), now = e / root, before = b->last_e[k];
      for (int64_t i = 0; i < STATES; i++) K[i] = PH[i] / V;
      const int64_t taken = k * KINDS * b->onsets * b->rotors + loss_slot * b->rotors + loss_rotor;
      const double last_noise = loss_slot < 0 ? before : before - delta * b->last_nu[taken];
      for (int64_t kind = 0; kind < KINDS; kind++)
        advance(b, k, kind, used, torque, shares + kind * b->onsets, H, K, root, now, before);
      for (int64_t onset = 0; onset < used; onset++) {
        b->E[k * b->onsets + onset] += now * now;
        b->lagged_E[k * b->onsets + onset] += now * before;
      }
      const double noise = loss_slot < 0 ? now : now - delta * b->last_nu[taken];
      b->last_e[k] = now;
      for (int64_t i = 0; i < STATES; i++) {
        x[i] += K[i] * e;
        for (int64_t j = 0; j < STATES; j++) P[i * STATES + j] -= K[i] * PH[j];
      }
      const double ratio = fmin(noise * noise, b->outlier), product = fmax(-b->outlier, fmin(noise * last_noise, b->outlier));
      b->R[k] *= 1.0 + portion * (ratio - 1.0);
      b->correlation[k] += portion * (product - b->correlation[k]);
      b->power[k] += portion * (ratio - b->power[k]);
      b->likelihood[k] = b->likelihood[k] * forgotten - 0.5 * (log(V) + ratio);
    }
  }
}

/* The largest D^2 / S of sudden losses, of all onsets and rotors, summed over the axes that a rotor turns the body about.
   has_torque: by axis and rotor. */
__attribute__((visibility("default"))) double rotor_fault_evidence(const bank *b, int64_t used, const uint8_t *has_torque) {
  int64_t at[AXES];
  for (int64_t axis = 0; axis < AXES; axis++) {
    int64_t best = axis * b->filters;
    for (int64_t k = best; k < (axis + 1) * b->filters; k++)
      if (b->likelihood[k] > b->likelihood[best]) best = k;
    at[axis] = best * KINDS * b->onsets * b->rotors;
  }
  double most = 0.0;
  for (int64_t j = 0; j < used * b->rotors; j++) {
    double sum = 0.0;
    for (int64_t axis = 0; axis < AXES; axis++) {
      const double S = b->S[at[axis] + j], D = b->D[at[axis] + j];
      if (has_torque[axis * b->rotors + j % b->rotors]) sum += D * D / (S > 1e-300 ? S : 1e-300);
    }
    if (sum > most) most = sum;
  }
  return most;
}

/* See QuietRows in filter_bank.py. */
typedef struct {
  int64_t rows, every, next, used, count, is_enough;
  double since, learning, enough;
} quiet_rows;

/* Rows of `torque_rows` as long as no loss is refined and none shows. effectiveness: of each rotor. row: room for one.
   Returns how many were used: all, or those up to the first with enough evidence. */
__attribute__((visibility("default"))) int64_t rotor_fault_quiet_rows(
    const bank *b, quiet_rows *p, int64_t n, const double *rows, const double *effectiveness, const uint8_t *has_torque,
    double *shares, double *torque, double *row) {
  const int64_t columns = b->rotors + 11;
  p->is_enough = 0;
  for (int64_t k = 0; k < n; k++, rows += columns) {
    int64_t slot = -1;
    p->rows++;
    p->count++;
    p->since += rows[1];
    if (p->since > p->learning && p->rows % p->every == 0) {
      slot = p->next;
      p->next = (slot + 1) % b->onsets;
      if (slot >= p->used) p->used = slot + 1;
    }
    for (int64_t i = 0; i < columns - 2; i++) row[i] = rows[i + 2];
    for (int64_t i = 0; i < b->rotors; i++) row[AXES + i] *= effectiveness[i];
    rotor_fault_step(b, p->used, slot, rows[0], rows[1], row, -1, 0, 0.0, (double)p->count, shares, torque);
    if (p->since > p->learning && rotor_fault_evidence(b, p->used, has_torque) >= p->enough) {
      p->is_enough = 1;
      return k + 1;
    }
  }
  return n;
}

static void clear(double *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) v[i] = 0.0;
}

/* Rows of the torque balance of a flight, see torque_rows.py: as TorqueRows with each sample in turn.

   samples: number of them. restarts: whether a sample is left out and ends the stretch before. scratch: room for 4 rotors + 26.
   rows: of each row its time, step, acceleration, thrust of each rotor, rate and products. ends: the last sample of each row.
   Returns the number of rows. */
__attribute__((visibility("default"))) int64_t torque_rows(
    int64_t samples, int64_t rotors, double lag, double stretch, const double *gyroscopic, const double *t, const double *dt,
    const double *rate, const double *command, const uint8_t *restarts, double *scratch, double *rows, int64_t *ends) {
  const int64_t integrals = rotors + 6, means = rotors + 10;
  double *thrust = scratch, *integral = thrust + rotors, *sum = integral + integrals, *previous = sum + means;
  double length = 0.0;
  int64_t count = 0, found = 0;
  int has_thrust = 0, has_previous = 0;
  for (int64_t k = 0; k < samples; k++, command += rotors) {
    const double h = dt[k], *w = rate + 3 * k, products[3] = {w[1] * w[2], w[2] * w[0], w[0] * w[1]};
    const int is_gap = !has_thrust || h <= 0.0 || h > 4.0 * stretch;
    if (k == 0 || restarts[k] || is_gap) {
      has_previous = 0;
      count = 0;
      length = 0.0;
      clear(integral, integrals);
      clear(sum, means);
    }
    if (restarts[k]) continue;
    if (is_gap) {
      for (int64_t i = 0; i < rotors; i++) thrust[i] = command[i];
      has_thrust = 1;
      continue;
    }
    const double decay = lag > 0.0 ? exp(-h / lag) : 0.0, behind = lag * (1.0 - decay);
    for (int64_t i = 0; i < integrals; i++) {
      const double change =
          i < rotors ? command[i] * h + (thrust[i] - command[i]) * behind : h * (i < rotors + 3 ? products[i - rotors] : w[i - rotors - 3]);
      sum[i] += integral[i] + 0.5 * change;
      integral[i] += change;
    }
    for (int64_t i = 0; i < rotors; i++) thrust[i] = command[i] + (thrust[i] - command[i]) * decay;
    for (int64_t i = 0; i < 3; i++) sum[integrals + i] += w[i];
    sum[integrals + 3] += t[k] - 0.5 * h;
    count++;
    length += h;
    if (length < stretch - 0.25 * h) continue;
    for (int64_t i = 0; i < means; i++) sum[i] /= (double)count;
    if (has_previous) {
      double *row = rows + found * (rotors + 11);
      const double *now = sum;
      const double step = now[means - 1] - previous[means - 1];
      row[0] = 0.5 * (now[means - 1] + previous[means - 1]);
      row[1] = step;
      for (int64_t i = 0; i < integrals; i++) row[5 + i] = (now[i] - previous[i]) / step;
      /* products before rates in the integrals, after them in the row */
      for (int64_t i = 0; i < 3; i++) {
        const double product = row[5 + rotors + i];
        row[2 + i] = (now[integrals + i] - previous[integrals + i]) / step + gyroscopic[i] * product;
        row[5 + rotors + i] = row[8 + rotors + i];
        row[8 + rotors + i] = product;
      }
      ends[found++] = k;
    }
    for (int64_t i = 0; i < means; i++) previous[i] = sum[i];
    has_previous = 1;
    count = 0;
    length = 0.0;
    clear(sum, means);
  }
  return found;
}
