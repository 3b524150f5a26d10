"""Changes of a track's main quantity: over the whole track, and in jumps.

Jumps are the changes that an estimator detected (`Track.detected_changes`), less those that its own track does not confirm: an
estimator also detects some in gusts, contacts and noise. The size J of a change at t_c is the step in a straight line through
the track's values around it, beside those of other changes there,

    v(t) = a + b (t - t_c) + J [t > t_c] + sum_k J_k ([t > t_k] - [t_c > t_k]),        t_c - 2 s <= t <= t_c + 3 s,

by least squares (segmented regression of an interrupted time series: Wagner et al., J. Clin. Pharm. Ther. 27, 2002): a steady
drift is no jump. Excluded are rows without information, those of a restart, those past a gap, and those from 0.1 s before to
0.25 s after each change, in which the estimator adapts. Half of that window is used where the change is twice as clear in it,
for the estimator may have missed another change further off. While the weakest change is smaller than 4 of its standard
deviations, or does not show in the 0.5 s next to it, it is dropped and the others are measured again. A change within 0.5 s of
take-off, landing or a gap is dropped.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.estimators.base import Health
from rotorid.workflows.track.track import Track

SETTLING: Final = 10.0
"""Time, s, that a filter is given to converge before its numbers are used; a quarter of a shorter track."""

SIGNIFICANT_JUMP: Final = 4.0
"""Least size of a jump, in standard deviations."""

_BINS: Final = 200
_SHORTEST_BIN: Final = 0.5  # s
_EDGE: Final = 3  # bins that represent the start and the end
_SIGNIFICANT: Final = 1.96

_BEFORE, _AFTER = 2.0, 3.0  # s
_ADAPTING: Final = (0.1, 0.25)  # s before and after a change
_NEAR: Final = 0.5  # s; changes that are closer are one, and what shows for a shorter time is none
_GAP: Final = 0.5  # s
_FEWEST: Final = 3  # rows on each side
_RESTARTING: Final = (Health.RECOVERING, Health.DIVERGED)


def settled_rows(track: Track, name: str, settling: float = SETTLING) -> Bool[np.ndarray, " n"]:
    """The rows of a quantity after convergence.

    Args:
        track: any track.
        name: of the quantity.
        settling: s in the air that are left out, at most a quarter of the track.
    Returns:
        A mask: rows past the settling time that are informed and finite; where none is informed, all finite ones.
    """
    quantity = track.quantities[name]
    covered = np.cumsum(np.minimum(np.diff(track.t, prepend=track.t[:1]), 1.0))
    is_late = covered >= min(settling, 0.25 * covered[-1])
    rows = is_late & np.isfinite(quantity.value) & np.isfinite(quantity.std)
    informed = rows & quantity.informed
    return informed if informed.any() else rows


@dataclasses.dataclass(frozen=True)
class Change:
    """The change of a quantity from its start to its end, both medians over a few bins of time.

    start_std, end_std, std: in its unit; std: median. is_significant: whether start and end, or the extremes, differ by more
    than their 95 % band. is_monotonic: whether it changed in one direction only. lowest, highest: of the medians by bin. step:
    the largest change within about 2 s, at step_time (s). span: s, from when the value left the start until it
    reached the end.
    """

    start: float
    start_std: float
    end: float
    end_std: float
    std: float
    is_significant: bool
    is_monotonic: bool
    lowest: float
    highest: float
    step: float
    step_time: float
    span: tuple[float, float]

    @property
    def total(self) -> float:
        """End minus start."""
        return self.end - self.start

    def with_common_std(self, common: float) -> Change:
        """The same change with standard deviations that include one that scales all values. common: relative to them."""
        middle = 0.5 * (self.start + self.end)
        return dataclasses.replace(
            self,
            start_std=math.hypot(self.start_std, common * self.start),
            end_std=math.hypot(self.end_std, common * self.end),
            std=math.hypot(self.std, common * middle),
        )


def measure_change(
    t: Float[np.ndarray, " n"], value: Float[np.ndarray, " n"], std: Float[np.ndarray, " n"]
) -> Change:
    """Measure how a tracked quantity changed. t: s, increasing. value, std: in its unit, finite, at least one row."""
    centre, middle, spread = _binned(t, value, std)
    edge = min(_EDGE, max(1, len(middle) // 3))
    start, end = float(np.median(middle[:edge])), float(np.median(middle[-edge:]))
    start_std, end_std = float(np.median(spread[:edge])), float(np.median(spread[-edge:]))
    band = _SIGNIFICANT * math.hypot(start_std, end_std)
    smooth = np.array([np.median(middle[max(0, i - 1) : i + 2]) for i in range(len(middle))])
    lowest, highest = float(smooth.min()), float(smooth.max())
    typical = float(np.median(spread))
    step, step_time = _largest_step(centre, middle)
    return Change(
        start=start,
        start_std=start_std,
        end=end,
        end_std=end_std,
        std=typical,
        is_significant=abs(end - start) > band or highest - lowest > 2.0 * max(band, _SIGNIFICANT * typical),
        is_monotonic=highest - lowest <= abs(end - start) + max(band, 0.15 * abs(end - start)),
        lowest=lowest,
        highest=highest,
        step=step,
        step_time=step_time,
        span=_span(centre, smooth, start, end),
    )


def _binned(t: np.ndarray, value: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    width = max(_SHORTEST_BIN, float(t[-1] - t[0]) / _BINS)
    index = np.floor((t - t[0]) / width).astype(int)
    cuts = np.flatnonzero(np.diff(index)) + 1
    parts = [(part.start, part.stop) for part in _slices(cuts, len(t))]
    return (
        np.array([np.mean(t[a:b]) for a, b in parts]),
        np.array([np.median(value[a:b]) for a, b in parts]),
        np.array([np.median(std[a:b]) for a, b in parts]),
    )


def _slices(cuts: np.ndarray, n: int) -> list[slice]:
    edges = [0, *cuts.tolist(), n]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _largest_step(centre: np.ndarray, middle: np.ndarray) -> tuple[float, float]:
    """The largest difference between the medians of three bins after and before a time, and that time, s."""
    if len(middle) < 2:
        return 0.0, float(centre[0])
    half = max(1, min(3, len(middle) // 2))
    differences = [
        float(np.median(middle[i : i + half]) - np.median(middle[max(0, i - half) : i]))
        for i in range(1, len(middle))
    ]
    sizes = np.abs(differences)
    i = last = int(np.argmax(sizes))
    while last + 1 < len(sizes) and sizes[last + 1] >= 0.95 * sizes[i]:  # medians show a step on both sides
        last += 1
    middle_index = (i + last) // 2
    return differences[i], float(0.5 * (centre[middle_index] + centre[middle_index + 1]))


def _span(centre: np.ndarray, smooth: np.ndarray, start: float, end: float) -> tuple[float, float]:
    """When the value was last within a tenth of the change from its start, and first within a tenth from its end.

    Both times are moved outwards to cover the whole change, by linear extrapolation.
    """
    if start == end or len(centre) < 2:
        return float(centre[0]), float(centre[-1])
    progress = (smooth - start) / (end - start)
    near_end = np.flatnonzero(progress >= 0.9)
    end_row = max(int(near_end[0]), 1) if len(near_end) else len(progress) - 1
    near_start = np.flatnonzero(progress[:end_row] <= 0.1)
    start_row = int(near_start[-1]) if len(near_start) else 0
    margin = 0.125 * (centre[end_row] - centre[start_row])
    return float(max(centre[0], centre[start_row] - margin)), float(min(centre[-1], centre[end_row] + margin))


@dataclasses.dataclass(frozen=True)
class Jump:
    """A jump of the main quantity of a track, in the quantity's unit.

    time: s from the start of the flight. before: value before the jump, of the line through the track's values. after: value
    after the jump, likewise. before_std: standard deviation of `before`, from the median of the track's standard deviation
    and the scatter of its values about the line. after_std: standard deviation of `after`, likewise. size: after minus
    before. size_std: standard deviation of the size; of an uncertainty that scales all values (that of a thrust scale) it has
    only the effect on the size.
    """

    time: float
    before: float
    before_std: float
    after: float
    after_std: float
    size: float
    size_std: float


def find_jumps(track: Track) -> tuple[Jump, ...] | None:
    """Find the jumps of a track's main quantity.

    Args:
        track: track of an estimator with change detection.
    Returns:
        Jumps by time; None for an estimator without change detection.
    Source: segmented regression, Wagner et al., J. Clin. Pharm. Ther. 27 (2002).
    """
    if track.detected_changes is None:
        return None
    return confirmed_jumps(main_values(track), track.detected_changes)


@dataclasses.dataclass(frozen=True)
class TrackedValues:
    """Values of one quantity over time, that can be used to measure its changes.

    t: s, increasing. value, std: in its unit, finite. common: the part of std that scales all values together, relative to the
    value.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    common: float
    stretch: Int[np.ndarray, " n"]

    @property
    def change_std(self) -> Float[np.ndarray, " n"]:
        """The part of std that values at two times do not share."""
        return np.sqrt(np.maximum(self.std**2 - (self.common * self.value) ** 2, 0.0))

    def between(self, start: float, end: float) -> TrackedValues:
        """The values from start to end, s."""
        rows = (self.t >= start) & (self.t <= end)
        return TrackedValues(self.t[rows], self.value[rows], self.std[rows], self.common, self.stretch[rows])


def usable_values(
    t: Float[np.ndarray, " n"],
    value: Float[np.ndarray, " n"],
    std: Float[np.ndarray, " n"],
    common: float,
    informed: Bool[np.ndarray, " n"],
    health: Int[np.ndarray, " n"],
) -> TrackedValues:
    """The rows of a quantity that are informed, finite and not those of a restart. Arguments as of `TrackedValues`; health: a
    `Health` a row."""
    rows = informed & np.isfinite(value) & np.isfinite(std) & ~np.isin(health, _RESTARTING)
    stretch = np.cumsum(np.diff(t, prepend=t[:1]) > _GAP)
    return TrackedValues(t[rows], value[rows], std[rows], common, stretch[rows])


def main_values(track: Track) -> TrackedValues:
    """The usable values of a track's main quantity."""
    q = track.quantities[track.main_quantity]
    return usable_values(track.t, q.value, q.std, q.common_relative_std, q.informed, track.health)


def confirmed_jumps(values: TrackedValues, candidates: Sequence[float]) -> tuple[Jump, ...]:
    """The jumps at some of these times, s, that the values confirm."""
    around = _ValuesAround(values)
    times = [time for time in sorted(candidates) if around.is_inside(time)]
    cache: dict[tuple[float, ...], tuple[Jump, float] | None] = {}
    while times:
        jumps = []
        for time in times:
            other_times = tuple(o for o in times if o != time and -_BEFORE < o - time < _AFTER)
            if (time, *other_times) not in cache:
                cache[time, *other_times] = around.clearest(time, other_times)
            jumps.append(cache[time, *other_times])
        clarity = [0.0 if jump is None else jump[1] for jump in jumps]
        for i in range(1, len(times)):
            if times[i] - times[i - 1] <= _NEAR:
                clarity[i if clarity[i] <= clarity[i - 1] else i - 1] = 0.0
        least_clear = len(times) - 1 - int(np.argmin(clarity[::-1]))
        if clarity[least_clear] >= SIGNIFICANT_JUMP:
            return tuple(jump[0] for jump in jumps if jump is not None)
        del times[least_clear]
    return ()


class _ValuesAround:
    """The values around a time."""

    def __init__(self, values: TrackedValues) -> None:
        self.t, self.value, self.std = values.t, values.value, values.std
        self.common, self.stretch = values.common, values.stretch

    def _window(self, time: float, before: float, after: float) -> slice:
        """Rows around a time, up to the next gaps."""
        first, middle, last = np.searchsorted(self.t, [time - before, time, time + after])
        is_same_stretch = self.stretch[first:last] == self.stretch[min(middle, len(self.t) - 1)]
        index = first + np.flatnonzero(is_same_stretch)
        return slice(index[0], index[-1] + 1) if len(index) else slice(0, 0)

    def is_inside(self, time: float) -> bool:
        """Whether the track has values for half a second before and after a time (s)."""
        if not len(self.t):
            return False
        t = self.t[self._window(time, _BEFORE, _AFTER)]
        return bool(len(t) and t[0] <= time - _NEAR and t[-1] >= time + _NEAR)

    def clearest(self, time: float, other_times: tuple[float, ...]) -> tuple[Jump, float] | None:
        """The jump at a time (s) and its size in standard deviations; None where there are too few rows."""
        long_reach = self._jump(time, other_times, 1.0)
        if long_reach is None or long_reach[1] < SIGNIFICANT_JUMP:
            short_reach = self._jump(time, other_times, 0.5)
            if short_reach is not None and short_reach[1] >= 2.0 * SIGNIFICANT_JUMP:
                return short_reach
        return long_reach

    def _jump(self, time: float, other_times: tuple[float, ...], reach: float) -> tuple[Jump, float] | None:
        """The same, from a window that is `reach` times as long."""
        window = self._window(time, reach * _BEFORE, reach * _AFTER)
        t, value, std = self.t[window], self.value[window], self.std[window]
        usable = np.ones(len(t), bool)
        for other in (time, *other_times):
            usable &= (t < other - _ADAPTING[0]) | (t > other + _ADAPTING[1])
        t, value, std = t[usable], value[usable], std[usable]
        is_after = t > time
        if min(is_after.sum(), (~is_after).sum()) < _FEWEST:
            return None
        distant_times = [o for o in other_times if abs(o - time) > _NEAR]
        columns = [np.ones(len(t)), t - time, is_after, *((t > o) * 1.0 - (o < time) for o in distant_times)]
        line = np.stack(columns, axis=1)
        solution = np.linalg.lstsq(line, value, rcond=None)[0]
        before_value, size = float(solution[0]), float(solution[2])
        scatter = value - line @ solution
        own_std = np.sqrt(np.maximum(std**2 - (self.common * value) ** 2, 0.0))
        stds = [
            [float(np.hypot(np.median(s[side]), np.std(scatter[side]))) for s in (std, own_std)]
            for side in (~is_after, is_after)
        ]
        size_std = float(np.hypot(np.hypot(stds[0][1], stds[1][1]), self.common * size))
        jump = Jump(time, before_value, stds[0][0], before_value + size, stds[1][0], size, size_std)
        visible_step = np.sign(size) * self._difference(t, value, is_after)
        return jump, float(min(abs(size), visible_step) / max(size_std, 1e-12))

    @staticmethod
    def _difference(
        t: Float[np.ndarray, " n"], value: Float[np.ndarray, " n"], after: Bool[np.ndarray, " n"]
    ) -> float:
        """Median of the half second just after, minus that of the half second just before."""
        next_time, last = t[after][0], t[~after][-1]
        is_late, is_early = after & (t <= next_time + _NEAR), ~after & (t >= last - _NEAR)
        return float(np.median(value[is_late]) - np.median(value[is_early]))
