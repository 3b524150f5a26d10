"""Constants of traced functions that become arguments of the C code."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.codegen.constants import LARGEST, Constants
from rotorid.codegen.fingerprint import fingerprint


def traced(function, *arguments):
    with jax.enable_x64(True):
        return jax.make_jaxpr(function)(*(arguments or (np.ones(3),)))


def values(function, *arguments) -> list[float]:
    return Constants([traced(function, *arguments)]).values.tolist()


def key(function) -> str:
    closed = traced(function)
    return fingerprint(closed, Constants([closed]))


def test_equal_numbers_at_two_places_are_two_arguments() -> None:
    assert values(lambda x: x * 3.5 + 3.5) == [3.5, 3.5]


def test_a_common_expression_has_its_constant_once() -> None:
    assert values(lambda x: jnp.sin(x * 3.5) + jnp.cos(x * 3.5)) == [3.5]
    assert values(lambda x: jnp.sin(3.5 * x + 0.2) * (3.5 * x + 0.2) + x * 0.2) == [3.5, 0.2, 0.2]


def test_what_belongs_to_the_structure_stays() -> None:
    assert values(lambda x: x * 0.0 + 1.0 - x * -1.0 + jnp.minimum(x, jnp.inf)) == []
    assert values(lambda x: jnp.power(x, 0.5) + jnp.power(x, 1.7)) == [1.7]
    large = np.linspace(2.0, 3.0, LARGEST + 1)
    assert values(lambda x: x[0] * large) == []
    assert values(lambda x: x[:2] @ np.array([[2.5, 0.0, 1.0], [0.0, 3.5, 0.3]])) == [2.5, 3.5, 0.3]


def test_numbers_that_decide_on_a_loop_or_an_index_stay() -> None:
    def halved(x):
        return jax.lax.while_loop(lambda c: c[0] > 0.3, lambda c: (c[0] * 0.7, c[1] * 0.9), (5.0, x))[1]

    assert values(halved) == []
    assert values(lambda x: x[(jnp.asarray(2.7) * 0.4).astype(int)] * 0.6) == [0.6]


def test_constants_of_inner_functions_are_arguments_too() -> None:
    inner = jax.jit(lambda x: x * 2.5)

    def scanned(x):
        return jax.lax.scan(lambda c, y: (c * 0.7 + y, None), x[0], jnp.array([0.1, 0.2, 0.3]))[0]

    assert values(lambda x: inner(x) + inner(x + 0.4)) == [2.5, 0.4]
    assert sorted(values(scanned)) == [0.1, 0.2, 0.3, 0.7]


def test_the_fingerprint_is_that_of_the_structure() -> None:
    def affine(a: float, b: float):
        return key(lambda x: jnp.sin(a * x) + b * jnp.array([0.0, b, 2.0 * b]))

    assert affine(0.3, 0.7) == affine(0.8, 0.4) == affine(0.3, 0.3)
    assert affine(0.3, 0.7) != affine(0.3, 0.0)
    assert affine(1.0, 0.7) != affine(0.3, 0.7)
