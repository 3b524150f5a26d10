"""Error-state extended Kalman filter over any System (seed 000, section 4.2.1, eqs. 3-8).

    x <- x [+] x' dt                                  P <- F P F^T + Q dt
    S = H P H^T + R,   K = P H^T S^-1                 x <- x [+] K (y [-] h(x))
    P <- (I - K H) P (I - K H)^T + K R K^T

F is the derivative of the whole integration step in error coordinates (the seed's exp(J dt), exact for the
integrator), H that of h. Both come from automatic differentiation. The Joseph form keeps P positive definite.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from rotorid.estimators.gaussian import AbstractGaussianFilter
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint


class EKF(AbstractGaussianFilter):
    """Extended Kalman filter: `EKF(Joint(system), Tuning.of(Joint(system)))`, or `ekf(system)`."""

    joint: Joint = eqx.field(static=True)
    tuning: Tuning

    def _spread_of(self, std):
        return jnp.diag(std * std)

    def _covariance(self, spread):
        return spread

    def _propagate(self, z, spread, u, dt, keep, noise):
        after, F = self.joint.transition(z, u, self.tuning.values, dt)
        F = keep[:, None] * F
        return after, F @ spread @ F.T + jnp.diag(noise * noise)

    def _expect(self, z, spread, u):
        expected, H = self.joint.sensitivity(z, u, self.tuning.values)
        return expected, H @ spread @ H.T, H

    def _condition(self, spread, sensitivity, innovation, used, noise):
        P, correction, nis = spread, jnp.zeros(spread.shape[0], spread.dtype), jnp.zeros((), spread.dtype)
        for i in range(innovation.shape[0]):
            h = sensitivity[i]
            Ph = P @ h
            r = innovation[i] - h @ correction
            s = h @ Ph + noise[i] * noise[i]
            gain = jnp.where(used[i], 1.0 / s, 0.0)
            correction = correction + Ph * (gain * r)
            P = P - gain * jnp.outer(Ph, Ph)
            nis = nis + gain * r * r
        return correction, P, nis


def ekf(system, *, method="midpoint", **tuning) -> EKF:
    """EKF over a System with its default tuning; keywords as in `Tuning.of`."""
    joint = Joint(system, method)
    return EKF(joint, Tuning.of(joint, **tuning))
