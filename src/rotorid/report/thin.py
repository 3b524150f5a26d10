"""Curves with few enough points to draw: what a screen could not show is left out, extremes never are."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Bool, Float, Int


def extremes(values: Float[np.ndarray, " n"], points: int) -> Int[np.ndarray, " m"]:
    """Indices, in order, of at most `points` values: the lowest and the highest of each of points / 2 equal
    pieces.

    NaN values are kept out; the first and the last finite value are kept.
    """
    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) <= points:
        return finite
    pieces = max(points // 2 - 1, 1)
    edges = np.linspace(0, len(finite), pieces + 1).astype(int)
    kept = [finite[[0, -1]]]
    for a, b in itertools.pairwise(edges):
        piece = finite[a:b]
        if len(piece):
            kept.append(piece[[int(np.argmin(values[piece])), int(np.argmax(values[piece]))]])
    return np.unique(np.concatenate(kept))


def segments(t: Float[np.ndarray, " n"], longest: float = 1.0) -> list[slice]:
    """The stretches of a time axis (s) between steps of more than `longest` s."""
    cuts = (np.flatnonzero(np.diff(t) > longest) + 1).tolist()
    edges = [0, *cuts, len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if b > a]


def thin_line(
    t: Float[np.ndarray, " n"], value: Float[np.ndarray, " n"], points: int, longest: float = 1.0
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """A curve of about `points` points, broken (NaN) at gaps of more than `longest` s; and the index of each
    point.

    The index is -1 at a break.
    """
    ts, values, rows = [], [], []
    for part in segments(t, longest):
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


def thin_band(
    t: Float[np.ndarray, " n"],
    lower: Float[np.ndarray, " n"],
    upper: Float[np.ndarray, " n"],
    points: int,
    longest: float = 1.0,
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """The outline of a band, one closed polygon a stretch of time, NaN between; nothing that it holds falls
    out."""
    ts, values = [], []
    for part in segments(t, longest):
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
