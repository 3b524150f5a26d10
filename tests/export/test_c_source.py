"""C computes what the CasADi function computes, one argument or several side by side."""

import ctypes

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.export.c_source import CHUNK, c_source
from rotorid.export.casadi import flat_casadi, scalar_operations, to_casadi
from rotorid.export.fingerprint import fingerprint
from rotorid.export.native import BuildError, build, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")

CALL = """#include "num.h"
#include <string.h>
void f(const num *x, num *y);
__attribute__((visibility("default"))) void call(const double *x, double *y) {
  num a[X], b[Y];
  memcpy(a, x, sizeof a);
  f(a, b);
  memcpy(y, b, sizeof b);
}
"""
RNG = np.random.default_rng(0)


def in_c(function: ca.Function, columns: np.ndarray) -> np.ndarray:
    """The function of every column (arguments, lanes), computed side by side."""
    inputs, lanes = columns.shape
    outputs = function.numel_out()
    units = [CALL, *c_source(function, "f")]
    library = build("".join(units), lambda: units, {"LANES": lanes, "X": inputs, "Y": outputs})
    x, y = np.ascontiguousarray(columns, float), np.full((outputs, lanes), np.nan)
    library.call(*(a.ctypes.data_as(ctypes.c_void_p) for a in (x, y)))
    return y


FORMULAS = {
    "algebra": lambda a, b: [a + b, a - b, a * b, a / b, -a, a * a, a + a, 1.0 / a, 3.5, 0.0],
    "powers": lambda a, b: [jnp.sqrt(b), b**a, b**2.5, jnp.exp(a), jnp.expm1(a), jnp.log(b), jnp.log1p(b)],
    "angles": lambda a, b: [jnp.sin(a), jnp.cos(a), jnp.tan(a), jnp.arctan(a), jnp.arctan2(a, b)],
    "inverse": lambda a, b: [jnp.arcsin(b / 4), jnp.arccos(b / 4), jnp.arctanh(b / 4), jnp.arcsinh(a), jnp.arccosh(1 + b)],
    "hyperbolic": lambda a, b: [jnp.sinh(a), jnp.cosh(a), jnp.tanh(a), jax.scipy.special.erf(a)],
    "steps": lambda a, b: [jnp.floor(a), jnp.ceil(a), jnp.abs(a), jnp.sign(a), jnp.fmod(a, b)],
    "choices": lambda a, b: [
        jnp.where(a > b, a, 2 * b),
        jnp.where((a > 0) & ~(b > 1) | (a < -1), a, b),
        jnp.where((a > 0) == (b > 1), a, b),
        jnp.where((a > 0) ^ (b > 1), a, b),
        (a > b) + 2.0 * (a <= b),
        jnp.maximum(a, b),
        jnp.minimum(a, b),
        jnp.clip(a, -0.5, 0.5),
        a == b,
        a != b,
    ],
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("name", FORMULAS)
def test_every_operation(name, lanes):
    def function(x):
        return jnp.stack([jnp.asarray(v, float) for v in FORMULAS[name](x[0], x[1])])

    columns = np.stack([RNG.uniform(-3.0, 3.0, lanes), RNG.uniform(0.1, 3.0, lanes)])
    with np.errstate(all="ignore"):
        want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(to_casadi(function, np.zeros(2)), columns), want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("lanes", [1, 4])
def test_numbers_that_are_none_spread_as_in_jax(lanes):
    def function(x):
        a, b = x[0], x[1]
        chosen = [jnp.where(a > 0, b, 1.0), jnp.where(jnp.isfinite(a), 2.0, 3.0), a > b, a != a]
        return jnp.stack([jnp.asarray(v, float) for v in [jnp.maximum(a, b), jnp.minimum(a, b), *chosen]])

    values = [np.nan, np.inf, -np.inf, 1.0, -1.0]
    traced = to_casadi(function, np.zeros(2))
    for a in values:
        for b in values:
            column = np.array([a, b])
            got = in_c(traced, np.tile(column[:, None], (1, lanes)))
            np.testing.assert_array_equal(
                got, np.tile(np.asarray(jax.jit(function)(column))[:, None], (1, lanes))
            )


def test_code_of_many_chunks_hands_numbers_and_truths_on():
    def function(x):
        early, flag = x[0] * x[1], x[0] > x[1]
        for k in range(CHUNK):
            x = x.at[k % 4].set(jnp.sin(x[(k + 1) % 4] + k) + x[k % 4])
        return jnp.stack([early, jnp.where(flag, x[2], early), *x])

    traced = to_casadi(function, np.zeros(4))
    assert len(c_source(traced, "f")) > 2
    columns = RNG.normal(size=(4, 8))
    want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(traced, columns), want, rtol=1e-11)
    np.testing.assert_array_equal(in_c(traced, columns)[:, 3], in_c(traced, columns[:, 3:4])[:, 0])


def test_equal_work_is_done_once():
    def function(x):
        return jnp.stack([jnp.sin(x[0]) + 1.0, jnp.sin(x[0]) + 1.0, 1.0 + jnp.sin(x[0])])

    text = "".join(c_source(to_casadi(function, np.zeros(1)), "f"))
    assert text.count("num_sin(") == 1
    assert text.count(" + ") == 1


def test_a_result_may_be_an_argument_or_a_constant():
    got = in_c(
        to_casadi(lambda x: jnp.stack([x[1], jnp.float64(2.0), x[0]]), np.zeros(2)), np.array([[5.0], [7.0]])
    )
    np.testing.assert_array_equal(got[:, 0], [7.0, 2.0, 5.0])


def test_what_the_compiler_says_is_told():
    with pytest.raises(BuildError, match="expected"):
        build("wrong", lambda: ["int f( {"], {"LANES": 1})


def test_operations_are_counted_with_their_loops():
    def count(function, *arguments):
        return scalar_operations(jax.make_jaxpr(function)(*arguments).jaxpr)

    def looped(x):
        return jax.lax.fori_loop(0, 10, lambda k, v: v * 2.0, x)

    assert count(lambda x: x * 2.0 + 1.0, np.zeros(7)) == 14
    assert 70 <= count(looped, np.zeros(7)) <= 100
    assert count(lambda a, b: a @ b, np.zeros((2, 3)), np.zeros((3, 4))) == 24


def test_a_flat_function_takes_all_arguments_in_one_column():
    def function(matrix, flag, tensor):
        return jnp.where(flag, matrix.T, matrix[:, ::-1].T), jnp.sum(tensor, axis=(0, 2))

    arguments = RNG.normal(size=(2, 3)), np.array([True, False]), RNG.normal(size=(2, 4, 2))
    flat = flat_casadi(jax.make_jaxpr(function)(*arguments), "flat")
    got = np.array(flat(np.concatenate([a.ravel() for a in arguments])))[:, 0]
    np.testing.assert_allclose(got, np.concatenate([np.ravel(y) for y in function(*arguments)]), rtol=1e-14)


def test_a_fingerprint_tells_functions_apart_by_what_they_compute():
    def of(function, *arguments):
        return fingerprint(jax.make_jaxpr(function)(*arguments))

    x, table = np.arange(3.0), np.arange(2000.0)
    same = of(lambda x: jnp.sin(x) * 2.0, x)
    assert same == of(lambda other: jnp.sin(other) * 2.0, x + 1.0)
    nudged = table.copy()
    nudged[1000] += 1e-12
    different = [
        same,
        of(lambda x: jnp.sin(x) * 2.0, x[:2]),
        of(lambda x: jnp.sin(x) * (2.0 + 1e-15), x),
        of(lambda x: jnp.cos(x) * 2.0, x),
        of(lambda x: jnp.sin(x) * x, x),
        of(lambda x: x[0] + jnp.asarray(table), x),
        of(lambda x: x[0] + jnp.asarray(nudged), x),
        of(lambda x: jax.lax.fori_loop(0, 3, lambda k, v: v * 2.0, x), x),
        of(lambda x: jax.lax.fori_loop(0, 3, lambda k, v: v * 3.0, x), x),
        of(lambda x: jax.lax.fori_loop(0, 4, lambda k, v: v * 2.0, x), x),
        of(lambda x: jax.nn.relu(x), x),
        of(lambda x: jax.lax.cond(x[0] > 0, lambda: x, lambda: -x), x),
    ]
    assert len(set(different)) == len(different)
