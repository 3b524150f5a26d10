"""Tikhonov's least squares whose rows come in blocks: seed 000, eqs. 28-29 and 30-38, in square-root form.

    argmin_beta  sum_i w_i |h_i beta - t_i|^2 + lambda |beta|^2

What is kept of all rows so far is the upper triangular [R Z; 0 E] with

    R^T R = H^T W H + lambda I,    R^T Z = H^T W T,    E^T E = T^T W T - Z^T Z

so that beta = R^-1 Z, and the covariance P of eq. 38 is R^-1 R^-T. New rows are absorbed in one of two ways that give the
same triangle. Orthogonally: the QR decomposition of the triangle on top of the rows, which never squares the condition
number and cannot lose symmetry or positive definiteness, as the subtraction in eq. 38 does after many updates. Or, of
more rows than there are nodes, by the Cholesky factor of the sum of squares, which costs half as much or less; its result
is taken only where the sum of squares is well conditioned.

With a forgetting factor f, row i of k weighs f^(k - i). lambda is not forgotten, hence added only when the triangle is
solved: directions that the data no longer excite fall back to the prior, and P stays below I / lambda.

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
_PANEL = 16  # columns that dtpqrt takes at once; the fastest of 4 to 64, measured at 100 to 1000 nodes
_FOR_CHOLESKY = 2  # rows per node from which on the Cholesky factor is tried
_KNOWN_RESIDUAL = 1e-6  # share of the samples that must be left over by the nodes for their residual to be more than rounding


class Root:
    """The triangle [R Z; 0 E] of the rows absorbed so far.

    alpha: lambda. forgetting: f, in (0, 1]. Of E, only the lengths of its columns count, so that it may be diagonal.
    """

    def __init__(self, hidden: int, outputs: int, alpha: float, forgetting: float = 1.0) -> None:
        self.hidden, self.outputs, self.alpha, self.forgetting = hidden, outputs, alpha, forgetting
        self.triangle = np.zeros((hidden + outputs, hidden + outputs), order="F")
        if forgetting == 1.0:
            np.fill_diagonal(self.triangle[:hidden, :hidden], np.sqrt(alpha))
        self.count, self.weight, self.squared_weight = 0, 0.0, 0.0
        self._solution: Solution | None = None

    def absorb(self, blocks: Callable[[], Blocks], count: int) -> None:
        """Add `count` rows [H T], the last one the newest. blocks: gives them from the first on, each time it is called."""
        f, n = self.forgetting, self.hidden
        weights = f ** np.arange(count - 1.0, -1.0, -1.0)

        def weighted() -> Iterable[Float[Array, "rows columns"]]:
            for rows, block in blocks():
                if not np.isfinite(block.sum()):
                    raise ValueError(
                        "the hidden layer or y is not finite: activation or unit of y do not suit float64"
                    )
                if f < 1.0:
                    block *= np.sqrt(weights[rows])[:, None]
                yield block

        before = self.triangle * f ** (0.5 * count) if f < 1.0 else self.triangle
        triangle = _by_cholesky(before, weighted(), n) if count >= _FOR_CHOLESKY * n else None
        self.triangle = _by_reflections(before, weighted(), count) if triangle is None else triangle
        self.weight = f**count * self.weight + weights.sum()
        self.squared_weight = f ** (2 * count) * self.squared_weight + np.square(weights).sum()
        self.count += count
        self._solution = None

    def solution(self) -> Solution:
        """The least squares of all rows so far, kept until there are more."""
        if self._solution is None:
            triangle, n = self.triangle, self.hidden
            if self.forgetting < 1.0 and self.alpha > 0.0:
                prior = np.zeros((n, len(triangle)), order="F")
                np.fill_diagonal(prior, np.sqrt(self.alpha))
                triangle = _reflect(triangle.copy(order="F"), prior, pentagonal=n)
            spread = self.squared_weight / self.weight
            self._solution = Solution(triangle, self.alpha, self.count, self.weight, spread, n)
        return self._solution


class Solution:
    """beta of a triangle with lambda in it, of minimum norm where the rows do not determine it; and how sure it is.

    weight: sum of w_i. spread: sum of w_i^2 by sum of w_i, 1 without forgetting. Then beta has the covariance
    spread sigma^2 P of its measurements' noise sigma, and the residual tells sigma by

        sigma^2 = sum_i w_i |h_i beta - t_i|^2 / (weight - spread freedom),    freedom = trace(P H^T W H)
    """

    beta: Float[Array, "hidden outputs"]

    def __init__(
        self,
        triangle: Float[Array, "columns columns"],
        alpha: float,
        count: int,
        weight: float,
        spread: float,
        hidden: int,
    ) -> None:
        n = hidden
        self._alpha, self._weight, self._spread = alpha, weight, spread
        self._R, Z, E = triangle[:n, :n], triangle[:n, n:], triangle[n:, n:]
        self._least = np.einsum("ij,ij->j", E, E)
        self._deficient: Float[Array, "hidden rank"] | None = None
        least_singular_value = np.sqrt(alpha)  # R^T R is lambda I and more
        safe = least_singular_value > n * _EPS * np.linalg.norm(triangle[:, :n])
        if safe or _TRCON(self._R)[0] > n * _EPS:
            self.beta, _ = _TRTRS(self._R, Z)
            return
        rows = min(n, count) if alpha == 0.0 else n  # those below hold rounding only
        U, s, Vt = np.linalg.svd(self._R[:rows], full_matrices=False)
        keep = s > _EPS * max(n, count) * s.max(initial=0.0)
        Z = U.T @ Z[:rows]
        self._deficient = Vt[keep].T / s[keep]
        self.beta = self._deficient @ Z[keep]
        self._least += np.einsum("ij,ij->j", Z[~keep], Z[~keep])

    @cached_property
    def inverse_root(self) -> Float[Array, "hidden rank"]:
        """S with P = S S^T."""
        return _TRTRI(self._R)[0] if self._deficient is None else self._deficient

    @cached_property
    def freedom(self) -> float:
        """How many parameters the rows chose, rather than the prior: trace(P H^T W H)."""
        S = self.inverse_root
        return float(S.shape[1] - self._alpha * np.sum(S * S))

    @cached_property
    def noise_variance(self) -> Float[Array, " outputs"]:
        """sigma^2 of a measurement; infinite where the nodes fit all rows whatever these are, as then nothing tells.

        With a prior and fewer rows than it takes to see a residual, it is what makes both as likely as they can be,
        (residual + lambda |beta|^2) / weight.
        """
        left = self._weight - self._spread * self.freedom
        if left > _KNOWN_RESIDUAL * self._weight:
            return np.maximum(self._least - self._alpha * np.sum(self.beta**2, axis=0), 0.0) / left
        return self._least / self._weight if self._alpha > 0.0 else np.full(len(self._least), np.inf)

    def variance(self, H: Float[Array, "n hidden"]) -> Float[Array, "n outputs"]:
        """Of a measurement at each row of H: sigma^2 (1 + spread h P h^T)."""
        g = H @ self.inverse_root
        return np.outer(1.0 + self._spread * np.einsum("ij,ij->i", g, g), self.noise_variance)


def _by_reflections(
    triangle: Float[Array, "columns columns"], blocks: Iterable[Float[Array, "rows columns"]], count: int
) -> Float[Array, "columns columns"]:
    """The triangle of these rows below it. It is overwritten if they are one block, as no later one can fail then."""
    for i, block in enumerate(blocks):
        if i == 0 and len(block) < count:
            triangle = triangle.copy(order="F")
        triangle = _reflect(triangle, block)
    return triangle


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _reflect(
    triangle: Float[Array, "columns columns"],
    rows: Float[Array, "rows columns"],
    pentagonal: int = 0,
) -> Float[Array, "columns columns"]:
    """R of the QR decomposition of the triangle on top of the rows; both are overwritten."""
    panel = min(_PANEL, len(triangle))
    with _threads().limit(limits=1, user_api="blas"):  # its panels are too thin to be shared
        triangle, _, _, _ = _TPQRT(pentagonal, panel, triangle, rows, overwrite_a=1, overwrite_b=1)
    return triangle


def _by_cholesky(
    triangle: Float[Array, "columns columns"], blocks: Iterable[Float[Array, "rows columns"]], hidden: int
) -> Float[Array, "columns columns"] | None:
    """The same by the sum of squares; None where that is not well conditioned."""
    n = hidden
    squares = _SYRK(1.0, triangle, trans=1)
    for block in blocks:
        squares = _SYRK(1.0, block, 1.0, squares, trans=1, overwrite_c=1)
    R, failed = _POTRF(squares[:n, :n], clean=1)
    upper = np.abs(squares[:n, :n])
    norm = np.max(upper.sum(axis=0) + upper.sum(axis=1) - upper.diagonal())
    if failed or _POCON(R, norm)[0] < WELL_CONDITIONED:
        return None
    found = np.zeros_like(squares, order="F")
    found[:n, :n] = R
    found[:n, n:] = Z = _TRTRS(R, squares[:n, n:], trans=1)[0]
    left = squares.diagonal()[n:] - np.einsum("ij,ij->j", Z, Z)
    np.fill_diagonal(found[n:, n:], np.sqrt(np.maximum(left, 0.0)))
    return found
