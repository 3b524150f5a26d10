/* Functions of LANES numbers at once, right to 3 units in the last place; what is too large for that goes one by one. A number
   has the same result in any lane, and alone.

   sin, cos    a - k pi/2 in three parts, then Taylor series up to |a| = pi/4
   exp         a - k log 2 in two parts, then the Taylor series up to |a| = log(2)/2, times 2^k
   log         a = 2^k b with b in sqrt(1/2) .. sqrt(2): k log 2 + 2 artanh((b - 1) / (b + 1))
   atan2       the smaller over the larger is tan(k pi/8 + t), k = 0, 1 or 2, |t| <= pi/16: Taylor series in tan t */
#ifndef ROTORID_QUICK_H
#define ROTORID_QUICK_H
#include <string.h>

#define ROUNDER NUM(0x1.8p52)

#if LANES == 1
#define OF_LANE(m, i) (m)
#define AS_NUM(k) ((num)(k))
#else
#define OF_LANE(m, i) ((m)[i])
#define AS_NUM(k) __builtin_convertvector(k, num)
#endif

static inline mask bits_of(num v) {
  mask m;
  memcpy(&m, &v, sizeof m);
  return m;
}

static inline num from_bits(mask m) {
  num v;
  memcpy(&v, &m, sizeof v);
  return v;
}

static inline int any(mask m) {
  int64_t found = 0;
  for (int i = 0; i < LANES; i++) found |= OF_LANE(m, i);
  return found != 0;
}

#define SLOWLY(outside, quick, of_lane_i)                \
  if (__builtin_expect(any(outside), 0))                 \
    for (int i = 0; i < LANES; i++)                      \
      if (OF_LANE(outside, i)) LANE(quick, i) = of_lane_i;

/* a = k pi/2 + the result, |result| <= pi/4; k in the lowest bits of *quadrant. */
static inline num reduced(num a, mask *quadrant) {
  const num shifted = num_fma(a, NUM(0x1.45f306dc9c883p-1), ROUNDER), k = shifted - ROUNDER;
  *quadrant = bits_of(shifted);
  return num_fma(k, NUM(-0x1.3198a2e037073p-69), num_fma(k, NUM(-0x1.0b4611a6p-34), num_fma(k, NUM(-0x1.921fb544p0), a)));
}

static inline num sine(num r, num s) {
  num t = NUM(-1.0 / 1307674368000.0);
  t = num_fma(t, s, NUM(1.0 / 6227020800.0));
  t = num_fma(t, s, NUM(-1.0 / 39916800.0));
  t = num_fma(t, s, NUM(1.0 / 362880.0));
  t = num_fma(t, s, NUM(-1.0 / 5040.0));
  t = num_fma(t, s, NUM(1.0 / 120.0));
  t = num_fma(t, s, NUM(-1.0 / 6.0));
  return num_fma(r, s * t, r);
}

static inline num cosine(num s) {
  num t = NUM(1.0 / 20922789888000.0);
  t = num_fma(t, s, NUM(-1.0 / 87178291200.0));
  t = num_fma(t, s, NUM(1.0 / 479001600.0));
  t = num_fma(t, s, NUM(-1.0 / 3628800.0));
  t = num_fma(t, s, NUM(1.0 / 40320.0));
  t = num_fma(t, s, NUM(-1.0 / 720.0));
  t = num_fma(t, s, NUM(1.0 / 24.0));
  return num_fma(s * s, t, num_fma(NUM(-0.5), s, ONE));
}

#define FAR(a, limit) (~MASK(num_fabs(a) < NUM(limit)))

static inline num num_sin(num a) {
  mask k;
  const num r = reduced(a, &k), s = r * r;
  const num found = SELECT(MASK((k & 1) != 0), cosine(s), sine(r, s));
  num result = from_bits(bits_of(found) ^ ((k & 2) << 62));
  SLOWLY(FAR(a, 1e5), result, sin(LANE(a, i)))
  return result;
}

static inline num num_cos(num a) {
  mask k;
  const num r = reduced(a, &k), s = r * r;
  const num found = SELECT(MASK((k & 1) != 0), sine(r, s), cosine(s));
  num result = from_bits(bits_of(found) ^ (((k + 1) & 2) << 62));
  SLOWLY(FAR(a, 1e5), result, cos(LANE(a, i)))
  return result;
}

static inline num num_exp(num a) {
  const num shifted = num_fma(a, NUM(0x1.71547652b82fep0), ROUNDER), k = shifted - ROUNDER;
  const num r = num_fma(k, NUM(-0x1.a39ef35793c76p-33), num_fma(k, NUM(-0x1.62e42feep-1), a));
  num t = NUM(1.0 / 6227020800.0);
  t = num_fma(t, r, NUM(1.0 / 479001600.0));
  t = num_fma(t, r, NUM(1.0 / 39916800.0));
  t = num_fma(t, r, NUM(1.0 / 3628800.0));
  t = num_fma(t, r, NUM(1.0 / 362880.0));
  t = num_fma(t, r, NUM(1.0 / 40320.0));
  t = num_fma(t, r, NUM(1.0 / 5040.0));
  t = num_fma(t, r, NUM(1.0 / 720.0));
  t = num_fma(t, r, NUM(1.0 / 120.0));
  t = num_fma(t, r, NUM(1.0 / 24.0));
  t = num_fma(t, r, NUM(1.0 / 6.0));
  t = num_fma(t, r, NUM(0.5));
  const num power = from_bits((bits_of(shifted) - bits_of(ROUNDER) + 1023) << 52);
  num result = (ONE + num_fma(r * r, t, r)) * power;
  SLOWLY(FAR(a, 700.0), result, exp(LANE(a, i)))
  return result;
}

static inline num num_log(num a) {
  const mask shift = bits_of(a) - bits_of(NUM(0x1.6a09e667f3bcdp-1)), k = shift >> 52;
  const num b = from_bits(bits_of(a) - (k << 52)), z = (b - ONE) / (b + ONE), s = z * z;
  num t = NUM(1.0 / 21.0);
  t = num_fma(t, s, NUM(1.0 / 19.0));
  t = num_fma(t, s, NUM(1.0 / 17.0));
  t = num_fma(t, s, NUM(1.0 / 15.0));
  t = num_fma(t, s, NUM(1.0 / 13.0));
  t = num_fma(t, s, NUM(1.0 / 11.0));
  t = num_fma(t, s, NUM(1.0 / 9.0));
  t = num_fma(t, s, NUM(1.0 / 7.0));
  t = num_fma(t, s, NUM(1.0 / 5.0));
  t = num_fma(t, s, NUM(1.0 / 3.0));
  const num whole = AS_NUM(k);
  num result = whole * NUM(0x1.62e42feep-1) + (whole * NUM(0x1.a39ef35793c76p-33) + (z + z) * (ONE + s * t));
  const mask outside = ~(MASK(a >= NUM(0x1p-1022)) & MASK(a < NUM(INFINITY)));
  SLOWLY(outside, result, log(LANE(a, i)))
  return result;
}

static inline num num_atan2(num y, num x) {
  const num a = num_fabs(y), b = num_fabs(x);
  const mask steep = MASK(a > b);
  const num low = SELECT(steep, b, a), high = SELECT(steep, a, b);
  const mask first = MASK(low > NUM(0x1.975f5e0553158p-3) * high), second = MASK(low > NUM(0x1.561b82ab7f990p-1) * high);
  const num c = SELECT(second, ONE, SELECT(first, NUM(0x1.a827999fcef32p-2), ZERO));
  const num start = SELECT(second, NUM(0x1.921fb54442d18p-1), SELECT(first, NUM(0x1.921fb54442d18p-2), ZERO));
  const num t = num_fma(-c, high, low) / SELECT(MASK(high > ZERO), num_fma(c, low, high), ONE), s = t * t;
  num p = NUM(-1.0 / 23.0);
  p = num_fma(p, s, NUM(1.0 / 21.0));
  p = num_fma(p, s, NUM(-1.0 / 19.0));
  p = num_fma(p, s, NUM(1.0 / 17.0));
  p = num_fma(p, s, NUM(-1.0 / 15.0));
  p = num_fma(p, s, NUM(1.0 / 13.0));
  p = num_fma(p, s, NUM(-1.0 / 11.0));
  p = num_fma(p, s, NUM(1.0 / 9.0));
  p = num_fma(p, s, NUM(-1.0 / 7.0));
  p = num_fma(p, s, NUM(1.0 / 5.0));
  p = num_fma(p, s, NUM(-1.0 / 3.0));
  const num acute = start + num_fma(t, s * p, t);
  const num upper = SELECT(steep, NUM(0x1.921fb54442d18p0) - (acute - NUM(0x1.1a62633145c07p-54)), acute);
  const num left = NUM(0x1.921fb54442d18p1) - (upper - NUM(0x1.1a62633145c07p-53));
  const num angle = SELECT(MASK(bits_of(x) < 0), left, upper);
  num result = from_bits(bits_of(angle) | (bits_of(y) & bits_of(-ZERO)));
  SLOWLY(~MASK(high < NUM(INFINITY)), result, atan2(LANE(y, i), LANE(x, i)))
  return result;
}

#endif
