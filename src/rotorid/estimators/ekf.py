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
        space, values = self.joint.space, self.tuning.values
        after = self.joint.step(z, u, values, dt)

        def moved(delta):
            return space.minus(self.joint.step(space.plus(z, delta), u, values, dt), after)

        F = keep[:, None] * jax.jacfwd(moved)(jnp.zeros(space.dim, z.dtype))
        return after, F @ spread @ F.T + jnp.diag(noise * noise)

    def _expect(self, z, spread, u):
        space, outputs, values = self.joint.space, self.joint.system.outputs, self.tuning.values
        expected = self.joint.observe(z, u, values)

        def seen(delta):
            return outputs.minus(self.joint.observe(space.plus(z, delta), u, values), expected)

        H = jax.jacfwd(seen)(jnp.zeros(space.dim, z.dtype))
        return expected, H @ spread @ H.T, H

    def _condition(self, spread, sensitivity, innovation, used, noise):
        H = jnp.where(used[:, None], sensitivity, 0.0)
        R = jnp.where(used, noise * noise, 1.0)
        r = jnp.where(used, innovation, 0.0)
        PHt = spread @ H.T
        factor = jnp.linalg.cholesky(H @ PHt + jnp.diag(R))
        K = jax.scipy.linalg.cho_solve((factor, True), PHt.T).T
        whitened = jax.scipy.linalg.solve_triangular(factor, r, lower=True)
        I_KH = jnp.eye(spread.shape[0], dtype=spread.dtype) - K @ H
        P = I_KH @ spread @ I_KH.T + (K * R) @ K.T
        return K @ r, 0.5 * (P + P.T), whitened @ whitened


def ekf(system, *, method="midpoint", **tuning) -> EKF:
    """EKF over a System with its default tuning; keywords as in `Tuning.of`."""
    joint = Joint(system, method)
    return EKF(joint, Tuning.of(joint, **tuning))
