"""Rotations of many rows in numpy, for looking at signals without JAX. Quaternions w x y z, body to world."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from rotorid.logs.frames import multiply


def interpolate(
    at: Float64[np.ndarray, " n"], times: Float64[np.ndarray, " m"], q: Float64[np.ndarray, "m 4"]
) -> Float64[np.ndarray, "n 4"]:
    """Attitudes at the times `at`, the shorter way between samples."""
    flips = np.concatenate([[1.0], np.cumprod(np.where((q[1:] * q[:-1]).sum(axis=1) < 0.0, -1.0, 1.0))])
    q = q * flips[:, None]
    mixed = np.stack([np.interp(at, times, column) for column in q.T], axis=1)
    return mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)


def conjugate(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """The inverse rotations."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: Float64[np.ndarray, "n 4"], v: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 3"]:
    """Body vectors in the world frame."""
    t = 2.0 * np.cross(q[:, 1:], v)
    return v + q[:, :1] * t + np.cross(q[:, 1:], t)


def angle_vector(q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 3"]:
    """Axis times angle of each rotation, rad, the shorter way round."""
    q = np.where(q[:, :1] < 0.0, -q, q)
    sine = np.linalg.norm(q[:, 1:], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[:, :1])
    return q[:, 1:] * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 2.0)


def turned(start: Float64[np.ndarray, "n 4"], end: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 3"]:
    """How far the body turned from one attitude to another, axis times angle in the body frame, rad."""
    return angle_vector(multiply(conjugate(start), end))
