"""Recursive regularised least squares in square-root form, for blocks of rows (SESAME D2.2, eqs. 28-29 and 30-38).

    argmin_beta  sum_i w_i |h_i beta - t_i|^2 + lambda |beta|^2

All rows so far are summarised by the upper triangular factor [R Z; 0 E] with

    R^T R = H^T W H + lambda I,    R^T Z = H^T W T,    E^T E = T^T W T - Z^T Z

so beta = R^-1 Z, and the covariance P of eq. 38 is R^-1 R^-T. New rows are added in one of two ways, with the same result:

- by the QR decomposition of the factor on top of the rows. It does not square the condition number, and symmetry and
positive
  definiteness cannot be lost, in contrast to the subtraction in eq. 38 after many updates.
- for more rows than nodes, by the Cholesky factor of the sum of squares. It takes at most half the time, and is used
only if the
  sum of squares is well conditioned.

With a forgetting factor f, row i of k has the weight f^(k - i). lambda is not forgotten. It is added when the factor is
solved, so directions without recent excitation return to the prior, and P stays below I / lambda.

References: G. H. Golub, Numerical methods for solving linear least squares problems, Numer. Math. 7, 1965. G. J. Bierman,
Factorization methods for discrete sequential estimation, 1977, ch. V.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_blas_funcs, get_lapack_funcs
from threadpoolctl import ThreadpoolController

Array = np.ndarray
Blocks = Iterable[tuple[slice, Float[Array, "rows columns"]]]

WELL_CONDITIONED = 1e-10
"""Least reciprocal condition number of the sum of squares whose Cholesky factor is used: beta is then good to 1e-6."""

_SYRK: Any = get_blas_funcs("syrk", dtype=np.float64)
_POTRF, _POCON, _TRCON, _TRTRS, _TRTRI, _TPQRT = get_lapack_funcs(
    ("potrf", "pocon", "trcon", "trtrs", "trtri", "tpqrt"), dtype=np.float64
)
_EPS = float(np.finfo(float).eps)
_PANEL = 16  # block size of dtpqrt; the fastest of 4 to 64, measured with 100 to 1000 nodes
_CHOLESKY_ROWS = 2  # least number of rows per node for the Cholesky factor
_MIN_RESIDUAL_FREEDOM = (
    1e-6  # degrees of freedom of the residual over the weight, below which it is rounding error
)


class RecursiveLeastSquares:
    """The triangular factor [R Z; 0 E] of all rows so far.

    alpha: lambda. forgetting: f, in (0, 1]. Only the lengths of the columns of E are used, so E may be diagonal.
    """

    def __init__(self, hidden: int, outputs: int, alpha: float, forgetting: float = 1.0) -> None:
        self.hidden, self.outputs, self.alpha, self.forgetting = hidden, outputs, alpha, forgetting
        self.triangle = np.zeros((hidden + outputs, hidden + outputs), order="F")
        if forgetting == 1.0:
            np.fill_diagonal(self.triangle[:hidden, :hidden], np.sqrt(alpha))
        self.count, self.weight, self.squared_weight = 0, 0.0, 0.0
        self._solution: Solution | None = None

    def update(self, blocks: Callable[[], Blocks], count: int) -> None:
        """Add `count` rows [H T], the newest last. blocks: returns an iterator over all of them at each call."""
        f, n = self.forgetting, self.hidden
        weights = f ** np.arange(count - 1.0, -1.0, -1.0)

        def weighted() -> Iterable[Float[Array, "rows columns"]]:
            for rows, block in blocks():
                if not np.isfinite(block.sum()):
                    raise ValueError(
                        "the hidden layer or y is not finite: use another activation or another unit of y"
                    )
                if f < 1.0:
                    block *= np.sqrt(weights[rows])[:, None]
                yield block

        prior = self.triangle * f ** (0.5 * count) if f < 1.0 else self.triangle
        triangle = _update_by_cholesky(prior, weighted(), n) if count >= _CHOLESKY_ROWS * n else None
        self.triangle = _update_by_qr(prior, weighted(), count) if triangle is None else triangle
        self.weight = f**count * self.weight + weights.sum()
        self.squared_weight = f ** (2 * count) * self.squared_weight + np.square(weights).sum()
        self.count += count
        self._solution = None

    def solution(self) -> Solution:
        """The solution for all rows so far; it is cached until rows are added."""
        if self._solution is None:
            triangle, n = self.triangle, self.hidden
            if self.forgetting < 1.0 and self.alpha > 0.0:
                prior = np.zeros((n, len(triangle)), order="F")
                np.fill_diagonal(prior, np.sqrt(self.alpha))
                triangle = _qr_update(triangle.copy(order="F"), prior, pentagonal=n)
            mean_weight = self.squared_weight / self.weight
            self._solution = Solution(triangle, self.alpha, self.count, self.weight, mean_weight, n)
        return self._solution


class Solution:
    """beta of a factor that includes lambda, and its uncertainty. If the rows do not determine beta, it has minimum norm.

    weight: sum of w_i. mean_weight: sum of w_i^2 over sum of w_i, 1 without forgetting. With measurement noise of standard
    deviation sigma, beta has the covariance mean_weight sigma^2 P. sigma follows from the residual:

        sigma^2 = sum_i w_i |h_i beta - t_i|^2 / (weight - mean_weight freedom),    freedom = trace(P H^T W H)
    """

    beta: Float[Array, "hidden outputs"]

    def __init__(
        self,
        triangle: Float[Array, "columns columns"],
        alpha: float,
        count: int,
        weight: float,
        mean_weight: float,
        hidden: int,
    ) -> None:
        n = hidden
        self._alpha, self._weight, self._mean_weight = alpha, weight, mean_weight
        self._R, Z, E = triangle[:n, :n], triangle[:n, n:], triangle[n:, n:]
        self._residual_squares = np.einsum("ij,ij->j", E, E)
        self._rank_deficient_root: Float[Array, "hidden rank"] | None = None
        min_singular_value = np.sqrt(alpha)  # R^T R - lambda I is positive semidefinite
        has_full_rank = min_singular_value > n * _EPS * np.linalg.norm(triangle[:, :n])
        if has_full_rank or _TRCON(self._R)[0] > n * _EPS:
            self.beta, _ = _TRTRS(self._R, Z)
            return
        rows = min(n, count) if alpha == 0.0 else n  # the rows below contain only rounding errors
        U, s, Vt = np.linalg.svd(self._R[:rows], full_matrices=False)
        keep = s > _EPS * max(n, count) * s.max(initial=0.0)
        Z = U.T @ Z[:rows]
        self._rank_deficient_root = Vt[keep].T / s[keep]
        self.beta = self._rank_deficient_root @ Z[keep]
        self._residual_squares += np.einsum("ij,ij->j", Z[~keep], Z[~keep])

    @cached_property
    def inverse_root(self) -> Float[Array, "hidden rank"]:
        """S with P = S S^T."""
        return _TRTRI(self._R)[0] if self._rank_deficient_root is None else self._rank_deficient_root

    @cached_property
    def freedom(self) -> float:
        """Effective number of parameters that the rows determine: trace(P H^T W H)."""
        S = self.inverse_root
        return float(S.shape[1] - self._alpha * np.sum(S * S))

    @cached_property
    def noise_variance(self) -> Float[Array, " outputs"]:
        """sigma^2 of a measurement; infinite if the nodes can fit any rows, because the residual is then always 0.

        With a prior and too few rows for a residual, it is the maximum-likelihood estimate,
        (residual + lambda |beta|^2) / weight.
        """
        freedom = self._weight - self._mean_weight * self.freedom
        if freedom > _MIN_RESIDUAL_FREEDOM * self._weight:
            squares = self._residual_squares - self._alpha * np.sum(self.beta**2, axis=0)
            return np.maximum(squares, 0.0) / freedom
        if self._alpha > 0.0:
            return self._residual_squares / self._weight
        return np.full(len(self._residual_squares), np.inf)

    def variance(self, H: Float[Array, "n hidden"]) -> Float[Array, "n outputs"]:
        """Variance of a new measurement at each row of H: sigma^2 (1 + mean_weight h P h^T)."""
        g = H @ self.inverse_root
        return np.outer(1.0 + self._mean_weight * np.einsum("ij,ij->i", g, g), self.noise_variance)


def _update_by_qr(
    triangle: Float[Array, "columns columns"], blocks: Iterable[Float[Array, "rows columns"]], count: int
) -> Float[Array, "columns columns"]:
    """The factor with the rows added. The given factor is overwritten only if there is a single block: an invalid later
    block then cannot leave it half updated."""
    for i, block in enumerate(blocks):
        if i == 0 and len(block) < count:
            triangle = triangle.copy(order="F")
        triangle = _qr_update(triangle, block)
    return triangle


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _qr_update(
    triangle: Float[Array, "columns columns"],
    rows: Float[Array, "rows columns"],
    pentagonal: int = 0,
) -> Float[Array, "columns columns"]:
    """R of the QR decomposition of the triangle on top of the rows; both are overwritten."""
    panel = min(_PANEL, len(triangle))
    with _threads().limit(limits=1, user_api="blas"):  # the panels are too small for several threads
        triangle, _, _, _ = _TPQRT(pentagonal, panel, triangle, rows, overwrite_a=1, overwrite_b=1)
    return triangle


def _update_by_cholesky(
    triangle: Float[Array, "columns columns"], blocks: Iterable[Float[Array, "rows columns"]], hidden: int
) -> Float[Array, "columns columns"] | None:
    """The factor with the rows added, by the sum of squares; None if that is not well conditioned."""
    n = hidden
    squares = _SYRK(1.0, triangle, trans=1)
    for block in blocks:
        squares = _SYRK(1.0, block, 1.0, squares, trans=1, overwrite_c=1)
    R, info = _POTRF(squares[:n, :n], clean=1)
    upper = np.abs(squares[:n, :n])
    norm = np.max(upper.sum(axis=0) + upper.sum(axis=1) - upper.diagonal())
    if info or _POCON(R, norm)[0] < WELL_CONDITIONED:
        return None
    updated = np.zeros_like(squares, order="F")
    updated[:n, :n] = R
    updated[:n, n:] = Z = _TRTRS(R, squares[:n, n:], trans=1)[0]
    residual_squares = squares.diagonal()[n:] - np.einsum("ij,ij->j", Z, Z)
    np.fill_diagonal(updated[n:, n:], np.sqrt(np.maximum(residual_squares, 0.0)))
    return updated
