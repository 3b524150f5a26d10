"""Cholesky factors of small matrices, written out.

A library call per matrix costs more than the arithmetic of a 3 x 3 one, and it cannot be batched across filters. Written
out, the factor is a handful of fused elementwise operations, over any number of filters at once.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def whitened_square(S: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, ""]:
    """r^T S^-1 r for a small positive definite S."""
    n = r.shape[0]
    L = [[S[i, j] for j in range(n)] for i in range(n)]
    total = jnp.zeros((), r.dtype)
    w: list[Float[Array, ""]] = []
    for i in range(n):
        for j in range(i):
            L[i][j] = (L[i][j] - sum((L[i][k] * L[j][k] for k in range(j)), jnp.zeros(()))) / L[j][j]
        L[i][i] = jnp.sqrt(L[i][i] - sum((L[i][k] * L[i][k] for k in range(i)), jnp.zeros(())))
        w.append((r[i] - sum((L[i][k] * w[k] for k in range(i)), jnp.zeros(()))) / L[i][i])
        total = total + w[i] * w[i]
    return total
