"""Factors of matrices that may be singular: rows that depend linearly on the rows before them are skipped.

Rows are taken in order, without pivoting. Up to a few rows the steps are written out, beyond that they are a loop, which
compiles as fast for any size. All of them go through `jit`, `vmap` and `grad`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_ROUNDINGS: Final = 50.0
"""Roundings of a variance that may be left of it, after those before it, where they explain it."""

_WRITTEN_OUT: Final = 3


def eliminate(
    Q: Float[Array, "k k"], B: Float[Array, "k l"]
) -> tuple[Float[Array, " k"], Bool[Array, " k"], Float[Array, "k l"]]:
    """D, the mask of its entries above rounding, and L^-1 B, where L D L' = Q is a covariance, by Gaussian elimination."""
    size = Q.shape[0]
    index = jnp.arange(size)
    threshold = _ROUNDINGS * jnp.finfo(Q.dtype).eps * jnp.diagonal(Q)

    def step(A, i):
        row = A[i]
        is_significant = row[i] > threshold[i]
        share = jnp.where(is_significant, A[:, i] / jnp.where(is_significant, row[i], 1.0), 0.0)
        return A - jnp.where(index > i, share, 0.0)[:, None] * row, (row[i], is_significant)

    A, (pivots, is_significant) = _scan_rows(step, jnp.concatenate([Q, B], axis=1), size)
    return pivots, is_significant, A[:, size:]


def reciprocals(pivots: Float[Array, " k"], is_significant: Bool[Array, " k"]) -> Float[Array, " k"]:
    """1 / D of the significant pivots, 0 of the others."""
    return jnp.where(is_significant, 1.0 / jnp.where(is_significant, pivots, 1.0), 0.0)


def root(C: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Lower-triangular L with L L' = C, a covariance that may be singular."""
    size = C.shape[0]
    index = jnp.arange(size)
    threshold = _ROUNDINGS * jnp.finfo(C.dtype).eps * jnp.diagonal(C)

    def step(A, i):
        pivot = A[i, i]
        is_significant = pivot > threshold[i]
        column = jnp.where(
            is_significant & (index >= i), A[:, i] * jax.lax.rsqrt(jnp.where(is_significant, pivot, 1.0)), 0.0
        )
        return A - column[:, None] * column, column

    return _scan_rows(step, C, size)[1].T


def triangle(A: Float[Array, "k l"]) -> Float[Array, "k k"]:
    """Lower-triangular L with L L' = A A', of any rank, by modified Gram-Schmidt on the rows of A (see `cholesky.tria`).

    A row is skipped if less than the square root of a rounding remains of it after the rows before it. Its information is
    lost, but nothing is divided by its noise.
    """
    size = A.shape[0]
    index = jnp.arange(size)
    threshold = jnp.finfo(A.dtype).eps * jnp.sum(A * A, axis=1)

    def step(A, i):
        row = A[i]
        products = A @ row
        is_significant = products[i] > threshold[i]
        square = jnp.where(is_significant, products[i], 1.0)
        column = jnp.where(is_significant & (index >= i), products * jax.lax.rsqrt(square), 0.0)
        return A - jnp.where(is_significant & (index > i), products / square, 0.0)[:, None] * row, column

    return _scan_rows(step, A, size)[1].T


def divide(X: Float[Array, "l k"], L: Float[Array, "k k"]) -> Float[Array, "l k"]:
    """X L^-1 for a lower-triangular L of `root` or `triangle`; a column of zeros in L leaves one of zeros."""
    size = L.shape[0]

    def step(quotient, j):
        i = size - 1 - j
        is_nonzero = L[i, i] > 0.0
        column = jnp.where(
            is_nonzero, (X[:, i] - quotient @ L[:, i]) / jnp.where(is_nonzero, L[i, i], 1.0), 0.0
        )
        return quotient.at[:, i].set(column), None

    return _scan_rows(step, jnp.zeros_like(X), size)[0]


def _scan_rows(step: Callable[[Any, Int[Array, ""] | int], tuple[Any, Any]], start: Any, size: int) -> Any:
    """A scan over the indices of the rows."""
    if size > _WRITTEN_OUT:
        return jax.lax.scan(step, start, jnp.arange(size))
    outputs = []
    for i in range(size):
        start, row = step(start, i)
        outputs.append(row)
    return start, jax.tree.map(lambda *rows: jnp.stack(rows), *outputs) if outputs[0] is not None else None
