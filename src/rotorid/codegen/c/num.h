/* Arithmetic on `num`: a real, or a vector of LANES reals. A truth value is a `mask`: all bits set, or none. A real is a double,
   or a float where SINGLE is defined. */
#ifndef ROTORID_NUM_H
#define ROTORID_NUM_H
#include <math.h>
#include <stdint.h>

#ifndef LANES
#define LANES 1
#endif

#ifdef SINGLE
typedef float real;
typedef int32_t real_bits;
#define IN_REAL(name) name##f
#else
typedef double real;
typedef int64_t real_bits;
#define IN_REAL(name) name
#endif

#if LANES == 1
typedef real num;
typedef real_bits mask;
#define NUM(c) ((real)(c))
#define MASK(condition) (-(mask)(condition))
#define SELECT(m, yes, no) ((m) ? (yes) : (no))
#define PUT_MASK(m) ((real)(m))
#define GET_MASK(w) ((mask)(w))
#define LANE(v, i) (v)
#else
typedef real num __attribute__((vector_size(sizeof(real) * LANES)));
typedef real_bits mask __attribute__((vector_size(sizeof(real) * LANES)));
#define NUM(c) ((num){0} + (real)(c))
#define MASK(condition) (condition)
#define SELECT(m, yes, no) ((num)(((m) & (mask)(yes)) | (~(m) & (mask)(no))))
#define PUT_MASK(m) ((num)(m))
#define GET_MASK(w) ((mask)(w))
#define LANE(v, i) ((v)[i])
#endif

#define NOT(m) (~(m))
#define ZERO NUM(0.0)
#define ONE NUM(1.0)

/* Before a loop that is not written out: short code is faster than long. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1")
#else
#define ROLLED
#endif

#define LANE_BY_LANE(name)                                                   \
  static inline num num_##name(num a) {                                      \
    for (int i = 0; i < LANES; i++) LANE(a, i) = IN_REAL(name)(LANE(a, i));  \
    return a;                                                                \
  }
#define LANE_BY_LANE_2(name)                                                             \
  static inline num num_##name(num a, num b) {                                           \
    for (int i = 0; i < LANES; i++) LANE(a, i) = IN_REAL(name)(LANE(a, i), LANE(b, i));  \
    return a;                                                                            \
  }

LANE_BY_LANE(sqrt) LANE_BY_LANE(fabs) LANE_BY_LANE(floor) LANE_BY_LANE(ceil)
LANE_BY_LANE(expm1) LANE_BY_LANE(log1p) LANE_BY_LANE(erf) LANE_BY_LANE(tan)
LANE_BY_LANE(asin) LANE_BY_LANE(acos) LANE_BY_LANE(atan)
LANE_BY_LANE(sinh) LANE_BY_LANE(cosh) LANE_BY_LANE(tanh)
LANE_BY_LANE(asinh) LANE_BY_LANE(acosh) LANE_BY_LANE(atanh)
LANE_BY_LANE_2(pow) LANE_BY_LANE_2(fmod)

/* a b + c; rounded once if the processor has an instruction for it, and then in one lane as in several. */
#if defined(__FP_FAST_FMAF) && defined(SINGLE) || defined(__FP_FAST_FMA) && !defined(SINGLE)
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__) && LANES == 8 && !defined(SINGLE)
#define num_fma(a, b, c) ((num)__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)) /* compiles faster than the loop */
#else
static inline __attribute__((always_inline)) num num_fma(num a, num b, num c) {
  for (int i = 0; i < LANES; i++) LANE(a, i) = IN_REAL(__builtin_fma)(LANE(a, i), LANE(b, i), LANE(c, i));
  return a;
}
#endif
#else
static inline num num_fma(num a, num b, num c) { return a * b + c; }
#endif

#ifdef QUICK
#include "quick.h"
#else
LANE_BY_LANE(exp) LANE_BY_LANE(log) LANE_BY_LANE(sin) LANE_BY_LANE(cos) LANE_BY_LANE_2(atan2)
#endif

/* As in JAX: not a number if one of them is not. */
static inline num num_max(num a, num b) { return SELECT(MASK(a >= b) | MASK(a != a), a, b); }
static inline num num_min(num a, num b) { return SELECT(MASK(a <= b) | MASK(a != a), a, b); }
static inline num num_sign(num a) { return SELECT(MASK(a > ZERO), ONE, SELECT(MASK(a < ZERO), -ONE, a)); }

#endif
