"""Matrix routines that stay loops in C give what they give in JAX, and the code is small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.codegen.program import c_program
from rotorid.models.residual import times
from rotorid.numerics.cholesky import tria, whiten_with_log_det
from rotorid.numerics.compact import compact, map_rows
from rotorid.numerics.products import product
from tests.codegen.test_c_source import in_c

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
