"""One estimator, fed row by row while the vehicle flies.

How noisy the measurements are is taken from the first `LISTENING` s in the air (see `signals.noise`); they are
estimated over once that is known. Nothing that comes later changes what was said before, so that the same rows give
the same estimates whenever they are fed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.estimators.base import AbstractEstimator, Estimate, Health
from rotorid.estimators.run import Stream
from rotorid.estimators.tuning import Tuning
from rotorid.live.derived import Derived
from rotorid.live.moment import Reading
from rotorid.live.sampler import Row
from rotorid.models.system import System
from rotorid.signals.noise import measured_noise
from rotorid.signals.samples import Samples

LISTENING: Final = 2.0
"""s in the air after which the noise of the measurements is taken as known."""

_FEWEST: Final = 100  # rows of them

Make = Callable[[dict[str, tuple[float, ...]]], AbstractEstimator]
"""An estimator for these measurement noises."""


class Found(NamedTuple):
    """The estimate after one row. t: s of the session. dt: s since the row before; longer than the estimator bears where
    `gap`."""

    t: float
    estimate: Estimate
    dt: float = 0.0
    gap: bool = False

    @property
    def meaning(self) -> str:
        """What its health means."""
        health = Health(int(self.estimate.health))
        if health is not Health.RECOVERING:
            return health.meaning
        if self.gap:
            return f"restarted after {self.dt:.1f} s without measurements"
        return "opened up: measurements kept disagreeing with what was known"


class Tracker:
    """An estimator over a System. make: gives it for the noises that are found. common: relative standard deviation
    of a quantity that no flight can tell (a thrust scale's), by name."""

    def __init__(self, system: System, make: Make, common: Mapping[str, float] | None = None) -> None:
        self.system = system
        self._make, self._common = make, dict(common or {})
        self._first: list[Samples] = []
        self._stream: Stream | None = None
        self._last: float | None = None
        self._likely = make({})
        joint = self._likely.joint
        self.quantities, self.units = joint.quantities, joint.units
        self._form = jax.tree.structure(_blank(system))
        self._shares = np.array([self._common.get(name, 0.0) for name in self.quantities])
        tuning: Tuning = self._likely.tuning  # pyright: ignore[reportAttributeAccessIssue]
        self._derived = Derived(joint, tuning.values)
        self._max_gap = float(tuning.max_gap)

    def prepare(self) -> str:
        """Compile the step before it is needed, and say what computes: "c" or "jax"."""
        stream = Stream(self._likely)
        self._derived.readings(stream.step(_blank(self.system)))
        return stream.engine

    def row(self, row: Row) -> Found | None:
        """The estimate that one more row in the air gives: none while listening, then that after all the rows so
        far."""
        dt = 0.0 if self._last is None else row.t - self._last
        self._last = row.t
        numbers = np.float64(row.t), np.float64(dt), np.array(row.u), np.array(row.y), np.array(row.mask)
        sample: Samples = jax.tree.unflatten(self._form, numbers)
        if self._stream is not None:
            return Found(row.t, self._stream.step(sample), dt, dt > self._max_gap)
        self._first.append(sample)
        if len(self._first) < _FEWEST or row.t - float(self._first[0].t) < LISTENING:
            return None
        rows, self._first = self._first, []
        noise = measured_noise(_stacked(rows), self.system.outputs)
        self._stream = Stream(self._make(noise))
        return [Found(float(s.t), self._stream.step(s)) for s in rows][-1]

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """What an estimate says, by quantity: the tracked ones and those that the System derives from them."""
        std = np.hypot(estimate.std, self._shares * np.asarray(estimate.value))
        found = {
            name: Reading(value, spread, unit)
            for name, value, spread, unit in zip(
                self.quantities, np.asarray(estimate.value).tolist(), std.tolist(), self.units, strict=True
            )
        }
        return found | self._derived.readings(estimate)


def _blank(system: System) -> Samples:
    """A row in which nothing is measured."""
    inputs, outputs = system.inputs, system.outputs
    y, mask = jnp.asarray(outputs.initial(), float), jnp.zeros(outputs.dim, bool)
    return Samples(jnp.zeros(()), jnp.zeros(()), jnp.asarray(inputs.initial(), float), y, mask)


def _stacked(rows: list[Samples]) -> Samples:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
