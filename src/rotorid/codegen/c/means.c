/* Means of a signal over windows, and Huber's mean of rows: see rotorid/identification/trends/means.py. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The integral from times[0] to t, by trapezoids; cumulative: up to each of the m times. Outside, the ends count. */
static void integral(int64_t m, int64_t k, const double *times, const double *values, const double *cumulative, double t,
                     double *result) {
  int64_t low = 0, high = m; /* the number of times that are not after t */
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  int64_t i = low - 1;
  if (i > m - 2) i = m - 2;
  if (i < 0) i = 0;
  const double length = times[i + 1] - times[i];
  double remainder = t - times[i];
  if (remainder < 0.0) remainder = 0.0;
  if (remainder > length) remainder = length;
  for (int64_t j = 0; j < k; j++) {
    const double start = values[k * i + j], slope = (values[k * (i + 1) + j] - start) / length;
    result[j] = cumulative[k * i + j] + remainder * (start + 0.5 * slope * remainder);
  }
}

/* Means of m rows of k values over w windows. Returns 0 without memory. */
__attribute__((visibility("default"))) int64_t window_means(int64_t m, int64_t k, const double *times, const double *values,
                                                            int64_t w, const double *starts, double width, double *means) {
  double *cumulative = calloc(m * k, sizeof *cumulative), *end = malloc(k * sizeof *end);
  const int has_room = cumulative && end;
  if (has_room) {
    for (int64_t i = 1; i < m; i++)
      for (int64_t j = 0; j < k; j++) {
        const double area = 0.5 * (values[k * i + j] + values[k * (i - 1) + j]) * (times[i] - times[i - 1]);
        cumulative[k * i + j] = cumulative[k * (i - 1) + j] + area;
      }
    for (int64_t i = 0; i < w; i++) {
      integral(m, k, times, values, cumulative, starts[i], means + k * i);
      integral(m, k, times, values, cumulative, starts[i] + width, end);
      for (int64_t j = 0; j < k; j++) means[k * i + j] = (end[j] - means[k * i + j]) / width;
    }
  }
  free(cumulative);
  free(end);
  return has_room;
}

/* The value of this rank among n, which are put in another order: Hoare's selection. */
static double ranked(double *a, int64_t n, int64_t rank) {
  int64_t first = 0, last = n - 1;
  while (first < last) {
    const double pivot = a[(first + last) / 2];
    int64_t i = first, j = last;
    while (i <= j) {
      while (a[i] < pivot) i++;
      while (pivot < a[j]) j--;
      if (i <= j) {
        const double other = a[i];
        a[i++] = a[j];
        a[j--] = other;
      }
    }
    if (rank <= j) last = j;
    else if (rank >= i) first = i;
    else break;
  }
  return a[rank];
}

/* The median of n numbers, which are put in another order. */
static double median(double *a, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (isnan(a[i])) return NAN;
  const double upper = ranked(a, n, n / 2);
  if (n % 2) return upper;
  double lower = a[0];
  for (int64_t i = 1; i < n / 2; i++) lower = a[i] > lower ? a[i] : lower;
  return 0.5 * (lower + upper);
}

/* Huber's mean of n rows of k numbers, and the weights. limit: standard deviations from which the weight is less than 1.
   Returns 0 without memory. */
__attribute__((visibility("default"))) int64_t huber_mean(int64_t n, int64_t k, const double *z, double limit, int64_t steps,
                                                          double *centre, double *weight) {
  double *column = malloc(n * sizeof *column), *spread = malloc(2 * k * sizeof *spread), *sum = spread + k;
  const int has_room = column && spread;
  if (has_room) {
    for (int64_t j = 0; j < k; j++) {
      for (int64_t i = 0; i < n; i++) column[i] = z[k * i + j];
      centre[j] = median(column, n);
      for (int64_t i = 0; i < n; i++) column[i] = fabs(z[k * i + j] - centre[j]);
      spread[j] = 1.4826 * median(column, n) + 1e-12;
    }
    for (int64_t step = 0, is_moving = 1; step < steps && is_moving; step++) {
      double total = 0.0;
      memset(sum, 0, k * sizeof *sum);
      for (int64_t i = 0; i < n; i++) {
        const double *row = z + k * i;
        double deviation = 1e-12;
        for (int64_t j = 0; j < k; j++) {
          const double d = fabs(row[j] - centre[j]) / spread[j];
          deviation = d <= deviation || isnan(deviation) ? deviation : d;
        }
        weight[i] = deviation > limit ? limit / deviation : isnan(deviation) ? deviation : 1.0;
        total += weight[i];
        for (int64_t j = 0; j < k; j++) sum[j] += weight[i] * row[j];
      }
      is_moving = 0;
      for (int64_t j = 0; j < k; j++) {
        const double next = sum[j] / total;
        is_moving |= next != centre[j];
        centre[j] = next;
      }
    }
  }
  free(column);
  free(spread);
  return has_room;
}
