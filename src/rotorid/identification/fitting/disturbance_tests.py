"""Where something pushed: the constant disturbance of each window that explains its residuals best, against all others'.

    w_i = argmin |D_i w + r_i|,    excess = max over axes of |mean_L w - m| / max(s_L, std of mean_L w, floor)

mean_L is the mean over L windows in sequence, for L = 1, 2, 4, 8, so that a weak push is found that lasts; m and s_L are median
and 1.4826 times median absolute deviation of all such means in all flights. So less than half of them may be in contact; what
the model leaves unexplained everywhere widens the band, and what pushes now and then does not. Windows that are suspicious by
themselves are left out of the longer means. The standard deviation has the noise of the window and what is not known of the
parameters; floor is 0.5 % of the prior's standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.identification.fit import Span
from rotorid.identification.segments import Segments
from rotorid.models.system import Parameter

EXCESS = 6.0
"""Robust standard deviations from which on a window is suspicious."""

_FLOOR = 0.005  # of a disturbance's prior std
_LENGTHS = (1, 2, 4, 8)  # windows
_FEWEST = 8  # windows, for a median to mean something


class Pushes(NamedTuple):
    """Disturbance of each window. noise: its standard deviation from the measurements' noise. doubt: from the parameters'."""

    w: Float[np.ndarray, "w pushed"]
    noise: Float[np.ndarray, "w pushed"]
    doubt: Float[np.ndarray, "w pushed"]


def disturbances(
    triangle: Float[np.ndarray, "w columns columns"], start: int, root: Float[np.ndarray, "free free"]
) -> Pushes:
    """w of each window, from the triangles of `shooting`. root: of the covariance of the free parameters' z."""
    free = len(root)
    B = triangle[:, start:, start : start + free]
    D = triangle[:, start:, start + free : -1]
    r = triangle[:, start:, -1:]
    Q, R = np.linalg.qr(D)
    least = 1e-12 * np.abs(R).max(axis=(1, 2), initial=1e-300)
    inverse = np.linalg.inv(R + least[:, None, None] * np.eye(R.shape[-1]))
    solve = inverse @ np.swapaxes(Q, 1, 2)
    return Pushes(
        -(solve @ r)[..., 0],
        np.sqrt(np.sum(inverse**2, axis=2)),
        np.sqrt(np.sum((solve @ B @ root) ** 2, axis=2)),
    )


def excesses(data: Segments, pushes: Pushes, parameters: Sequence[Parameter]) -> Float[np.ndarray, " w"]:
    """How far each window's disturbance is from the usual one, in robust standard deviations; 0 where there are few windows."""
    w, noise, doubt = pushes
    found = np.zeros(len(w))
    if not len(parameters):
        return found
    floor = _FLOOR * np.array([p.std for p in parameters for _ in p.values])
    for length in _LENGTHS:
        runs = _runs(data, found <= EXCESS, length)
        if len(runs) < _FEWEST:
            break
        mean = w[runs].mean(axis=1)
        usual = np.median(mean, axis=0)
        spread = 1.4826 * np.median(np.abs(mean - usual), axis=0)
        own = np.sqrt(np.mean(noise[runs] ** 2, axis=1) / length + np.mean(doubt[runs] ** 2, axis=1))
        far = np.max(np.abs(mean - usual) / np.maximum(np.maximum(spread, own), floor), axis=1)
        for k in range(length):
            np.maximum.at(found, runs[:, k], far)
    return found


def _runs(data: Segments, calm: Bool[np.ndarray, " w"], length: int) -> Int[np.ndarray, "runs length"]:
    """Every sequence of so many calm windows of a flight without a gap."""
    rows = np.arange(max(len(calm) - length + 1, 0))[:, None] + np.arange(length)
    if not len(rows):
        return rows
    near = data.start[1:] - data.end[:-1] < 0.5 * np.median(data.end - data.start)
    follows = np.concatenate([[False], near & (data.flight[1:] == data.flight[:-1])])
    return rows[calm[rows].all(axis=1) & follows[rows[:, 1:]].all(axis=1)]


def spans_of(
    data: Segments,
    w: Float[np.ndarray, "w pushed"],
    excess: Float[np.ndarray, " w"],
    parameters: Sequence[Parameter],
) -> tuple[Span, ...]:
    """Suspicious windows that follow one another, joined."""
    found: list[Span] = []
    out: Bool[np.ndarray, " w"] = excess > EXCESS
    length = float(np.median(data.end - data.start)) if len(data.start) else 0.0
    runs: list[list[int]] = []
    for i in np.flatnonzero(out):
        near = runs and data.flight[i] == data.flight[runs[-1][-1]]
        if near and data.start[i] - data.end[runs[-1][-1]] < 0.5 * length:
            runs[-1].append(int(i))
        else:
            runs.append([int(i)])
    for run in runs:
        mean, push, at = w[run].mean(axis=0), {}, 0
        for p in parameters:
            push[p.name] = tuple(float(v) for v in mean[at : at + len(p.values)])
            at += len(p.values)
        found.append(
            Span(
                int(data.flight[run[0]]),
                float(data.start[run[0]]),
                float(data.end[run[-1]]),
                push,
                float(excess[run].max()),
            )
        )
    return tuple(found)
