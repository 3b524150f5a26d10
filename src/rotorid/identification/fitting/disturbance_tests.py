"""Windows with a significant disturbance: the constant disturbance that explains each window's residuals, against all others.

    w_i = argmin |D_i w + r_i|,    excess = max over axes of |mean_L w - m| / max(s_L, std of mean_L w, floor)

mean_L is the mean over L consecutive windows, L = 1, 2, 4, 8, so that weak disturbances that last are found; m is the
median and s_L 1.4826 times the median absolute deviation of all such means in all flights, so that less than half of
them may be disturbed. Model errors that are present everywhere widen s_L. Windows that are significant by themselves
are left out of longer means. The standard deviation includes the noise of the window and the uncertainty of the
parameters; floor is 0.5 % of the prior standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.identification.fitting.result import DisturbedSpan
from rotorid.identification.fitting.windows import Windows
from rotorid.models.system import Parameter

EXCESS = 6.0
"""Robust standard deviations from which on a window counts as disturbed."""

_FLOOR = 0.005  # of a disturbance's prior std
_LENGTHS = (1, 2, 4, 8)  # windows
_MIN_WINDOWS = 8  # for a median


class WindowDisturbances(NamedTuple):
    """Estimated disturbance of each window.

    Attributes:
        w: the disturbance, in its units.
        noise_std: its standard deviation from the measurement noise.
        parameter_std: its standard deviation from the uncertainty of the parameters.
    """

    w: Float[np.ndarray, "w pushed"]
    noise_std: Float[np.ndarray, "w pushed"]
    parameter_std: Float[np.ndarray, "w pushed"]


def estimate_disturbances(
    triangle: Float[np.ndarray, "w columns columns"], start: int, root: Float[np.ndarray, "free free"]
) -> WindowDisturbances:
    """Estimate the disturbance of each window.

    Args:
        triangle: triangular factors of the windows (see `multiple_shooting`).
        start: tangent dimension of an initial state.
        root: root of the covariance of the free parameters' z.
    """
    free = len(root)
    B = triangle[:, start:, start : start + free]
    D = triangle[:, start:, start + free : -1]
    r = triangle[:, start:, -1:]
    Q, R = np.linalg.qr(D)
    regularisation = 1e-12 * np.abs(R).max(axis=(1, 2), initial=1e-300)
    inverse = np.linalg.inv(R + regularisation[:, None, None] * np.eye(R.shape[-1]))
    solve = inverse @ np.swapaxes(Q, 1, 2)
    return WindowDisturbances(
        -(solve @ r)[..., 0],
        np.sqrt(np.sum(inverse**2, axis=2)),
        np.sqrt(np.sum((solve @ B @ root) ** 2, axis=2)),
    )


def normalised_excesses(
    windows: Windows, disturbances: WindowDisturbances, parameters: Sequence[Parameter]
) -> Float[np.ndarray, " w"]:
    """Deviation of each window's disturbance from the median, in robust standard deviations; 0 with too few windows."""
    w, noise, parameter_std = disturbances
    result = np.zeros(len(w))
    if not len(parameters):
        return result
    floor = _FLOOR * np.array([p.std for p in parameters for _ in p.values])
    for length in _LENGTHS:
        runs = _runs(windows, result <= EXCESS, length)
        if len(runs) < _MIN_WINDOWS:
            break
        mean = w[runs].mean(axis=1)
        median = np.median(mean, axis=0)
        spread = 1.4826 * np.median(np.abs(mean - median), axis=0)
        own_std = np.sqrt(
            np.mean(noise[runs] ** 2, axis=1) / length + np.mean(parameter_std[runs] ** 2, axis=1)
        )
        distance = np.max(np.abs(mean - median) / np.maximum(np.maximum(spread, own_std), floor), axis=1)
        for k in range(length):
            np.maximum.at(result, runs[:, k], distance)
    return result


def _runs(
    windows: Windows, is_undisturbed: Bool[np.ndarray, " w"], length: int
) -> Int[np.ndarray, "runs length"]:
    """Every sequence of `length` undisturbed windows of a flight without a gap."""
    rows = np.arange(max(len(is_undisturbed) - length + 1, 0))[:, None] + np.arange(length)
    if not len(rows):
        return rows
    is_adjacent = windows.start[1:] - windows.end[:-1] < 0.5 * np.median(windows.end - windows.start)
    is_continued = np.concatenate([[False], is_adjacent & (windows.flight[1:] == windows.flight[:-1])])
    return rows[is_undisturbed[rows].all(axis=1) & is_continued[rows[:, 1:]].all(axis=1)]


def disturbed_spans(
    windows: Windows,
    w: Float[np.ndarray, "w pushed"],
    excess: Float[np.ndarray, " w"],
    parameters: Sequence[Parameter],
) -> tuple[DisturbedSpan, ...]:
    """Spans of consecutive disturbed windows."""
    found: list[DisturbedSpan] = []
    out: Bool[np.ndarray, " w"] = excess > EXCESS
    length = float(np.median(windows.end - windows.start)) if len(windows.start) else 0.0
    runs: list[list[int]] = []
    for i in np.flatnonzero(out):
        near = runs and windows.flight[i] == windows.flight[runs[-1][-1]]
        if near and windows.start[i] - windows.end[runs[-1][-1]] < 0.5 * length:
            runs[-1].append(int(i))
        else:
            runs.append([int(i)])
    for run in runs:
        mean, push, at = w[run].mean(axis=0), {}, 0
        for p in parameters:
            push[p.name] = tuple(float(v) for v in mean[at : at + len(p.values)])
            at += len(p.values)
        found.append(
            DisturbedSpan(
                int(windows.flight[run[0]]),
                float(windows.start[run[0]]),
                float(windows.end[run[-1]]),
                push,
                float(excess[run].max()),
            )
        )
    return tuple(found)
