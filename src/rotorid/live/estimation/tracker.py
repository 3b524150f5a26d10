"""An estimator that is updated row by row while the vehicle flies.

The measurement noise is estimated from the first `NOISE_PERIOD` s in the air (see `signals.series`); afterwards these rows are
processed with it. Later measurements never change earlier estimates, so that the same rows always give the same estimates.

After a pause of more than `PAUSE` s, on the ground or without messages, the payload may be another one. The pause then counts
as at least `PAYLOAD_TIME` s: over that time the drift of the mass amounts to 30 % of it, that of drag to 5 %. What is
constant, such as the scale of the thrust, is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.run import Stream
from rotorid.estimators.tuning import Tuning
from rotorid.live.estimation.derived_quantities import DerivedQuantities
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.snapshot import Reading
from rotorid.models.system import System
from rotorid.signals.measurement_noise import measured_noise
from rotorid.signals.samples import Samples

NOISE_PERIOD: Final = 2.0
"""s in the air from which the measurement noise is estimated."""

PAUSE: Final = 3.0
"""s without rows after which the payload may have changed."""

PAYLOAD_TIME: Final = 115.0
"""s of drift for a change of payload (see `models.multirotor.bare.MASS_DRIFT`)."""

_MIN_ROWS: Final = 100  # for the estimate of the noise

EstimatorBuilder = Callable[[dict[str, tuple[float, ...]]], AbstractEstimator]
"""Builds an estimator from the standard deviations of the measurement noise by output."""


class StepEstimate(NamedTuple):
    """The estimate after one row. t: session time, s. dt: time since the previous row, s. is_after_gap: whether dt exceeds the
    estimator's `max_gap`."""

    t: float
    estimate: Estimate
    dt: float = 0.0
    is_after_gap: bool = False


class Tracker:
    """An estimator of a System.

    Args:
        system: System to estimate.
        build: builds the estimator for a measurement noise.
        common_std: relative standard deviation that is added to a quantity, by name: the part that flight data cannot
            reduce, such as that of the thrust scale.
    """

    def __init__(
        self, system: System, build: EstimatorBuilder, common_std: Mapping[str, float] | None = None
    ) -> None:
        self.system = system
        self._build = build
        self._noise_rows: list[Samples] = []
        self._stream: Stream | None = None
        self._last: float | None = None
        self._prior_estimator = build({})
        joint = self._prior_estimator.joint
        self.quantities, self.units = joint.quantities, joint.units
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
        return bool(self._noise_rows)

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
        if self._stream is not None:
            return StepEstimate(row.t, self._stream.step(sample), dt, dt > self._max_gap)
        self._noise_rows.append(sample)
        if len(self._noise_rows) < _MIN_ROWS or row.t - float(self._noise_rows[0].t) < NOISE_PERIOD:
            return None
        rows, self._noise_rows = self._noise_rows, []
        noise = measured_noise(_stacked(rows), self.system.outputs)
        self._stream = Stream(self._build(noise))
        return [StepEstimate(float(s.t), self._stream.step(s)) for s in rows][-1]

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """Tracked and derived quantities of an estimate."""
        std = np.hypot(estimate.std, self._common_std * np.asarray(estimate.value))
        tracked = {
            name: Reading(value, s, unit)
            for name, value, s, unit in zip(
                self.quantities, np.asarray(estimate.value).tolist(), std.tolist(), self.units, strict=True
            )
        }
        return tracked | self._derived.readings(estimate)


def _blank(system: System) -> Samples:
    """A row without measurements."""
    inputs, outputs = system.inputs, system.outputs
    y, mask = jnp.asarray(outputs.initial(), float), jnp.zeros(outputs.dim, bool)
    return Samples(jnp.zeros(()), jnp.zeros(()), jnp.asarray(inputs.initial(), float), y, mask)


def _stacked(rows: list[Samples]) -> Samples:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
