"""Measurements to rows of one grid, causally: the online form of `signals.sampling.sample`.

Row k covers the interval (t_{k-1}, t_k], t_k = k h. It is closed when all measurements up to t_k + h / 2 are expected to
have arrived (see `Timeline.wait`). Measurements that arrive later are counted and discarded. As for a log, a command acts
from its time stamp until the next one, a rate gyro measures the mean rate up to its time stamp, both are averaged over the
interval, and any other measurement is assigned to the row with the nearest time. Until the next rate measurement arrives,
the latest one is held.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rotorid.geometry.spaces import Space
from rotorid.models.system import System

_STALE_PERIODS = 5.0
_STALE_FLOOR = 0.25  # s
_MAX_KNOTS = 4000  # of one input: more than any wait needs

Values = tuple[float, ...]


class SampleRow(NamedTuple):
    """One row. t: session time, s. u: inputs, packed. y: outputs, packed. mask: which dimensions of the outputs were
    measured."""

    t: float
    u: list[float]
    y: list[float]
    mask: list[bool]


class Sampler:
    """Rows for the inputs and outputs of one System.

    Args:
        inputs, outputs: of the System.
        rate: of the grid, Hz.
        periods: of the inputs, s.
        start: session time, s; all rows are later.

    step: of the grid, s. late: number of measurements that arrived after their row was closed.
    """

    def __init__(
        self, inputs: Space, outputs: Space, rate: float, periods: Mapping[str, float], start: float
    ) -> None:
        self.step = 1.0 / rate
        self.late = 0
        self._inputs, self._outputs, self._periods = inputs, outputs, dict(periods)
        self.restart(start)

    def restart(self, start: float) -> None:
        """Discard all measurements. start: session time, s; all rows are later."""
        self._input_signals = {
            name: _HeldSignal(name == "body_rate", self._stale_age(name)) for name in self._inputs
        }
        self._measurements: dict[str, dict[int, list[tuple[float, Values]]]] = {
            name: {} for name in self._outputs
        }
        self._next_row = math.floor(start / self.step) + 1

    def change_rates(self, rate: float, periods: Mapping[str, float]) -> None:
        """Continue on another grid, after the last row. Arguments as of the class; measurements are kept."""
        last, measurements = (self._next_row - 1) * self.step, self._measurements
        self.step, self._periods = 1.0 / rate, dict(periods)
        for name, signal in self._input_signals.items():
            signal.stale = self._stale_age(name)
        self._measurements = {name: {} for name in self._outputs}
        self._next_row = math.floor(last / self.step + 0.5) + 1  # at least half a step later
        for name, rows in measurements.items():
            for t, values in (m for row in rows.values() for m in row):
                self._add_measurement(name, t, values)

    def _stale_age(self, name: str) -> float:
        return max(_STALE_FLOOR, _STALE_PERIODS * self._periods.get(name, 0.0))

    def add(self, signal: str, t: float, values: Values) -> None:
        """Add a measurement. t: session time, s."""
        input_signal = self._input_signals.get(signal)
        if input_signal is not None:
            input_signal.add(t, values)
        if signal in self._measurements:
            self._add_measurement(signal, t, values)

    def _add_measurement(self, signal: str, t: float, values: Values) -> None:
        rows, row = self._measurements[signal], round(t / self.step)
        if row < self._next_row:
            self.late += 1
        elif len(rows) < _MAX_KNOTS:
            rows.setdefault(row, []).append((t, values))

    @property
    def next_due(self) -> float:
        """Session time from which the next row can be closed, s."""
        return (self._next_row + 0.5) * self.step

    def closed_rows(self, until: float) -> Iterator[SampleRow]:
        """The rows with t + h / 2 <= until, session time in s. Rows whose inputs are too old are left out."""
        last = math.floor(until / self.step - 0.5 + 1e-9)
        while self._next_row <= last:
            k, t = self._next_row, self._next_row * self.step
            if not all(s.is_fresh(t) for s in self._input_signals.values()):
                following = max(s.next_time(t) for s in self._input_signals.values() if not s.is_fresh(t))
                k = max(k + 1, math.ceil(following / self.step)) if following < until else last + 1
                self._advance(k)
                continue
            u = [v for s in self._input_signals.values() for v in s.mean(t - self.step, t)]
            y: list[float] = []
            mask: list[bool] = []
            for name, block in self._outputs.items():
                measurements = self._measurements[name].pop(k, None)
                if not measurements:
                    y += block.initial_value
                elif block.rotation:
                    y += min(measurements, key=lambda m: abs(m[0] - t))[1]
                elif len(measurements) == 1:
                    y += measurements[0][1]
                else:
                    y += [
                        sum(column) / len(measurements)
                        for column in zip(*(v for _, v in measurements), strict=True)
                    ]
                mask += [bool(measurements)] * block.dim
            self._advance(k + 1)
            yield SampleRow(t, u, y, mask)

    def _advance(self, following: int) -> None:
        """Discard the measurements of rows before `following`."""
        if following > self._next_row + 1:
            for rows in self._measurements.values():
                for k in [k for k in rows if k < following]:
                    del rows[k]
        self._next_row = following
        for s in self._input_signals.values():
            s.discard_before((following - 1) * self.step)


class _HeldSignal:
    """An input between its time stamps. backward: its value is the mean since the previous time stamp. stale: age from which it
    is too old, s."""

    def __init__(self, backward: bool, stale: float) -> None:
        self._backward, self.stale = backward, stale
        self._times: list[float] = []
        self._knots: list[tuple[float, Values]] = []

    def add(self, t: float, values: Values) -> None:
        if self._times and t > self._times[-1]:
            self._times.append(t)
            self._knots.append((t, values))
        elif t not in self._times:
            insort(self._times, t)
            self._knots.insert(self._times.index(t), (t, values))
        if len(self._times) > _MAX_KNOTS:
            del self._times[0], self._knots[0]

    def is_fresh(self, t: float) -> bool:
        """Whether its latest value before t, s, is not too old."""
        before = bisect_right(self._times, t) - 1
        return before >= 0 and t - self._times[before] <= self.stale

    def next_time(self, t: float) -> float:
        """The first time stamp after t, s; infinity if there is none yet."""
        k = bisect_right(self._times, t)
        return self._times[k] if k < len(self._times) else math.inf

    def mean(self, a: float, b: float) -> list[float]:
        """Mean over (a, b], s. Before the first value, that value is held."""
        times, knots = self._times, self._knots
        last = len(times) - 1
        total = [0.0] * len(knots[0][1])
        at = a
        k = bisect_right(times, a)  # the first knot after a
        while at < b:
            end = min(times[k], b) if k <= last else b
            if end > at:
                values = knots[min(k, last) if self._backward else max(k - 1, 0)][1]
                share = (end - at) / (b - a)
                total = [s + share * v for s, v in zip(total, values, strict=True)]
                at = end
            k += 1
        return total

    def discard_before(self, t: float) -> None:
        """Discard values that no interval from t, s, on needs."""
        keep = max(bisect_right(self._times, t) - 1, 0)
        if keep > 16:
            del self._times[:keep], self._knots[:keep]


def grid_rate(periods: Mapping[str, float], system: System, maximum: float) -> float:
    """Rate of the grid for a System, Hz: the rate of its fastest signal, at most `maximum`; 0 if it receives none of them.

    periods: by signal, s.
    """
    rates = [1.0 / periods[n] for n in (*system.inputs, *system.outputs) if periods.get(n, 0.0) > 0.0]
    return min(maximum, max(rates)) if rates else 0.0
