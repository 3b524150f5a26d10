"""Numbers, names and rotations as the XML formats of simulators write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float


def number(value: float) -> str:
    """With twelve digits; never a negative zero."""
    return f"{float(value) + 0.0:.12g}"


def numbers(values: Iterable[float]) -> str:
    """Separated by blanks."""
    return " ".join(number(v) for v in values)


def name_in_xml(name: str) -> str:
    """A name of letters, digits, hyphens, points and underscores, which every reader takes."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name) or "airframe"


def quaternion_of(axis: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 4"]:
    """The least turn of z to a unit axis, w x y z; half a turn about x where the axis points down."""
    if axis[2] < -1.0 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    turn = np.array([1.0 + axis[2], -axis[1], axis[0], 0.0])
    return turn / np.linalg.norm(turn)


def angles_of(axis: Float[np.ndarray, " 3"]) -> tuple[float, float, float]:
    """Roll, pitch and yaw in rad (R = R_z R_y R_x) of the same turn, as URDF and SDF write rotations."""
    w, x, y, z = quaternion_of(axis)
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )
