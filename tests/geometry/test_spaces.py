"""Spaces: the laws of plus and minus on blocks of every kind, packing, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector

SPACES = {
    "scalar": Space.of(angle=Scalar("rad")),
    "vectors": Space.of(position=Vector(3, "m"), mass=Scalar("kg"), wind=Vector(2, "m/s")),
    "rotation": Space.of(attitude=Rotation()),
    "mixed": Space.of(
        mass=Scalar("kg"),
        attitude=Rotation(),
        position=Vector(3, "m"),
        gimbal=Rotation(),
        speed=Scalar("m/s"),
    ),
}
plus, minus, chart_rate = (
    jax.jit(law, static_argnums=0) for law in (Space.plus, Space.minus, Space.chart_rate)
)
EACH = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


def point(space, seed):
    x = np.random.default_rng(seed).normal(size=space.size)
    for name, block in space.blocks:
        if block.rotation:
            x[space.stored[name]] /= np.linalg.norm(x[space.stored[name]])
    return jnp.asarray(x)


def tangent(space, seed, size=1.0):
    return size * jnp.asarray(np.random.default_rng(seed).normal(size=space.dim))


@EACH
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.5])
def test_plus_and_minus(space, size):
    x, y, d = point(space, 0), point(space, 1), tangent(space, 2, size)
    np.testing.assert_allclose(minus(space, plus(space, x, d), x), d, rtol=1e-7, atol=1e-13)
    np.testing.assert_allclose(plus(space, x, jnp.zeros(space.dim)), x, atol=1e-15)
    again = plus(space, x, minus(space, y, x))
    np.testing.assert_allclose(minus(space, again, y), jnp.zeros(space.dim), atol=1e-13)


@EACH
def test_batches_agree_with_one_by_one(space):
    xs = jnp.stack([point(space, i) for i in range(4)])
    ds = jnp.stack([tangent(space, i) for i in range(4)])
    one_by_one = jnp.stack([plus(space, x, d) for x, d in zip(xs, ds, strict=True)])
    np.testing.assert_allclose(jax.vmap(space.plus)(xs, ds), one_by_one, atol=1e-15)


@EACH
def test_derivatives_at_zero_difference(space):
    x = point(space, 0)
    J = jax.jit(jax.jacfwd(lambda d: minus(space, plus(space, x, d), x)))(jnp.zeros(space.dim))
    np.testing.assert_allclose(J, np.eye(space.dim), atol=1e-14)


def test_second_derivative_at_zero_difference():
    space = SPACES["rotation"]
    x = point(space, 0)
    H = jax.jit(jax.hessian(lambda d: jnp.sum(minus(space, plus(space, x, d), x) ** 2)))(jnp.zeros(3))
    np.testing.assert_allclose(H, 2.0 * np.eye(3), atol=1e-13)


@EACH
def test_chart_rate(space):
    x, d, rate = point(space, 0), tangent(space, 1, 0.1), tangent(space, 2)
    numeric = jax.jit(jax.jacfwd(lambda t: minus(space, plus(space, plus(space, x, d), t * rate), x)))(0.0)
    np.testing.assert_allclose(chart_rate(space, d, rate), numeric, atol=1e-8)


@EACH
def test_pack_and_unpack(space):
    x, d = point(space, 0), tangent(space, 0)
    np.testing.assert_array_equal(space.pack(space.unpack(x)), x)
    values = {n: d[s] if space[n].shape else d[s.start] for n, s in space.tangent.items()}
    np.testing.assert_array_equal(space.pack_tangent(values), d)
    assert {n: v.shape for n, v in space.unpack(x).items()} == {n: b.shape for n, b in space.blocks}


def test_sizes_and_places():
    space = SPACES["mixed"]
    assert (space.size, space.dim) == (1 + 4 + 3 + 4 + 1, 1 + 3 + 3 + 3 + 1)
    assert space.stored["position"] == slice(5, 8)
    assert space.tangent["gimbal"] == slice(7, 10)
    assert list(space) == ["mass", "attitude", "position", "gimbal", "speed"]
    initial = plus(space, jnp.asarray(space.initial()), jnp.zeros(space.dim))
    np.testing.assert_array_equal(initial[space.stored["attitude"]], [1.0, 0.0, 0.0, 0.0])


def test_rotations_compose_on_the_right():
    space, d = SPACES["rotation"], tangent(SPACES["rotation"], 1)
    x = point(space, 0)
    np.testing.assert_allclose(plus(space, x, d), rotations.multiply(x, rotations.exp(d)), atol=1e-14)


def test_equal_spaces_hash_alike():
    again = Space.of(angle=Scalar("rad"))
    assert again == SPACES["scalar"]
    assert hash(again) == hash(SPACES["scalar"])


def test_wrong_blocks_are_named():
    space = SPACES["vectors"]
    with pytest.raises(SettingError, match="unknown \\['drag'\\]"):
        space.pack({"position": jnp.zeros(3), "mass": jnp.ones(()), "drag": jnp.zeros(2)})
    with pytest.raises(SettingError, match="'wind' has 3 numbers where 2"):
        space.pack({"position": jnp.zeros(3), "mass": jnp.ones(()), "wind": jnp.zeros(3)})
    with pytest.raises(SettingError, match="negative"):
        Vector(3, "m", std=-1.0)
    with pytest.raises(SettingError, match="2 numbers where 3"):
        Vector(3, "m", initial=(0.0, 1.0))
