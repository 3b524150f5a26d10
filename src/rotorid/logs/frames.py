"""Conversion from the frames of autopilots (NED world, FRD body) to rotorid's (ENU world, FLU body).

A vector goes (north, east, down) -> (east, north, up) and (forward, right, down) -> (forward, left, up). With
a = 1/sqrt(2), an attitude goes q -> (0, a, a, 0) q (0, -1, 0, 0): FLU to FRD first, then q, then NED to ENU.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.geometry.rotation_rows import multiply

_FLU: Final = np.array([1.0, -1.0, -1.0])  # of FRD


def ned_to_enu(vector: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 3"]:
    """World vectors from north-east-down to east-north-up."""
    result = np.empty((len(vector), 3))
    result[:, 0], result[:, 1], result[:, 2] = vector[:, 1], vector[:, 0], -vector[:, 2]
    return result + 0.0  # no negative zeros


def frd_to_flu(vector: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 3"]:
    """Body vectors from forward-right-down to forward-left-up."""
    return vector * _FLU + 0.0


def world_ned_to_enu(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """Attitudes whose world is NED, to the same attitudes with world ENU; the body frame stays."""
    half = np.sqrt(0.5)
    return multiply(np.broadcast_to([0.0, half, half, 0.0], q.shape), q)


def body_frd_to_flu(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """Attitudes of an FRD body, to the same attitudes of the FLU body; the world frame stays."""
    return multiply(q, np.broadcast_to([0.0, -1.0, 0.0, 0.0], q.shape))


def attitude_to_enu_flu(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """Attitudes FRD to NED (w x y z) to attitudes FLU to ENU: both products at once."""
    w, x, y, z = (np.sqrt(0.5) * q).T
    result = np.empty((len(q), 4))
    result[:, 0], result[:, 1], result[:, 2], result[:, 3] = w + z, x + y, x - y, w - z
    return result + 0.0
