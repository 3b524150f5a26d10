"""Error-state extended Kalman filter over any System (SESAME D2.2, section 4.2.1, eqs. 3-8).

    x <- x [+] x' dt                                  P <- F P F^T + Q dt,   F = exp(J dt)
    S = H P H^T + R,   K = P H^T S^-1                 x <- x [+] K (y [-] h(x))
    P <- P - A^T A,    A = S^(-1/2) H P

J and H come from automatic differentiation in error coordinates. The last line is the report's Joseph form for the optimal
gain, with the whitened H P so that P stays symmetric to the last bit; `numerics.conditioning` restores the digits that the
difference loses.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.gaussian import (
    AbstractGaussianFilter,
    MeasurementUpdate,
    covariance_ahead,
    directly_measured_states,
)
from rotorid.estimators.monitoring import chi_square_quantile
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.cholesky import whiten
from rotorid.numerics.compact import shared
from rotorid.numerics.conditioning import joseph_update
from rotorid.numerics.integrators import Method
from rotorid.numerics.products import downdate, mirrored, product
from rotorid.signals.samples import Samples


class EKF(AbstractGaussianFilter):
    """Extended Kalman filter. It is made by `ekf(system)`, or by `EKF(Joint(system), Tuning.of(Joint(system)))`."""

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    is_agile: bool = eqx.field(default=True, static=True, kw_only=True)

    def _uncertainty_of(self, std: Float[Array, " dim"]) -> Float[Array, "dim dim"]:
        return jnp.diag(std * std)

    def _covariance(self, uncertainty: Float[Array, "dim dim"], first: int = 0) -> Float[Array, "last last"]:
        return uncertainty[first:, first:]

    def _propagate(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        z_next, F = self.joint.transition(z, u, self.tuning.values, dt)
        return z_next, covariance_ahead(F, uncertainty, retention, noise)

    def _measurement_update(
        self,
        z: Float[Array, " size"],
        uncertainty: Float[Array, "dim dim"],
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> MeasurementUpdate:
        """Update by one block after the other. With independent noise this equals a joint update; each gate includes the
        blocks before."""
        outputs, R, m = self.joint.system.outputs, self.tuning.measurement_noise**2, sample.mask
        expected, H = self.joint.sensitivity(z, sample.u, self.tuning.values)
        innovation = jnp.where(m, outputs.minus(sample.y, expected), 0.0)
        innovation_std = jnp.where(m, jnp.sqrt(jnp.sum(product(H, uncertainty) * H, axis=1) + R), 0.0)

        P, correction, nis = (
            uncertainty,
            jnp.zeros(uncertainty.shape[0], uncertainty.dtype),
            jnp.zeros((), uncertainty.dtype),
        )
        accepted = []
        for i, (slot, direct) in enumerate(directly_measured_states(self.joint)):
            h = H[slot]
            hP = product(h, P)
            gate = chi_square_quantile(self.tuning.thresholds.gate, h.shape[0])
            e = innovation[slot] - h @ correction
            P, K, change, distance, is_accepted = _block_update(
                P, hP, product(hP, h.T), R[slot], e, m[slot], trusted[i], gate
            )
            P = mirrored(joseph_update(P, h, R[slot], K, direct, m[slot]))
            correction = correction + change
            nis = nis + distance
            accepted.append(is_accepted)
        return MeasurementUpdate(correction, P, jnp.stack(accepted), innovation, innovation_std, nis)


@shared
def _block_update(
    P: Float[Array, "n n"],
    hP: Float[Array, "m n"],
    hPh: Float[Array, "m m"],
    r: Float[Array, " m"],
    e: Float[Array, " m"],
    is_measured: Bool[Array, " m"],
    is_trusted: Bool[Array, ""],
    gate: Float[Array, ""],
) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"], Float[Array, ""], Bool[Array, ""]]:
    """P - A^T A, the gain A^T L^-1, the correction, the normalised innovation squared, and whether the block is accepted: it is
    trusted, or its distance is at most the gate. The gain of what was not measured is 0, as is all but P of a block that is not
    accepted. e: innovation."""
    both = is_measured[:, None] & is_measured
    S = jnp.where(both, hPh, 0.0) + jnp.diag(jnp.where(is_measured, r, 1.0))
    hP, e = jnp.where(is_measured[:, None], hP, 0.0), jnp.where(is_measured, e, 0.0)
    w, A, inverse = whiten(S, e, hP, jnp.eye(len(e), dtype=e.dtype))
    distance = w @ w
    is_accepted = is_trusted | (distance <= gate)
    A, inverse, used = (jnp.where(is_accepted, B, 0.0) for B in (A, inverse, w))
    return (
        downdate(P, A),
        product(A.T, inverse),
        used @ A,
        jnp.where(is_accepted, distance, 0.0),
        is_accepted,
    )


def ekf(system: System, *, method: Method = "midpoint", agile: bool = True, **tuning: Any) -> EKF:
    """Make an extended Kalman filter over a System, with its default tuning.

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
    Source: SESAME D2.2, section 4.2.1, eqs. 3-8.
    """
    joint = Joint(system, method)
    return EKF(joint, Tuning.of(joint, **tuning), is_agile=agile)
