"""Which part of a track counts for its numbers, and how the main quantity changed over it."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from jaxtyping import Bool, Float

from rotorid.results.track import Track

SETTLING = 10.0
"""A filter is given this long, s, or a quarter of a shorter track, before its numbers count."""

_BINS = 200
_SHORTEST_BIN = 0.5  # s
_EDGE = 3  # bins that stand for the start and for the end
_SIGNIFICANT = 1.96


def settled(track: Track, name: str, settling: float = SETTLING) -> Bool[np.ndarray, " n"]:
    """The rows that count for a quantity: past the first `settling` s or quarter, informed, and finite.

    Where the data never spoke about it, all finite rows past the first quarter.
    """
    quantity = track.quantities[name]
    covered = np.cumsum(np.minimum(np.diff(track.t, prepend=track.t[:1]), 1.0))
    late = covered >= min(settling, 0.25 * covered[-1])
    rows = late & np.isfinite(quantity.value) & np.isfinite(quantity.std)
    informed = rows & quantity.informed
    return informed if informed.any() else rows


@dataclasses.dataclass(frozen=True)
class Change:
    """How a quantity went from its start to its end, both as medians over a few bins of time.

    start_std, end_std, std: in its unit; std: median. significant: whether the two differ by more than their
    95 % band, or the extremes do. lowest, highest: of the medians by bin. step: the largest change within
    about 2 s, at step_time (s). change_start, change_end: s, where the value left the start and reached the
    end. monotonic: whether it went one way only.
    """

    start: float
    start_std: float
    end: float
    end_std: float
    std: float
    significant: bool
    monotonic: bool
    lowest: float
    highest: float
    step: float
    step_time: float
    change_start: float
    change_end: float

    @property
    def total(self) -> float:
        """End less start."""
        return self.end - self.start


def change(
    t: Float[np.ndarray, " n"], value: Float[np.ndarray, " n"], std: Float[np.ndarray, " n"]
) -> Change:
    """How a tracked quantity changed. t: s, increasing; value and std in its unit, finite; at least one
    row."""
    centre, middle, spread = _binned(t, value, std)
    edge = min(_EDGE, max(1, len(middle) // 3))
    start, end = float(np.median(middle[:edge])), float(np.median(middle[-edge:]))
    start_std, end_std = float(np.median(spread[:edge])), float(np.median(spread[-edge:]))
    band = _SIGNIFICANT * math.hypot(start_std, end_std)
    smooth = np.array([np.median(middle[max(0, i - 1) : i + 2]) for i in range(len(middle))])
    lowest, highest = float(smooth.min()), float(smooth.max())
    typical = float(np.median(spread))
    step, step_time = _largest_step(centre, middle)
    first, last = _span(centre, smooth, start, end)
    return Change(
        start=start,
        start_std=start_std,
        end=end,
        end_std=end_std,
        std=typical,
        significant=abs(end - start) > band or highest - lowest > 2.0 * max(band, _SIGNIFICANT * typical),
        monotonic=highest - lowest <= abs(end - start) + max(band, 0.15 * abs(end - start)),
        lowest=lowest,
        highest=highest,
        step=step,
        step_time=step_time,
        change_start=first,
        change_end=last,
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
    """The largest difference of the medians over the 1.5 s (or three bins) after and before a time, and that
    time.
    """
    if len(middle) < 2:
        return 0.0, float(centre[0])
    half = max(1, min(3, len(middle) // 2))
    differences = [
        float(np.median(middle[i : i + half]) - np.median(middle[max(0, i - half) : i]))
        for i in range(1, len(middle))
    ]
    sizes = np.abs(differences)
    i = last = int(np.argmax(sizes))
    while (
        last + 1 < len(sizes) and sizes[last + 1] >= 0.95 * sizes[i]
    ):  # medians see a step from both sides of it
        last += 1
    middle_index = (i + last) // 2
    return differences[i], float(0.5 * (centre[middle_index] + centre[middle_index + 1]))


def _span(centre: np.ndarray, smooth: np.ndarray, start: float, end: float) -> tuple[float, float]:
    """When the value last was within a tenth of the way from its start, and first within a tenth from its
    end.

    Both are moved outwards by what is missing to the whole way.
    """
    if start == end or len(centre) < 2:
        return float(centre[0]), float(centre[-1])
    way = (smooth - start) / (end - start)
    near_end = np.flatnonzero(way >= 0.9)
    reached = max(int(near_end[0]), 1) if len(near_end) else len(way) - 1
    near_start = np.flatnonzero(way[:reached] <= 0.1)
    left = int(near_start[-1]) if len(near_start) else 0
    margin = 0.125 * (centre[reached] - centre[left])
    return float(max(centre[0], centre[left] - margin)), float(min(centre[-1], centre[reached] + margin))
