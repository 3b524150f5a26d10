"""Base of the Gaussian filters over a System: gates, gaps, resets and health. A filter adds prediction and measurement update.

The estimate is the joint point z (see `Joint`) with its uncertainty: a covariance, a lower root of it, or a pytree that
contains one of them and further states of the filter.

1. Initialisation. Every output block is awaited: its first measurement sets the state of the same name, without a gate.
2. Gates. Each block has a chi-square gate of its own, so that a wrong velocity does not reject the accelerometer.
3. Detection of an inconsistent filter, by two tests: a block is rejected for longer than `patience`; or the running mean of the
   normalised innovations over `bias_memory` is further from zero than `bias_gate` standard deviations of such a mean of white
   noise, and than `least_bias` standard deviations of a measurement (the assumed noise also stands for slow errors). In strong
   gusts, two settings are added: such a mean over `SLOW_BIAS_MEMORY` has the gate `slow_bias_gate`, since an estimate that
   follows a step slowly leaves little bias at a time; and beyond `doubtful_bias` the health is INCONSISTENT.
4. Reset after a detection. The covariance of the parameters is inflated by `RESET_DRIFT_TIME` seconds of their drift, so that
   parameters that change quickly (mass, wind) move first and constant ones (drag) hardly move. States that have blocks of their
   own are reset and await a measurement: those of a rejected block, and after a bias all of them, since their estimates lag
   behind and the correction of this lag would make the parameters overshoot. The estimate says RECOVERING for a while.
   With a single tracked parameter, an agile filter runs beside the main one unless it is not wanted; its parameter drifts
   `AGILITY` times as fast. After a bias, its estimate and uncertainty are taken over instead of a reset: they contain the
   measurements since the change, and the correlation of the parameter with the states that lag behind. (With several
   parameters, it would attribute a change of one to the others.) An agile filter that rejects what the main one accepts is set
   to the main one.
5. Gaps. After a gap longer than `max_gap` all states are reset. After invalid numbers the whole prior is restored.

Reference for the two models: Y. Bar-Shalom, X. R. Li, T. Kirubarajan, Estimation with Applications to Tracking and Navigation,
2001, chapter 11.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.estimators.base import (
    AbstractEstimator,
    Estimate,
    Health,
    all_finite,
    plausible_sample,
    plausible_step,
)
from rotorid.estimators.monitoring import (
    INFORMED,
    RECOVERY,
    BlockStatus,
    Consistency,
    Innovation,
    PendingReset,
    complete_blocks,
    health_of,
    mean_nis_ratio,
    measured_blocks,
    per_dimension,
    rejection_times,
)
from rotorid.estimators.tuning import SLOW_BIAS_MEMORY, Tuning
from rotorid.models.joint import Joint
from rotorid.numerics.products import congruence
from rotorid.signals.samples import Samples

Uncertainty = Any
"""A covariance of the joint point, a lower root of it, or a pytree of arrays that holds one."""

RESET_DRIFT_TIME = 15.0
"""Seconds of drift by which a reset inflates the covariance of the parameters."""

AGILITY = 5.0
"""Drift of the parameters of the agile filter, as a multiple of that of the main filter without its `drift_share`."""

PROCESS_NOISE_INFLATION = 30.0
"""Factor on the process noise of the states where the model does not hold (see `System.holds`)."""

_LARGEST_INNOVATION = 6.0  # standard deviations: a larger one counts as this in the running mean


class InnovationBias(eqx.Module):
    """Running mean of the normalised innovations, and the variance that such a mean of white noise has."""

    mean: Float[Array, " measured"]
    variance: Float[Array, " measured"]

    @classmethod
    def none(cls, dim: int, dtype: jnp.dtype) -> InnovationBias:
        """Before any innovation."""
        return cls(jnp.zeros(dim, dtype), jnp.zeros(dim, dtype))

    def updated(
        self,
        w: Float[Array, " measured"],
        is_measured: Bool[Array, " measured"],
        dt: Float[Array, ""],
        memory: Float[Array, ""] | float,
    ) -> InnovationBias:
        """After innovations w, dt (s) after the ones before. memory: of the mean, s."""
        share = jnp.where(is_measured, dt / (dt + memory), 0.0)
        variance = (1.0 - share) ** 2 * self.variance + share**2
        return InnovationBias(self.mean + share * (w - self.mean), variance)

    def exceeds(self, gate: Float[Array, ""], least: Float[Array, ""] | float = 0.0) -> Bool[Array, ""]:
        """Whether a mean is further from zero than by gate of its standard deviations, and than by least."""
        if not isinstance(gate, Tracer) and np.isinf(gate):
            return jnp.zeros((), bool)  # C for one tuning is shorter without the test
        return jnp.any(self.mean**2 > jnp.maximum(gate**2 * self.variance, least**2))


class AgileFilter(eqx.Module):
    """The filter beside the main one whose parameters drift faster. z: joint point. uncertainty: of z."""

    z: Float[Array, " size"]
    uncertainty: Uncertainty


class FilterState(eqx.Module):
    """State of a Gaussian filter. z: joint point. uncertainty: of z. agile: is taken over after a bias; None with several
    tracked parameters, and where it is not wanted. elapsed: s since the start. The rest is for monitoring."""

    z: Float[Array, " size"]
    uncertainty: Uncertainty
    agile: AgileFilter | None
    elapsed: Float[Array, ""]
    blocks: BlockStatus
    bias: InnovationBias
    slow_bias: InnovationBias
    reset: PendingReset
    consistency: Consistency
    innovation: Innovation
    health: Int[Array, ""]


class MeasurementUpdate(eqx.Module):
    """Result of a measurement update.

    correction: of the mean, tangent. uncertainty: afterwards. accepted: blocks that passed the gate. innovation: measured minus
    predicted, 0 where not measured. innovation_std: its predicted standard deviation. nis: of the accepted blocks.
    """

    correction: Float[Array, " dim"]
    uncertainty: Uncertainty
    accepted: Bool[Array, " blocks"]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]


class AbstractGaussianFilter(AbstractEstimator):
    """A filter with a mean on the joint manifold and an uncertainty in its tangent space."""

    tuning: eqx.AbstractVar[Tuning]
    is_agile: eqx.AbstractVar[bool]

    @abstractmethod
    def _uncertainty_of(self, std: Float[Array, " dim"]) -> Uncertainty:
        """The uncertainty with these standard deviations and no correlation."""

    @abstractmethod
    def _covariance(self, uncertainty: Uncertainty, first: int = 0) -> Float[Array, "last last"]:
        """The covariance of an uncertainty, of the tangent dimensions from `first` on."""

    def _variances(self, uncertainty: Uncertainty) -> Float[Array, " dim"]:
        """The diagonal of its covariance."""
        return jnp.diagonal(self._covariance(uncertainty))

    @abstractmethod
    def _propagate(
        self,
        z: Float[Array, " size"],
        uncertainty: Uncertainty,
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Float[Array, " size"], Uncertainty]:
        """Mean and uncertainty dt later.

        Args:
            z, uncertainty: before.
            u: inputs that acted meanwhile.
            dt: s.
            retention: 0 for a tangent dimension that is reset, else 1.
            noise: standard deviation that is added.
        """

    @abstractmethod
    def _measurement_update(
        self,
        z: Float[Array, " size"],
        uncertainty: Uncertainty,
        sample: Samples,
        trusted: Bool[Array, " blocks"],
    ) -> MeasurementUpdate:
        """Update of a mean and its uncertainty by a sample; trusted blocks pass the gate in any case."""

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> FilterState:
        joint, tuning = self.joint, self.tuning
        blocks, output_dim = len(joint.system.outputs), joint.system.outputs.dim
        dtype = tuning.initial.dtype
        z, uncertainty = self._prior()
        has_agile = self.is_agile and joint.space.dim == joint.states_dim + 1
        return FilterState(
            z=z,
            uncertainty=uncertainty,
            agile=AgileFilter(z, uncertainty) if has_agile else None,
            elapsed=jnp.zeros((), dtype),
            blocks=BlockStatus(jnp.zeros(blocks, dtype), jnp.ones(blocks, bool)),
            bias=InnovationBias.none(output_dim, dtype),
            slow_bias=InnovationBias.none(output_dim, dtype),
            reset=PendingReset(jnp.zeros(joint.states_dim, bool), jnp.zeros((), bool)),
            consistency=Consistency(jnp.ones((), dtype), jnp.zeros((), dtype)),
            innovation=Innovation.none(output_dim, dtype),
            health=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(self, state: FilterState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> FilterState:
        tuning = self.tuning
        dt = plausible_step(dt)
        gap = dt > tuning.thresholds.max_gap
        reset = state.reset.states | gap
        process_std = process_std_over(self.joint, tuning, u, dt, reset)
        inflation = jnp.where(state.reset.parameters, RESET_DRIFT_TIME, 0.0)
        drift = tuning.drift_std(dt, state.elapsed, inflation, state.consistency.recovery_time > 0)
        retention = jnp.concatenate([jnp.where(reset, 0.0, 1.0), jnp.ones_like(drift)])

        def propagate(z, uncertainty, drift):
            noise = jnp.concatenate([process_std, drift])
            return self._propagate(
                z, uncertainty, u, jnp.minimum(dt, tuning.thresholds.max_gap), retention, noise
            )

        agile = None
        if state.agile is not None:
            agile_drift = tuning.drift_std(dt, state.elapsed, inflation + (AGILITY**2 - 1.0) * dt, True)
            agile = state.agile.z, state.agile.uncertainty, agile_drift
        (z, uncertainty), agile = _each(propagate, (state.z, state.uncertainty, drift), agile)
        recovery = jnp.where(gap, RECOVERY, jnp.maximum(state.consistency.recovery_time - dt, 0.0))
        return eqx.tree_at(
            lambda s: (
                s.z,
                s.uncertainty,
                s.agile,
                s.elapsed,
                s.blocks.is_awaited,
                s.reset,
                s.consistency.recovery_time,
            ),
            state,
            (
                z,
                uncertainty,
                None if agile is None else AgileFilter(*agile),
                state.elapsed + dt,
                state.blocks.is_awaited | gap,
                PendingReset(jnp.zeros_like(reset), jnp.zeros_like(state.reset.parameters)),
                recovery,
            ),
            is_leaf=lambda leaf: leaf is None,
        )

    def update(self, state: FilterState, sample: Samples) -> FilterState:
        outputs, tuning, is_awaited = self.joint.system.outputs, self.tuning, state.blocks.is_awaited
        sample = plausible_sample(outputs, sample)
        is_new = (state.elapsed < RECOVERY) | (state.consistency.recovery_time > 0)
        sample = eqx.tree_at(
            lambda s: s.mask, sample, usable_mask(self.joint, sample.mask, is_awaited, is_new)
        )
        is_taken = is_awaited & complete_blocks(outputs, sample.mask)

        def correct(z, uncertainty):
            z = self.joint.take_measured(z, is_taken, sample.y)
            step = self._measurement_update(z, uncertainty, sample, is_awaited)
            return self.joint.space.plus(z, step.correction), step

        agile = state.agile
        (z, step), corrected = _each(
            correct, (state.z, state.uncertainty), None if agile is None else (agile.z, agile.uncertainty)
        )
        uncertainty, accepted = step.uncertainty, step.accepted
        is_sound = jnp.zeros((), bool)
        if corrected is not None:
            agile = AgileFilter(corrected[0], corrected[1].uncertainty)
            is_sound = all_finite((agile.z, agile.uncertainty)) & ~jnp.any(accepted & ~corrected[1].accepted)
        dof = jnp.sum(sample.mask & per_dimension(outputs, accepted))

        is_measured = measured_blocks(outputs, sample.mask)
        rejection_time = rejection_times(state.blocks.rejection_time, is_measured, accepted, sample.dt)
        is_overdue = rejection_time > tuning.thresholds.patience
        w = _limited_innovations(step, sample)
        bias = state.bias.updated(w, sample.mask, sample.dt, tuning.thresholds.bias_memory)
        slow_bias = state.slow_bias.updated(w, sample.mask, sample.dt, SLOW_BIAS_MEMORY)
        is_biased = self._is_biased(bias, slow_bias, state.consistency)
        is_inconsistent = jnp.any(is_overdue) | is_biased
        is_reset = jnp.any(is_overdue) | (is_biased & ~is_sound)
        is_restored = is_overdue | (is_biased & ~is_sound & is_direct(self.joint))
        if agile is not None:
            z, uncertainty = _where(is_biased & ~is_reset, (agile.z, agile.uncertainty), (z, uncertainty))
        nis_ratio = mean_nis_ratio(state.consistency.nis_ratio, step.nis, dof, sample.dt)

        numbers = step.innovation, step.innovation_std, step.nis, bias, slow_bias, nis_ratio
        is_invalid = ~all_finite((z, uncertainty, numbers))
        is_invalid |= jnp.any(self._variances(uncertainty) < 0.0)
        z, uncertainty = _where(is_invalid, self._prior(), (z, uncertainty))
        if agile is not None:
            agile = _where(~is_sound | is_reset | is_invalid, AgileFilter(z, uncertainty), agile)
        recovery = jnp.where(is_inconsistent, RECOVERY, state.consistency.recovery_time)
        health = health_of(
            jnp.where(
                self._is_informed(uncertainty, state.elapsed), int(Health.OK), int(Health.NO_INFORMATION)
            ),
            is_rejected=jnp.any(is_measured & ~accepted),
            is_outside=~self.joint.holds(sample.u),
            nis_ratio=nis_ratio,
            is_doubtful=bias.exceeds(tuning.thresholds.doubtful_bias),
            is_recovering=recovery > 0,
        )
        is_restarted = is_inconsistent | is_invalid
        none = InnovationBias.none(outputs.dim, z.dtype)
        bias, slow_bias = _where(is_restarted, (none, none), (bias, slow_bias))
        return FilterState(
            z=z,
            uncertainty=uncertainty,
            agile=agile,
            elapsed=state.elapsed,
            blocks=BlockStatus(
                rejection_time=jnp.where(is_overdue | is_invalid, 0.0, rejection_time),
                is_awaited=(is_awaited & ~is_measured) | is_restored | is_invalid,
            ),
            bias=bias,
            slow_bias=slow_bias,
            reset=PendingReset(self.joint.states_measured(is_restored), is_reset),
            consistency=Consistency(jnp.where(is_restarted, 1.0, nis_ratio), recovery),
            innovation=jax.tree.map(
                lambda leaf: jnp.where(is_invalid, 0, leaf),
                Innovation(step.innovation, step.innovation_std, step.nis, dof),
            ),
            health=jnp.where(is_invalid, int(Health.DIVERGED), health),
        )

    def estimate(self, state: FilterState) -> Estimate:
        joint = self.joint
        n, states = joint.states_dim, joint.system.states.size
        std = jnp.sqrt(self._variances(state.uncertainty))
        value, scale = joint.values_and_slopes(state.z[states:])
        return Estimate(
            state=state.z[:states],
            state_std=std[:n],
            value=value,
            std=scale * std[n:],
            covariance=self._covariance(state.uncertainty, n) * jnp.outer(scale, scale),
            innovation=state.innovation.value,
            innovation_std=state.innovation.std,
            nis=state.innovation.nis,
            nis_dof=state.innovation.nis_dof,
            informed=std[n:] < INFORMED * self.tuning.uninformed_std(state.elapsed),
            health=state.health,
        )

    def _is_biased(
        self, bias: InnovationBias, slow_bias: InnovationBias, consistency: Consistency
    ) -> Bool[Array, ""]:
        """Whether the innovations have a bias that noise does not explain, and no reset is under way."""
        thresholds = self.tuning.thresholds
        is_biased = bias.exceeds(thresholds.bias_gate, thresholds.least_bias)
        return (is_biased | slow_bias.exceeds(thresholds.slow_bias_gate)) & (consistency.recovery_time <= 0)

    def _prior(self) -> tuple[Float[Array, " size"], Uncertainty]:
        return (
            jnp.concatenate([self.tuning.initial, self.tuning.coordinate]),
            self._uncertainty_of(self._prior_std()),
        )

    def _prior_std(self) -> Float[Array, " dim"]:
        return jnp.concatenate([self.tuning.initial_std, self.tuning.coordinate_std])

    def _is_informed(self, uncertainty: Uncertainty, elapsed: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether the data carry information about the first tracked parameter."""
        n = self.joint.states_dim
        if n == self.joint.space.dim:
            return jnp.ones((), bool)
        std = jnp.sqrt(self._variances(uncertainty)[n])
        return std < INFORMED * self.tuning.uninformed_std(elapsed)[0]


def _limited_innovations(step: MeasurementUpdate, sample: Samples) -> Float[Array, " measured"]:
    """Innovations in their standard deviations, at most `_LARGEST_INNOVATION`, so that one outlier is no bias."""
    w = step.innovation / jnp.where(sample.mask, step.innovation_std, 1.0)
    return jnp.clip(w, -_LARGEST_INNOVATION, _LARGEST_INNOVATION)


def _each(
    function: Callable[..., Any], main: tuple[Any, ...], agile: tuple[Any, ...] | None
) -> tuple[Any, Any]:
    """Results of a function for the main filter and for the agile one, None without one; in one loop."""
    if agile is None:
        return function(*main), None
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), main, agile)
    results = jax.lax.map(lambda row: function(*row), both)
    first, second = (jax.tree.map(lambda leaf, k=k: leaf[k], results) for k in (0, 1))
    return first, second


def _where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """One of two pytrees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def usable_mask(
    joint: Joint, mask: Bool[Array, " measured"], is_awaited: Bool[Array, " blocks"], is_new: Bool[Array, ""]
) -> Bool[Array, " measured"]:
    """The mask of a sample without the outputs that no state is directly, while a state awaits its first measurement.

    A force that grows with an unknown velocity would else tell of both at once. is_new: whether the filter was started or reset
    less than `RECOVERY` ago; a state that is not measured by then is not awaited any longer.
    """
    outputs = joint.system.outputs
    direct = is_direct(joint)
    is_missing = jnp.any(direct & is_awaited & ~complete_blocks(outputs, mask))
    return mask & (~(is_new & is_missing) | per_dimension(outputs, direct))


def covariance_ahead(
    F: Float[Array, "dim dim"],
    P: Float[Array, "dim dim"],
    retention: Float[Array, " dim"],
    noise: Float[Array, " dim"],
) -> Float[Array, "dim dim"]:
    """P a step later, F P F^T + Q. retention: 0 for a tangent dimension that is reset, else 1. noise: standard deviation that
    is added."""
    return congruence(retention[:, None] * F, P, noise * noise)


def process_std_over(
    joint: Joint,
    tuning: Tuning,
    u: Float[Array, " inputs"],
    dt: Float[Array, ""],
    reset: Bool[Array, " tangent"],
) -> Float[Array, " tangent"]:
    """Standard deviation added to the states in dt (s): that of their process noise, times `PROCESS_NOISE_INFLATION` where the
    model does not hold; and that of their prior where they are reset."""
    noise = tuning.process_noise * jnp.where(joint.holds(u), 1.0, PROCESS_NOISE_INFLATION)
    return jnp.where(reset, tuning.initial_std, noise * jnp.sqrt(dt))


def directly_measured_states(joint: Joint) -> tuple[tuple[slice, slice | None], ...]:
    """Tangent dimensions of each output block, and of the state of the same name and size, None without such a state."""
    states, outputs = joint.system.states, joint.system.outputs
    pairs = []
    for name, block in outputs.blocks:
        place = states.tangent.get(name)
        is_same = place is not None and place.stop - place.start == block.dim
        pairs.append((outputs.tangent[name], place if is_same else None))
    return tuple(pairs)


def is_direct(joint: Joint) -> Bool[Array, " blocks"]:
    """Output blocks that measure the state of the same name."""
    return jnp.array([place is not None for _, place in directly_measured_states(joint)])
