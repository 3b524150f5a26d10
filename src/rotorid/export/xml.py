"""Numbers, names and rotations in the XML formats of simulators."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from rotorid.quoting import plain_name


def number(value: float) -> str:
    """A number with twelve digits and no negative zero."""
    return f"{float(value) + 0.0:.12g}"


def numbers(values: Iterable[float]) -> str:
    """Numbers separated by spaces."""
    return " ".join(number(v) for v in values)


def xml_name(name: str) -> str:
    """A name of letters, digits, hyphens, points and underscores only."""
    return plain_name(name) or "airframe"


def quaternion_of_axis(axis: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 4"]:
    """The smallest rotation from z to a unit axis, w x y z; 180 deg about x for an axis that points down."""
    if axis[2] < -1.0 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    turn = np.array([1.0 + axis[2], -axis[1], axis[0], 0.0])
    return turn / np.linalg.norm(turn)


def euler_angles_of_axis(axis: Float[np.ndarray, " 3"]) -> tuple[float, float, float]:
    """Roll, pitch and yaw in rad (R = R_z R_y R_x) of the same rotation, as in URDF and SDF."""
    w, x, y, z = quaternion_of_axis(axis)
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )
