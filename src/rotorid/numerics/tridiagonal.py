"""Least squares along a chain of blocks: the normal equations are block-tridiagonal.

    min  |d_0 - m|^2_P + sum_k |d_k - F_k d_(k-1) - c_k|^2_(Q_k) + sum_k |r_k - H_k d_k|^2_(R_k)

with |e|^2_V = e^T V^-1 e. One step of block elimination gives the next block on the diagonal as (Q + F P F^T)^-1 + H^T R^-1 H,
where P^-1 is the block before. Here P is carried in place of P^-1, so that the forward pass of the block Cholesky
factorisation is a Kalman filter and its back substitution the smoother's recursion. The numbers are the same, and the cases
without an information matrix need no special treatment: a constant block (Q = 0), a step of zero duration, a row of zeros.

References: H. Rauch, F. Tung, C. Striebel, Maximum likelihood estimates of linear dynamic systems, AIAA J. 3 (1965); B.
Bell, The iterated Kalman smoother as a Gauss-Newton method, SIAM J. Optim. 4 (1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.numerics.cholesky import whiten
from rotorid.numerics.conditioning import joseph_updates
from rotorid.numerics.products import mirrored, product


class Link(NamedTuple):
    """Transition from the block before, d_k = F d_(k-1) + c + noise of covariance Q, and rows r = H d_k + noise, R."""

    F: Float[Array, "n n"]
    c: Float[Array, " n"]
    Q: Float[Array, "n n"]
    H: Float[Array, "m n"]
    r: Float[Array, " m"]
    R: Float[Array, " m"]


class Chain(NamedTuple):
    """The minimiser d of a chain; mean and covariance of each block given those before it alone; covariance of the last."""

    d: Float[Array, "blocks n"]
    mean: Float[Array, "blocks n"]
    covariance: Float[Array, "blocks n n"]
    last: Float[Array, "n n"]


def solve_chain(
    m: Float[Array, " n"],
    P: Float[Array, "n n"],
    rows: Any,
    link: Callable[[Any], Link] = lambda row: row,
    direct: Sequence[tuple[slice, slice | None]] = (),
) -> Chain:
    """Minimise over a chain. m, P: the prior of the block before the first link.

    rows: a pytree of arrays with one entry a block; link: makes a `Link` of one entry. direct: rows of H that measure
    components of a block directly, and these components; see `rotorid.numerics.conditioning`.
    """

    def forward(prior, row):
        m, P = prior
        F, c, Q, H, r, R = link(row)
        FP = product(F, P)
        m_ahead, P_ahead = F @ m + c, mirrored(product(FP, F.T) + Q)
        HP = product(H, P_ahead)
        w, A, inverse = whiten(
            product(HP, H.T) + jnp.diag(R), r - H @ m_ahead, HP, jnp.eye(len(R), dtype=R.dtype)
        )
        return (m_ahead + w @ A, joseph_updates(P_ahead, H, R, A, inverse, direct)), (m, FP, m_ahead, P_ahead)

    def backward(d, row):
        m, FP, m_ahead, P_ahead = row
        is_certain = jnp.diag(P_ahead) <= 0.0  # without variance: it cannot be corrected
        w, A = whiten(P_ahead + jnp.diag(jnp.where(is_certain, 1.0, 0.0)), d - m_ahead, FP)
        return m + w @ A, d

    (d, last), forward_rows = jax.lax.scan(forward, (m, P), rows)
    _, smoothed = jax.lax.scan(backward, d, forward_rows, reverse=True)
    return Chain(smoothed, forward_rows[2], forward_rows[3], last)
