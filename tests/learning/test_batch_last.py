"""Functions applied to many points, with the axis of the points last: the numbers of `jax.vmap`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.learning.batch_last import batch_last
from rotorid.models.system import parameter_values
from tests.systems import SYSTEMS

RNG = np.random.default_rng(0)
A, B = (jnp.asarray(RNG.normal(size=(n, 3))) for n in (4, 3))
FUNCTIONS = {
    "constant": lambda x: jnp.arange(3.0),
    "no change": lambda x: x,
    "elementwise": lambda x: jnp.where(x > 0.0, jnp.sin(x) * 2.0, 1.0 / (1.0 + x * x)),
    "scalar and vector": lambda x: x[0] * x + 3.0 - x[1],
    "one number": lambda x: x[2],
    "slices with a stride": lambda x: jnp.concatenate([x[::2], x[1:], jnp.zeros(2)]),
    "stack": lambda x: jnp.stack([x, jnp.ones(3), x[::-1]], axis=1),
    "outer product": lambda x: jnp.outer(x, x).T.reshape(9),
    "sums": lambda x: jnp.sum(jnp.outer(x, A[:, 0]), axis=0) + jnp.max(x),
    "matrix times vector": lambda x: A @ x,
    "vector times matrix": lambda x: x @ B,
    "matrix of the point": lambda x: jnp.outer(x, x) @ x,
    "matrix of the point on the left": lambda x: jnp.outer(x, jnp.arange(4.0)) @ A,
    "product of matrices": lambda x: jnp.outer(x, x) @ jnp.outer(jnp.cos(x), x),
    "own batch axes": lambda x: jnp.einsum("bij,bj->bi", jnp.stack([B, B * x]), jnp.stack([x, x + 1.0])),
    "cross product": lambda x: jnp.cross(x, B[0]),
    "index that is found": lambda x: x[jnp.argmax(x)],
    "condition": lambda x: jax.lax.cond(x[0] > 0.0, lambda v: v * 2.0, jnp.cos, x),
    "loop": lambda x: jax.lax.fori_loop(0, 3, lambda k, v: v * 0.5 + k, x),
    "compiled": jax.jit(lambda x: jnp.tanh(x) * A[0]),
    "own derivative": lambda x: jnp.sinc(x) + jax.nn.relu(x),
    "integers": lambda x: jnp.clip(jnp.round(x).astype(int), 0, 1),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_results_and_gradients_are_those_of_vmap(function) -> None:
    points = jnp.asarray(RNG.normal(size=(3, 7)))
    ours, expected = (many(points) for many in (batch_last(function), jax.vmap(function, -1, -1)))
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
    if jnp.issubdtype(ours.dtype, jnp.floating):
        weight = jnp.cos(jnp.arange(ours.size)).reshape(ours.shape)
        gradients = [
            jax.grad(lambda x, many=many: jnp.sum(weight * many(x)))(points)
            for many in (batch_last(function), jax.vmap(function, -1, -1))
        ]
        np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SYSTEMS)
def test_rates_of_a_system(name: str) -> None:
    system = SYSTEMS[name]
    p = parameter_values(system)

    def rate(x, u):
        return system.states.pack_tangent(
            system.dynamics(system.states.unpack(x), system.inputs.unpack(u), p)
        )

    x, u = (
        jnp.asarray(np.array(space.initial())[:, None] + 0.1 * RNG.normal(size=(space.size, 5)))
        for space in (system.states, system.inputs)
    )
    ours, expected = batch_last(rate)(x, u), jax.vmap(rate, -1, -1)(x, u)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
    assert ours.shape == (system.states.dim, 5)


def test_pytrees_and_an_outer_vmap() -> None:
    def function(point):
        return {"sum": point["a"] + point["b"][0], "b": -point["b"]}

    points = {"a": jnp.asarray(RNG.normal(size=(2, 6))), "b": jnp.asarray(RNG.normal(size=(2, 3, 6)))}
    found = jax.vmap(batch_last(function))(points)
    np.testing.assert_allclose(found["sum"], points["a"] + points["b"][:, 0])
    np.testing.assert_allclose(found["b"], -points["b"])
