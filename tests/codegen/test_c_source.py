"""C computes what the CasADi function computes, one argument or several side by side."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.c_source import CHUNK
from rotorid.codegen.casadi import scalar_operations
from rotorid.codegen.fingerprint import fingerprint
from rotorid.codegen.native import BuildError, build, compiler
from rotorid.codegen.program import c_program

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")

CALL = """#include "num.h"
#include <string.h>
void f(const num *x, num *y, num *m);
__attribute__((visibility("default"))) void call(const double *x, double *y) {
  num a[X], b[Y], m[M + 1];
  memcpy(a, x, sizeof a);
  f(a, b, m);
  memcpy(y, b, sizeof b);
}
"""
RNG = np.random.default_rng(0)


def in_c(function, columns: np.ndarray, **defines: int) -> np.ndarray:
    """A function of one vector that gives one, of every column (arguments, lanes), computed side by side."""
    inputs, lanes = columns.shape
    closed, result = jax.make_jaxpr(function, return_shape=True)(np.zeros(inputs))
    program = c_program(closed, "f")
    units, sizes = [CALL, *program.units], {"X": inputs, "Y": result.size, "M": program.memory}
    library = build("".join(units), lambda: units, {"LANES": lanes, **sizes, **defines})
    x, y = np.ascontiguousarray(columns, float), np.full((result.size, lanes), np.nan)
    library.call(*(a.ctypes.data_as(ctypes.c_void_p) for a in (x, y)))
    return y


def text_of(function, inputs: int) -> str:
    return "".join(c_program(jax.make_jaxpr(function)(np.zeros(inputs)), "f").units)


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
    np.testing.assert_allclose(in_c(function, columns), want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("lanes", [1, 4])
def test_nan_propagates_as_in_jax(lanes):
    def function(x):
        a, b = x[0], x[1]
        chosen = [jnp.where(a > 0, b, 1.0), jnp.where(jnp.isfinite(a), 2.0, 3.0), a > b, a != a]
        return jnp.stack([jnp.asarray(v, float) for v in [jnp.maximum(a, b), jnp.minimum(a, b), *chosen]])

    values = [np.nan, np.inf, -np.inf, 1.0, -1.0]
    for a in values:
        for b in values:
            column = np.array([a, b])
            got = in_c(function, np.tile(column[:, None], (1, lanes)))
            np.testing.assert_array_equal(
                got, np.tile(np.asarray(jax.jit(function)(column))[:, None], (1, lanes))
            )


def test_chunks_exchange_numbers_and_masks():
    def function(x):
        early, flag = x[0] * x[1], x[0] > x[1]
        for k in range(CHUNK):
            x = x.at[k % 4].set(jnp.sin(x[(k + 1) % 4] + k) + x[k % 4])
        return jnp.stack([early, jnp.where(flag, x[2], early), *x])

    assert text_of(function, 4).count("void f_0_2(") == 2
    columns = RNG.normal(size=(4, 8))
    want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(function, columns), want, rtol=1e-11)
    np.testing.assert_array_equal(in_c(function, columns)[:, 3], in_c(function, columns[:, 3:4])[:, 0])


def test_equal_operations_are_shared():
    def function(x):
        return jnp.stack([jnp.sin(x[0]) + 1.0, jnp.sin(x[0]) + 1.0, 1.0 + jnp.sin(x[0])])

    text = text_of(function, 1)
    assert text.count("num_sin(") == 1
    assert text.count(" + ") == 1


def test_products_that_are_only_added_are_fused():
    def function(x):
        a, b, c, d = x[0] * x[1], x[1] * x[2], x[2] * x[3], x[3] * x[3]
        return jnp.stack([a + x[4], x[4] - a, b - x[0], c + d, d + x[5], jnp.sin(c), x[4] + jnp.sin(b)])

    text = text_of(function, 6)
    assert text.count("num_fma(") == 4  # with a twice, and with d
    assert text.count(" * ") == 2  # b and c
    columns = RNG.normal(size=(6, 8))
    want = np.stack([function(column) for column in columns.T], axis=1)
    together = in_c(function, columns)
    np.testing.assert_allclose(together, want, rtol=1e-13)
    alone = np.stack([in_c(function, column[:, None])[:, 0] for column in columns.T], axis=1)
    np.testing.assert_array_equal(together, alone)


def test_a_masked_matrix_is_chosen_once_and_keeps_its_zeros():
    def function(x):
        masked = jnp.where(x[0] > 0, jnp.array([[x[1], 0.0], [0.0, x[2]]]), 0.0)
        return jnp.ravel(masked @ x[3:].reshape(2, 2))

    text = text_of(function, 7)
    assert text.count("SELECT(") == 2
    assert text.count(" * ") == 4
    columns = RNG.normal(size=(7, 8))
    want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(function, columns), want, rtol=1e-14, atol=0)


def test_a_number_that_divides_several_divides_once():
    def function(x):
        return jnp.concatenate([x[1:] * jax.lax.rsqrt(x[0]), x[1:2] / x[2]])

    text = text_of(function, 5)
    assert text.count(" / ") == 2
    columns = RNG.uniform(1.0, 2.0, size=(5, 8))
    want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(function, columns), want, rtol=1e-15)


def test_quick_functions_have_the_same_bits_in_a_lane_and_alone():
    def function(x):
        angles = [jnp.arctan2(x[:4], x[4:]), jnp.arctan2(x[4:], x[:4])]
        return jnp.concatenate([jnp.sin(x), jnp.cos(x), jnp.exp(x), jnp.log(jnp.abs(x)), *angles])

    def in_numpy(x):
        angles = [np.arctan2(x[:4], x[4:]), np.arctan2(x[4:], x[:4])]
        return np.concatenate([np.sin(x), np.cos(x), np.exp(x), np.log(np.abs(x)), *angles])

    columns = RNG.normal(size=(8, 400)) * 10.0 ** RNG.integers(-8, 3, size=(8, 400))
    columns[:2, :8] *= 1e6
    columns[[0, 4], 8:16] = [
        [0.0, -0.0, 0.0, -0.0, 1.0, -1.0, np.inf, np.nan],
        [0.0, 0.0, -0.0, -0.0, 0.0, -0.0, -np.inf, 1.0],
    ]
    for k in range(0, 400, 8):
        lanes = columns[:, k : k + 8]
        got = in_c(function, lanes, QUICK=1)
        alone = np.concatenate([in_c(function, lanes[:, i : i + 1], QUICK=1) for i in range(8)], axis=1)
        np.testing.assert_array_equal(got, alone)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, in_numpy(lanes), rtol=1e-15, atol=1e-15)
            np.testing.assert_array_equal(np.signbit(got[32:]), np.signbit(in_numpy(lanes)[32:]))


def test_a_result_may_be_an_argument_or_a_constant():
    got = in_c(lambda x: jnp.stack([x[1], jnp.float64(2.0), x[0]]), np.array([[5.0], [7.0]]))
    np.testing.assert_array_equal(got[:, 0], [7.0, 2.0, 5.0])


def test_compiler_message_is_in_the_error():
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


def looping(x):
    """A scan over rows with a carry of two, constants, a nested scan, and values used before and after."""
    early, rows = jnp.sin(x[0]) * x[1], x[2:].reshape(20, 5)

    def turn(carry, row):
        total, flag = carry
        inner, seen = jax.lax.scan(
            lambda c, r: (c * early + jnp.outer(r, row), jnp.sum(c)),
            jnp.outer(row, row),
            jnp.outer(jnp.ones(80), row),
        )
        total = jnp.where(flag, total + inner[0], total - row)
        return (jnp.tanh(total), jnp.sum(row) > 0), (seen[-1], inner @ row)

    (total, flag), (seen, products) = jax.lax.scan(turn, (x[2:7], x[0] > 0), rows, reverse=True)
    return jnp.concatenate(
        [total, jnp.where(flag, early, -early)[None], seen, products.ravel(), jnp.cos(seen) * x[1]]
    )


@pytest.mark.parametrize("lanes", [1, 4])
def test_long_loops_stay_loops(lanes):
    columns = 0.3 * RNG.normal(size=(102, lanes))
    text = text_of(looping, 102)
    assert text.count("for (int turn") == 2
    assert text.count(" = t") + text.count(";") < 4000
    want = np.stack([jax.jit(looping)(column) for column in columns.T], axis=1)
    np.testing.assert_allclose(in_c(looping, columns), want, rtol=1e-11, atol=1e-13)


def choosing(x):
    """Choices between arrays and whether they are finite: between rows that moved, constants, and what was computed."""
    rows, flag = x[2:].reshape(16, 20), x[0] > 0
    moved = jnp.where(flag, jnp.concatenate([rows[1:], jnp.sin(rows[:1])]), rows)
    signs = jnp.where(rows.T > 0, rows.T, jnp.arange(20.0)[:, None])
    broken = ~jnp.all(jnp.isfinite(moved)) | (x[1] > 5.0)
    kept = jnp.where(broken, jnp.zeros_like(moved), moved)
    again = jnp.where(flag & broken, -jnp.inf, kept)
    return jnp.concatenate([kept.ravel(), again.ravel(), signs.ravel(), jnp.stack([1.0 * broken, x[1]])])


@pytest.mark.parametrize("lanes", [1, 4])
def test_selections_between_large_arrays_are_loops(lanes):
    columns = RNG.normal(size=(322, max(lanes, 4)))
    columns[:2, :4] = [[1.0, -1.0, 1.0, -1.0], [0.0, 0.0, 6.0, 0.0]]
    columns[30, 0], columns[40, 3] = np.nan, np.inf
    want = np.stack([jax.jit(choosing)(column) for column in columns.T], axis=1)
    got = [in_c(choosing, columns[:, k : k + lanes]) for k in range(0, columns.shape[1], lanes)]
    np.testing.assert_allclose(np.concatenate(got, axis=1), want, rtol=1e-14)
    text = text_of(choosing, 322)
    assert text.count("num_fabs(") == 1
    assert text.count("SELECT(") < 340  # 320 to compare each number with 0


def assert_same_as_in_jax(function, inputs: int, lanes: int) -> None:
    """To the last bit."""
    columns = RNG.normal(size=(inputs, lanes))
    want = np.stack([jax.jit(function)(column) for column in columns.T], axis=1)
    np.testing.assert_array_equal(in_c(function, columns), want)


def arithmetic(x):
    """Sums, differences and products of large arrays: in memory, with one number, of a row and a column, of known numbers."""
    A, B = x[:400].reshape(20, 20), x[400:].reshape(20, 20)
    parts = [A + B.T, A - B, A * B[2, 3], (A[:, :1] * B[:1]).T, A + 2.0, A * jnp.eye(20), (A - B) * A]
    return jnp.concatenate([part.ravel() for part in parts])


@pytest.mark.parametrize("lanes", [1, 8])
def test_arithmetic_on_large_arrays_in_memory_is_loops(lanes):
    assert_same_as_in_jax(arithmetic, 800, lanes)
    text = text_of(arithmetic, 800)
    for formula in ("(&x[0])[i] - (&x[400])[i]", "(&x[0])[i] * x[443]"):
        assert formula in text
    assert text.count("\n") < 2_000  # 1,600 for the two of a row and a column, and of a number that is known


def copying(x):
    """Transposes, repeated numbers, rows that overlap, and a diagonal."""
    A = x.reshape(12, 20)
    shifted = jnp.concatenate([x[k : k + 15] for k in range(20)])
    repeated = jnp.repeat(x[:30], 7), jnp.tile(x[:5], 6), x[7] + 0 * x[:9]
    parts = [A.T, *repeated, shifted, jnp.diag(x[:20]), x[::-1], A[::3, ::2]]
    return jnp.concatenate([part.ravel() for part in parts])


@pytest.mark.parametrize("lanes", [1, 8])
def test_copies_at_equal_steps_are_loops(lanes):
    assert_same_as_in_jax(copying, 240, lanes)
    text = text_of(lambda x: x.reshape(12, 20).T.ravel(), 240)
    assert (
        "for (int j = 0; j < 20; j++) ROLLED for (int i = 0; i < 12; i++) (&y[0])[12 * j + i] = (&x[0])[j + 20 * i];"
        in text
    )


def test_arguments_are_contiguous():
    def function(x):
        matrix, flag, tensor = x[:6].reshape(2, 3), x[6:8] > 0, x[8:].reshape(2, 4, 2)
        chosen = jnp.where(flag, matrix.T, matrix[:, ::-1].T)
        return jnp.concatenate([chosen.ravel(), jnp.sum(tensor, axis=(0, 2))])

    column = RNG.normal(size=24)
    np.testing.assert_allclose(in_c(function, column[:, None])[:, 0], function(column), rtol=1e-14)


def test_fingerprints_differ_if_the_computation_differs():
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
