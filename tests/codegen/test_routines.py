"""Matrix routines that stay loops in C give what they give in JAX, and the code is small."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.constants import Constants
from rotorid.codegen.native import build, compiler
from rotorid.codegen.program import c_program
from rotorid.models.residual import times
from rotorid.numerics.cholesky import tria, whiten_with_log_det
from rotorid.numerics.compact import compact, map_rows, shared
from rotorid.numerics.products import congruence, downdate, mirrored, product
from tests.codegen.test_c_source import CALL, in_c

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")


def routines(x):
    """All of them, on matrices of which some entries are known, some are computed and some are arguments."""
    A, B = x[:100].reshape(10, 10), jnp.sin(x[100:]).reshape(10, 10)
    F = jnp.eye(10).at[:5, 5:].set(A[:5, 5:])
    L = tria(jnp.concatenate([product(F, A), B], axis=1))
    S = jnp.diag(1.0 + x[:10] ** 2) + product(A, A.T)
    logdet, (solved, more) = whiten_with_log_det(S, B, x[:10])
    layer = jnp.tanh(times(jnp.asarray(np.random.default_rng(1).normal(size=(80, 10))), L[0]))
    rows = map_rows(lambda row: jnp.tanh(row) * L[0] / jnp.sqrt(1.0 + row @ row), jnp.concatenate([A, B]))
    return jnp.concatenate([part.ravel() for part in (L, logdet, solved, more, rows, layer)])


def test_loops_give_the_numbers_of_jax():
    columns = np.random.default_rng(0).normal(size=(200, 1))
    want = np.stack([jax.jit(routines)(column) for column in columns.T], axis=1)
    with compact():
        got = in_c(lambda x: routines(x), columns)  # JAX would remember how it traced the function itself
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_the_code_is_small_and_small_matrices_are_written_out():
    def text(function, size):
        return "".join(c_program(jax.make_jaxpr(function)(np.zeros(size)), "f", looped=500).units)

    large = text(routines, 200)
    with compact():
        small = text(lambda x: routines(x), 200)
        written_out = text(lambda x: product(x.reshape(3, 3), x.reshape(3, 3)), 9)
    assert len(small) < 0.4 * len(large)
    assert "for (int l" in small
    assert "for (int l" not in written_out + large


def covariances(x):
    """A congruence of rows that are alike, shifted, with zeros and ones; a downdate; and a function that is called twice."""
    A, P, q = x[:9].reshape(3, 3), x[9:90].reshape(9, 9), x[90:99] ** 2
    F = jnp.eye(9).at[3:6, 6:].set(x[100] * jnp.eye(3)).at[6:, :3].set(A).at[:3, :3].set(A).at[1, 8].set(3.0)
    P = mirrored(P)
    ahead = congruence(F, P, q)
    once, total = _update(ahead, x[99:126].reshape(3, 9), x[0])
    twice, more = _update(once, jnp.sin(x[50:77]).reshape(3, 9), x[1] * 2.0)
    return jnp.concatenate([part.ravel() for part in (ahead, once, twice, total[None], more[None])])


@shared
def _update(P, A, share):
    """Takes a constant that becomes an argument, leaves a part of A unused, and gives a number twice."""
    A = jnp.where(share > 0.0, 0.3 * A[:2], 0.0)
    return downdate(P, A), jnp.sum(A) * 0.7


def test_congruences_downdates_and_shared_functions_give_the_numbers_of_jax():
    columns = np.random.default_rng(2).normal(size=(126, 4))
    want = np.stack([jax.jit(covariances)(column) for column in columns.T], axis=1)
    with compact():
        got = in_c(lambda x: covariances(x), columns)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(got[:81].reshape(9, 9, 4), got[:81].reshape(9, 9, 4).swapaxes(0, 1))


def test_a_shared_function_is_written_once_and_rows_that_are_alike_are_one_loop():
    with compact():
        closed = jax.make_jaxpr(lambda x: covariances(x))(np.zeros(126))
    text = "".join(c_program(closed, "f").units)
    assert text.count("void f_shared0(const num *x, num *y, num *m) {") == 1
    assert text.count("f_shared0(m + ") == 2
    assert "f_shared1" not in text
    assert "for (int r = 0; r < 3; r++)" in text
    constants = Constants([closed])
    text_of_arguments = "".join(c_program(closed, "f", constants=constants).units)
    assert 0.3 in constants.values
    assert "NUM(0.3)" in text
    assert "NUM(0.3)" not in text_of_arguments


def test_constants_of_a_shared_function_are_its_arguments():
    columns = np.random.default_rng(3).normal(size=(126, 1))
    with compact():
        closed = jax.make_jaxpr(lambda x: covariances(x))(np.zeros(126))
    constants = Constants([closed])
    want = jax.jit(covariances)(columns[:, 0])
    got = run_in_c(c_program(closed, "f", constants=constants), constants.values, columns[:, 0], want.size)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def run_in_c(program, constants, x, size):
    units = [CALL, *program.units]
    column = np.concatenate([constants, x])
    library = build(
        "".join(units), lambda: units, {"LANES": 1, "X": column.size, "Y": size, "M": program.memory}
    )
    y = np.full(size, np.nan)
    library.call(*(a.ctypes.data_as(ctypes.c_void_p) for a in (column, y)))
    return y


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_found_among_many(bad):
    def all_finite(x):
        return jnp.stack([jnp.where(jnp.all(jnp.isfinite(x)) & (x[0] < 5.0), 1.0, 0.0)])

    columns = np.random.default_rng(4).normal(size=(40, 42)) * 1e300
    columns[0] = 1.0
    columns[np.arange(40), np.arange(40)] = bad
    columns[0, 41] = 7.0
    want = np.array([[*np.zeros(40), 1.0, 0.0]])
    got = np.concatenate(
        [in_c(lambda x: all_finite(x), columns[:, k : k + 2]) for k in range(0, 42, 2)], axis=1
    )
    np.testing.assert_array_equal(got, want)
