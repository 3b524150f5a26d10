"""Rotations of many rows in NumPy: the twin of `rotations` for code that must not import JAX, such as readers of logs.

Unit quaternions in the order w x y z, body to world, one a row; rotation vectors in rad. The order of the floating-point
operations is part of each function: logs, simulated data and estimates depend on the last bit.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64

Quaternions = Float64[np.ndarray, "n 4"]
Vectors = Float64[np.ndarray, "n 3"]


def multiply(p: Quaternions, q: Quaternions) -> Quaternions:
    """Hamilton product p (x) q."""
    pw, px, py, pz = p.T
    qw, qx, qy, qz = q.T
    return np.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=1,
    )


def inverse(q: Quaternions) -> Quaternions:
    """Inverse of unit quaternions."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: Float[np.ndarray, "n 4"], v: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    """R(q) v: vectors of the body frame, expressed in the world frame."""
    t = 2.0 * np.cross(q[:, 1:], v)
    return v + q[:, :1] * t + np.cross(q[:, 1:], t)


def exp(v: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 4"]:
    """Exp: rotation vectors to unit quaternions."""
    half = 0.5 * np.linalg.norm(v, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * v * np.sinc(half / np.pi)], axis=-1)


def log(q: Quaternions) -> Vectors:
    """Log: unit quaternions to rotation vectors, of length pi at most."""
    q = np.where(q[:, :1] < 0.0, -q, q)
    sine = np.linalg.norm(q[:, 1:], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[:, :1])
    return q[:, 1:] * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 2.0)


def plus(q: Quaternions, delta: Vectors) -> Quaternions:
    """q [+] delta, with delta in the body frame; normalised."""
    d = exp(delta)
    w, v = d[:, :1], d[:, 1:]
    a, b = q[:, :1], q[:, 1:]
    product = np.concatenate(
        [a * w - np.sum(b * v, axis=1, keepdims=True), a * v + w * b + np.cross(b, v)], axis=1
    )
    return product / np.linalg.norm(product, axis=1, keepdims=True)


def rotation_between(start: Quaternions, end: Quaternions) -> Vectors:
    """end [-] start: the rotation from one attitude to another, in the body frame of the start."""
    return log(multiply(inverse(start), end))


def interpolate(
    at: Float64[np.ndarray, " n"], times: Float64[np.ndarray, " m"], q: Float64[np.ndarray, "m 4"]
) -> Quaternions:
    """Attitudes at the times `at`, the shorter way between samples.

    Args:
        at: n times, s.
        times: of the m samples, s, ascending.
        q: m attitudes.
    Returns:
        n attitudes, by normalised linear interpolation.
    """
    flips = np.concatenate([[1.0], np.cumprod(np.where((q[1:] * q[:-1]).sum(axis=1) < 0.0, -1.0, 1.0))])
    q = q * flips[:, None]
    blend = np.stack([np.interp(at, times, column) for column in q.T], axis=1)
    return blend / np.maximum(np.linalg.norm(blend, axis=1, keepdims=True), 1e-12)


def from_euler(angles: Vectors) -> Quaternions:
    """Unit quaternions of roll, pitch and yaw in rad, intrinsic z-y-x."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles.T / 2), np.sin(angles.T / 2)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=1,
    )


def yaw(q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n"]:
    """Yaw of the intrinsic z-y-x angles, rad, from -pi to pi."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def body_x(q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3"]:
    """Body axis x (forward) in the world frame."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)], axis=-1)


def body_y(q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3"]:
    """Body axis y (left) in the world frame."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack([2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)], axis=-1)


def body_z(q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3"]:
    """Body axis z (up) in the world frame."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], axis=-1)


def rotation_matrix(q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3 3"]:
    """R(q), whose columns are the body axes in the world frame."""
    return np.stack([body_x(q), body_y(q), body_z(q)], axis=-1)
