"""The line of action of a contact force, and where it meets the vehicle.

A force f at one point r has the torque r x f about the centre of mass, at right angles to f. All points of the line

    r(s) = (f x tau) / |f|^2 + s f / |f|

have the same wrench (T. Tomic, C. Ott and S. Haddadin, External wrench estimation, collision detection, and reflex reaction
for flying robots, IEEE T-RO 33 (2017), section VI). r(0) is the point nearest to the centre of mass. The wrench
does not determine the contact point on the line. It is assumed to be where the line meets a box around the rotors: a push
enters at the first such point, a pull leaves at the last.

A single force at a point has no torque along f. The line is not determined where that part is significant, where the force is
not significant, or where the uncertainty of the line exceeds the size of the vehicle.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe.airframe import Rotor

CLEAR: Final = 5.0
"""Least force, in standard deviations, for which the line of action is determined."""

_ALONG: Final = 3.0  # standard deviations that a torque along the force may have
_FLAT: Final = 0.25  # of the wider side of the rotors: the box's height at least

Vector = Float[np.ndarray, " 3"]


@dataclasses.dataclass(frozen=True)
class Box:
    """A box around the rotors, body axes, m: lowest and highest corner, from the centre of mass."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @property
    def size(self) -> float:
        """Half of its longest diagonal, m."""
        return 0.5 * float(np.linalg.norm(np.subtract(self.high, self.low)))


@dataclasses.dataclass(frozen=True)
class LineOfAction:
    """Where a force acts, body axes (FLU), from the centre of mass, m.

    nearest: the point of the line nearest to the centre of mass, with its std. direction: of the force, a unit vector.
    entry, exit: where the line enters and leaves the box around the rotors, None where it misses it. along: torque along the
    force, N m, with its std: zero for a force at one point.
    """

    nearest: tuple[float, float, float]
    nearest_std: tuple[float, float, float]
    direction: tuple[float, float, float]
    entry: tuple[float, float, float] | None
    exit: tuple[float, float, float] | None
    along: float
    along_std: float


def rotor_box(rotors: tuple[Rotor, ...], centre_of_mass: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Box:
    """The box that holds the hubs of all rotors, at least a quarter as high as it is wide. Positions in the body frame, m."""
    places = np.array([r.position for r in rotors]) - np.asarray(centre_of_mass)
    low, high = places.min(axis=0), places.max(axis=0)
    missing_height = max(_FLAT * float(np.max(high - low)) - float(high[2] - low[2]), 0.0)
    low[2] -= 0.5 * missing_height
    high[2] += 0.5 * missing_height
    return Box(_triple(low), _triple(high))


def line_of_action(
    force: Vector, torque: Vector, covariance: Float[np.ndarray, "6 6"], box: Box
) -> LineOfAction | str:
    """The line on which a force acts.

    Args:
        force: N, body axes.
        torque: N m, about the centre of mass, body axes.
        covariance: of force and torque.
        box: see `rotor_box`.
    Returns:
        The line, or the reason why it is not determined.
    """
    strength = float(np.linalg.norm(force))
    direction = force / max(strength, 1e-300)
    strength_std = float(np.sqrt(direction @ covariance[:3, :3] @ direction))
    if strength < CLEAR * strength_std:
        return "force too weak"
    along, J_along = float(direction @ torque), _along_by(force, torque)
    along_std = float(np.sqrt(J_along @ covariance @ J_along))
    if abs(along) > _ALONG * along_std:
        return "a torque along the force, so several points"
    J = _nearest_by(force, torque)
    std = np.sqrt(np.diag(J @ covariance @ J.T))
    if float(np.max(std)) > box.size:
        return "torque too uncertain"
    nearest = np.cross(force, torque) / strength**2
    crossing = _through(nearest, direction, box)
    return LineOfAction(
        _triple(nearest),
        _triple(std),
        _triple(direction),
        None if crossing is None else _triple(nearest + crossing[0] * direction),
        None if crossing is None else _triple(nearest + crossing[1] * direction),
        along,
        along_std,
    )


def _nearest_by(force: Vector, torque: Vector) -> Float[np.ndarray, "3 6"]:
    """d nearest / d (force, torque), of f x tau / |f|^2."""
    square = float(force @ force)
    by_torque = _skew(force) / square
    by_force = -_skew(torque) / square - 2.0 * np.outer(np.cross(force, torque), force) / square**2
    return np.concatenate([by_force, by_torque], axis=1)


def _along_by(force: Vector, torque: Vector) -> Float[np.ndarray, " 6"]:
    """d (f . tau / |f|) / d (force, torque)."""
    strength = float(np.linalg.norm(force))
    direction = force / strength
    return np.concatenate([(torque - (direction @ torque) * direction) / strength, direction])


def _through(point: Vector, direction: Vector, box: Box) -> tuple[float, float] | None:
    """Where a line enters and leaves a box, in m along the direction; None where it misses it."""
    first, last = -np.inf, np.inf
    for p, d, low, high in zip(point, direction, box.low, box.high, strict=True):
        if abs(d) < 1e-12:
            if not low <= p <= high:
                return None
            continue
        ends = sorted(((low - p) / d, (high - p) / d))
        first, last = max(first, ends[0]), min(last, ends[1])
    return (float(first), float(last)) if first <= last else None


def _skew(v: Vector) -> Float[np.ndarray, "3 3"]:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _triple(v: Float[np.ndarray, " 3"]) -> tuple[float, float, float]:
    return (float(v[0]), float(v[1]), float(v[2]))
