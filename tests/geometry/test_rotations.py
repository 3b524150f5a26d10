"""Quaternions: group axioms, plus and minus over batch shapes, near the identity and at pi, against SciPy."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.geometry import rotations as eager

FUNCTIONS = (
    "chart_rate",
    "cross",
    "exp",
    "from_euler",
    "inverse",
    "log",
    "minus",
    "multiply",
    "normalize",
    "plus",
    "rotate",
)
rotations = SimpleNamespace(**{name: jax.jit(getattr(eager, name)) for name in FUNCTIONS})

SHAPES = [(), (1,), (7,), (2, 3)]
ANGLES = [0.0, 1e-12, 1e-8, 1e-4, 9.99e-4, 1.001e-3, 2e-3, 0.1, 1.0, 3.0, np.pi - 1e-9]
"""rad; the series of exp and log give way to the closed forms near 1e-3 (exp) and 2e-3 (log)."""


OTHER = np.array([0.5, -0.5, 0.1, 0.7])


def units(shape, seed=0):
    q = np.random.default_rng(seed).normal(size=(*shape, 4))
    return jnp.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def vectors(shape, seed=0, length=None):
    v = np.random.default_rng(100 + seed).normal(size=(*shape, 3))
    return jnp.asarray(v if length is None else length * v / np.linalg.norm(v, axis=-1, keepdims=True))


def scipy(q):
    return Rotation.from_quat(np.array(q), scalar_first=True)


def same_rotation(a, b, tolerance=1e-12):
    sign = np.sign(np.sum(np.asarray(a) * np.asarray(b), axis=-1, keepdims=True))
    np.testing.assert_allclose(a, sign * b, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
def test_group_axioms(shape):
    a, b, c = (units(shape, seed) for seed in range(3))
    identity = jnp.broadcast_to(jnp.array([1.0, 0.0, 0.0, 0.0]), (*shape, 4))
    multiply = rotations.multiply
    np.testing.assert_allclose(multiply(multiply(a, b), c), multiply(a, multiply(b, c)), atol=1e-14)
    np.testing.assert_allclose(multiply(a, identity), a, atol=1e-15)
    np.testing.assert_allclose(multiply(identity, a), a, atol=1e-15)
    np.testing.assert_allclose(multiply(a, rotations.inverse(a)), identity, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.norm(multiply(a, b), axis=-1), 1.0, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_acts_on_vectors(shape):
    a, b, v, w = units(shape), units(shape, 1), vectors(shape), vectors(shape, 1)
    rotate = rotations.rotate
    np.testing.assert_allclose(rotate(rotations.multiply(a, b), v), rotate(a, rotate(b, v)), atol=1e-13)
    np.testing.assert_allclose(rotate(rotations.inverse(a), rotate(a, v)), v, atol=1e-13)
    np.testing.assert_allclose(jnp.sum(rotate(a, v) * rotate(a, w), -1), jnp.sum(v * w, -1), atol=1e-12)
    np.testing.assert_allclose(rotations.cross(v, w), np.cross(v, w), atol=1e-15)


def test_agrees_with_scipy():
    a, b, v = units((50,)), units((50,), 1), vectors((50,))
    same_rotation(rotations.multiply(a, b), (scipy(a) * scipy(b)).as_quat(scalar_first=True))
    np.testing.assert_allclose(rotations.rotate(a, v), scipy(a).apply(np.array(v)), atol=1e-13)
    same_rotation(rotations.exp(v), Rotation.from_rotvec(np.array(v)).as_quat(scalar_first=True))
    np.testing.assert_allclose(rotations.log(a), scipy(a).as_rotvec(), atol=1e-13)
    angles = np.random.default_rng(3).uniform(-1.5, 1.5, size=(50, 3))
    ours = rotations.from_euler(*(jnp.asarray(x) for x in angles.T))
    same_rotation(ours, Rotation.from_euler("ZYX", angles[:, ::-1]).as_quat(scalar_first=True))


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_log_invert_each_other(angle):
    v = vectors((20,), length=angle)
    np.testing.assert_allclose(rotations.log(rotations.exp(v)), v, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(jnp.linalg.norm(rotations.exp(v), axis=-1), 1.0, atol=1e-15)
    np.testing.assert_allclose(rotations.log(-rotations.exp(v)), v, rtol=1e-9, atol=1e-15)


def test_a_half_turn():
    v = vectors((20,), length=np.pi)
    turned = rotations.log(rotations.exp(v))
    np.testing.assert_allclose(jnp.linalg.norm(turned, axis=-1), np.pi, atol=1e-12)
    np.testing.assert_allclose(np.abs(jnp.sum(turned * v, axis=-1)), np.pi**2, atol=1e-9)
    assert np.isfinite(rotations.log(jnp.array([0.0, 1.0, 0.0, 0.0]))).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [0.0, 1e-9, 1e-3, 1.0, 3.1])
def test_plus_and_minus(shape, length):
    q, p, d = units(shape), units(shape, 1), vectors(shape, length=length)
    np.testing.assert_allclose(rotations.minus(rotations.plus(q, d), q), d, rtol=1e-7, atol=1e-13)
    same_rotation(rotations.plus(q, rotations.minus(p, q)), p)
    same_rotation(rotations.plus(q, jnp.zeros_like(d)), q)
    np.testing.assert_allclose(rotations.minus(q, q), jnp.zeros_like(d), atol=1e-15)
    np.testing.assert_allclose(rotations.minus(-rotations.plus(q, d), q), d, rtol=1e-7, atol=1e-13)


def test_normalize_is_the_nearest_unit():
    q = 3.7 * units((5,))
    np.testing.assert_allclose(rotations.normalize(q), units((5,)), atol=1e-15)


@pytest.mark.parametrize(
    "function",
    [rotations.exp, lambda d: rotations.minus(rotations.exp(d), jnp.asarray(OTHER))],
    ids=["exp", "minus"],
)
def test_derivatives_are_finite_and_right(function):
    h = 1e-6
    v = jnp.stack([vectors((), length=angle) for angle in ANGLES])
    every = jax.jit(jax.vmap(function))
    J = jax.jit(jax.vmap(jax.jacfwd(function)))(v)
    numeric = np.stack([(every(v + h * e) - every(v - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
    np.testing.assert_allclose(J, numeric, atol=2e-8)
    assert np.isfinite(jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(function))))(v)).all()


def test_minus_undoes_plus_under_differentiation():
    q, d = jnp.asarray(OTHER), jnp.stack([vectors((), length=angle) for angle in ANGLES[:-1]])
    J = jax.jit(jax.vmap(jax.jacfwd(lambda d: rotations.minus(rotations.plus(q, d), q))))(d)
    np.testing.assert_allclose(J, np.broadcast_to(np.eye(3), J.shape), atol=1e-9)


@pytest.mark.parametrize(("length", "tolerance"), [(0.0, 1e-14), (0.01, 1e-13), (0.1, 1e-9), (0.5, 1e-5)])
def test_chart_rate_is_the_rate_of_delta(length, tolerance):
    """To the order of its series, |delta|^6 / 30240."""
    d, rate, q = vectors((), length=length), vectors((), 1), units(())

    def delta(t):
        return rotations.minus(rotations.multiply(rotations.plus(q, d), rotations.exp(t * rate)), q)

    np.testing.assert_allclose(
        rotations.chart_rate(d, rate), jax.jit(jax.jacfwd(delta))(jnp.array(0.0)), atol=tolerance
    )


def test_float32_stays_float32():
    q = units((4,)).astype(jnp.float32)
    v = vectors((4,)).astype(jnp.float32)
    for result in (rotations.exp(v), rotations.log(q), rotations.plus(q, v), rotations.rotate(q, v)):
        assert result.dtype == jnp.float32
