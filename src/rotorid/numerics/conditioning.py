"""Covariance after a measurement update, without the digits that the plain difference loses.

    y = h x + noise of covariance R = diag(r),   S = h P h^T + R = L L^T,   A = L^-1 h P,   K = A^T L^-1
    P' = P - A^T A

Where a measurement is much more accurate than the prediction, P' is a small difference of large numbers: from 10 m to 1 cm the
variance loses 6 digits of 16, and all but one in single precision. K keeps its digits, so that h P' = R K^T gives the error:

    D = h (P' h^T - K R)

is 0 but for rounding; it equals h e h^T where e is the error of P'. P' - K D K^T has the error e - K h e h^T K^T, which
vanishes where the measurement dominates (K h = 1) and is e where it contributes little and nothing was lost. The correction is
applied to the block of the states that are measured directly, where digits are lost. There it is as accurate as Joseph's form
(R. S. Bucy, P. D. Joseph, Filtering for stochastic processes, 1968), at less than a tenth of its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.numerics.compact import shared
from rotorid.numerics.products import mirrored, product


def joseph_update(
    difference: Float[Array, "all all"],
    h: Float[Array, "m n"],
    r: Float[Array, " m"],
    K: Float[Array, "n m"],
    direct: slice | None,
    is_measured: Bool[Array, " m"] | None = None,
) -> Float[Array, "all all"]:
    """The covariance after a measurement, as accurate as Joseph's form.

    Args:
        difference: P - A^T A, symmetric to the last bit; so is the result.
        h: measurement matrix of the first n states; the others are not measured.
        r: variances of the measurement noise.
        K: gain of the first n states.
        direct: the m states that are measured directly; None for none, which leaves `difference` as it is.
        is_measured: rows of h that count, whose numbers are finite; the gain of the others is 0. None: all.
    """
    if direct is None:
        return difference
    n = h.shape[1]
    D = product(h, product(difference[:n, :n], h.T) - K * r)
    used = jnp.ones(len(r), bool) if is_measured is None else is_measured
    return difference.at[direct, direct].add(_correction(K[direct], D, used))


@shared
def _correction(
    K: Float[Array, "n m"], D: Float[Array, "m m"], is_measured: Bool[Array, " m"]
) -> Float[Array, "n n"]:
    """-K D K^T of the rows and columns of D that are measured, symmetric to the last bit."""
    D = jnp.where(is_measured[:, None] & is_measured, D, 0.0)
    error = product(product(K, D), K.T)
    return -0.5 * (error + error.T)


def joseph_updates(
    P: Float[Array, "n n"],
    H: Float[Array, "m n"],
    R: Float[Array, " m"],
    A: Float[Array, "m n"],
    inverse: Float[Array, "m m"],
    direct: Sequence[tuple[slice, slice | None]],
) -> Float[Array, "n n"]:
    """The covariance after several blocks of measurements at once, by `joseph_update` of each block.

    Args:
        P: before.
        H: measurement matrix. R: variances of its rows.
        A: L^-1 H P. inverse: L^-1 (see `rotorid.numerics.cholesky.whiten`).
        direct: of each block, the rows of H, and the states that they measure directly.
    """
    covariance = P - product(A.T, A)
    for rows, place in direct:
        covariance = joseph_update(covariance, H[rows], R[rows], product(A.T, inverse[:, rows]), place)
    return mirrored(covariance)
