/* Compares the filter with golden.csv: samples, and what JAX made of them in float64.

   A number may differ by TOLERANCE of itself or of its scale, which the second line of the file tells, whichever is more; what
   counts or is true or false, in DIFFERENT of the rows. With a number of rounds behind the file's name, it also tells how long a
   step takes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define KEPT 256

static char line[1 << 16];
static const char *next;
static double scale[COUNT(WANTED)], largest[COUNT(WANTED)];
static long different[COUNT(WANTED)];
static double samples[KEPT][1 + COUNT(GIVEN) + COUNT(FLAGS)]; /* the first of them */

static int next_line(FILE *file) {
  next = line;
  return fgets(line, sizeof line, file) && strchr(line, '\n');
}

static double number(void) {
  char *end;
  const double value = strtod(next, &end);
  if (end == next) {
    fprintf(stderr, "a line of the golden file is too short\n");
    exit(2);
  }
  next = *end == ',' ? end + 1 : end;
  return value;
}

static double got(int k) {
  switch (WANTED[k].kind) {
    case REAL: return (double)*(const real *)WANTED[k].at;
    case INTEGER: return *(const int *)WANTED[k].at;
    default: return *(const bool *)WANTED[k].at;
  }
}

static void step_with(const double *sample) {
  const real dt = (real)*sample++;
  for (int k = 0; k < COUNT(GIVEN); k++) *GIVEN[k] = (real)*sample++;
  for (int k = 0; k < COUNT(FLAGS); k++) *FLAGS[k] = *sample++ != 0.0;
  STEP(dt);
}

/* Time of a step in us, the shortest of the rounds. */
static double time_of_step(long rows, long rounds) {
  double shortest = HUGE_VAL;
  for (long k = 0; k < rounds; k++) {
    const clock_t start = clock();
    for (int repeat = 0; repeat < 10; repeat++) {
      INIT();
      for (long i = 0; i < rows; i++) step_with(samples[i]);
    }
    shortest = fmin(shortest, (double)(clock() - start) * 1e5 / CLOCKS_PER_SEC / (double)rows);
  }
  return shortest;
}

int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "golden.csv";
  FILE *file = fopen(path, "r");
  if (!file) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 2;
  }
  long rows = 0;
  if (!next_line(file) || !next_line(file)) {
    fprintf(stderr, "%s: not a golden file\n", path);
    return 2;
  }
  for (int k = 0; k < COUNT(WANTED); k++) scale[k] = number();
  INIT();
  while (next_line(file)) {
    double sample[1 + COUNT(GIVEN) + COUNT(FLAGS)];
    for (int k = 0; k < COUNT(sample); k++) sample[k] = number();
    if (rows < KEPT) memcpy(samples[rows], sample, sizeof sample);
    step_with(sample);
    rows++;
    for (int k = 0; k < COUNT(WANTED); k++) {
      const double want = number(), off = fabs(got(k) - want) / fmax(scale[k], fabs(want));
      if (WANTED[k].kind == REAL) largest[k] = off >= largest[k] || isnan(off) ? off : largest[k];
      else different[k] += off != 0.0;
    }
  }
  fclose(file);
  int failed = !rows;
  int worst = 0;
  for (int k = 0; k < COUNT(WANTED); k++) {
    const double part = largest[k], share = (double)different[k] / (double)(rows ? rows : 1);
    if (!(part <= TOLERANCE) || share > DIFFERENT) {
      printf("%s: largest difference %.3g of its scale, different in %ld rows\n", WANTED[k].name, part, different[k]);
      failed = 1;
    }
    if (part > largest[worst]) worst = k;
  }
  printf("%ld rows: %s; largest difference: %s, %.3g of its scale (allowed: %.3g)\n", rows,
         failed ? "FAILED" : "agreed", WANTED[worst].name, largest[worst], (double)TOLERANCE);
  const long rounds = count > 2 ? strtol(arguments[2], NULL, 10) : 0;
  if (rounds > 0 && rows) printf("%.3f us a step\n", time_of_step(rows < KEPT ? rows : KEPT, rounds));
  return failed;
}
