"""Rotor commands that were logged rarely: samples of what a controller gave many times as often, so straight between them.

    c_j = u((s_j + s_{j+1}) / 2)    from s_j on, until s_{j+1}: steps of a fine grid, u straight between the log's rows

A command that is held until the next row is late by half a period on average. What is regressed on it is then partly noise,
which makes the thrust curve look flatter than it is; straight between rows, an error of the command is one of the thrust that
follows, which leaves the curve as it is (J. Berkson, Are there two regressions?, JASA 45 (1950)). Rows that are too far apart
are held.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from rotorid.signals.series import between

_STEPS = 10  # between two rows
_GAP = 2.5  # median periods between neighbours, from which on nothing is known between them


def straight(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n rotors"]
) -> tuple[Float[np.ndarray, " fine"], Float[np.ndarray, "fine rotors"]]:
    """Stamps in s and commands of the fine grid."""
    period = np.diff(t)
    if len(t) < 3:
        return t, u
    near = period <= _GAP * np.median(period)
    share = np.arange(_STEPS) / _STEPS
    start = t[:-1, None] + period[:, None] * share
    middle = between((start + 0.5 * period[:, None] / _STEPS).ravel(), t, u)
    held = np.repeat(u[:-1], _STEPS, axis=0)
    fine = np.where(np.repeat(near, _STEPS)[:, None], middle, held)
    return np.append(start.ravel(), t[-1]), np.concatenate([fine, u[-1:]])
