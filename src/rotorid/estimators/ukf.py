"""Square-root unscented Kalman filter on the manifold, over any System (seed 000, section 4.2.3, eqs. 15-17).

Sigma points are mu, mu [+] gamma S_i and mu [-] gamma S_i with S S^T = Sigma and l the tangent dimension. The seed
leaves gamma and the weights open; here gamma^2 = l / (1 - w0), w = (1 - w0) / (2 l) and w0 >= 0 for the middle point in the mean
and in the covariance, so that no weight is negative and a root of every covariance follows from one QR
decomposition, with no downdate that could fail:

    predict   S <- tria [ sqrt(w_i) (X_i [-] mu),  sqrt(Q dt) ]
    update    tria [ sqrt(w_i) (Y_i [-] mu_y)  sqrt(R) ]  =  [ S_y      0  ]
                   [ sqrt(w_i) (X_i [-] mu)     0      ]     [ K S_y    S+ ]

References: R. van der Merwe, E. Wan, The square-root unscented Kalman filter, ICASSP 2001; I. Arasaratnam, S. Haykin,
Cubature Kalman filters, IEEE TAC 54 (2009), for the array update.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.gaussian import AbstractGaussianFilter
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint

_CENTRE_WEIGHT = 0.2


class UKF(AbstractGaussianFilter):
    """Unscented Kalman filter: `UKF(Joint(system), Tuning.of(Joint(system)))`, or `ukf(system)`."""

    joint: Joint = eqx.field(static=True)
    tuning: Tuning

    def _spread_of(self, std):
        return jnp.diag(std)

    def _covariance(self, spread):
        return spread @ spread.T

    def _propagate(self, z, spread, u, dt, keep, noise):
        space, values = self.joint.space, self.tuning.values
        points = jax.vmap(lambda point: self.joint.step(point, u, values, dt))(self._sigma_points(z, spread))
        mean, deviations = self._moments(space, points)
        return mean, tria(jnp.concatenate([keep[:, None] * deviations.T, jnp.diag(noise)], axis=1))

    def _expect(self, z, spread, u):
        outputs, values = self.joint.system.outputs, self.tuning.values
        seen = jax.vmap(lambda point: self.joint.observe(point, u, values))(self._sigma_points(z, spread))
        expected, deviations = self._moments(outputs, seen)
        return expected, deviations.T @ deviations, deviations

    def _condition(self, spread, sensitivity, innovation, used, noise):
        n, gamma, weights = self._weights()
        Y = jnp.where(used, sensitivity, 0.0).T
        X = spread * (gamma * np.sqrt(weights[1]))
        X = jnp.concatenate([jnp.zeros((n, 1), X.dtype), X, -X], axis=1)
        root_R = jnp.where(used, noise, 1.0)
        m = root_R.shape[0]
        array = jnp.block([[Y, jnp.diag(root_R)], [X, jnp.zeros((n, m), X.dtype)]])
        L = tria(array)
        whitened = jax.scipy.linalg.solve_triangular(L[:m, :m], jnp.where(used, innovation, 0.0), lower=True)
        return L[m:, :m] @ whitened, L[m:, m:], whitened @ whitened

    def _weights(self):
        n = self.joint.space.dim
        gamma = np.sqrt(n / (1.0 - _CENTRE_WEIGHT))
        return n, gamma, np.array([_CENTRE_WEIGHT] + [(1.0 - _CENTRE_WEIGHT) / (2 * n)] * (2 * n))

    def _sigma_points(self, z, spread):
        _, gamma, _ = self._weights()
        steps = gamma * spread.T
        plus = jax.vmap(lambda delta: self.joint.space.plus(z, delta))
        return jnp.concatenate([z[None], plus(steps), plus(-steps)])

    def _moments(self, space, points):
        """Mean on the manifold (one Gauss-Newton step from the middle point) and weighted deviations, one row a point."""
        _, _, weights = self._weights()
        minus = jax.vmap(space.minus, in_axes=(0, None))
        mean = space.plus(points[0], weights.astype(points.dtype) @ minus(points, points[0]))
        return mean, np.sqrt(weights)[:, None].astype(points.dtype) * minus(points, mean)


def tria(A):
    """Lower-triangular L with L L^T = A A^T, by QR."""
    R = jnp.linalg.qr(A.T, mode="r")
    return R.T


def ukf(system, *, method="midpoint", **tuning) -> UKF:
    """UKF over a System with its default tuning; keywords as in `Tuning.of`."""
    joint = Joint(system, method)
    return UKF(joint, Tuning.of(joint, **tuning))
