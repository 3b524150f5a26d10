"""Square-root unscented Kalman filter on the manifold, over any System (SESAME D2.2, section 4.2.3, eqs. 15-17).

Sigma points are mu, mu [+] gamma S_i and mu [-] gamma S_i with S S^T = Sigma and l the tangent dimension. The report
leaves gamma and the weights open; here gamma^2 = l / (1 - w0), w = (1 - w0) / (2 l) and w0 >= 0 for the middle point,
in the mean and in the covariance, so that no weight is negative and a root of every covariance follows from an orthogonal
triangularisation (tria), with no downdate that could fail, and whatever the rounding of K:

    predict   S <- tria [ X,  sqrt(Q dt) ]
    update    K = Sigma_xy (Sigma_yy + R)^-1,   Sigma_yy = Y Y^T,   Sigma_xy = S Y_odd^T
              S <- tria [ S - K Y_odd,  K Y_even,  K sqrt(R) ]

X and Y are roots of the covariances of the predicted state and output. Their columns are the deviations of the points, those of
opposite points combined into sqrt(w/2) (d+ - d-), the odd part, and sqrt(w/2) (d+ + d-), which is even like that of the middle
point. S is triangular, so that most points share the rotations of others. An output that is a state itself is linear in the
error of the state: its odd part is the rows of S, and its even part is 0.

References: R. van der Merwe, E. Wan, The square-root unscented Kalman filter, ICASSP 2001; I. Arasaratnam, S. Haykin,
Cubature Kalman filters, IEEE TAC 54 (2009), for the array update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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

    def _covariance(self, uncertainty: Float[Array, "dim dim"], first: int = 0) -> Float[Array, "last last"]:
        root = _root(uncertainty)[first:]
        return product(root, root.T)

    def _variances(self, uncertainty: Float[Array, "dim dim"]) -> Float[Array, " dim"]:
        root = _root(uncertainty)
        return jnp.sum(root * root, axis=1)

    def _propagate(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        values = self.tuning.values
        points = map_rows(
            lambda point: self.joint.step(point, u, values, dt), self._sigma_points(z, _root(uncertainty))
        )
        mean, odd, even = self._moments(self.joint.space, points, retention > 0.0)
        return mean, tria(jnp.concatenate([odd, even, jnp.diag(noise)], axis=1))

    def _measurement_update(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> MeasurementUpdate:
        outputs, noise, mask = self.joint.system.outputs, self.tuning.measurement_noise, sample.mask
        root = _root(uncertainty)
        expected, odd, even = self._predict_outputs(z, root, sample.u)
        odd, even = (jnp.where(mask[:, None], Y, 0.0) for Y in (odd, even))
        innovation = jnp.where(mask, outputs.minus(sample.y, expected), 0.0)
        Y = jnp.concatenate([odd, even], axis=1)
        S = product(Y, Y.T) + jnp.diag(jnp.where(mask, noise * noise, 1.0))

        accepted = trusted | self._gate(innovation, S)
        used = mask & per_dimension(outputs, accepted)
        eye = jnp.eye(S.shape[0], dtype=S.dtype)
        odd, even = (jnp.where(used[:, None], Y, 0.0) for Y in (odd, even))
        whitened, A, inverse = whiten(
            jnp.where(used[:, None] & used, S, eye),
            jnp.where(used, innovation, 0.0),
            product(odd, root.T),
            eye,
        )
        K = product(A.T, inverse)
        others = jnp.concatenate([even, jnp.diag(jnp.where(used, noise, 0.0))], axis=1)
        return MeasurementUpdate(
            correction=A.T @ whitened,
            uncertainty=tria(jnp.concatenate([root - product(K, odd), product(K, others)], axis=1)),
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
        self, z: Float[Array, " size"], root: Float[Array, "dim dim"]
    ) -> Float[Array, "points size"]:
        _, gamma, _ = self._weights()
        plus, minus = (
            map_rows(lambda column, step=step: self.joint.space.plus(z, step * column), root.T)
            for step in (gamma, -gamma)
        )
        return jnp.concatenate([z[None], plus, minus])

    def _predict_outputs(
        self, z: Float[Array, " size"], root: Float[Array, "dim dim"], u: Float[Array, " inputs"]
    ) -> tuple[Float[Array, " outputs"], Float[Array, "measured dim"], Float[Array, "measured even"]]:
        """Mean of the outputs and the root of its covariance, as `_moments`.

        An output that is a state itself is linear in the error of the state: its rows are those of the state, with even part 0.
        """
        joint, values = self.joint, self.tuning.values
        states, outputs = joint.system.states, joint.system.outputs
        direct = joint.observed_states(z, u, values)
        others = Space(tuple((name, block) for name, block in outputs.blocks if name not in direct))
        expected = {name: z[states.stored[name]] for name in direct}
        odd = {name: root[states.tangent[name]] for name in direct}
        even = {}
        if others:

            def observe(point: Float[Array, " size"]) -> Float[Array, " others"]:
                observed = outputs.unpack(joint.observe(point, u, values))
                return others.pack({name: observed[name] for name in others})

            mean, *columns = self._moments(others, map_rows(observe, self._sigma_points(z, root)))
            for name in others:
                expected[name] = mean[others.stored[name]]
                odd[name], even[name] = (c[others.tangent[name]] for c in columns)
        width = max((e.shape[1] for e in even.values()), default=0)
        even |= {name: jnp.zeros((outputs[name].dim, width), z.dtype) for name in direct}

        def of_outputs(parts: Mapping[str, Float[Array, " ..."]]) -> Float[Array, " ..."]:
            return jnp.concatenate([parts[name] for name in outputs])

        return of_outputs(expected), of_outputs(odd), of_outputs(even)

    def _moments(
        self,
        space: Space,
        points: Float[Array, "points stored"],
        kept: Bool[Array, " tangent"] | bool = True,
    ) -> tuple[Float[Array, " stored"], Float[Array, "tangent dim"], Float[Array, "tangent even"]]:
        """Mean on the manifold (one Gauss-Newton step from the middle point) and a root of the covariance: the columns
        sqrt(w/2) (d+ - d-) and sqrt(w/2) (d+ + d-) of the deviations d+ and d- of opposite points, and sqrt(w0) d0; 0 in
        dimensions that are not kept."""
        n, _, weights = self._weights()
        from_middle = map_rows(lambda point: space.minus(point, points[0]), points)
        mean = space.plus(points[0], product(jnp.asarray(weights, points.dtype)[None], from_middle)[0])
        deviations = map_rows(lambda point: jnp.where(kept, space.minus(point, mean), 0.0), points).T
        plus, minus = deviations[:, 1 : n + 1], deviations[:, n + 1 :]
        half, middle = math.sqrt(0.5 * weights[1]), math.sqrt(weights[0])
        return (
            mean,
            half * (plus - minus),
            jnp.concatenate([half * (plus + minus), middle * deviations[:, :1]], axis=1),
        )


def _root(uncertainty: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
    """The lower triangle, which is all of it: C is shorter where the zeros above are known."""
    return jnp.tril(uncertainty)


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
