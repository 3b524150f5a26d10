"""CasADi computes what JAX computes, to rounding, for every primitive and for whole models."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

from rotorid.codegen.casadi import UnsupportedPrimitiveError, to_casadi
from rotorid.errors import RotoridError, SettingError
from rotorid.estimators.base import step as estimator_step
from rotorid.estimators.ekf import ekf
from rotorid.estimators.ukf import ukf
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.numerics import integrators
from rotorid.signals.samples import Samples

RNG = np.random.default_rng(0)
VECTOR, OTHER = RNG.uniform(0.1, 0.9, size=5), RNG.uniform(0.1, 0.9, size=5)
MATRIX = RNG.normal(size=(3, 4))
SIGNED = RNG.normal(size=6) * 3.0
POSITIVE = MATRIX @ MATRIX.T + np.eye(3)


def agree(function, *arguments, tolerance=1e-12):
    """Assert that CasADi and JAX give the same on other numbers than those traced."""
    traced = to_casadi(function, *jax.tree.map(lambda leaf: np.ones_like(leaf), arguments))
    got = traced.call([np.asarray(leaf, dtype=float) for leaf in jax.tree.leaves(arguments)])
    want = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w, dtype=float)
        np.testing.assert_allclose(np.array(g).reshape(w.shape), w, rtol=tolerance, atol=tolerance)


ELEMENTWISE = [
    jnp.sin,
    jnp.cos,
    jnp.tan,
    jnp.arcsin,
    jnp.arccos,
    jnp.arctan,
    jnp.sinh,
    jnp.cosh,
    jnp.tanh,
    jnp.arcsinh,
    jnp.arctanh,
    jnp.exp,
    jnp.exp2,
    jnp.expm1,
    jnp.log,
    jnp.log1p,
    jnp.sqrt,
    jax.lax.rsqrt,
    jnp.square,
    jnp.cbrt,
    jnp.abs,
    jnp.negative,
    jnp.sign,
    jnp.floor,
    jnp.ceil,
    jax.nn.sigmoid,
    jax.nn.softplus,
    jax.nn.relu,
    jax.nn.gelu,
    jnp.isfinite,
    jax.scipy.special.erf,
    lambda x: x**3,
    lambda x: x**-2,
    lambda x: x**0.7,
    lambda x: 2.0**x,
    lambda x: jnp.clip(x, 0.3, 0.6),
    lambda x: x.astype(int),
    lambda x: (x > 0.5).astype(float),
    lambda x: jnp.where(x > 0.5, x, -x),
    lambda x: jnp.where((x > 0.2) & ~(x > 0.7) | (x < 0.1), 1.0, x),
    lambda x: jax.lax.stop_gradient(x) + jnp.arccosh(1.0 + x),
    lambda x: (x > 0.5) ^ (x > 0.2),
]

PAIRS = [
    jnp.add,
    jnp.subtract,
    jnp.multiply,
    jnp.divide,
    jnp.power,
    jnp.arctan2,
    jnp.maximum,
    jnp.minimum,
    jnp.fmod,
    jnp.equal,
    jnp.not_equal,
    jnp.less,
    jnp.less_equal,
    jnp.greater,
    jnp.greater_equal,
    jnp.hypot,
    jnp.dot,
    jnp.outer,
    lambda a, b: jnp.concatenate([a, b]),
    lambda a, b: jnp.stack([a, b]),
    lambda a, b: a @ b,
    lambda a, b: a.at[2].set(b[0]),
    lambda a, b: a.at[jnp.array([1, 1, 3])].add(b[:3]),
    lambda a, b: a[1:3] * b[::2][:2],
    lambda a, b: jax.lax.dynamic_update_slice(a, b[:2], (1,)),
    lambda a, b: jnp.cross(a[:3], b[:3]),
]

SHAPES = [
    jnp.transpose,
    jnp.ravel,
    jnp.sum,
    jnp.max,
    jnp.min,
    jnp.prod,
    jnp.mean,
    jnp.linalg.norm,
    functools.partial(jnp.sum, axis=0),
    functools.partial(jnp.sum, axis=1, keepdims=True),
    functools.partial(jnp.max, axis=1),
    functools.partial(jnp.cumsum, axis=1),
    functools.partial(jnp.cumprod, axis=0),
    lambda x: jax.lax.cummax(x, axis=0, reverse=True),
    lambda x: jax.lax.cummin(x, axis=1),
    jnp.flip,
    jnp.diagonal,
    lambda x: jnp.roll(x, 1),
    lambda x: x.reshape(2, 6),
    lambda x: jnp.pad(x[0], (1, 2)),
    lambda x: x[jnp.array([2, 0])],
    lambda x: x[:, -1],
    lambda x: jnp.broadcast_to(x[0], (3, 4)),
    lambda x: x @ x.T,
    lambda x: x[0] @ x.T,
    lambda x: jnp.einsum("ij,kj->ik", x, x),
    lambda x: jnp.split(x, 2, axis=1)[1],
    lambda x: jnp.trace(x @ x.T),
    lambda x: jnp.tril(x),
    lambda x: jnp.eye(3) @ x,
    lambda x: jnp.tile(x, (1, 2)),
    lambda x: x.at[1, 2].get(),
    lambda x: (lambda a, b, c: a + b * c)(*x),
    lambda x: jnp.take(x, 7, mode="fill", fill_value=2.0),
    lambda x: jnp.any(x > 1.0),
    lambda x: jnp.all(x > -9.0, axis=0),
    lambda x: jax.vmap(jnp.dot)(x, x),
    lambda x: jax.lax.dynamic_slice(x, (1, 1), (2, 2)),
    lambda x: jax.lax.expand_dims(x[0], (1,)),
    lambda x: jnp.zeros(0),
]


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_elementwise(function):
    agree(function, VECTOR)


@pytest.mark.parametrize(
    "function", [jnp.sign, jnp.floor, jnp.ceil, jnp.abs, lambda x: x.astype(int), jnp.cbrt]
)
def test_rounding_keeps_the_sign(function):
    agree(function, SIGNED)


@pytest.mark.parametrize("function", PAIRS)
def test_pairs(function):
    agree(function, VECTOR, OTHER)


@pytest.mark.parametrize("function", SHAPES)
def test_shapes_and_reductions(function):
    agree(function, MATRIX)


@pytest.mark.parametrize(
    "function",
    [
        jnp.linalg.cholesky,
        lambda a: jsl.cho_solve((jnp.linalg.cholesky(a), True), jnp.arange(6.0).reshape(3, 2)),
        lambda a: jsl.solve_triangular(jnp.linalg.cholesky(a), jnp.ones(3), lower=True),
        lambda a: jsl.solve_triangular(jnp.linalg.cholesky(a).T, jnp.ones(3), lower=False),
        lambda a: jsl.solve_triangular(jnp.linalg.cholesky(a), jnp.eye(3), lower=True, trans=1),
        lambda a: jax.lax.linalg.triangular_solve(
            jnp.tril(a), a, left_side=False, lower=True, unit_diagonal=True
        ),
        lambda a: jnp.linalg.qr(jnp.concatenate([a, jnp.eye(3)[:2]]), mode="r"),
        lambda a: jnp.linalg.qr(jnp.concatenate([a, -a, jnp.ones((1, 3))])),
        lambda a: jnp.linalg.qr(jnp.concatenate([jnp.zeros((2, 3)), a])),
        lambda a: jnp.sum(jnp.linalg.cholesky(jnp.stack([a, 2.0 * a])), axis=0),
    ],
)
def test_linear_algebra(function):
    traced = to_casadi(function, np.eye(3))
    got = traced.call([POSITIVE])
    for g, w in zip(got, jax.tree.leaves(function(jnp.asarray(POSITIVE))), strict=True):
        np.testing.assert_allclose(np.array(g).reshape(w.shape), w, rtol=1e-11, atol=1e-12)


def _heron(x):
    return jax.lax.fori_loop(0, 5, lambda i, y: 0.5 * (y + x / y) + 0.0 * i, jnp.ones_like(x))


def _recursion(x, reverse=False):
    return jax.lax.scan(lambda c, e: (jnp.sin(c) + e[0], c * e), 0.5, x, reverse=reverse)


@jax.custom_jvp
def _halved(x):
    return 0.5 * x


_halved.defjvp(lambda primals, tangents: (_halved(*primals), 0.5 * tangents[0]))


@pytest.mark.parametrize(
    "function",
    [
        _heron,
        lambda x: _recursion(x[:, None]),
        lambda x: _recursion(x[:, None], reverse=True),
        lambda x: jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 1.1), (0, x))[1],
        lambda x: jax.lax.cond(x[0] > 0.5, jnp.sin, jnp.cos, x),
        lambda x: jax.lax.switch((3.0 * x[1]).astype(int), [jnp.sin, jnp.cos, jnp.exp], x),
        lambda x: jax.lax.cond(True, jnp.sin, jnp.cos, x),
        jax.jit(lambda x: jax.jit(jnp.sin)(x) * 2.0),
        jax.checkpoint(lambda x: jnp.sin(x) * x),
        jax.grad(lambda x: jnp.sum(_halved(x) ** 2)),
        jax.grad(lambda x: jnp.sum(jax.nn.softplus(x) * jnp.cumsum(x))),
        jax.hessian(lambda x: jnp.prod(x)),
    ],
)
def test_loops_branches_and_derivatives(function):
    agree(function, VECTOR)


def test_multirotor_step_and_its_jacobian():
    system, rng = BareMultirotor(), np.random.default_rng(1)

    def rate(x, u, mass):
        return system.states.pack_tangent(
            system.dynamics(system.states.unpack(x), system.inputs.unpack(u), {"mass": mass})
        )

    def step(x, u, mass):
        return integrators.step(system.states, lambda x: rate(x, u, mass), x, 0.05, "rk4")

    q = rng.normal(size=4)
    x = np.concatenate([q / np.linalg.norm(q), rng.normal(size=6)])
    u, mass = np.array([11.0, 0.5, -1.0, 2.0]), np.array(1.3)
    agree(rate, x, u, mass)
    agree(step, x, u, mass)
    agree(jax.jacfwd(step, argnums=(0, 1)), x, u, mass)
    agree(jax.jacrev(rate), x, u, mass)


@pytest.mark.parametrize("make", [ekf, ukf])
def test_a_whole_filter_step(make):
    estimator, rng = make(BareMultirotor()), np.random.default_rng(2)
    y = np.concatenate([[np.sqrt(0.9), 0.0, np.sqrt(0.1), 0.0], rng.normal(size=6)])
    mask = np.arange(9) != 4
    sample = Samples(*map(jnp.asarray, (0.01, 0.01, np.array([9.0, 0.1, 0.2, 0.3]), y, mask)))
    state = estimator.init(sample, jax.random.key(0))

    def estimate(state, sample):  # the state itself holds a root, whose columns may have either sign
        return estimator_step(estimator, state, sample)[1]

    traced = to_casadi(estimate, state, sample)
    got = traced.call([np.asarray(leaf, dtype=float) for leaf in jax.tree.leaves((state, sample))])
    for g, w in zip(got, jax.tree.leaves(jax.jit(estimate)(state, sample)), strict=True):
        np.testing.assert_allclose(np.array(g).reshape(w.shape), np.asarray(w, float), rtol=1e-9, atol=1e-9)


def test_arguments_are_named_by_position():
    traced = to_casadi(
        lambda x, p: (x * p["mass"], p["wind"]), np.zeros(2), {"mass": 1.0, "wind": np.zeros((2, 3))}
    )
    assert traced.name_in() == ["in0", "in1_mass", "in1_wind"]
    assert [traced.size_out(i) for i in range(2)] == [(2, 1), (2, 3)]


def test_float64_independent_of_the_setting_of_jax():
    with jax.enable_x64(False):
        traced = to_casadi(lambda x: jnp.sin(x) / 3.0 + jnp.asarray(0.1), np.zeros(2))
    assert float(traced([0.3, 0.0])[0]) == pytest.approx(np.sin(0.3) / 3.0 + 0.1, abs=1e-15)


def test_an_unknown_primitive_is_named():
    with pytest.raises(UnsupportedPrimitiveError, match="'sort'"):
        to_casadi(jnp.sort, np.zeros(3))
    assert issubclass(UnsupportedPrimitiveError, RotoridError)


def test_functions_that_cannot_be_traced_raise():
    with pytest.raises(UnsupportedPrimitiveError, match="while"):
        to_casadi(lambda x: jax.lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, x), 0.0)
    with pytest.raises(UnsupportedPrimitiveError, match="index that depends on an input"):
        to_casadi(lambda x: jnp.arange(3.0)[x.astype(int)] + jnp.ones(3)[x.astype(int)], np.array(0.0))
    with pytest.raises(SettingError, match="two dimensions"):
        to_casadi(jnp.sum, np.zeros((2, 2, 2)))
