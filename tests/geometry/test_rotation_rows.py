"""The NumPy rotations are those of JAX, row by row."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.geometry import rotation_rows, rotations

RNG = np.random.default_rng(3)
Q = RNG.normal(size=(50, 4))
Q /= np.linalg.norm(Q, axis=1, keepdims=True)
P = np.roll(Q, 7, axis=0)
V = RNG.normal(size=(50, 3))


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("multiply", (P, Q)),
        ("inverse", (Q,)),
        ("rotate", (Q, V)),
        ("exp", (V,)),
        ("log", (Q,)),
        ("plus", (Q, V)),
    ],
)
def test_numpy_and_jax_agree(name: str, arguments: tuple[np.ndarray, ...]) -> None:
    found = getattr(rotation_rows, name)(*arguments)
    np.testing.assert_allclose(found, getattr(rotations, name)(*map(jnp.asarray, arguments)), atol=1e-14)


def test_rotations_between_attitudes() -> None:
    np.testing.assert_allclose(
        rotation_rows.rotation_between(P, Q), rotations.minus(jnp.asarray(Q), jnp.asarray(P)), atol=1e-13
    )


def test_body_axes_are_rotated_unit_vectors() -> None:
    for k, axis in enumerate((rotation_rows.body_x, rotation_rows.body_y, rotation_rows.body_z)):
        unit = np.tile(np.eye(3)[k], (len(Q), 1))
        np.testing.assert_allclose(axis(Q), rotation_rows.rotate(Q, unit), atol=1e-15)
        np.testing.assert_array_equal(axis(Q[0]), axis(Q)[0])


def test_euler_angles() -> None:
    angles = RNG.uniform(-1.5, 1.5, (50, 3))
    q = rotation_rows.from_euler(angles)
    np.testing.assert_allclose(q, rotations.from_euler(*jnp.asarray(angles.T)), atol=1e-15)
    np.testing.assert_allclose(rotation_rows.yaw(q), angles[:, 2], atol=1e-14)


def test_the_shorter_way_between_samples() -> None:
    q = rotation_rows.from_euler(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.2]]))
    half = rotation_rows.interpolate(np.array([0.5]), np.array([0.0, 1.0]), q * np.array([[1.0], [-1.0]]))
    np.testing.assert_allclose(half, rotation_rows.from_euler(np.array([[0.0, 0.0, 0.1]])), atol=1e-15)
