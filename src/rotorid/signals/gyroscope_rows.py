"""Rows of a flight at the stamps of its gyroscope, so that no measurement is moved in time to get onto a row.

A gyroscope that was logged faster than `MAX_RATE` is averaged over groups of samples. What was logged on another clock is
taken straight between its samples at the time of the row that is nearest to one of them, and is missing in all other rows: each
sample counts once. What was logged much faster than the rows is averaged over the time that a row stands for.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.geometry.spaces import Space
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.sampling import MAX_RATE
from rotorid.signals.series import Intervals

_GAP = 2.5  # median periods between neighbours, from which on nothing is taken between them
_FASTER = 1.5  # times the rate of the rows, from which on samples are averaged


def sample_at_clock(
    flight: Flight, clock: str, outputs: Space, spans: Intervals
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n stored"], Bool[np.ndarray, "n tangent"]]:
    """Times in s, measurements and what of them there is, within spans. clock: the signal whose stamps count."""
    t = row_times(flight[clock])
    count = len(t)
    inside = np.any([(start <= t) & (t <= end) for start, end in spans] or [np.zeros(count, bool)], axis=0)
    values, masks = [], []
    for name, block in outputs.items():
        initial = np.tile(np.asarray(block.initial_value, dtype=float), (count, 1))
        if name not in flight:
            y, mask = initial, np.zeros(count, bool)
        else:
            y, mask = _values_at_rows(flight[name], t, initial)
        values.append(y)
        masks.append(np.repeat(mask[:, None], block.dim, axis=1))
    return t[inside], np.concatenate(values, axis=1)[inside], np.concatenate(masks, axis=1)[inside]


def row_times(clock: Signal) -> Float[np.ndarray, " n"]:
    """The times in s of the rows that a signal's stamps give."""
    group = max(1, int(np.ceil(clock.rate / MAX_RATE - 1e-6)))
    count = len(clock.times) // group
    return clock.times[: count * group].reshape(count, group).mean(axis=1)


def nearest_index(times: Float[np.ndarray, " n"], at: Float[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """Index of the nearest of times to each."""
    after = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    return np.where(at - times[after - 1] < times[after] - at, after - 1, after)


def interpolate_signal(
    signal: Signal, at: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]]:
    """A signal of two samples or more at other times, straight between its neighbours there (quaternions the shorter way round,
    and normalised), and where these are no further apart than a gap."""
    times, values = signal.times, signal.values
    after = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    a, b, gap = values[after - 1], values[after], times[after] - times[after - 1]
    if signal.name == "attitude":
        b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0.0, -b, b)
    found = a + ((at - times[after - 1]) / gap)[:, None] * (b - a)
    if signal.name == "attitude":
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
    return found, (at >= times[0]) & (at <= times[-1]) & (gap <= _GAP / signal.rate)


def _values_at_rows(
    signal: Signal, t: Float[np.ndarray, " n"], initial: Float[np.ndarray, "n k"]
) -> tuple[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]]:
    """A signal on rows at t, and in which of them it was measured."""
    times, values = signal.times, signal.values
    if len(times) < 2 or len(t) < 2:
        return initial, np.zeros(len(t), bool)
    step = float(np.median(np.diff(t)))
    row = nearest_index(t, times)
    near = np.abs(t[row] - times) <= 0.75 * step
    y, mask = initial.copy(), np.zeros(len(t), bool)
    if signal.rate * step > _FASTER and signal.name != "attitude":
        rows = row[near]
        seen = np.bincount(rows, minlength=len(t))
        mask = seen > 0
        for j in range(values.shape[1]):
            y[mask, j] = np.bincount(rows, values[near, j], len(t))[mask] / seen[mask]
        return y, mask
    rows = np.unique(row[near])
    found, good = interpolate_signal(signal, t[rows])
    y[rows[good]], mask[rows[good]] = found[good], True
    return y, mask
