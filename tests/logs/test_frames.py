"""Rotating by the converted quaternion is converting the rotated vector, for any rotation."""

from __future__ import annotations

import numpy as np

from rotorid.geometry.rotation_rows import from_euler, multiply
from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    pure = np.concatenate([np.zeros((len(v), 1)), v], axis=1)
    return multiply(multiply(q, pure), q * np.array([1.0, -1.0, -1.0, -1.0]))[:, 1:]


def test_attitude_conversion_commutes_with_rotation():
    rng = np.random.default_rng(0)
    q = rng.normal(size=(100, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    body = rng.normal(size=(100, 3))
    np.testing.assert_allclose(
        ned_to_enu(rotate(q, body)), rotate(attitude_to_enu_flu(q), frd_to_flu(body)), atol=1e-14
    )


def test_level_and_nose_north_is_a_turn_of_90_degrees_from_east():
    q = attitude_to_enu_flu(np.array([[1.0, 0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(rotate(q, np.array([[1.0, 0.0, 0.0]])), [[0.0, 1.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(rotate(q, np.array([[0.0, 0.0, 1.0]])), [[0.0, 0.0, 1.0]], atol=1e-15)


def test_euler_angles_turn_about_z_then_y_then_x():
    rng = np.random.default_rng(1)
    angles = rng.uniform(-1.5, 1.5, size=(50, 3))

    def about(axis: int, angle: np.ndarray) -> np.ndarray:
        q = np.zeros((len(angle), 4))
        q[:, 0], q[:, axis + 1] = np.cos(angle / 2), np.sin(angle / 2)
        return q

    expected = multiply(multiply(about(2, angles[:, 2]), about(1, angles[:, 1])), about(0, angles[:, 0]))
    np.testing.assert_allclose(from_euler(angles), expected, atol=1e-15)
