/* Activation functions of networks on LANES numbers. As in JAX, they give NaN for NaN. */
#ifndef ROTORID_ACTIVATIONS_H
#define ROTORID_ACTIVATIONS_H
#include "num.h"

/* The derivative at 0 is 0. */
static inline num relu(num a) { return (num)(~MASK(a <= ZERO) & (mask)a); }
static inline num relu_adjoint(num a, num bar) { return (num)(MASK(a > ZERO) & (mask)bar); }

/* tanh of floats by a rational function, as XLA has it: right to 5e-7 of it. */
static inline num tanh_of(num a) {
#ifdef SINGLE
  const num limit = NUM(7.90531110763549805), bound = SELECT(MASK(a > limit), limit, SELECT(MASK(a < -limit), -limit, a));
  const num s = bound * bound;
  num p = NUM(-2.76076847742355e-16);
  p = p * s + NUM(2.00018790482477e-13);
  p = p * s + NUM(-8.60467152213735e-11);
  p = p * s + NUM(5.12229709037114e-08);
  p = p * s + NUM(1.48572235717979e-05);
  p = p * s + NUM(6.37261928875436e-04);
  p = p * s + NUM(4.89352455891786e-03);
  num q = NUM(1.19825839466702e-06);
  q = q * s + NUM(1.18534705686654e-04);
  q = q * s + NUM(2.26843463243900e-03);
  q = q * s + NUM(4.89352518554385e-03);
  return bound * p / q;
#else
  return num_tanh(a);
#endif
}

#endif
