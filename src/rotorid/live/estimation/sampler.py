"""Measurements to rows of one grid, as they come: what `signals.sampling.sample` does for a log, without the future.

Row k stands for the interval (t_{k-1}, t_k], t_k = k h. It is closed when everything up to t_k + h / 2 may be
expected to have come (see `Timeline.wait`), and what comes for it later is counted and left out. As there, a command
acts from its stamp until the next one, a rate gyro tells the mean rate up to its stamp, either is averaged over the
interval, and a measurement goes to the row whose time is nearest. Where the next rate is not there yet, the last one
is taken to last."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rotorid.geometry.spaces import Space

_STALE_PERIODS = 5.0
_STALE_FLOOR = 0.25  # s
_KNOTS = 4000  # of one input: more than any wait needs

Values = tuple[float, ...]


class Row(NamedTuple):
    """One row. t: s of the session. u: inputs, packed. y: outputs, packed; mask: which of their dimensions were
    measured."""

    t: float
    u: list[float]
    y: list[float]
    mask: list[bool]


class Sampler:
    """Rows for the inputs and outputs of one System.

    rate: of the grid, Hz. periods: of the inputs, s. start: no row is at or before this session time, s. late:
    measurements that came after their row was closed."""

    def __init__(
        self, inputs: Space, outputs: Space, rate: float, periods: Mapping[str, float], start: float
    ) -> None:
        self.step = 1.0 / rate
        self.late = 0
        self._inputs, self._outputs, self._periods = inputs, outputs, dict(periods)
        self.restart(start)

    def restart(self, start: float) -> None:
        """Forget all that came: no row is at or before this session time, s, nor made of what came until then."""
        self._held = {
            name: _Held(name == "body_rate", max(_STALE_FLOOR, _STALE_PERIODS * self._periods.get(name, 0.0)))
            for name in self._inputs
        }
        self._seen: dict[str, dict[int, list[tuple[float, Values]]]] = {name: {} for name in self._outputs}
        self._next = math.floor(start / self.step) + 1

    def add(self, signal: str, t: float, values: Values) -> None:
        """Take one measurement. t: s of the session."""
        held = self._held.get(signal)
        if held is not None:
            held.add(t, values)
        rows = self._seen.get(signal)
        if rows is not None:
            row = round(t / self.step)
            if row < self._next:
                self.late += 1
            elif len(rows) < _KNOTS:
                rows.setdefault(row, []).append((t, values))

    @property
    def due(self) -> float:
        """When the next row can be closed, s."""
        return (self._next + 0.5) * self.step

    def rows(self, until: float) -> Iterator[Row]:
        """The rows that can be closed: those with t + h / 2 <= until, s. A row without fresh inputs is left out."""
        last = math.floor(until / self.step - 0.5 + 1e-9)
        while self._next <= last:
            k, t = self._next, self._next * self.step
            if not all(held.fresh(t) for held in self._held.values()):
                following = max(held.after(t) for held in self._held.values() if not held.fresh(t))
                k = max(k + 1, math.ceil(following / self.step)) if following < until else last + 1
                self._drop(k)
                continue
            u = [v for held in self._held.values() for v in held.mean(t - self.step, t)]
            y: list[float] = []
            mask: list[bool] = []
            for name, block in self._outputs.items():
                found = self._seen[name].pop(k, None)
                if not found:
                    y += block.initial_value
                elif block.rotation:
                    y += min(found, key=lambda m: abs(m[0] - t))[1]
                elif len(found) == 1:
                    y += found[0][1]
                else:
                    y += [sum(column) / len(found) for column in zip(*(v for _, v in found), strict=True)]
                mask += [bool(found)] * block.dim
            self._drop(k + 1)
            yield Row(t, u, y, mask)

    def _drop(self, following: int) -> None:
        """Forget what rows before `following` were made of."""
        if following > self._next + 1:
            for rows in self._seen.values():
                for k in [k for k in rows if k < following]:
                    del rows[k]
        self._next = following
        for held in self._held.values():
            held.forget((following - 1) * self.step)


class _Held:
    """A signal that acts between its stamps. backward: its value is the mean since the stamp before."""

    def __init__(self, backward: bool, stale: float) -> None:
        self._backward, self._stale = backward, stale
        self._times: list[float] = []
        self._knots: list[tuple[float, Values]] = []

    def add(self, t: float, values: Values) -> None:
        if self._times and t > self._times[-1]:
            self._times.append(t)
            self._knots.append((t, values))
        elif t not in self._times:
            insort(self._times, t)
            self._knots.insert(self._times.index(t), (t, values))
        if len(self._times) > _KNOTS:
            del self._times[0], self._knots[0]

    def fresh(self, t: float) -> bool:
        """Whether its latest value at t, s, is not stale."""
        before = bisect_right(self._times, t) - 1
        return before >= 0 and t - self._times[before] <= self._stale

    def after(self, t: float) -> float:
        """The first stamp after t, s; infinity where there is none yet."""
        k = bisect_right(self._times, t)
        return self._times[k] if k < len(self._times) else math.inf

    def mean(self, a: float, b: float) -> list[float]:
        """Mean over (a, b], s; before the first value that is known, it is that."""
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

    def forget(self, t: float) -> None:
        """Drop what no interval that begins at t, s, or later needs."""
        keep = max(bisect_right(self._times, t) - 1, 0)
        if keep > 16:
            del self._times[:keep], self._knots[:keep]
