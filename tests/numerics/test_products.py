"""Products of symmetric matrices are symmetric to the last bit, and no more than half of them is computed in C."""

import jax
import numpy as np
import pytest

from rotorid.codegen.program import c_program
from rotorid.numerics.compact import compact
from rotorid.numerics.products import congruence, fused_product, mirrored, product

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6))
P = ROOT @ ROOT.T
F = RNG.normal(size=(4, 6))


def test_the_lower_triangle_is_mirrored():
    np.testing.assert_array_equal(mirrored(jax.numpy.asarray(ROOT)), np.tril(ROOT) + np.tril(ROOT, -1).T)


def test_a_congruence_is_symmetric_and_right():
    arrays = jax.numpy.asarray(F), jax.numpy.asarray(P)
    found = np.asarray(congruence(*arrays))
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, F @ P @ F.T, rtol=1e-12)
    with compact():
        np.testing.assert_allclose(congruence(*arrays), F @ P @ F.T, rtol=1e-12)


@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (4, 3, 2), (2, 0, 3), (12, 12, 12), (13, 12, 12)])
@pytest.mark.parametrize("function", [product, fused_product])
def test_products_are_those_of_the_library(function, n, k, m):
    A, B = RNG.normal(size=(n, k)), RNG.normal(size=(k, m))
    found = function(jax.numpy.asarray(A), jax.numpy.asarray(B))
    np.testing.assert_allclose(found, A @ B, rtol=1e-12, atol=1e-14)
    if function is fused_product:
        of_vector = function(jax.numpy.asarray(A), jax.numpy.asarray(B[:, 0]))
        np.testing.assert_allclose(of_vector, A @ B[:, 0], rtol=1e-12, atol=1e-14)


def test_small_products_are_fused_and_large_ones_left_to_the_library():
    def calls(n):
        return str(jax.make_jaxpr(fused_product)(np.zeros((n, n)), np.zeros((n, n)))).count("dot_general")

    assert (calls(12), calls(13)) == (0, 1)


@pytest.mark.parametrize("n", [4, 6])
def test_half_of_the_products_are_left_out(n):
    def multiplications(function):
        closed = jax.make_jaxpr(function)(np.zeros((n, n)), np.zeros((n, n)))
        text = "".join(c_program(closed, "f").units)
        return text.count(" * ") + text.count("num_fma(")

    assert multiplications(lambda F, P: product(product(F, P), F.T)) == 2 * n**3
    assert multiplications(congruence) == n**3 + n * n * (n + 1) // 2


def test_a_large_matrix_of_compact_code_stays_as_it_is():
    large = jax.numpy.asarray(RNG.normal(size=(20, 20)))
    with compact():
        assert mirrored(large) is large
