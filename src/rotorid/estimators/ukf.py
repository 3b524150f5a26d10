"""Square-root unscented Kalman filter on the manifold, over any System (SESAME D2.2, section 4.2.3, eqs. 15-17).

Sigma points are mu, mu [+] gamma S_i and mu [-] gamma S_i with S S^T = Sigma and l the tangent dimension. The report
leaves gamma and the weights open; here gamma^2 = l / (1 - w0), w = (1 - w0) / (2 l) and w0 >= 0 for the middle point,
in the mean and in the covariance, so that no weight is negative and a root of every covariance follows from an orthogonal
triangularisation (tria), with no downdate that could fail, and whatever the rounding of K:

    predict   S <- tria [ sqrt(w_i) (X_i [-] mu),  sqrt(Q dt) ]
    update    K = Sigma_xy (Sigma_yy + R)^-1
              S <- tria [ sqrt(w_i) ((X_i [-] mu) - K (Y_i [-] mu_y)),  K sqrt(R) ]

References: R. van der Merwe, E. Wan, The square-root unscented Kalman filter, ICASSP 2001; I. Arasaratnam, S. Haykin,
Cubature Kalman filters, IEEE TAC 54 (2009), for the array update.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.estimators.gaussian import AbstractGaussianFilter, MeasurementUpdate
from rotorid.estimators.monitoring import chi_square_quantile, per_dimension
from rotorid.estimators.tuning import Tuning
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.cholesky import tria, whiten
from rotorid.numerics.compact import map_rows
from rotorid.numerics.integrators import Method
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples

_CENTRE_WEIGHT = 0.2


class UKF(AbstractGaussianFilter):
    """Unscented Kalman filter. It is made by `ukf(system)`, or by `UKF(Joint(system), Tuning.of(Joint(system)))`."""

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    is_agile: bool = eqx.field(default=True, static=True, kw_only=True)

    def _uncertainty_of(self, std: Float[Array, " dim"]) -> Float[Array, "dim dim"]:
        return jnp.diag(std)

    def _covariance(self, uncertainty: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
        return uncertainty @ uncertainty.T

    def _propagate(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        space, values = self.joint.space, self.tuning.values
        points = map_rows(
            lambda point: self.joint.step(point, u, values, dt), self._sigma_points(z, uncertainty)
        )
        mean, deviations = self._moments(space, points)
        return mean, tria(jnp.concatenate([retention[:, None] * deviations.T, jnp.diag(noise)], axis=1))

    def _measurement_update(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> MeasurementUpdate:
        outputs, noise, mask = self.joint.system.outputs, self.tuning.measurement_noise, sample.mask
        n, gamma, weights = self._weights()
        points = self._sigma_points(z, uncertainty)
        predictions = map_rows(lambda point: self.joint.observe(point, sample.u, self.tuning.values), points)
        expected, Y = self._moments(outputs, predictions)
        Y = jnp.where(mask, Y, 0.0)
        innovation = jnp.where(mask, outputs.minus(sample.y, expected), 0.0)
        S = Y.T @ Y + jnp.diag(jnp.where(mask, noise * noise, 1.0))

        accepted = trusted | self._gate(innovation, S)
        used = mask & per_dimension(outputs, accepted)
        eye = jnp.eye(S.shape[0], dtype=S.dtype)
        Y = jnp.where(used, Y, 0.0).T
        X = uncertainty * (gamma * math.sqrt(weights[1]))
        Y_plus, Y_minus = Y[:, 1 : n + 1], Y[:, n + 1 :]
        whitened, A, inverse = whiten(
            jnp.where(used[:, None] & used, S, eye),
            jnp.where(used, innovation, 0.0),
            product(Y_plus - Y_minus, X.T),
            eye,
        )
        K = product(A.T, inverse)
        others = jnp.concatenate([Y[:, :1], jnp.diag(jnp.where(used, noise, 0.0))], axis=1)
        return MeasurementUpdate(
            correction=A.T @ whitened,
            uncertainty=tria(
                jnp.concatenate([X - product(K, Y_plus), X + product(K, Y_minus), product(K, others)], axis=1)
            ),
            accepted=accepted,
            innovation=innovation,
            innovation_std=jnp.where(mask, jnp.sqrt(jnp.diag(S)), 0.0),
            nis=whitened @ whitened,
        )

    def _gate(
        self, innovation: Float[Array, " measured"], S: Float[Array, "measured measured"]
    ) -> Bool[Array, " blocks"]:
        accepted = []
        for slot in self.joint.system.outputs.tangent.values():
            (w,) = whiten(S[slot, slot], innovation[slot])
            accepted.append(w @ w <= chi_square_quantile(self.tuning.thresholds.gate, slot.stop - slot.start))
        return jnp.stack(accepted)

    def _weights(self) -> tuple[int, float, Float[np.ndarray, " points"]]:
        n = self.joint.space.dim
        gamma = float(np.sqrt(n / (1.0 - _CENTRE_WEIGHT)))
        return n, gamma, np.array([_CENTRE_WEIGHT] + [(1.0 - _CENTRE_WEIGHT) / (2 * n)] * (2 * n))

    def _sigma_points(
        self, z: Float[Array, " size"], uncertainty: Float[Array, "dim dim"]
    ) -> Float[Array, "points size"]:
        _, gamma, _ = self._weights()
        steps = gamma * uncertainty.T
        plus = map_rows(lambda delta: self.joint.space.plus(z, delta), jnp.concatenate([steps, -steps]))
        return jnp.concatenate([z[None], plus])

    def _moments(
        self, space: Space, points: Float[Array, "points stored"]
    ) -> tuple[Float[Array, " stored"], Float[Array, "points tangent"]]:
        """Mean on the manifold (one Gauss-Newton step from the middle point) and weighted deviations, one row a point."""
        _, _, weights = self._weights()
        from_middle = map_rows(lambda point: space.minus(point, points[0]), points)
        mean = space.plus(points[0], jnp.asarray(weights, points.dtype) @ from_middle)
        deviations = map_rows(lambda point: space.minus(point, mean), points)
        return mean, jnp.asarray(np.sqrt(weights)[:, None], points.dtype) * deviations


def ukf(system: System, *, method: Method = "midpoint", agile: bool = True, **tuning: Any) -> UKF:
    """Make a square-root unscented Kalman filter over a System, with its default tuning.

    Args:
        system: any System.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        agile: whether an agile filter runs beside it, which makes steps of a single tracked parameter overshoot
            less, and takes about twice as long; without effect where several parameters are tracked.
        tuning: keywords of `Tuning.of` that replace the System's default noise, priors and thresholds.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: a keyword names a block or parameter that the System does not have.
    Source: SESAME D2.2, section 4.2.3, eqs. 15-17.
    """
    joint = Joint(system, method)
    return UKF(joint, Tuning.of(joint, **tuning), is_agile=agile)
