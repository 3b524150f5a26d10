"""Where something pushed: the constant disturbance of each window that explains its residuals best, against all others'.

    w_i = argmin |D_i w + r_i|,    excess_i = max over axes of |w_i - median w| / max(1.4826 MAD w, std w_i, floor)

floor is 2 % of the prior's standard deviation. Median and median absolute deviation (MAD) are those of all windows of all
flights, so that less than half of them may be in contact. What the model leaves unexplained everywhere widens the band; what
pushes now and then does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.fit import Span
from rotorid.identification.segments import Segments
from rotorid.models.system import Parameter

EXCESS = 6.0
"""Robust standard deviations from which on a window is suspicious."""

_FLOOR = 0.02  # of a disturbance's prior std
_FEWEST = 8  # windows, for a median to mean something


def disturbances(
    triangle: Float[np.ndarray, "w columns columns"], start: int, free: int
) -> tuple[Float[np.ndarray, "w pushed"], Float[np.ndarray, "w pushed"]]:
    """w of each window and its standard deviation, from the triangles of `shooting`."""
    D = triangle[:, start:, start + free : -1]
    r = triangle[:, start:, -1:]
    Q, R = np.linalg.qr(D)
    least = 1e-12 * np.abs(R).max(axis=(1, 2), initial=1e-300)
    R = R + least[:, None, None] * np.eye(R.shape[-1])
    inverse = np.linalg.inv(R)
    w = -(inverse @ (np.swapaxes(Q, 1, 2) @ r))[..., 0]
    return w, np.sqrt(np.sum(inverse**2, axis=2))


def excesses(
    w: Float[np.ndarray, "w pushed"], std: Float[np.ndarray, "w pushed"], parameters: Sequence[Parameter]
) -> Float[np.ndarray, " w"]:
    """How far each window's disturbance is from the usual one, in robust standard deviations; 0 where there are few windows."""
    if not len(parameters) or len(w) < _FEWEST:
        return np.zeros(len(w))
    floor = _FLOOR * np.array([p.std for p in parameters for _ in p.values])
    usual = np.median(w, axis=0)
    spread = 1.4826 * np.median(np.abs(w - usual), axis=0)
    return np.max(np.abs(w - usual) / np.maximum(np.maximum(spread, std), floor), axis=1)


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
