"""Curves and bands over time with few enough points to draw: extremes, ends and gaps remain."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Bool, Int, Real


def extremes(values: Real[np.ndarray, " n"], points: int) -> Int[np.ndarray, " m"]:
    """Indices, in order, of at most `points` values: the lowest and the highest of each of points / 2 equal parts.

    NaN values are excluded; the first and the last finite value are kept.
    """
    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) <= points:
        return finite
    pieces = max(points // 2 - 1, 1)
    edges = np.linspace(0, len(finite), pieces + 1).astype(int)
    starts, ends = edges[:-1, None], edges[1:, None]
    rows = finite[np.minimum(starts + np.arange((ends - starts).max()), ends - 1)]  # shorter parts end twice
    every, parts = np.arange(pieces), values[rows]
    lowest, highest = rows[every, parts.argmin(axis=1)], rows[every, parts.argmax(axis=1)]
    return np.unique(np.concatenate([finite[[0, -1]], lowest, highest]))


def segments(t: Real[np.ndarray, " n"], max_gap: float = 1.0) -> list[slice]:
    """The contiguous parts of a time axis (s), separated by steps of more than `max_gap` s."""
    cuts = (np.flatnonzero(np.diff(t) > max_gap) + 1).tolist()
    edges = [0, *cuts, len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if b > a]


def decimate_line(
    t: Real[np.ndarray, " n"], value: Real[np.ndarray, " n"], points: int, max_gap: float = 1.0
) -> tuple[Real[np.ndarray, " m"], Real[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """Decimate a curve to about `points` points.

    Args:
        t: s, increasing.
        value: in any unit.
        points: to keep.
        max_gap: s; the curve is interrupted (NaN) at longer steps.
    Returns:
        Times, values and the index of each point in the input, -1 at an interruption.
    """
    ts, values, rows = [], [], []
    for part in segments(t, max_gap):
        index = part.start + extremes(
            value[part], max(4, points * (part.stop - part.start) // max(len(t), 1))
        )
        if not len(index):
            continue
        ts += [t[index], [t[index[-1]]]]
        values += [value[index], [np.nan]]
        rows += [index, [-1]]
    if not ts:
        return np.empty(0), np.empty(0), np.empty(0, int)
    return np.concatenate(ts)[:-1], np.concatenate(values)[:-1], np.concatenate(rows)[:-1]


def decimate_band(
    t: Real[np.ndarray, " n"],
    lower: Real[np.ndarray, " n"],
    upper: Real[np.ndarray, " n"],
    points: int,
    max_gap: float = 1.0,
) -> tuple[Real[np.ndarray, " m"], Real[np.ndarray, " m"]]:
    """The outline of a band as one closed polygon for each contiguous part, separated by NaN; it contains the whole band."""
    ts, values = [], []
    for part in segments(t, max_gap):
        pieces = max(2, points // 2 * (part.stop - part.start) // max(len(t), 1))
        time, low, high = _envelope(t[part], lower[part], upper[part], pieces)
        ts += [time, time[::-1], [np.nan]]
        values += [high, low[::-1], [np.nan]]
    return np.concatenate(ts)[:-1], np.concatenate(values)[:-1]


def _envelope(
    t: np.ndarray, lower: np.ndarray, upper: np.ndarray, pieces: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    good: Bool[np.ndarray, " n"] = np.isfinite(lower) & np.isfinite(upper)
    t, lower, upper = t[good], lower[good], upper[good]
    if len(t) <= pieces:
        return t, lower, upper
    starts = np.unique(np.linspace(0, len(t), pieces + 1).astype(int)[:-1])
    middle = np.append(0.5 * (t[starts[:-1]] + t[starts[1:] - 1]), t[-1])
    middle[0] = t[0]
    return middle, np.minimum.reduceat(lower, starts), np.maximum.reduceat(upper, starts)
