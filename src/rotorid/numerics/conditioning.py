"""What a measurement leaves of a covariance, with the digits that a plain difference loses.

    y = h x + noise of covariance R = diag(r),   S = h P h^T + R = L L^T,   A = L^-1 h P,   K = A^T L^-1
    P' = P - A^T A

Where a measurement is far better than what was known, P' is a small difference of large numbers: from 10 m to 1 cm, the
variance loses 6 digits of 16, and all but one of single precision. K keeps its digits, and h P' = R K^T tells what was lost:

    D = h (P' h^T - K R)

is 0 but for rounding: h e h^T where e is the error of P'. So P' - K D K^T has e - K h e h^T K^T of it, next to nothing where a
measurement says nearly all, K h = 1, and e where it says little and nothing was lost. It is taken from the block of the states
that are measured by themselves, where digits are lost: as good there as Joseph's form (R. S. Bucy, P. D. Joseph, Filtering for
stochastic processes, 1968), at less than a tenth of its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Array, Float

from rotorid.numerics.products import product


def mended(
    less: Float[Array, "all all"],
    h: Float[Array, "m n"],
    r: Float[Array, " m"],
    K: Float[Array, "n m"],
    direct: slice | None,
) -> Float[Array, "all all"]:
    """P - A^T A, given as `less`, without what it lost; symmetric to the last bit as that is.

    h: by the first n of x, the others are not measured. direct: the m states that are measured by themselves, None if it is
    none.
    """
    if direct is None:
        return less
    n = h.shape[1]
    D = product(h, product(less[:n, :n], h.T) - K * r)
    lost = product(product(K[direct], D), K[direct].T)
    return less.at[direct, direct].add(-0.5 * (lost + lost.T))


def remaining(
    P: Float[Array, "n n"],
    H: Float[Array, "m n"],
    R: Float[Array, " m"],
    A: Float[Array, "m n"],
    inverse: Float[Array, "m m"],
    direct: Sequence[tuple[slice, slice | None]],
) -> Float[Array, "n n"]:
    """P', mended, after measurements of several kinds at once. inverse: of L; see `rotorid.numerics.cholesky.whiten`.

    direct: rows of H, and the states that they measure by themselves.
    """
    less = P - product(A.T, A)
    for rows, place in direct:
        less = mended(less, H[rows], R[rows], product(A.T, inverse[:, rows]), place)
    return less
