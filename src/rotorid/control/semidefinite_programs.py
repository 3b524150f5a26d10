"""The semidefinite programs of gain scheduling, in coordinates where the LQR at the centre of the box has P = 1.

With P = inv(T)' Pz inv(T), T T' = inv(P_nominal), all numbers in the solver are near 1 for any units. The solver is
Clarabel, through CVXPY. The solutions are not verified here: `rotorid.control.gain_scheduling` verifies each solution
by eigenvalues, and accepts one with an inaccurate status only if it satisfies all inequalities.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError

_MARGIN = 1e-7
"""Margin of each inequality, relative to the size of its matrices."""


@dataclasses.dataclass(frozen=True)
class PoleLimits:
    """Limits of the closed-loop poles at the vertices.

    decay: least decay rate, 1/s. damping: least damping ratio. max_rate: largest decay rate, 1/s.
    """

    decay: float = 0.0
    damping: float | None = None
    max_rate: float | None = None


@dataclasses.dataclass(frozen=True)
class Solution:
    """A solution of a program.

    gains: K at each vertex. P: of the bound x' P x of the cost. cost: relative to the LQR at the centre of the box.
    is_accurate: whether the solver reached its tolerances.
    """

    gains: Float[np.ndarray, "v m n"]
    P: Float[np.ndarray, "n n"]
    cost: float
    is_accurate: bool


def certify(
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    K: Float[np.ndarray, "v m n"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    nominal: Float[np.ndarray, "n n"],
    limits: PoleLimits,
) -> Solution | None:
    """P of least trace, in the nominal coordinates, that bounds the cost of given gains; None if there is none."""
    cp = _cvxpy()
    T, T_inverse = _coordinates(nominal)
    n = len(Q)
    P = cp.Variable((n, n), symmetric=True)
    constraints = [P >> _MARGIN * np.eye(n)]
    for i, j in _pairs(B):
        closed = T_inverse @ (0.5 * (A[i] + B[i] @ K[j] + A[j] + B[j] @ K[i])) @ T
        cost = T.T @ (Q + 0.5 * (K[i].T @ R @ K[i] + K[j].T @ R @ K[j])) @ T
        cost_with_margin = cost + _MARGIN * np.linalg.norm(cost, 2) * np.eye(n)
        total = closed.T @ P + P @ closed + 2.0 * limits.decay * P + cost_with_margin
        constraints.append(_symmetric(total) << 0)
    minimum = _solve(cp.Problem(cp.Minimize(cp.trace(P)), constraints))
    if minimum is None or P.value is None:
        return None
    value, is_accurate = minimum
    return Solution(K, _symmetric(T_inverse.T @ P.value @ T_inverse), value / n, is_accurate)


def synthesise(
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    nominal: Float[np.ndarray, "n n"],
    limits: PoleLimits,
) -> Solution | None:
    """Gains and P with the least bound of the cost, in X = inv(P) and Y = K X; None if there is no solution.

    The inequality is multiplied by X from both sides; the cost enters by Schur's complement:
        [ A X + B Y + (.)' + 2 beta X,  X sqrt(Q),  Y' sqrt(R);  (.)', -1, 0;  (.)', 0, -1 ] <= 0
    """
    cp = _cvxpy()
    T, T_inverse = _coordinates(nominal)
    n, m = B.shape[1:]
    a = T_inverse @ A @ T
    root_r = np.linalg.cholesky(R)
    b = T_inverse @ B @ np.linalg.inv(root_r).T  # inputs scaled so that their weight is 1
    root_q = T.T @ np.linalg.cholesky(Q)
    X, Z = (cp.Variable((n, n), symmetric=True) for _ in range(2))
    Y = [cp.Variable((m, n)) for _ in A]
    one = np.eye(n)
    constraints = [cp.bmat([[Z, one], [one, X]]) >> 0]
    for i, j in _pairs(B):
        M = 0.5 * (a[i] @ X + b[i] @ Y[j] + a[j] @ X + b[j] @ Y[i])
        y = 0.5 * (Y[i] + Y[j])
        corner = M + M.T + 2.0 * limits.decay * X + _MARGIN * one
        inequality = cp.bmat(
            [
                [corner, X @ root_q, y.T],
                [root_q.T @ X, -one, np.zeros((n, m))],
                [y, np.zeros((m, n)), -np.eye(m)],
            ]
        )
        constraints.append(_symmetric(inequality) << 0)
        if limits.max_rate is not None:
            constraints.append(_symmetric(M + M.T + 2.0 * limits.max_rate * X) >> 0)
        if limits.damping is not None:  # poles in a cone of half-angle acos(damping)
            s, c = math.sqrt(1.0 - limits.damping**2), limits.damping
            cone = cp.bmat([[s * (M + M.T), c * (M - M.T)], [c * (M.T - M), s * (M + M.T)]])
            constraints.append(_symmetric(cone) << 0)
    minimum = _solve(cp.Problem(cp.Minimize(cp.trace(Z)), constraints))
    if minimum is None or X.value is None:
        return None
    value, is_accurate = minimum
    P = np.linalg.inv(_symmetric(X.value))
    gains = np.array([np.linalg.solve(root_r.T, y.value @ P @ T_inverse) for y in Y])
    return Solution(gains, _symmetric(T_inverse.T @ P @ T_inverse), value / n, is_accurate)


def _symmetric(M: Any) -> Any:
    return 0.5 * (M + M.T)


def _coordinates(nominal: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, np.ndarray]:
    """T with T' P_nominal T = 1, and its inverse."""
    root = np.linalg.cholesky(nominal)
    return np.linalg.inv(root).T, root.T


def _pairs(B: Float[np.ndarray, "v n m"]) -> list[tuple[int, int]]:
    """All vertices; if B varies, all pairs of vertices."""
    count = len(B)
    if not np.ptp(B, axis=0).any():
        return [(i, i) for i in range(count)]
    return [(i, j) for i in range(count) for j in range(i, count)]


def _solve(problem: Any) -> tuple[float, bool] | None:
    """The minimum, and whether the solver reached its tolerances; None if there is no solution."""
    cp = _cvxpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = problem.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or not np.isfinite(value):
        return None
    return float(value), problem.status == cp.OPTIMAL


def _cvxpy() -> Any:
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError:
        raise SettingError("CVXPY and Clarabel are not installed: pip install 'rotorid[lpv]'") from None
    return cvxpy
