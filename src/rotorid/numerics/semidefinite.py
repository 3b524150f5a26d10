"""Factors of matrices that may be singular: rows that the ones before them explain are passed over.

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
    """D, which of it is more than rounding, and L^-1 B, where L D L' = Q is a covariance: Gauss's elimination."""
    size = Q.shape[0]
    index = jnp.arange(size)
    least = _ROUNDINGS * jnp.finfo(Q.dtype).eps * jnp.diagonal(Q)

    def step(A, i):
        row = A[i]
        used = row[i] > least[i]
        share = jnp.where(used, A[:, i] / jnp.where(used, row[i], 1.0), 0.0)
        return A - jnp.where(index > i, share, 0.0)[:, None] * row, (row[i], used)

    A, (pivots, used) = _each_row(step, jnp.concatenate([Q, B], axis=1), size)
    return pivots, used, A[:, size:]


def reciprocals(pivots: Float[Array, " k"], used: Bool[Array, " k"]) -> Float[Array, " k"]:
    """1 / D of those that are more than rounding, 0 of the others."""
    return jnp.where(used, 1.0 / jnp.where(used, pivots, 1.0), 0.0)


def root(C: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Lower-triangular L with L L' = C, a covariance that may be singular."""
    size = C.shape[0]
    index = jnp.arange(size)
    least = _ROUNDINGS * jnp.finfo(C.dtype).eps * jnp.diagonal(C)

    def step(A, i):
        pivot = A[i, i]
        used = pivot > least[i]
        column = jnp.where(used & (index >= i), A[:, i] * jax.lax.rsqrt(jnp.where(used, pivot, 1.0)), 0.0)
        return A - column[:, None] * column, column

    return _each_row(step, C, size)[1].T


def triangle(A: Float[Array, "k l"]) -> Float[Array, "k k"]:
    """Lower-triangular L with L L' = A A', of any rank, by modified Gram-Schmidt on the rows of A (see `cholesky.tria`).

    A row of which less than the root of a rounding is left, after those before it, is passed over: what it says is lost, but
    nothing is divided by its noise.
    """
    size = A.shape[0]
    index = jnp.arange(size)
    least = jnp.finfo(A.dtype).eps * jnp.sum(A * A, axis=1)

    def step(A, i):
        row = A[i]
        products = A @ row
        used = products[i] > least[i]
        square = jnp.where(used, products[i], 1.0)
        column = jnp.where(used & (index >= i), products * jax.lax.rsqrt(square), 0.0)
        return A - jnp.where(used & (index > i), products / square, 0.0)[:, None] * row, column

    return _each_row(step, A, size)[1].T


def divide(X: Float[Array, "l k"], L: Float[Array, "k k"]) -> Float[Array, "l k"]:
    """X L^-1 for a lower-triangular L of `root` or `triangle`; a column of zeros in L leaves one of zeros."""
    size = L.shape[0]

    def step(found, j):
        i = size - 1 - j
        used = L[i, i] > 0.0
        column = jnp.where(used, (X[:, i] - found @ L[:, i]) / jnp.where(used, L[i, i], 1.0), 0.0)
        return found.at[:, i].set(column), None

    return _each_row(step, jnp.zeros_like(X), size)[0]


def _each_row(step: Callable[[Any, Int[Array, ""] | int], tuple[Any, Any]], start: Any, size: int) -> Any:
    """A scan over the numbers of the rows."""
    if size > _WRITTEN_OUT:
        return jax.lax.scan(step, start, jnp.arange(size))
    found = []
    for i in range(size):
        start, row = step(start, i)
        found.append(row)
    return start, jax.tree.map(lambda *rows: jnp.stack(rows), *found) if found[0] is not None else None
