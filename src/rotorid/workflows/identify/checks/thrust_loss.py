"""A rotor that pulls less from some time on: a propeller that was lost or chipped, a motor that weakened.

    torque = sum_j c_j T_j + e G_i T_i [t > s] + b - k omega        for each axis, for each rotor i and time s
    share lost = -e / g,    g: of G T that c T is, by least squares

All that the airframe may have wrong about an axis, inertia, thrust and torque ratio, is in e as in g, and not in the share. The
air damps a vehicle that begins to turn, as if more thrust were left: k. Rows that a change at s is within are of neither side,
and are left out. A search among few times, in which what is far off counts as little, is followed by fits of all numbers at the
times around the best, with weights of Huber, so that knocks do not count and a change does.

The rotor and time that explain most are told, where they explain far more than noise can, and far more than any other rotor.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe import Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.models.system import GRAVITY
from rotorid.results.turning_rows import TurningRows

_ROWS: Final = 60
_BEFORE: Final = 20
_AFTER: Final = 6
_LANDING: Final = 3  # rows at the end, in which the ground may turn it
_TIMES: Final = 80
_FAR: Final = 20.0  # robust standard deviations
_HUBER: Final = 3.0
_PASSES: Final = 5
_SURE: Final = 9.0  # standard deviations
_SHORT: Final = 12  # rows after a time
_MOST: Final = 0.6  # of its thrust, where few rows are left
_LARGE: Final = 0.12  # of its thrust
_MODEL: Final = 0.03  # of a share, which a wrong lag may misjudge
_CLEAR: Final = 0.7  # of what the best explains, that another rotor may


@dataclasses.dataclass(frozen=True)
class LostThrust:
    """rotor: counted from 0. time: s, from which on. share: of its thrust that it lost. std: of share, with what a wrong lag
    of its motors may do to it, and a thrust curve that bends otherwise, as far as its own std goes."""

    rotor: int
    time: float
    share: float
    std: float


def lost_thrust(rows: TurningRows, airframe: Airframe) -> LostThrust | None:
    """The rotor that lost thrust, None where none clearly did."""
    rows = TurningRows(*(v[:-_LANDING] for v in (rows.t, rows.torque, rows.thrust, rows.rate)))
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)), float)[3:]
    times = np.unique(np.linspace(_BEFORE, n - _AFTER, _TIMES).round().astype(int))
    seen = _search(rows, G, times)
    apart = int(np.diff(times).max())
    model = float(np.hypot(_MODEL, _bend(airframe)))
    best: list[tuple[float, int, LostThrust]] = []
    for i in range(rotors):
        middle = int(times[np.argmax(seen[i])])
        around = range(max(middle - apart, _BEFORE), min(middle + apart, n - _AFTER) + 1)
        k, share, std, _ = min(((k, *lost_share(rows, G, i, k)) for k in around), key=lambda one: one[-1])
        at = 0.5 * float(rows.t[k - 1] + rows.t[k])
        best.append((share / std, k, LostThrust(i, at, share, float(np.hypot(std, model * share)))))
    best.sort(key=lambda one: -one[0])
    sure, k, lost = best[0]
    least = _MOST if n - k < _SHORT else _LARGE
    if sure < _SURE or lost.share < least or best[1][0] > _CLEAR**0.5 * sure:
        return None
    return lost


def lost_share(
    rows: TurningRows, G: Float[np.ndarray, "3 rotors"], rotor: int, k: int
) -> tuple[float, float, float]:
    """The share of its thrust that a rotor lost between rows k - 1 and k; its standard deviation, infinite where the rows do
    not tell; and how badly that explains all rows. G: N m per N, of each rotor about each axis."""
    n, rotors = rows.thrust.shape
    after = np.arange(n) >= k
    there = np.ones(n)
    there[k - 1 : k + 1] = 0.0
    moved = rows.thrust - rows.thrust.mean(axis=0)
    up = down = misfit = 0.0
    for axis in range(3):
        lost = np.where(after, G[axis, rotor] * rows.thrust[:, rotor], 0.0)
        x = np.column_stack([rows.thrust, lost, rows.rate[:, axis], np.ones(n)])
        size = np.sqrt(np.mean(x**2, axis=0))
        size = np.where(size > 0.0, size, 1.0)
        b, P = _robust(x / size, rows.torque[:, axis], there)
        b, P = b / size, P / np.outer(size, size)
        left = there * (rows.torque[:, axis] - x @ b)
        misfit += float(np.log(max(np.mean(np.abs(left)), 1e-300)))
        own = moved @ G[axis]
        power = float(own @ own)
        if power == 0.0:
            continue
        along = np.append(own @ moved / power, np.zeros(3))
        g, spread = float(along @ b), float(along @ P @ along) ** 0.5
        if g < _HUBER * spread or not lost.any():
            continue
        share = -b[rotors] / g
        slope = -along * share / g
        slope[rotors] -= 1.0 / g
        variance = float(slope @ P @ slope)
        up += share / variance
        down += 1.0 / variance
    return (float(up / down), float(down**-0.5), misfit) if down > 0.0 else (0.0, np.inf, misfit)


def _bend(airframe: Airframe) -> float:
    """By what part of itself a share may be wrong with the thrust curve: what a rotor lost shows by how much more it is
    commanded, so that the share goes with the elasticity c T'(c) / T(c) of the curve where it hovers."""
    curve = airframe.thrust_curve
    if curve is None or not curve.std:
        return 0.0
    c, power = np.linspace(0.01, 1.0, 100), np.arange(len(curve.coefficients))
    thrust = np.polynomial.polynomial.polyval(c, curve.coefficients)
    hover = c[np.argmin(np.abs(thrust - airframe.mass.number * GRAVITY / len(airframe.rotors)))]
    each = hover**power
    pull = float(each @ curve.coefficients)
    elasticity = float((power * each) @ curve.coefficients) / pull
    return float(np.linalg.norm((power - elasticity) * each * curve.std)) / abs(pull * elasticity)


def _search(
    rows: TurningRows, G: Float[np.ndarray, "3 rotors"], times: np.ndarray
) -> Float[np.ndarray, "rotors times"]:
    """By how many standard deviations each rotor seems to have lost thrust at each of these rows."""
    n, rotors = rows.thrust.shape
    up, down = np.zeros((rotors, len(times))), np.zeros((rotors, len(times)))
    after = np.arange(n)[:, None] >= times
    for axis in range(3):
        q, _ = np.linalg.qr(np.column_stack([rows.thrust, rows.rate[:, axis], np.ones(n)]))
        y = rows.torque[:, axis]
        y = y - q @ (q.T @ y)
        spread = max(1.4826 * float(np.median(np.abs(y))), 1e-12)
        y = np.clip(y, -_FAR * spread, _FAR * spread)
        for i in range(rotors):
            z = np.where(after, G[axis, i] * rows.thrust[:, [i]], 0.0)
            z = z - q @ (q.T @ z)
            up[i] -= z.T @ y / spread**2
            down[i] += np.sum(z**2, axis=0) / spread**2
    return up / np.sqrt(np.maximum(down, 1e-300))


def _robust(
    x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"], there: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Solution of y = x b by Huber's weights, and its covariance, in which neighbouring rows have something in common. there: 1
    of rows that count, 0 of others."""
    weight, b, P, s, left = there, np.zeros(x.shape[1]), np.eye(x.shape[1]), 0.0, y
    for _ in range(_PASSES):
        P = np.linalg.pinv((x * weight[:, None]).T @ x, hermitian=True)
        b = P @ (x.T @ (weight * y))
        left = y - x @ b
        s = max(1.4826 * float(np.median(np.abs(left[there > 0.0]))), 1e-300)
        weight = there * np.minimum(1.0, _HUBER * s / np.maximum(np.abs(left), 1e-300))
    left = weight * left
    r = float(np.clip(left[1:] @ left[:-1] / max(float(left @ left), 1e-300), -0.6, 0.9))
    return b, s**2 * (1.0 + r) / (1.0 - r) * P
