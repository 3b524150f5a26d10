"""Small tools on series of numbers in time, for looking at signals (estimators do not use them)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64, Shaped

Series = Float64[np.ndarray, " n"]
Intervals = list[tuple[float, float]]
"""Start and end of each interval, s."""


def grid(start: float, end: float, step: float) -> Float64[np.ndarray, " n"]:
    """Times from start to end, `step` s apart."""
    return start + step * np.arange(max(int((end - start) / step) + 1, 1))


def hold(at: Series, times: Float64[np.ndarray, " m"], values: Shaped[np.ndarray, "m ..."]) -> np.ndarray:
    """The last value at or before each time `at`; the first value before the first."""
    return values[np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 1)]


def between(
    at: Series, times: Float64[np.ndarray, " m"], values: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, "n k"]:
    """Values at the times `at`, linear between samples and constant outside."""
    return np.stack([np.interp(at, times, column) for column in values.T], axis=1)


def smooth(values: Shaped[np.ndarray, "n ..."], width: int) -> np.ndarray:
    """Centred moving average over `width` samples, shorter at the ends; a row stays a row."""
    width = max(1, min(int(width), len(values)))
    total = np.concatenate([np.zeros_like(values[:1], np.float64), np.cumsum(values, axis=0, dtype=np.float64)])
    index = np.arange(len(values))
    low = np.maximum(index - width // 2, 0)
    high = np.minimum(index + (width + 1) // 2, len(values))
    count = (high - low).reshape(-1, *[1] * (values.ndim - 1))
    return (total[high] - total[low]) / count


def runs(mask: Bool[np.ndarray, " n"]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def inside(times: Float64[np.ndarray, " n"], intervals: Intervals) -> Bool[np.ndarray, " n"]:
    """Whether each time lies in one of the intervals."""
    mask = np.zeros(len(times), bool)
    for start, end in intervals:
        mask |= (times >= start) & (times <= end)
    return mask


def length(intervals: Intervals) -> float:
    """Sum of the lengths of intervals, s."""
    return float(sum(end - start for start, end in intervals))
