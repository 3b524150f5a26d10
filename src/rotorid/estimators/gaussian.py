"""What every Gaussian filter over a System shares: gating, gaps, recovery, health.

A filter adds how the joint point z (see `Joint`) and its spread (a covariance, a lower root of it, or a pytree that
holds one beside what else the filter remembers) move.

Life of a filter. It starts with every block `lost`: a measured state of the same name is taken as it comes, with no
gate. Then each block of measurements passes a chi-square gate of its own, so that a bad velocity does not silence the
accelerometer. Two things tell that the filter, not the sensor, is wrong: a block that is rejected for longer than
`patience`, and innovations whose running mean over `bias_memory` is further from zero than `bias_gate` standard
deviations of such a mean of white noise (and than one of a measurement, since assumed noise stands for slow errors
too). Then the parameters open up as if `REOPENED` seconds of their drift had gone by, so that what may change (mass,
wind) moves first and what hardly changes (drag) stays; the state of a rejected block's name is lost and taken anew;
and the estimate says RECOVERING for a while. A gap longer than `max_gap` loses all states. Numbers that become
invalid bring back the prior as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.estimators.base import AbstractEstimator, Estimate, Health
from rotorid.estimators.tuning import Tuning
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint
from rotorid.signals.samples import Samples

Spread = Any
"""A covariance of the joint point, a lower root of it, or a pytree of arrays that a filter takes it from."""

REOPENED = 15.0
"""Seconds of drift that the parameters get at once where measurements keep disagreeing."""

LOOSENED = 30.0
"""Times the process noise of the states where the model does not hold (see `System.holds`)."""

_CLIPPED = 6.0
_NOTICED = 1.0  # standard deviations: a smaller bias is within what the assumed noise stands for
RECOVERY = 0.5  # s
CONSISTENCY_MEMORY = 0.5  # s over which the innovations are judged
INCONSISTENT = 3.0  # times the expected NIS
INFORMED = 0.7
"""Share of the prior standard deviation under which the data have spoken."""


class FilterState(eqx.Module):
    """State of a Gaussian filter.

    z: joint point. spread: see `Spread`. suspicion: s for which each output block has been rejected.
    bias: running mean of the normalised innovations, bias_variance: what it would be for white noise.
    lost: whether each output block waits for its first measurement. forget: states (tangent dimensions) that predict must
    forget. doubted: whether predict must open up the parameters. excess: running mean of NIS over its dimension.
    recovering: s of RECOVERING left. The rest is the last innovation, for `estimate`.
    """

    z: Float[Array, " size"]
    spread: Spread
    suspicion: Float[Array, " blocks"]
    lost: Bool[Array, " blocks"]
    bias: Float[Array, " measured"]
    bias_variance: Float[Array, " measured"]
    forget: Bool[Array, " tangent"]
    doubted: Bool[Array, ""]
    excess: Float[Array, ""]
    recovering: Float[Array, ""]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]
    nis_dof: Int[Array, ""]
    health: Int[Array, ""]


class Absorbed(eqx.Module):
    """What the measurements of one sample did.

    correction: of the mean, tangent. spread: afterwards. accepted: blocks that passed the gate. innovation: measured minus
    expected, 0 where not measured, and its standard deviation. nis: of the accepted ones.
    """

    correction: Float[Array, " dim"]
    spread: Spread
    accepted: Bool[Array, " blocks"]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]


class AbstractGaussianFilter(AbstractEstimator):
    """A filter with a mean on the joint manifold and a spread in its tangent space."""

    tuning: eqx.AbstractVar[Tuning]

    @abstractmethod
    def _spread_of(self, std: Float[Array, " dim"]) -> Spread:
        """Spread with these standard deviations and no correlation."""

    @abstractmethod
    def _covariance(self, spread: Spread) -> Float[Array, "dim dim"]:
        """Covariance of a spread."""

    @abstractmethod
    def _propagate(
        self,
        z: Float[Array, " size"],
        spread: Spread,
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        keep: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Spread]:
        """Mean and spread dt later. Dimensions with keep 0 are forgotten; noise (standard deviation) is added."""

    @abstractmethod
    def _absorb(
        self,
        z: Float[Array, " size"],
        spread: Spread,
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> Absorbed:
        """What the measurements of a sample do to a mean and its spread; trusted blocks pass the gate whatever they say."""

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> FilterState:
        joint, tuning = self.joint, self.tuning
        blocks, measured = len(joint.system.outputs), joint.system.outputs.dim
        dtype = tuning.initial.dtype
        return FilterState(
            z=jnp.concatenate([tuning.initial, tuning.coordinate]),
            spread=self._spread_of(self._prior_std()),
            suspicion=jnp.zeros(blocks, dtype),
            lost=jnp.ones(blocks, bool),
            bias=jnp.zeros(measured, dtype),
            bias_variance=jnp.zeros(measured, dtype),
            forget=jnp.zeros(joint.states_dim, bool),
            doubted=jnp.zeros((), bool),
            excess=jnp.ones((), dtype),
            recovering=jnp.zeros((), dtype),
            innovation=jnp.zeros(measured, dtype),
            innovation_std=jnp.zeros(measured, dtype),
            nis=jnp.zeros((), dtype),
            nis_dof=jnp.zeros((), int),
            health=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(self, state: FilterState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> FilterState:
        tuning = self.tuning
        gap = dt > tuning.max_gap
        forget = state.forget | gap
        wander = wandering(self.joint, tuning, u, dt, forget)
        drift = tuning.drift * jnp.sqrt(dt + jnp.where(state.doubted, REOPENED, 0.0))
        keep = jnp.concatenate([jnp.where(forget, 0.0, 1.0), jnp.ones_like(drift)])
        z, spread = self._propagate(
            state.z, state.spread, u, jnp.minimum(dt, tuning.max_gap), keep, jnp.concatenate([wander, drift])
        )
        recovering = jnp.where(gap, RECOVERY, jnp.maximum(state.recovering - dt, 0.0))
        return eqx.tree_at(
            lambda s: (s.z, s.spread, s.lost, s.forget, s.doubted, s.recovering),
            state,
            (z, spread, state.lost | gap, jnp.zeros_like(forget), jnp.zeros_like(state.doubted), recovering),
        )

    def update(self, state: FilterState, sample: Samples) -> FilterState:
        outputs, tuning = self.joint.system.outputs, self.tuning
        valid = jnp.stack([jnp.all(sample.mask[s]) for s in outputs.tangent.values()])
        z = self.joint.take_measured(state.z, state.lost & valid, sample.y)

        seen = self._absorb(z, state.spread, sample, state.lost)
        z, spread, accepted = self.joint.space.plus(z, seen.correction), seen.spread, seen.accepted
        dof = jnp.sum(sample.mask & per_dimension(outputs, accepted))

        any_valid = jnp.stack([jnp.any(sample.mask[s]) for s in outputs.tangent.values()])
        suspicion = jnp.where(
            any_valid, jnp.where(accepted, 0.0, state.suspicion + sample.dt), state.suspicion
        )
        doubts = suspicion > tuning.patience
        bias, bias_variance = self._biased(state, seen, sample)
        limit = jnp.maximum(tuning.bias_gate * jnp.sqrt(bias_variance), _NOTICED)
        biased = jnp.any(jnp.abs(bias) > limit) & (state.recovering <= 0)
        doubted = jnp.any(doubts) | biased
        share = jnp.where(dof > 0, sample.dt / (sample.dt + CONSISTENCY_MEMORY), 0.0)
        excess = state.excess + share * (seen.nis / jnp.maximum(dof, 1) - state.excess)

        broken = ~jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves((z, spread))]))
        z = jnp.where(broken, jnp.concatenate([tuning.initial, tuning.coordinate]), z)
        fresh = self._spread_of(self._prior_std())
        spread = jax.tree.map(lambda new, old: jnp.where(broken, new, old), fresh, spread)
        recovering = jnp.where(doubted, RECOVERY, state.recovering)
        rejected = jnp.any(any_valid & ~accepted)
        return FilterState(
            z=z,
            spread=spread,
            suspicion=jnp.where(doubts | broken, 0.0, suspicion),
            lost=(state.lost & ~any_valid) | doubts | broken,
            bias=jnp.where(doubted | broken, 0.0, bias),
            bias_variance=jnp.where(doubted | broken, 0.0, bias_variance),
            forget=self.joint.states_measured(doubts),
            doubted=doubted,
            excess=jnp.where(doubted | broken, 1.0, excess),
            recovering=recovering,
            innovation=seen.innovation,
            innovation_std=seen.innovation_std,
            nis=seen.nis,
            nis_dof=dof,
            health=self._health(
                spread, rejected, ~self.joint.holds(sample.u), excess, recovering > 0, broken
            ),
        )

    def estimate(self, state: FilterState) -> Estimate:
        joint = self.joint
        n, states = joint.states_dim, joint.system.states.size
        covariance = self._covariance(state.spread)
        std = jnp.sqrt(jnp.diag(covariance))
        value, scale = self.joint.values_and_slopes(state.z[states:])
        return Estimate(
            state=state.z[:states],
            state_std=std[:n],
            value=value,
            std=scale * std[n:],
            covariance=covariance[n:, n:] * jnp.outer(scale, scale),
            innovation=state.innovation,
            innovation_std=state.innovation_std,
            nis=state.nis,
            nis_dof=state.nis_dof,
            informed=std[n:] < INFORMED * self.tuning.coordinate_std,
            health=state.health,
        )

    def _biased(
        self, state: FilterState, seen: Absorbed, sample: Samples
    ) -> tuple[Float[Array, " measured"], Float[Array, " measured"]]:
        """Running means of the normalised innovations, and the variances that such means of white noise have.

        An innovation counts for `_CLIPPED` standard deviations at most, so that one outlier is no bias.
        """
        share = jnp.where(sample.mask, sample.dt / (sample.dt + self.tuning.bias_memory), 0.0)
        w = jnp.clip(seen.innovation / jnp.where(sample.mask, seen.innovation_std, 1.0), -_CLIPPED, _CLIPPED)
        return state.bias + share * (w - state.bias), (1.0 - share) ** 2 * state.bias_variance + share**2

    def _prior_std(self) -> Float[Array, " dim"]:
        return jnp.concatenate([self.tuning.initial_std, self.tuning.coordinate_std])

    def _informed(self, spread: Spread) -> Bool[Array, ""]:
        """Whether the data have spoken about the first tracked parameter."""
        n = self.joint.states_dim
        if n == self.joint.space.dim:
            return jnp.ones((), bool)
        return jnp.sqrt(self._covariance(spread)[n, n]) < INFORMED * self.tuning.coordinate_std[0]

    def _health(
        self,
        spread: Spread,
        rejected: Bool[Array, ""],
        outside: Bool[Array, ""],
        excess: Float[Array, ""],
        recovering: Bool[Array, ""],
        broken: Bool[Array, ""],
    ) -> Int[Array, ""]:
        health = jnp.where(self._informed(spread), int(Health.OK), int(Health.NO_INFORMATION))
        health = jnp.where(rejected, int(Health.OUTLIER), health)
        health = jnp.where(outside, int(Health.OUT_OF_RANGE), health)
        health = jnp.where(excess > INCONSISTENT, int(Health.INCONSISTENT), health)
        health = jnp.where(recovering, int(Health.RECOVERING), health)
        return jnp.where(broken, int(Health.DIVERGED), health)


def wandering(
    joint: Joint,
    tuning: Tuning,
    u: Float[Array, " inputs"],
    dt: Float[Array, ""],
    forget: Bool[Array, " tangent"],
) -> Float[Array, " tangent"]:
    """Standard deviation that the states get in dt: of their process noise, `LOOSENED` where the model does not hold, and
    that of their prior where they are forgotten."""
    noise = tuning.process_noise * jnp.where(joint.holds(u), 1.0, LOOSENED)
    return jnp.where(forget, tuning.initial_std, noise * jnp.sqrt(dt))


def measured_themselves(joint: Joint) -> tuple[tuple[slice, slice | None], ...]:
    """Of each output block its tangent dimensions, and those of the states of its name and size, None without any."""
    states, outputs = joint.system.states, joint.system.outputs
    found = []
    for name, block in outputs.blocks:
        place = states.tangent.get(name)
        same = place is not None and place.stop - place.start == block.dim
        found.append((outputs.tangent[name], place if same else None))
    return tuple(found)


def chi_square_quantile(sigmas: Float[Array, ""], dof: int) -> Float[Array, ""]:
    """Chi-square quantile whose tail is that of a normal beyond sigmas, by Wilson and Hilferty's cube (PNAS 17, 1931)."""
    spread = 2.0 / (9.0 * dof)
    return dof * (1.0 - spread + sigmas * jnp.sqrt(spread)) ** 3


def per_dimension(outputs: Space, blocks: Bool[Array, " blocks"]) -> Bool[Array, " measured"]:
    """A flag per output block, repeated for each of its tangent dimensions."""
    return jnp.concatenate(
        [jnp.broadcast_to(blocks[i], (s.stop - s.start,)) for i, s in enumerate(outputs.tangent.values())]
    )
