/* FMI 3.0 over the functions of a System (model.h): Model Exchange and Co-Simulation, C99, no library but libm.
 *
 * Every variable is a double; its value reference is its place in `values`: time, states, derivatives, inputs, parameters,
 * outputs. The steps of Co-Simulation keep quaternions at unit length. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

enum { OK = 0, DISCARD = 2, ERROR = 3 };

typedef struct {
  double values[SIZE];
  bool is_current; /* whether derivatives and outputs are those of the other values */
} Model;

static int evaluate(Model *m) {
  if (m->is_current) return OK;
  const double *in[] = {m->values + X, m->values + U, m->values + P};
  double *rates[] = {m->values + DX}, *outputs[] = {m->values + Y};
  static long long no_integers[1 + INTEGERS];
  double work[1 + WORK];
  if (dynamics(in, rates, no_integers, work, 0) || observe(in, outputs, no_integers, work, 0)) return ERROR;
  m->is_current = true;
  return OK;
}

static void reset(Model *m) {
  memset(m->values, 0, sizeof m->values);
  memcpy(m->values + X, START_X, sizeof START_X);
  memcpy(m->values + U, START_U, sizeof START_U);
  memcpy(m->values + P, START_P, sizeof START_P);
  m->is_current = false;
}

static Model *instantiate(const char *token) {
  if (token == NULL || strcmp(token, TOKEN) != 0) return NULL;
  Model *m = malloc(sizeof *m);
  if (m != NULL) reset(m);
  return m;
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, void *environment, void *log) {
  (void)name, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
  return instantiate(token);
}

EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                         bool logging, bool events, bool early_return, const uint32_t *intermediate,
                                         size_t n, void *environment, void *log, void *update) {
  (void)name, (void)resources, (void)visible, (void)logging, (void)early_return, (void)intermediate, (void)n;
  (void)environment, (void)log, (void)update;
  return events ? NULL : instantiate(token);
}

EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, bool visible,
                                               bool logging, void *environment, void *log, void *clock, void *lock,
                                               void *unlock) {
  (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log, (void)clock;
  (void)lock, (void)unlock;
  return NULL;
}

EXPORT void fmi3FreeInstance(void *m) { free(m); }

EXPORT int fmi3Reset(void *m) {
  reset(m);
  return OK;
}

EXPORT int fmi3EnterInitializationMode(void *m, bool has_tolerance, double tolerance, double start, bool has_stop,
                                       double stop) {
  (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
  ((Model *)m)->values[0] = start;
  return OK;
}

EXPORT int fmi3GetFloat64(void *instance, const uint32_t *references, size_t n, double *values, size_t n_values) {
  Model *m = instance;
  if (n != n_values) return ERROR;
  for (size_t i = 0; i < n; i++) {
    if (references[i] >= SIZE) return ERROR;
    bool is_computed = (references[i] >= DX && references[i] < U) || references[i] >= Y;
    if (is_computed && evaluate(m) != OK) return ERROR;
    values[i] = m->values[references[i]];
  }
  return OK;
}

EXPORT int fmi3SetFloat64(void *instance, const uint32_t *references, size_t n, const double *values, size_t n_values) {
  Model *m = instance;
  if (n != n_values) return ERROR;
  for (size_t i = 0; i < n; i++) {
    uint32_t r = references[i];
    bool can_be_set = (r >= X && r < DX) || (r >= U && r < Y);
    if (!can_be_set) return ERROR;
    m->values[r] = values[i];
  }
  m->is_current = false;
  return OK;
}

EXPORT int fmi3SetTime(void *m, double time) {
  ((Model *)m)->values[0] = time;
  return OK;
}

EXPORT int fmi3GetNumberOfContinuousStates(void *m, size_t *n) {
  (void)m;
  *n = DX - X;
  return OK;
}

EXPORT int fmi3GetNumberOfEventIndicators(void *m, size_t *n) {
  (void)m;
  *n = 0;
  return OK;
}

EXPORT int fmi3GetContinuousStates(void *m, double *states, size_t n) {
  if (n != DX - X) return ERROR;
  memcpy(states, ((Model *)m)->values + X, n * sizeof *states);
  return OK;
}

EXPORT int fmi3SetContinuousStates(void *m, const double *states, size_t n) {
  if (n != DX - X) return ERROR;
  memcpy(((Model *)m)->values + X, states, n * sizeof *states);
  ((Model *)m)->is_current = false;
  return OK;
}

EXPORT int fmi3GetContinuousStateDerivatives(void *m, double *rates, size_t n) {
  if (n != DX - X || evaluate(m) != OK) return ERROR;
  memcpy(rates, ((Model *)m)->values + DX, n * sizeof *rates);
  return OK;
}

EXPORT int fmi3GetNominalsOfContinuousStates(void *m, double *nominals, size_t n) {
  (void)m;
  for (size_t i = 0; i < n; i++) nominals[i] = 1.0;
  return OK;
}

EXPORT int fmi3CompletedIntegratorStep(void *m, bool no_earlier_state, bool *event, bool *terminate) {
  (void)m, (void)no_earlier_state;
  *event = *terminate = false;
  return OK;
}

EXPORT int fmi3UpdateDiscreteStates(void *m, bool *again, bool *terminate, bool *nominals, bool *states, bool *has_next,
                                    double *next) {
  (void)m;
  *again = *terminate = *nominals = *states = *has_next = false;
  *next = 0.0;
  return OK;
}

EXPORT int fmi3DoStep(void *instance, double time, double duration, bool no_earlier_state, bool *event, bool *terminate,
                      bool *early_return, double *last) {
  (void)no_earlier_state;
  Model *m = instance;
  *event = *terminate = *early_return = false;
  *last = time;
  if (!(duration > 0.0)) return DISCARD;
  int count = (int)(duration / MAX_STEP + 1.0 - 1e-9);
  double next[DX - X], dt = duration / count, work[1 + WORK];
  static long long no_integers[1 + INTEGERS];
  const double *in[] = {m->values + X, m->values + U, m->values + P, &dt};
  double *out[] = {next};
  for (int i = 0; i < count; i++) {
    if (step(in, out, no_integers, work, 0)) return ERROR;
    memcpy(m->values + X, next, sizeof next);
  }
  m->values[0] = *last = time + duration;
  m->is_current = false;
  return OK;
}

EXPORT int fmi3SetDebugLogging(void *m, bool on, size_t n, const char *const *categories) {
  (void)m, (void)on, (void)n, (void)categories;
  return OK;
}

/* Changes of mode, which need nothing. */
#define MODE(name) \
  EXPORT int name(void *m) { return m == NULL ? ERROR : OK; }
MODE(fmi3ExitInitializationMode)
MODE(fmi3EnterEventMode)
MODE(fmi3EnterContinuousTimeMode)
MODE(fmi3Terminate)
MODE(fmi3EnterConfigurationMode)
MODE(fmi3ExitConfigurationMode)
MODE(fmi3EvaluateDiscreteStates)
MODE(fmi3EnterStepMode)

/* What the description does not announce: an error. */
#define GET(name, type)                                                                               \
  EXPORT int name(void *m, const uint32_t *references, size_t n, type *values, size_t n_values) {     \
    (void)m, (void)references, (void)values, (void)n_values;                                          \
    return n == 0 ? OK : ERROR;                                                                       \
  }
#define BOTH(suffix, type)          \
  GET(fmi3Get##suffix, type)        \
  GET(fmi3Set##suffix, const type)
BOTH(Float32, float)
BOTH(Int8, int8_t)
BOTH(UInt8, uint8_t)
BOTH(Int16, int16_t)
BOTH(UInt16, uint16_t)
BOTH(Int32, int32_t)
BOTH(UInt32, uint32_t)
BOTH(Int64, int64_t)
BOTH(UInt64, uint64_t)
BOTH(Boolean, bool)
GET(fmi3GetString, const char *)
GET(fmi3SetString, const char *const)

#define NONE(name, ...) \
  EXPORT int name(__VA_ARGS__)
#define FAIL(a)     \
  {                 \
    (void)a;        \
    return ERROR;   \
  }
#define LIST void *m, const uint32_t *r, size_t n
NONE(fmi3GetBinary, LIST, size_t *sizes, const uint8_t **values, size_t k) { (void)r, (void)n, (void)sizes, (void)values, (void)k; FAIL(m) }
NONE(fmi3SetBinary, LIST, const size_t *sizes, const uint8_t *const *values, size_t k) { (void)r, (void)n, (void)sizes, (void)values, (void)k; FAIL(m) }
NONE(fmi3GetClock, LIST, bool *values) { (void)r, (void)n, (void)values; FAIL(m) }
NONE(fmi3SetClock, LIST, const bool *values) { (void)r, (void)n, (void)values; FAIL(m) }
NONE(fmi3GetNumberOfVariableDependencies, void *m, uint32_t r, size_t *n) { (void)r, (void)n; FAIL(m) }
NONE(fmi3GetVariableDependencies, void *m, uint32_t r, size_t *a, uint32_t *b, size_t *c, int *kinds, size_t n) { (void)r, (void)a, (void)b, (void)c, (void)kinds, (void)n; FAIL(m) }
NONE(fmi3GetFMUState, void *m, void **state) { (void)state; FAIL(m) }
NONE(fmi3SetFMUState, void *m, void *state) { (void)state; FAIL(m) }
NONE(fmi3FreeFMUState, void *m, void **state) { (void)state; FAIL(m) }
NONE(fmi3SerializedFMUStateSize, void *m, void *state, size_t *n) { (void)state, (void)n; FAIL(m) }
NONE(fmi3SerializeFMUState, void *m, void *state, uint8_t *bytes, size_t n) { (void)state, (void)bytes, (void)n; FAIL(m) }
NONE(fmi3DeserializeFMUState, void *m, const uint8_t *bytes, size_t n, void **state) { (void)state, (void)bytes, (void)n; FAIL(m) }
#define DIRECTION LIST, const uint32_t *k, size_t nk, const double *seed, size_t ns, double *out, size_t no
NONE(fmi3GetDirectionalDerivative, DIRECTION) { (void)r, (void)n, (void)k, (void)nk, (void)seed, (void)ns, (void)out, (void)no; FAIL(m) }
NONE(fmi3GetAdjointDerivative, DIRECTION) { (void)r, (void)n, (void)k, (void)nk, (void)seed, (void)ns, (void)out, (void)no; FAIL(m) }
NONE(fmi3GetIntervalDecimal, LIST, double *a, int *q) { (void)r, (void)n, (void)a, (void)q; FAIL(m) }
NONE(fmi3GetIntervalFraction, LIST, uint64_t *a, uint64_t *b, int *q) { (void)r, (void)n, (void)a, (void)b, (void)q; FAIL(m) }
NONE(fmi3GetShiftDecimal, LIST, double *a) { (void)r, (void)n, (void)a; FAIL(m) }
NONE(fmi3GetShiftFraction, LIST, uint64_t *a, uint64_t *b) { (void)r, (void)n, (void)a, (void)b; FAIL(m) }
NONE(fmi3SetIntervalDecimal, LIST, const double *a) { (void)r, (void)n, (void)a; FAIL(m) }
NONE(fmi3SetIntervalFraction, LIST, const uint64_t *a, const uint64_t *b) { (void)r, (void)n, (void)a, (void)b; FAIL(m) }
NONE(fmi3SetShiftDecimal, LIST, const double *a) { (void)r, (void)n, (void)a; FAIL(m) }
NONE(fmi3SetShiftFraction, LIST, const uint64_t *a, const uint64_t *b) { (void)r, (void)n, (void)a, (void)b; FAIL(m) }
NONE(fmi3GetEventIndicators, void *m, double *a, size_t n) { (void)m, (void)a; return n == 0 ? OK : ERROR; }
NONE(fmi3GetOutputDerivatives, LIST, const int32_t *orders, double *a, size_t k) { (void)r, (void)n, (void)orders, (void)a, (void)k; FAIL(m) }
NONE(fmi3ActivateModelPartition, void *m, uint32_t clock, double time) { (void)clock, (void)time; FAIL(m) }
