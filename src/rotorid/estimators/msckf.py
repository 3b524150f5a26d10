"""Multi-state constraint Kalman filter over any System (SESAME D2.2, section 4.2.2, eqs. 9-14, particularised in eq. 49).

    x = (x_I, x_C1 .. x_CN)             the head (states and tracked parameters), and clones of its states at past measurements
    P_II <- F P_II F^T + Q dt,   P_IC <- F P_IC        predict: clones stay (the report's last block F^T P_IC^T is a misprint)
    P <- (I; dx_C/dx) P (I; dx_C/dx)^T                 augment: a clone is a copy of the head's states
    H, S = H P H^T + R,   x <- x [+] K (y [-] h(x))    update, with the measurements of the whole window

Every measurement is used N times, as long as its clone is in the window. N uses with full weight would make the covariance too
small. Its information is therefore split over its uses: the a-th use has the noise R / s_a, and the shares s_0 .. s_(N-1) sum
to one. On a linear System an update with R / s multiplies the density of the window's states
by the s-th power of the measurement's likelihood, so uses up to the a-th count as one with R / (s_0 + .. + s_a): clones and
head are those of the smoother and of the Kalman filter to whose measurement of age a this noise is given, and a measurement
whose clone has left the window has counted once. A later use is linearised again, around a clone that later
measurements have corrected.

A sample with a measurement adds a clone. An output that depends on parameters is evaluated at their present values.

Reference: A. Mourikis, S. Roumeliotis, A multi-state constraint Kalman filter for vision-aided inertial navigation, ICRA
2007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.estimators.gaussian import AbstractGaussianFilter, MeasurementUpdate, directly_measured_states
from rotorid.estimators.monitoring import chi_square_quantile, per_dimension
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.cholesky import whiten
from rotorid.numerics.conditioning import joseph_update
from rotorid.numerics.integrators import Method
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples

WINDOW = 3
"""Default number of uses of a measurement."""


class Clones(eqx.Module):
    """The covariance P of head and clones (the newest first), and the clones with their measurements.

    x: states. u, y: inputs and measurements. used: dimensions that were measured and passed the gate.
    """

    P: Float[Array, "all all"]
    x: Float[Array, "clones states"]
    u: Float[Array, "clones inputs"]
    y: Float[Array, "clones outputs"]
    used: Bool[Array, "clones measured"]


class MSCKF(AbstractGaussianFilter):
    """Multi-state constraint Kalman filter. It is made by `msckf(system)`.

    shares: share of a measurement's information in each use, as many as the window is long.
    """

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    is_agile: bool = eqx.field(default=True, static=True, kw_only=True)
    shares: Float[Array, " window"]

    def _uncertainty_of(self, std: Float[Array, " dim"]) -> Clones:
        system, clones = self.joint.system, self.shares.shape[0] - 1
        clone_variance = jnp.zeros(clones * self.joint.states_dim, std.dtype)
        return Clones(
            P=jnp.diag(jnp.concatenate([std * std, clone_variance])),
            x=jnp.tile(self.tuning.initial, (clones, 1)),
            u=jnp.zeros((clones, system.inputs.size), std.dtype),
            y=jnp.tile(jnp.asarray(system.outputs.initial(), std.dtype), (clones, 1)),
            used=jnp.zeros((clones, system.outputs.dim), bool),
        )

    def _covariance(self, uncertainty: Clones, first: int = 0) -> Float[Array, "last last"]:
        dim = self.joint.space.dim
        return uncertainty.P[first:dim, first:dim]

    def _propagate(
        self,
        z: Float[Array, " size"],
        uncertainty: Clones,
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Clones]:
        dim = self.joint.space.dim
        z_next, F = self.joint.transition(z, u, self.tuning.values, dt)
        F = retention[:, None] * F
        top = product(F, uncertainty.P[:dim])
        P_II = product(top[:, :dim], F.T) + jnp.diag(noise * noise)
        P_IC, P_CC = top[:, dim:], uncertainty.P[dim:, dim:]
        P = jnp.concatenate([jnp.concatenate([P_II, P_IC], axis=1), jnp.concatenate([P_IC.T, P_CC], axis=1)])
        return z_next, eqx.tree_at(lambda s: s.P, uncertainty, P)

    def _measurement_update(
        self,
        z: Float[Array, " size"],
        uncertainty: Clones,
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> MeasurementUpdate:
        """Update by the measurements of the clones, then by the newest ones, gated; then clone the head.

        A sample without measurements adds no clone and uses no share.
        """
        is_measured = jnp.any(sample.mask)
        clones = eqx.tree_at(lambda s: s.used, uncertainty, uncertainty.used & is_measured)
        correction, P = self._update_with_clones(
            z, clones, jnp.zeros(uncertainty.P.shape[0], uncertainty.P.dtype)
        )
        update, correction, P = self._update_with_newest(z, P, correction, sample, trusted)
        used = sample.mask & per_dimension(self.joint.system.outputs, update.accepted)
        window = self._correct_clones(eqx.tree_at(lambda s: s.P, uncertainty, P), correction)
        cloned = self._clone(window, z, correction, sample, used)
        window = jax.tree.map(lambda new, old: jnp.where(is_measured, new, old), cloned, window)
        return eqx.tree_at(lambda s: s.uncertainty, update, window)

    def _update_with_clones(
        self, z: Float[Array, " size"], uncertainty: Clones, correction: Float[Array, " all"]
    ) -> tuple[Float[Array, " all"], Float[Array, "all all"]]:
        """Correction and covariance after the further uses, the newest clone first."""
        if not len(uncertainty.x):
            return correction, uncertainty.P
        joint, R = self.joint, self.tuning.measurement_noise**2
        outputs, n, dim = joint.system.outputs, joint.states_dim, joint.space.dim
        parameters = z[joint.system.states.size :]

        def rotated(a):
            """Move the first clone behind the last."""
            return jnp.concatenate([a[:dim], a[dim + n :], a[dim : dim + n]])

        def use_clone(carry, row):
            correction, P = carry
            x, u, y, used, share = row
            expected, H = joint.sensitivity(jnp.concatenate([x, parameters]), u, self.tuning.values)
            H = jnp.where(used[:, None], H, 0.0)
            H_x, H_p = H[:, :n], H[:, n:]
            HP = product(H_x, P[dim : dim + n]) + product(H_p, P[n:dim])
            S = product(HP[:, dim : dim + n], H_x.T) + product(HP[:, n:dim], H_p.T)
            S = S + jnp.diag(jnp.where(used, R / share, 1.0))
            residual = jnp.where(used, outputs.minus(y, expected), 0.0)
            residual = residual - H_x @ correction[dim : dim + n] - H_p @ correction[n:dim]
            w, A = whiten(S, residual, HP)
            P = rotated(rotated(P - product(A.T, A)).T)
            return (rotated(correction + w @ A), P), None

        rows = uncertainty.x, uncertainty.u, uncertainty.y, uncertainty.used, self.shares[1:]
        return jax.lax.scan(use_clone, (correction, uncertainty.P), rows)[0]

    def _update_with_newest(
        self,
        z: Float[Array, " size"],
        P: Float[Array, "all all"],
        correction: Float[Array, " all"],
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> tuple[MeasurementUpdate, Float[Array, " all"], Float[Array, "all all"]]:
        """The EKF's update with R / s_0. Gate and NIS judge a measurement by its own noise, R."""
        outputs, R, m = self.joint.system.outputs, self.tuning.measurement_noise**2, sample.mask
        dim = self.joint.space.dim
        expected, H = self.joint.sensitivity(z, sample.u, self.tuning.values)
        H = jnp.where(m[:, None], H, 0.0)
        innovation = jnp.where(m, outputs.minus(sample.y, expected), 0.0) - H @ correction[:dim]
        innovation_std = jnp.where(m, jnp.sqrt(jnp.sum(product(H, P[:dim, :dim]) * H, axis=1) + R), 0.0)

        change, nis, accepted = jnp.zeros_like(correction), jnp.zeros((), P.dtype), []
        for i, (slot, direct) in enumerate(directly_measured_states(self.joint)):
            h = H[slot]
            hP = product(h, P[:dim])
            hPh, residual = product(hP[:, :dim], h.T), innovation[slot] - h @ change[:dim]
            (whitened,) = whiten(hPh + jnp.diag(jnp.where(m[slot], R[slot], 1.0)), residual)
            r = jnp.where(m[slot], R[slot] / self.shares[0], 1.0)
            w, A, inverse = whiten(hPh + jnp.diag(r), residual, hP, jnp.eye(len(r), dtype=r.dtype))
            distance = whitened @ whitened
            is_accepted = trusted[i] | (
                distance <= chi_square_quantile(self.tuning.thresholds.gate, h.shape[0])
            )
            P_updated = joseph_update(P - product(A.T, A), h, r, product(A[:, :dim].T, inverse), direct)
            P = jnp.where(is_accepted, P_updated, P)
            change = jnp.where(is_accepted, change + w @ A, change)
            nis = jnp.where(is_accepted, nis + distance, nis)
            accepted.append(is_accepted)
        correction = correction + change
        head = correction[:dim]
        return MeasurementUpdate(head, P, jnp.stack(accepted), innovation, innovation_std, nis), correction, P

    def _correct_clones(self, uncertainty: Clones, correction: Float[Array, " all"]) -> Clones:
        n = self.joint.states_dim
        changes = correction[self.joint.space.dim :].reshape(-1, n)
        return eqx.tree_at(
            lambda s: s.x, uncertainty, jax.vmap(self.joint.system.states.plus)(uncertainty.x, changes)
        )

    def _clone(
        self,
        uncertainty: Clones,
        z: Float[Array, " size"],
        correction: Float[Array, " all"],
        sample: Samples,
        used: Bool[Array, " measured"],
    ) -> Clones:
        """The head's states become the newest clone, and the oldest is left out (eq. 13)."""
        states, n, dim = self.joint.system.states, self.joint.states_dim, self.joint.space.dim
        if not len(uncertainty.x):
            return uncertainty
        x = states.plus(z[: states.size], correction[:n])

        def augment(a):
            return jnp.concatenate([a[:dim], a[:n], a[dim:-n]])

        def shift(new, old):
            return jnp.concatenate([new[None], old[:-1]])

        return Clones(
            P=augment(augment(uncertainty.P).T),
            x=shift(x, uncertainty.x),
            u=shift(sample.u, uncertainty.u),
            y=shift(sample.y, uncertainty.y),
            used=shift(used, uncertainty.used),
        )


def msckf(
    system: System,
    *,
    window: int | None = None,
    shares: Sequence[float] | None = None,
    method: Method = "midpoint",
    agile: bool = True,
    **tuning: Any,
) -> MSCKF:
    """Make a multi-state constraint Kalman filter over a System, with its default tuning.

    Args:
        system: any System.
        window: number of uses of each measurement, 1 or more; by default 3. With 1 the filter is the EKF.
        shares: share of a measurement's information in each use, the first use first. They are positive and
            sum to one, and their number is the window. By default each share is half of the one before, which
            follows a change of a parameter almost as fast as the EKF: information that is used later arrives
            later.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        agile: whether an agile filter runs beside it, which makes steps of a single tracked parameter overshoot
            less, and takes about twice as long; without effect where several parameters are tracked.
        tuning: keywords of `Tuning.of` that replace the System's default noise, priors and thresholds.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: the window is too small, the shares do not fit it or are not positive with sum one, or a
            keyword names a block or parameter that the System does not have.
    Source: SESAME D2.2, section 4.2.2, eqs. 9-14 and 49.
    """
    joint = Joint(system, method)
    weights = jnp.asarray(_shares(window, shares), dtype=float)
    return MSCKF(joint, Tuning.of(joint, **tuning), weights, is_agile=agile)


def _shares(window: int | None, shares: Sequence[float] | None) -> tuple[float, ...]:
    if shares is None:
        window = WINDOW if window is None else window
        if window < 1:
            raise SettingError(f"a window of {window} holds no measurement; it must be 1 or more")
        total = 2.0 - 2.0 ** (1 - window)
        return tuple(2.0**-use / total for use in range(window))
    if window not in (None, len(shares)):
        raise SettingError(f"{len(shares)} shares for a window of {window}; give one share for each use")
    if not shares or min(shares) <= 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise SettingError(f"shares {tuple(shares)} must be positive and sum to one")
    return tuple(shares)
