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


def interpolate_linear(
    at: Series, times: Float64[np.ndarray, " m"], values: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, "n k"]:
    """Values at the times `at`, linear between samples and constant outside."""
    return np.stack([np.interp(at, times, column) for column in values.T], axis=1)


def smooth(values: Shaped[np.ndarray, "n ..."], width: int) -> np.ndarray:
    """Centred moving average over `width` samples, shorter at the ends; a row stays a row."""
    width = max(1, min(int(width), len(values)))
    total = np.concatenate(
        [np.zeros_like(values[:1], np.float64), np.cumsum(values, axis=0, dtype=np.float64)]
    )
    index = np.arange(len(values))
    low = np.maximum(index - width // 2, 0)
    high = np.minimum(index + (width + 1) // 2, len(values))
    count = (high - low).reshape(-1, *[1] * (values.ndim - 1))
    return (total[high] - total[low]) / count


def true_runs(mask: Bool[np.ndarray, " n"]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def is_inside(times: Float64[np.ndarray, " n"], intervals: Intervals) -> Bool[np.ndarray, " n"]:
    """Whether each time lies in one of the intervals."""
    mask = np.zeros(len(times), bool)
    for start, end in intervals:
        mask |= (times >= start) & (times <= end)
    return mask


def total_length(intervals: Intervals) -> float:
    """Sum of the lengths of intervals, s."""
    return float(sum(end - start for start, end in intervals))


def integral(
    at: Series, times: Float64[np.ndarray, " m"], values: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, "n k"]:
    """Integral of values from their first time to each time `at`, by trapezoids."""
    pieces = 0.5 * (values[1:] + values[:-1]) * np.diff(times)[:, None]
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(pieces, axis=0)])
    index = np.clip(np.searchsorted(times, at, side="right") - 1, 0, max(len(times) - 2, 0))
    if len(times) < 2:
        return np.zeros((len(at), values.shape[1]))
    rest = np.clip(at - times[index], 0.0, times[index + 1] - times[index])[:, None]
    slope = (values[index + 1] - values[index]) / (times[index + 1] - times[index])[:, None]
    return total[index] + rest * (values[index] + 0.5 * slope * rest)


def window_starts(
    clocks: list[Float64[np.ndarray, " _"]], intervals: Intervals, width: float, step: float
) -> Float64[np.ndarray, " windows"]:
    """Starts, s, of the windows of `width` s that lie in the intervals and in which no clock has a gap.

    A gap is a third of the window without a sample, or three samples missing where that is longer.
    """
    starts = [
        start + step * np.arange(int((end - start - width) / step) + 1)
        for start, end in intervals
        if end - start > width
    ]
    found = np.concatenate(starts) if starts else np.empty(0)
    for times in clocks:
        if len(times) < 2:
            return np.empty(0)
        steps = np.diff(times)
        limit = max(width / 3.0, 3.5 * float(np.median(steps)))
        for i in np.flatnonzero(steps > limit):
            found = found[(found + width <= times[i]) | (found >= times[i + 1])]
        found = found[(found >= times[0]) & (found + width <= times[-1])]
    return found
