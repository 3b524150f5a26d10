"""Functions of time series: interpolation, filling, integrals, intervals, windows, white noise, and the agreement of two.

The third difference of a sampled signal removes slow motion and keeps white noise, with 1 + 9 + 9 + 1 = 20 times its variance.
The median absolute third difference is insensitive to steps and outliers:

    sigma = 1.4826 median |y_k - 3 y_{k-1} + 3 y_{k-2} - y_{k-3}| / sqrt(20)

For unevenly spaced samples it is the third divided difference, sum_i y_i w_i with w_i = 1 / prod_{j != i} (t_i - t_j), over the
root of sum_i w_i^2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Shaped

Series = Float64[np.ndarray, " n"]
Intervals = list[tuple[float, float]]
"""Start and end of each interval, s."""

_FILLED_STEP = 1024


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


def filled_length(count: int) -> int:
    """The next power of two, above 1024 the next multiple of 1024."""
    return (
        1 << (count - 1).bit_length()
        if 0 < count < _FILLED_STEP
        else -(-count // _FILLED_STEP) * _FILLED_STEP
    )


def fill_rows(values: Shaped[np.ndarray, "n ..."]) -> Shaped[np.ndarray, "m ..."]:
    """Repeat the last row up to `filled_length`, so that series of like length share a compiled function."""
    missing = filled_length(len(values)) - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])


def map_blocks(
    function: Callable[..., Sequence[Any]], columns: Sequence[Shaped[np.ndarray, "n ..."]], size: int
) -> list[np.ndarray]:
    """A function of rows, called with blocks of them, so that series of every length share a compiled function.

    Args:
        function: takes arrays of `size` rows and returns such arrays.
        columns: its arguments, n rows each, at least one.
        size: rows of a block; the last block is filled with its last row.
    Returns:
        Its results, n rows each.
    """
    n = len(columns[0])
    parts = []
    for first in range(0, n, size):
        rows = np.minimum(np.arange(first, first + size), n - 1)
        parts.append([np.asarray(part) for part in function(*(column[rows] for column in columns))])
    return [np.concatenate(part)[:n] for part in zip(*parts, strict=True)]


def smooth(values: Shaped[np.ndarray, "n ..."], width: int) -> np.ndarray:
    """Centred moving average over `width` samples, shorter at the ends; a row stays a row."""
    width = max(1, min(int(width), len(values)))
    cumulative = np.concatenate(
        [np.zeros_like(values[:1], np.float64), np.cumsum(values, axis=0, dtype=np.float64)]
    )
    index = np.arange(len(values))
    low = np.maximum(index - width // 2, 0)
    high = np.minimum(index + (width + 1) // 2, len(values))
    count = (high - low).reshape(-1, *[1] * (values.ndim - 1))
    return (cumulative[high] - cumulative[low]) / count


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
    areas = 0.5 * (values[1:] + values[:-1]) * (times[1:] - times[:-1])[:, None]
    cumulative = np.zeros((len(areas) + 1, values.shape[1]))
    np.cumsum(areas, axis=0, out=cumulative[1:])
    index = np.clip(np.searchsorted(times, at, side="right") - 1, 0, max(len(times) - 2, 0))
    if len(times) < 2:
        return np.zeros((len(at), values.shape[1]))
    remainder = np.clip(at - times[index], 0.0, times[index + 1] - times[index])[:, None]
    slope = (values[index + 1] - values[index]) / (times[index + 1] - times[index])[:, None]
    return cumulative[index] + remainder * (values[index] + 0.5 * slope * remainder)


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
    result = np.concatenate(starts) if starts else np.empty(0)
    for times in clocks:
        if len(times) < 2:
            return np.empty(0)
        steps = np.diff(times)
        if steps.max() > width / 3.0:
            limit = max(width / 3.0, 3.5 * float(np.median(steps)))
            for i in np.flatnonzero(steps > limit):
                result = result[(result + width <= times[i]) | (result >= times[i + 1])]
        result = result[(result >= times[0]) & (result + width <= times[-1])]
    return result


_DIFFERENCE_ORDER = 3
_BLOCK = 16384  # rows of which differences are computed at once: a long flight has many


def white_noise(
    y: Float[np.ndarray, "n k"], t: Float[np.ndarray, " n"] | None = None
) -> Float[np.ndarray, " k"]:
    """Standard deviation of the white part of columns, in their unit. t: of the rows, s; None: they are evenly sampled."""
    if t is None or len(t) <= _DIFFERENCE_ORDER:
        differences = np.diff(y, n=_DIFFERENCE_ORDER, axis=0)
        return 1.4826 * np.median(np.abs(differences), axis=0) / np.sqrt(20.0)
    starts = range(0, len(t) - _DIFFERENCE_ORDER, _BLOCK)
    blocks = [slice(k, k + _BLOCK + _DIFFERENCE_ORDER) for k in starts]
    differences = [_uneven_differences(y[block], t[block]) for block in blocks]
    return 1.4826 * np.median(np.abs(np.concatenate(differences)), axis=0)


def _uneven_differences(y: Float[np.ndarray, "n k"], t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m k"]:
    """Differences of columns of rows at times t, with the variance of their white part."""
    t_windows = np.lib.stride_tricks.sliding_window_view(t, _DIFFERENCE_ORDER + 1)
    t_windows = t_windows / (t_windows[:, -1:] - t_windows[:, :1])
    w = 1.0 / np.prod(t_windows[:, :, None] - t_windows[:, None, :] + np.eye(_DIFFERENCE_ORDER + 1), axis=2)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    rows = np.lib.stride_tricks.sliding_window_view(y, _DIFFERENCE_ORDER + 1, axis=0)
    return np.einsum("nki,ni->nk", rows, w)


@dataclasses.dataclass(frozen=True)
class AxisFit:
    """The fit of one axis.

    slope, error: of kinematic over measured, and its standard error. correlation: of the two. excited: whether the motion along
    this axis is larger than the noise. strong: whether it is so large that a low correlation is not caused by noise.
    """

    slope: float
    error: float
    correlation: float
    excited: bool
    strong: bool = False


def fit_axes(
    kinematic: Float64[np.ndarray, "n 3"],
    measured: Float64[np.ndarray, "n 3"],
    threshold: float,
    overlap: float = 1.0,
) -> tuple[list[AxisFit], Float64[np.ndarray, "3 3"]]:
    """Fit one measurement of three axes to another: sign, scale and order of the axes.

    Increments over windows are compared, so that no noise is differentiated. The slope of each axis is that of a line through
    the means, by least squares without outliers (jumps, shocks).

    Args:
        kinematic, measured: increments over windows, in the same unit.
        threshold: standard deviation of the increments from which on an axis is excited.
        overlap: number of windows that share the same data.
    Returns:
        The fits, and the correlation of each kinematic axis with each measured axis.
    """
    fits = [_fit_axis(k, m, threshold, overlap) for k, m in zip(kinematic.T, measured.T, strict=True)]
    return fits, _correlations(kinematic, measured)


def _fit_axis(
    kinematic: Float64[np.ndarray, " n"],
    measured: Float64[np.ndarray, " n"],
    threshold: float,
    overlap: float,
) -> AxisFit:
    scale, kinematic_scale = float(np.std(measured)), float(np.std(kinematic))
    if len(measured) < 20 or min(scale, kinematic_scale) < 1e-12 or max(scale, kinematic_scale) < threshold:
        return AxisFit(0.0, 0.0, 0.0, excited=False)
    is_used = np.ones(len(measured), bool)
    slope, residual = 0.0, kinematic
    for _ in range(3):
        m, k = measured[is_used] - measured[is_used].mean(), kinematic[is_used] - kinematic[is_used].mean()
        slope = float(m @ k / max(float(m @ m), 1e-300))
        residual = (kinematic - kinematic[is_used].mean()) - slope * (measured - measured[is_used].mean())
        is_inlier = np.abs(residual) <= 5.0 * 1.4826 * float(np.median(np.abs(residual))) + 1e-12
        if is_inlier.sum() < 20:
            break
        is_used = is_inlier
    m, k = measured[is_used] - measured[is_used].mean(), kinematic[is_used] - kinematic[is_used].mean()
    correlation = float(m @ k / max(np.sqrt(float(m @ m) * float(k @ k)), 1e-300))
    independent = max(is_used.sum() / overlap, 3.0)
    error = float(np.std(residual[is_used]) / (np.std(m) * np.sqrt(independent) + 1e-300))
    is_strong = min(scale, kinematic_scale) > 4.0 * threshold
    return AxisFit(slope, error, correlation, excited=True, strong=is_strong)


def _correlations(
    kinematic: Float64[np.ndarray, "n 3"], measured: Float64[np.ndarray, "n 3"]
) -> Float64[np.ndarray, "3 3"]:
    a = kinematic - kinematic.mean(axis=0) if len(kinematic) else np.zeros((1, 3))
    b = measured - measured.mean(axis=0) if len(measured) else np.zeros((1, 3))
    return (a.T @ b) / (np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)[None] + 1e-300)
