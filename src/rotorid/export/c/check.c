/* Compares the filter with golden.csv: samples, and what JAX made of them in float64.

   A number may differ by TOLERANCE of itself or of its scale, which the second line of the file tells, whichever is more; what
   counts or is true or false, in DIFFERENT of the rows. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

static char line[1 << 16];
static const char *next;
static double scale[COUNT(WANTED)], largest[COUNT(WANTED)];
static long different[COUNT(WANTED)];

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
    const real dt = (real)number();
    for (int k = 0; k < COUNT(GIVEN); k++) *GIVEN[k] = (real)number();
    for (int k = 0; k < COUNT(FLAGS); k++) *FLAGS[k] = number() != 0.0;
    STEP(dt);
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
      printf("%s: off by %.3g of it, different in %ld rows\n", WANTED[k].name, part, different[k]);
      failed = 1;
    }
    if (part > largest[worst]) worst = k;
  }
  printf("%ld rows: %s; %s is off most, by %.3g of it (allowed: %.3g)\n", rows, failed ? "FAILED" : "agreed",
         WANTED[worst].name, largest[worst], (double)TOLERANCE);
  return failed;
}
