"""A rotor that pulls less from some time on: a propeller that was lost or chipped, a motor that weakened.

    torque = sum_i c_i T_i + b + d G_i T_i [t > s]      least squares, d the same about every axis, for each rotor i and time s

The rotor and time that explain most are told, where they explain far more than noise can, and far more than any other rotor.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.models.airframe import Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.results.turning_rows import TurningRows

_ROWS: Final = 60
_BEFORE: Final = 20
_AFTER: Final = 3
_TIMES: Final = 80
_SURE: Final = 9.0  # standard deviations
_SHORT: Final = 12  # rows after a time, of which a landing may be one
_MOST: Final = 0.6  # of its thrust, where few rows are left
_LARGE: Final = 0.12  # of its thrust
_MODEL: Final = 0.2  # of a share, which the rows may misjudge
_CLEAR: Final = 0.7  # of what the best explains, that another rotor may


@dataclasses.dataclass(frozen=True)
class LostThrust:
    """rotor: counted from 0. time: s, from which on. share: of its thrust that it lost. std: of share, with what lag
    and levers that are a little wrong may do to it."""

    rotor: int
    time: float
    share: float
    std: float


def lost_thrust(rows: TurningRows, airframe: Airframe) -> LostThrust | None:
    """The rotor that lost thrust, None where none clearly did."""
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)), float)[3:]
    times = np.unique(np.linspace(_BEFORE, n - _AFTER, _TIMES).round().astype(int))
    best: list[tuple[float, int, LostThrust]] = []
    for i in range(rotors):
        changes = [(int(k), *_change(rows, G[:, i], i, int(k))) for k in times]
        k, d, std = max(changes, key=lambda one: -one[1] / one[2])
        best.append((-d / std, k, LostThrust(i, float(rows.t[k]), -d, float(np.hypot(std, _MODEL * d)))))
    best.sort(key=lambda one: -one[0])
    sure, k, lost = best[0]
    least = _MOST if n - k < _SHORT else _LARGE
    if sure < _SURE or lost.share < least or best[1][0] > _CLEAR**0.5 * sure:
        return None
    return lost


def _change(rows: TurningRows, lever: np.ndarray, rotor: int, k: int) -> tuple[float, float]:
    """d and its standard deviation, for a change at row k; what was before settles c and b."""
    n = len(rows.t)
    x = np.concatenate([rows.thrust, np.ones((n, 1))], axis=1)
    z = np.where(np.arange(n) >= k, rows.thrust[:, rotor], 0.0)
    up = down = 0.0
    q, _ = np.linalg.qr(x)
    z = z - q @ (q.T @ z)
    for axis in range(3):
        y = rows.torque[:, axis]
        y = y - q @ (q.T @ y)
        spread = max(1.4826 * float(np.median(np.abs(y))), 1e-12)
        up += lever[axis] * float(z @ np.clip(y, -20 * spread, 20 * spread)) / spread**2
        down += lever[axis] ** 2 * float(z @ z) / spread**2
    return (float(up / down), float(down**-0.5)) if down > 0 else (0.0, 1.0)
