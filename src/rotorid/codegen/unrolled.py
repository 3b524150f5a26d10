"""Small dense linear algebra, unrolled on arrays of scalars: Cholesky, triangular solves and QR without a
branch.

The loops of LAPACK run here once, while tracing, on CasADi scalars (dtype object).
Matrices may carry batch axes in front.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from rotorid.codegen.scalars import dot, minus, over, times
from rotorid.errors import SettingError


def cholesky(a: np.ndarray) -> np.ndarray:
    """Lower-triangular L with L L^T = a, for a symmetric positive definite."""
    return _batched(_cholesky, a)


def triangular_solve(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    unit_diagonal: bool,
    conjugate_a: bool = False,
) -> np.ndarray:
    """x with op(a) x = b (left_side) or x op(a) = b, where a is triangular and op may transpose."""

    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = a.T if transpose_a else a
        is_lower = lower != transpose_a
        if not left_side:  # x a = b  <=>  a^T x^T = b^T
            a, b, is_lower = a.T, b.T, not is_lower
        x = b.astype(object)
        n = len(a)
        for i in range(n) if is_lower else reversed(range(n)):
            previous = slice(i) if is_lower else slice(i + 1, n)
            for column in range(b.shape[1]):
                value = minus(x[i, column], dot(a[i, previous], x[previous, column]))
                x[i, column] = value if unit_diagonal else over(value, a[i, i])
        return x if left_side else x.T

    return _batched(solve, a.astype(object), b)


def qr(a: np.ndarray, *, full: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R of a = Q R by Householder reflections, with LAPACK's signs; a must have full column rank."""
    if full and a.shape[-1] < a.shape[-2]:
        raise SettingError("a full QR cannot be exported to CasADi; use mode='reduced' or mode='r'")
    if a.ndim != 2:
        raise SettingError("a QR of a batch of matrices cannot be exported to CasADi")
    return _householder(a.astype(object))


def _cholesky(a: np.ndarray) -> np.ndarray:
    n = len(a)
    L = np.zeros((n, n), dtype=object)
    for j in range(n):
        L[j, j] = ca.sqrt(minus(a[j, j], dot(L[j, :j], L[j, :j])))
        for i in range(j + 1, n):
            L[i, j] = over(minus(a[i, j], dot(L[i, :j], L[j, :j])), L[j, j])
    return L


def _householder(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H_k = I - 2 v v^T / v^T v with v = x + sign(x_1) |x| e_1, which sends x to -sign(x_1) |x| e_1."""
    m, n = a.shape
    R, Q = a.copy(), np.eye(m, min(m, n)).astype(object)
    reflections: list[tuple[int, list[Any], Any]] = []
    for k in range(min(m - 1, n)):
        x = R[k:, k].tolist()
        tail_square = dot(x[1:], x[1:])
        length = ca.sqrt(x[0] * x[0] + tail_square)
        sign = _where(x[0] >= 0, 1.0, -1.0)
        v = [_where(tail_square == 0, 0.0, x[0] + sign * length), *x[1:]]
        square = v[0] * v[0] + tail_square
        factor = _where(square == 0, 0.0, 2.0 / _where(square == 0, 1.0, square))
        reflections.append((k, v, factor))
        _reflect(R, k, v, factor, range(k, n))
        for i in range(k + 1, m):
            R[i, k] = 0.0
    for k, v, factor in reversed(reflections):
        _reflect(Q, k, v, factor, range(Q.shape[1]))
    return Q, R[: min(m, n)]


def _reflect(matrix: np.ndarray, k: int, v: list[Any], factor: Any, columns: range) -> None:
    for j in columns:
        projection = times(factor, dot(v, matrix[k:, j]))
        for i, e in enumerate(v):
            matrix[k + i, j] = minus(matrix[k + i, j], times(e, projection))


def _where(condition: Any, if_true: Any, if_false: Any) -> Any:
    if isinstance(condition, ca.SX):
        return ca.if_else(condition, if_true, if_false)
    return if_true if condition else if_false


def _batched(function: Any, *arrays: np.ndarray) -> np.ndarray:
    batch = arrays[0].shape[:-2]
    if not batch:
        return function(*arrays)
    flat = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
    results = np.stack([function(*matrices) for matrices in zip(*flat, strict=True)])
    return results.reshape(*batch, *results.shape[1:])
