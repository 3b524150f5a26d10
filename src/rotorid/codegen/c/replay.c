/* Replays a flight: a flight table of rotorid as CSV (`rotorid convert LOG flight.csv`), row by row, as a vehicle would.

   A cell may be empty: then that was not measured, or an input stays what it was. What a row says of a command acts until the
   next row; what it says of a rate is the mean rate up to it. While a column `airborne` says 0, nothing is estimated. Estimates
   go to stdout, one line a row. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define COLUMNS 512

static char line[1 << 16];
static double cells[COLUMNS]; /* of the present row, NAN where empty */
static const char *path;
static long row;

static int wrong(const char *what, const char *detail) {
  fprintf(stderr, "%s, line %ld: %s%s\n", path, row, what, detail);
  return 2;
}

/* The next line that is no comment, without its end; 0 at the end of the file, -1 where it is too long. */
static int next_line(FILE *file) {
  while (fgets(line, sizeof line, file)) {
    size_t length = strlen(line);
    row++;
    if (length == sizeof line - 1 && line[length - 1] != '\n') return -1;
    while (length && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
    if (length && line[0] != '#') return 1;
  }
  return 0;
}

/* Where a column stands in the header, -1 if nowhere. */
static int place_of(const char *name) {
  const size_t length = strlen(name);
  const char *cell = line;
  for (int place = 0;; place++) {
    const char *end = strchr(cell, ',');
    const size_t size = end ? (size_t)(end - cell) : strlen(cell);
    if (size == length && !strncmp(cell, name, length)) return place;
    if (!end) return -1;
    cell = end + 1;
  }
}

/* Splits the line into numbers; whether all cells are some. What a line lacks at its end is missing. */
static bool split(void) {
  char *cell = line;
  for (int place = 0; place < COLUMNS; place++) cells[place] = (double)NAN;
  for (int place = 0; place < COLUMNS; place++) {
    char *end = cell;
    if (*cell != ',' && *cell != '\0') cells[place] = strtod(cell, &end);
    if (*end != ',' && *end != '\0') return false;
    if (*end == '\0') return true;
    cell = end + 1;
  }
  return false;
}

static double cell_at(int place) { return place < 0 ? (double)NAN : cells[place]; }

/* Takes the inputs of this row: those that act until the next one, or those that acted until now. */
static void take_inputs(const int *places, bool until_next, bool *known) {
  for (int k = 0; k < COUNT(INPUTS); k++)
    if (INPUTS[k].until_next == until_next && !isnan(cell_at(places[k]))) {
      *INPUTS[k].to = (real)cell_at(places[k]);
      known[k] = true;
    }
}

static void take_measured(const int *places) {
  for (int b = 0; b < COUNT(MEASURED_BLOCKS); b++) {
    const int first = MEASURED_BLOCKS[b].first, last = first + MEASURED_BLOCKS[b].count;
    bool whole = true;
    for (int k = first; k < last; k++) {
      const double value = cell_at(places[k]);
      if (isnan(value)) whole = false;
      else *MEASURED[k].to = (real)value;
    }
    for (int i = 0; i < MEASURED_BLOCKS[b].flags; i++) MEASURED_BLOCKS[b].measured[i] = whole;
  }
}

static void show(double t) {
  printf("%.9g", t);
  for (int k = 0; k < COUNT(SHOWN); k++) printf(",%.12g", (double)*SHOWN[k].from);
  printf(",%s\n", HEALTH[estimate.health]);
}

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: %s FLIGHT.csv\n", arguments[0]);
    return 2;
  }
  path = arguments[1];
  FILE *file = fopen(path, "r");
  if (!file) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 2;
  }
  if (next_line(file) != 1) return wrong("no flight table: it begins with the names of its columns", "");
  const int time_at = place_of("t"), airborne_at = place_of("airborne");
  if (time_at < 0) return wrong("no column ", "t");
  int inputs_at[COUNT(INPUTS)], measured_at[COUNT(MEASURED)], found = 0;
  for (int k = 0; k < COUNT(INPUTS); k++)
    if ((inputs_at[k] = place_of(INPUTS[k].name)) < 0)
      return wrong("the estimator needs a column ", INPUTS[k].name);
  for (int k = 0; k < COUNT(MEASURED); k++) found += (measured_at[k] = place_of(MEASURED[k].name)) >= 0;
  if (!found) return wrong("nothing in it that the estimator measures, such as ", MEASURED[0].name);

  printf("t");
  for (int k = 0; k < COUNT(SHOWN); k++) printf(",%s", SHOWN[k].name);
  printf(",health\n");
  bool known[COUNT(INPUTS)] = {false};
  double last = (double)NAN, before = (double)NAN;
  bool airborne = true;
  int more;
  INIT();
  while ((more = next_line(file)) == 1) {
    if (!split()) return wrong("a cell is no number", "");
    const double t = cells[time_at];
    if (isnan(t)) return wrong("no time", "");
    if (t <= before) return wrong("the time goes back", "");
    before = t;
    take_inputs(inputs_at, false, known);
    if (!isnan(cell_at(airborne_at))) airborne = cell_at(airborne_at) > 0.5;
    bool ready = airborne;
    for (int k = 0; k < COUNT(INPUTS); k++) ready = ready && known[k];
    if (ready) {
      take_measured(measured_at);
      STEP((real)(isnan(last) ? 0.0 : t - last));
      last = t;
      show(t);
    }
    take_inputs(inputs_at, true, known);
  }
  if (more < 0) return wrong("the line is too long", "");
  if (isnan(last)) return wrong("no row in the air at which all inputs are known", "");
  fclose(file);
  return 0;
}
