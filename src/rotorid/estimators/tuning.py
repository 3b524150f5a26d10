"""The tuning of a filter as leaves of one pytree, by default that of its System."""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint, slope, to_coordinate
from rotorid.models.system import Parameter


class Thresholds(eqx.Module):
    """When a filter rejects a measurement, and when it resets.

    Attributes:
        gate: standard deviations (of the one-dimensional normal with the same tail) beyond which a block of measurements is
            rejected.
        patience: s of rejections after which the state of the block's name is reset.
        bias_gate: standard deviations of the running mean of innovations beyond which the parameters are reset.
        bias_memory: s over which that mean runs.
        least_bias: standard deviations of an innovation; a smaller mean is covered by the assumed noise.
        slow_bias_gate: as bias_gate, of the running mean over `SLOW_BIAS_MEMORY`.
        doubtful_bias: as bias_gate, of the mean over bias_memory; beyond it the health of the estimate is INCONSISTENT.
        max_gap: s without samples after which all states are reset.
    """

    gate: Float[Array, ""]
    patience: Float[Array, ""]
    bias_gate: Float[Array, ""]
    bias_memory: Float[Array, ""]
    least_bias: Float[Array, ""]
    slow_bias_gate: Float[Array, ""]
    doubtful_bias: Float[Array, ""]
    max_gap: Float[Array, ""]


GATE = 5.0
"""Gate of a filter, standard deviations."""

MAX_GAP = 0.5
"""Longest gap that a filter bridges, s."""

SLOW_BIAS_MEMORY = 4.0
"""s over which the slower running mean of innovations runs."""

ONSET_DRIFT = 0.1
"""Share of its drift that a parameter has during its onset."""


class Tuning(eqx.Module):
    """Priors, noise and thresholds of an estimator. Estimates are differentiable in them, and `vmap` runs many tunings at
    once.

    Attributes:
        values: prior means of all parameters, in their units.
        coordinate: prior means of the tracked parameters, in estimation coordinates (see `Parameter`).
        coordinate_std: standard deviations of the priors, in estimation coordinates.
        drift: random walk of the tracked parameters, in estimation coordinates per square root of s.
        drift_share: factor of the drift of each tracked parameter, except after a reset, see `drift_std`.
        onset: time from the start in which each of them drifts less, s, see `Parameter`.
        initial: prior mean of the states.
        initial_std: standard deviation of the initial states, per tangent dimension.
        process_noise: per tangent dimension of the states, in their unit per square root of s.
        measurement_noise: standard deviation per tangent dimension of the outputs.
        thresholds: thresholds of gates and resets.
    """

    values: Float[Array, " all"]
    coordinate: Float[Array, " parameters"]
    coordinate_std: Float[Array, " parameters"]
    drift: Float[Array, " parameters"]
    drift_share: Float[Array, " parameters"]
    onset: Float[Array, " parameters"]
    initial: Float[Array, " states"]
    initial_std: Float[Array, " tangent"]
    process_noise: Float[Array, " tangent"]
    measurement_noise: Float[Array, " measured"]
    thresholds: Thresholds

    def drift_std(
        self,
        dt: Float[Array, ""],
        elapsed: Float[Array, ""],
        extra: Float[Array, ""] | float = 0.0,
        is_recovering: Bool[Array, ""] | bool = False,
    ) -> Float[Array, " parameters"]:
        """Standard deviation that the parameters gain by drift in an interval, in estimation coordinates.

        dt: length of the interval, s. elapsed: time since the start, s. extra: time by which a reset lengthens the drift, s.
        is_recovering: whether a reset was shortly before; the share of the drift is then 1.
        """
        early = jnp.where(elapsed < self.onset, ONSET_DRIFT**2, 1.0)
        share = jnp.where(is_recovering, 1.0, self.drift_share)
        time = share**2 * dt + extra
        # the slope of a root at 0 is infinite
        return self.drift * jnp.where(time > 0.0, jnp.sqrt(early * jnp.where(time > 0.0, time, 1.0)), 0.0)

    def uninformed_std(self, elapsed: Float[Array, ""]) -> Float[Array, " parameters"]:
        """Standard deviation that the parameters would have without measurements, `elapsed` s after the start, had they drifted
        all the time."""
        return jnp.sqrt(self.coordinate_std**2 + self.drift**2 * elapsed)

    @classmethod
    def of(
        cls,
        joint: Joint,
        *,
        measurement_noise: dict[str, float | tuple[float, ...]] | None = None,
        process_noise: dict[str, float | tuple[float, ...]] | None = None,
        priors: dict[str, Parameter] | None = None,
        drift_shares: dict[str, float] | None = None,
        gate: float = GATE,
        patience: float = 0.1,
        bias_gate: float = 4.0,
        bias_memory: float = 0.06,
        least_bias: float = 1.0,
        slow_bias_gate: float = math.inf,
        doubtful_bias: float = math.inf,
        max_gap: float = MAX_GAP,
    ) -> Tuning:
        """The default tuning of a System, with replacements.

        Estimators that differ only in their tunings share one compiled program, and `stack_tunings` runs them at once. A
        System built with another prior is compiled again.

        Args:
            joint: joint model of the System.
            measurement_noise: standard deviations by output block, in the block's unit.
            process_noise: standard deviations by state block, in the block's unit per square root of s.
            priors: priors by name of the parameter.
            drift_shares: factors of the drift by name of the parameter, 1 by default, see `drift_share`.
            gate: number of standard deviations beyond which a block of measurements is rejected; by default 5.
            patience: time of rejections, s, after which the state of the block's name is reset.
            bias_gate: number of standard deviations of the running mean of innovations beyond which the parameters are reset.
            bias_memory: time constant of that mean, s.
            least_bias: a mean below this many standard deviations of an innovation causes no reset: the assumed noise covers
                it.
            slow_bias_gate: as `bias_gate`, for the running mean over 4 s.
            doubtful_bias: as `bias_gate`; beyond it the health of the estimate is `INCONSISTENT`.
            max_gap: time without samples, s, after which all states are reset.
        Raises:
            SettingError: a keyword names a block or parameter that the System does not have.
        """
        drift_shares = drift_shares or {}
        for name in (*(priors or {}), *drift_shares):
            joint.system.parameter(name)
        values = [v for p in joint.system.parameters for v in (priors or {}).get(p.name, p).values]
        states = _with_noise(joint.system.states, process_noise, "state")
        outputs = _with_noise(joint.system.outputs, measurement_noise, "output")
        coordinate, std, drift, share, onset = [], [], [], [], []
        for p in joint.tracked:
            prior = (priors or {}).get(p.name, p)
            for value in prior.values:
                per_unit = 1.0 / float(slope(p, np.float64(value), np))
                coordinate.append(to_coordinate(p, value))
                std.append(prior.std * per_unit)
                drift.append(prior.drift * per_unit)
                share.append(drift_shares.get(p.name, 1.0))
                onset.append(prior.onset)
        numbers = (values, coordinate, std, drift, share, onset)
        numbers = (*numbers, states.initial(), states.std(), states.noise(), outputs.noise())
        biases = (bias_gate, bias_memory, least_bias, slow_bias_gate, doubtful_bias)
        limits = (gate, patience, *biases, max_gap)
        thresholds = Thresholds(*(jax.device_put(np.asarray(a, float)) for a in limits))
        return cls(*(jax.device_put(np.asarray(a, float)) for a in numbers), thresholds=thresholds)


def _with_noise(space: Space, noise: dict[str, float | tuple[float, ...]] | None, space_name: str) -> Space:
    for name in noise or {}:
        if name not in space:
            raise SettingError(f"no {space_name} {name!r} to set the noise of (there are {', '.join(space)})")
    blocks = tuple((n, dataclasses.replace(b, noise=(noise or {}).get(n, b.noise))) for n, b in space.blocks)
    return Space(blocks)
