"""An estimator that is updated row by row while the vehicle flies.

The measurement noise is estimated from the first `NOISE_PERIOD` s in the air (see `flight_noise`); afterwards these rows are
processed with it. Every `NOISE_PERIOD` s it is estimated again, from the last `NOISE_MEMORY` s: gusts come and go. Later
measurements never change earlier estimates, so that the same rows always give the same estimates.

After a pause of more than `PAUSE` s, on the ground or without messages, the payload may be another one. The pause then counts
as at least `PAYLOAD_TIME` s: over that time the drift of the mass amounts to 30 % of it, that of drag to 5 %. What is
constant, such as the scale of the thrust, is kept.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.run import Stream
from rotorid.estimators.tuning import Tuning
from rotorid.live.estimation.derived_quantities import DerivedQuantities
from rotorid.live.estimation.gust_error import GustError
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.snapshot import Reading
from rotorid.models.multirotor.flight_noise import FlightNoise, flight_noise
from rotorid.models.system import System
from rotorid.signals.samples import Samples

NOISE_PERIOD: Final = 2.0
"""s in the air from which the measurement noise is first estimated, and between two later estimates."""

NOISE_MEMORY: Final = 10.0
"""s in the air from which it is estimated later."""

PAUSE: Final = 3.0
"""s without rows after which the payload may have changed."""

PAYLOAD_TIME: Final = 115.0
"""s of drift for a change of payload (see `models.multirotor.bare.MASS_DRIFT`)."""

_MIN_ROWS: Final = 100  # for the estimate of the noise
_NOISE_CHANGE: Final = 1.15  # factor from which on another noise is used

EstimatorBuilder = Callable[[FlightNoise], AbstractEstimator]
"""Builds an estimator for the noise of a flight."""


_CHECKPOINTS: Final = 0.1, 5.0  # s between two checkpoints, and s with rows that they are kept


class StepEstimate(NamedTuple):
    """The estimate after one row. t: session time, s. dt: time since the previous row, s. is_after_gap: whether dt exceeds the
    estimator's `max_gap`. model_std: relative standard deviation of the main quantity by what the model lacks: by the
    thrust and by gusts."""

    t: float
    estimate: Estimate
    dt: float = 0.0
    is_after_gap: bool = False
    model_std: float = 0.0


class Checkpoint(NamedTuple):
    """The state of a tracker after a row, with its estimate. state: of the stream, opaque. rows_time: time with rows until
    then, s: a gap counts as 0.1 s."""

    state: Any
    estimate: StepEstimate
    rows_time: float


class Tracker:
    """An estimator of a System.

    Args:
        system: System to estimate.
        build: builds the estimator for the noise of a flight.
        common_std: relative standard deviation that is added to a quantity, by name: the part that flight data cannot
            reduce, such as that of the thrust scale.
        thrust_std: relative standard deviation at a session time, s, that is added to the main quantity.
        weight: of the vehicle, N, for the effect of gusts; infinite: none.
        identifies: how many of the tracked parameters the estimator identifies; None: all, and what is derived from them. The
            others have no readings.
    """

    def __init__(
        self,
        system: System,
        build: EstimatorBuilder,
        common_std: Mapping[str, float] | None = None,
        thrust_std: Callable[[float], float] = lambda t: 0.0,
        weight: float = math.inf,
        *,
        identifies: int | None = None,
    ) -> None:
        self._identifies = identifies
        self.system, self._thrust_std = system, thrust_std
        self._build = build
        self._noise_rows: deque[Samples] = deque()
        self._noise = FlightNoise({}, {})
        self._noise_time = math.inf  # of the next estimate of the noise
        self._stream: Stream | None = None
        self._last: float | None = None
        self._checkpoints: deque[Checkpoint] = deque()
        self._rows_time = 0.0
        self._prior_estimator = build(FlightNoise({}, {}))
        joint = self._prior_estimator.joint
        self.quantities, self.units = joint.quantities, joint.units
        self._gusts = GustError(self.quantities, weight)
        self._structure = jax.tree.structure(_blank(system))
        common = common_std or {}
        self._common_std = np.array([common.get(name, 0.0) for name in self.quantities])
        tuning: Tuning = self._prior_estimator.tuning  # pyright: ignore[reportAttributeAccessIssue]
        self._derived = DerivedQuantities(joint, tuning.values)
        self._max_gap = float(tuning.thresholds.max_gap)

    def prepare(self) -> str:
        """Compile the step. Returns the engine: "c" or "jax"."""
        stream = Stream(self._prior_estimator)
        self._derived.readings(stream.step(_blank(self.system)))
        return stream.engine

    @property
    def is_estimating_noise(self) -> bool:
        """Whether rows are collected for the estimate of the measurement noise, after which the step is needed."""
        return self._stream is None and bool(self._noise_rows)

    def update(self, row: SampleRow) -> StepEstimate | None:
        """The estimate after one more row in the air; None while the measurement noise is estimated."""
        dt = 0.0 if self._last is None else row.t - self._last
        self._last = row.t
        drift_time = max(dt, PAYLOAD_TIME) if dt > PAUSE else dt
        numbers = (
            np.float64(row.t),
            np.float64(drift_time),
            np.array(row.u),
            np.array(row.y),
            np.array(row.mask),
        )
        sample: Samples = jax.tree.unflatten(self._structure, numbers)
        self._noise_rows.append(sample)
        if self._stream is not None:
            if row.t >= self._noise_time:
                self._update_noise(row.t)
            return self._step(sample, dt)
        if len(self._noise_rows) < _MIN_ROWS or row.t - float(self._noise_rows[0].t) < NOISE_PERIOD:
            return None
        self._noise = flight_noise(_stacked(self._noise_rows), self.system)
        self._noise_time = row.t + NOISE_PERIOD
        self._stream = Stream(self._build(self._noise))
        return [self._step(s, float(s.dt)) for s in self._noise_rows][-1]

    def _update_noise(self, t: float) -> None:
        """Estimate the noise again, and go on with it where it has changed. t: session time, s."""
        assert self._stream is not None
        self._noise_time = t + NOISE_PERIOD
        while float(self._noise_rows[0].t) < t - NOISE_MEMORY:
            self._noise_rows.popleft()
        if len(self._noise_rows) < _MIN_ROWS:
            return
        new = flight_noise(_stacked(self._noise_rows), self.system)
        noise = new._replace(measurement=self._noise.measurement | new.measurement)
        change = np.abs(np.log(_levels(self.system, noise) / _levels(self.system, self._noise)))
        if np.max(change, initial=0.0) > math.log(_NOISE_CHANGE):
            self._noise = noise
            self._stream.go_on_with(self._build(noise))

    def _step(self, sample: Samples, dt: float) -> StepEstimate:
        assert self._stream is not None
        t, estimated = float(sample.t), self._stream.step(sample)
        by_gusts = self._gusts.update(dt, np.asarray(estimated.value), np.asarray(estimated.std))
        model_std = math.hypot(self._thrust_std(t), by_gusts)
        estimate = StepEstimate(t, estimated, dt, dt > self._max_gap, model_std)
        interval, memory = _CHECKPOINTS
        self._rows_time += min(dt, interval)
        if not self._checkpoints or estimate.t >= self._checkpoints[-1].estimate.t + interval:
            self._checkpoints.append(Checkpoint(self._stream.checkpoint(), estimate, self._rows_time))
            while self._checkpoints[0].rows_time < self._rows_time - memory:
                self._checkpoints.popleft()
        return estimate

    def checkpoint_before(self, t: float) -> Checkpoint | None:
        """The latest checkpoint at or before t, s; the first one where all are later, None without any."""
        earlier = [c for c in self._checkpoints if c.estimate.t <= t]
        return earlier[-1] if earlier else next(iter(self._checkpoints), None)

    def return_to(self, checkpoint: Checkpoint) -> None:
        """Forget the rows after a checkpoint."""
        assert self._stream is not None
        self._stream.return_to(checkpoint.state)
        self._last, self._rows_time = checkpoint.estimate.t, checkpoint.rows_time
        self._checkpoints = deque(c for c in self._checkpoints if c.estimate.t <= self._last)
        self._noise_rows = deque(s for s in self._noise_rows if float(s.t) <= self._last)

    def common_relative_std(self, estimate: Estimate) -> float:
        """The part of the main quantity's relative standard deviation that scales all its values together."""
        if self.quantities[0] != "mass" or "thrust_scale" not in self.quantities:
            return float(self._common_std[0])
        s = self.quantities.index("thrust_scale")
        shared = float(estimate.covariance[0, s]) / max(float(estimate.std[s] * estimate.value[0]), 1e-300)
        return math.hypot(float(self._common_std[0]), shared)

    def readings(self, step: StepEstimate) -> dict[str, Reading]:
        """Tracked and derived quantities of an estimate."""
        estimate = step.estimate
        std = np.hypot(estimate.std, self._common_std * np.asarray(estimate.value))
        std[0] = math.hypot(std[0], step.model_std * float(estimate.value[0]))
        tracked = {
            name: Reading(value, s, unit)
            for name, value, s, unit in zip(
                self.quantities, np.asarray(estimate.value).tolist(), std.tolist(), self.units, strict=True
            )
        }
        if self._identifies is not None:
            return dict(list(tracked.items())[: self._identifies])
        return tracked | self._derived.readings(estimate)


def _blank(system: System) -> Samples:
    """A row without measurements."""
    inputs, outputs = system.inputs, system.outputs
    y, mask = jnp.asarray(outputs.initial(), float), jnp.zeros(outputs.dim, bool)
    return Samples(jnp.zeros(()), jnp.zeros(()), jnp.asarray(inputs.initial(), float), y, mask)


def _levels(system: System, noise: FlightNoise) -> Float[np.ndarray, " noises"]:
    """All standard deviations of an estimator for a noise that are positive by default."""
    blocks = [(name, block, noise.measurement) for name, block in system.outputs.items()]
    blocks += [(name, block, noise.process) for name, block in system.states.items()]
    default = np.concatenate([block.noise_vector for _, block, _ in blocks])
    levels = [np.broadcast_to(of.get(name, block.noise_vector), block.dim) for name, block, of in blocks]
    return np.concatenate(levels)[default > 0.0]


def _stacked(rows: Sequence[Samples]) -> Samples:
    columns = zip(*(jax.tree.leaves(row) for row in rows), strict=True)
    return jax.tree.unflatten(jax.tree.structure(rows[0]), [np.array(column) for column in columns])
