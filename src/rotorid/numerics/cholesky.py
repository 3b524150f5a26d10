"""Cholesky factors of small matrices, written out.

A library call per matrix costs more than the arithmetic of a 3 x 3 one, and it cannot be batched across filters. Written
out, the factor is a handful of fused elementwise operations, over any number of filters at once.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def whiten(S: Float[Array, "n n"], *rows: Float[Array, "n ..."]) -> tuple[Float[Array, "n ..."], ...]:
    """L^-1 B of each B (n rows), where L L^T = S is a small positive definite matrix."""
    n = S.shape[0]
    L: list[list[Float[Array, ""]]] = [[S[i, j] for j in range(n)] for i in range(n)]
    found: list[list[Float[Array, ...]]] = [[] for _ in rows]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                L[i][j] = L[i][j] - L[i][k] * L[j][k]
            L[i][j] = L[i][j] / L[j][j]
        for k in range(i):
            L[i][i] = L[i][i] - L[i][k] * L[i][k]
        L[i][i] = jnp.sqrt(L[i][i])
        for B, solved in zip(rows, found, strict=True):
            row = B[i]
            for k in range(i):
                row = row - L[i][k] * solved[k]
            solved.append(row / L[i][i])
    return tuple(jnp.stack(solved) for solved in found)
