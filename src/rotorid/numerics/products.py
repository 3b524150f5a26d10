"""Products of matrices: small ones written out, and the precision of the others."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.numerics.compact import is_compact, routine

_WRITTEN_OUT = 24
"""Inner dimension up to which a product is written out; compiling takes too long beyond."""

_FUSED = 12**3
"""Multiplications of a product up to which a sum takes less time than a call of the matrix library."""

_IN_LOOPS = 200
"""Size of a matrix from which compact code computes it in loops."""


def full_products() -> AbstractContextManager[None]:
    """A context in which JAX traces products of float32 matrices that have the precision of float32 on every device.

    By default, GPUs and TPUs round the factors to 11 or 8 bits first (TensorFloat-32, bfloat16), which is too little for
    covariances.
    """
    return jax.default_matmul_precision("highest")


@routine
def product(A: Float[Array, "n k"], B: Float[Array, "k m"]) -> Float[Array, "n m"]:
    """A B as a sum of outer products.

    For a 10 x 10 matrix this takes half the time of a call of the matrix library, and over many filters at once a third.
    """
    if not 0 < A.shape[1] <= _WRITTEN_OUT:
        return A @ B
    total = A[:, :1] * B[:1]
    for k in range(1, A.shape[1]):
        total = total + A[:, k : k + 1] * B[k : k + 1]
    return total


def fused_product(A: Float[Array, "n k"], B: Float[Array, "k ..."]) -> Float[Array, "n ..."]:
    """A B of a matrix or vector B, as a sum that XLA computes together with what is around it, for loops over rows.

    A row of a Kalman filter with 4 states takes a third of the time, and its derivative a quarter.
    """
    if B.ndim == 1:
        return fused_product(A, B[:, None])[:, 0]
    if A.shape[0] * A.shape[1] * B.shape[1] > _FUSED:
        return A @ B
    return jnp.sum(A[:, :, None] * B, axis=1)


def congruence(
    F: Float[Array, "m n"], P: Float[Array, "n n"], variances: Float[Array, " m"] | None = None
) -> Float[Array, "m m"]:
    """F P F^T of a symmetric P, with these variances on its diagonal; symmetric to the last bit where it is written out."""
    return congruence_plus(F, P, jnp.zeros(F.shape[0], F.dtype) if variances is None else variances)


@routine
def congruence_plus(
    F: Float[Array, "m n"], P: Float[Array, "n n"], variances: Float[Array, " m"]
) -> Float[Array, "m m"]:
    """See `congruence`."""
    return mirrored(product(product(F, mirrored(P)), F.T) + jnp.diag(variances))


@routine
def downdate(P: Float[Array, "n n"], A: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """P - A^T A of a symmetric P, symmetric to the last bit."""
    return mirrored(P - product(A.T, A))


def mirrored(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric matrix with the lower triangle of A, which is symmetric but for rounding.

    C then computes no more than this half: what nothing reads is not written. In compact code a large A, which is made by
    loops, stays as it is.
    """
    if is_compact() and A.size >= _IN_LOOPS:
        return A
    rows, columns = np.indices(A.shape)
    lower = A.shape[0] * np.maximum(rows, columns) + np.minimum(rows, columns)
    return A.reshape(-1)[lower]
