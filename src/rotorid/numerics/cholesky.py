"""Factors of small matrices, written out.

A library call per matrix costs more than the arithmetic of a 3 x 3 one, and it cannot be batched across filters. Written
out, a factor is a handful of fused elementwise operations, over any number of filters at once.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.numerics.compact import routine

_WRITTEN_OUT = 24
"""Rows up to which `tria` is written out; compiling takes too long beyond."""


def whiten(S: Float[Array, "n n"], *rows: Float[Array, "n ..."]) -> tuple[Float[Array, "n ..."], ...]:
    """L^-1 B of each B (n rows), where L L^T = S is a small positive definite matrix.

    Cholesky's elimination on S with all B beside it, a row at a time.
    """
    return whiten_with_log_det(S, *rows)[1]


def whiten_with_log_det(
    S: Float[Array, "n n"], *rows: Float[Array, "n ..."]
) -> tuple[Float[Array, ""], tuple[Float[Array, "n ..."], ...]]:
    """The logarithm of det S, and L^-1 B of each B (see `whiten`)."""
    n = S.shape[0]
    whitened, pivots = forward_eliminate(S, jnp.concatenate([b.reshape(n, -1) for b in rows], axis=1))
    start, parts = 0, []
    for b in rows:
        width = b.size // n
        parts.append(whitened[:, start : start + width].reshape(b.shape))
        start += width
    return jnp.sum(jnp.log(pivots)), tuple(parts)


@routine
def forward_eliminate(
    S: Float[Array, "n n"], B: Float[Array, "n m"]
) -> tuple[Float[Array, "n m"], Float[Array, " n"]]:
    """L^-1 B, and the squares of L's diagonal, where L L^T = S."""
    n = S.shape[0]
    complement, remainder, rows, pivots = S, B, [], []
    for i in range(n):
        pivots.append(complement[0, 0])
        scale = jax.lax.rsqrt(complement[0, 0])
        row = remainder[0] * scale
        rows.append(row)
        if i + 1 < n:
            column = complement[1:, 0] * scale
            remainder = remainder[1:] - column[:, None] * row
            complement = complement[1:, 1:] - column[:, None] * column
    return jnp.stack(rows), jnp.stack(pivots)


@routine
def tria(A: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """Lower-triangular L with L L^T = A A^T (m >= n), by modified Gram-Schmidt on the rows of A.

    L is as accurate as that of Householder's QR decomposition, since only Q suffers from lost orthogonality: Å. Björck,
    Solving linear least squares problems by Gram-Schmidt orthogonalization, BIT 7 (1967) 1-21.
    """
    n = A.shape[0]
    if n > _WRITTEN_OUT:
        return jnp.linalg.qr(A.T, mode="r").T
    columns = []
    for i in range(n):
        products = A @ A[0]
        square = jnp.where(products[0] > 0.0, products[0], 1.0)
        columns.append(jnp.concatenate([jnp.zeros(i, A.dtype), products * jax.lax.rsqrt(square)]))
        A = A[1:] - (products[1:] / square)[:, None] * A[0]
    return jnp.stack(columns, axis=1)
