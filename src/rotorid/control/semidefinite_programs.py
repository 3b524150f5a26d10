"""The semidefinite programs of gain scheduling, in coordinates where the LQR at the middle of the box has P = 1.

With P = inv(T)' Pz inv(T), T T' = inv(P_nominal), the solver sees numbers near 1 whatever the units. Solved by Clarabel
through CVXPY. Nothing is checked here: `rotorid.control.gain_scheduling` verifies each solution by eigenvalues, and
takes one that the solver calls inaccurate only if it passes.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError

_INSIDE = 1e-7
"""By how much every inequality is kept away from its edge, over the size of its matrices."""


@dataclasses.dataclass(frozen=True)
class PoleLimits:
    """decay: least rate, 1/s. damping: least damping ratio of the vertices' poles. fastest: their largest rate, 1/s."""

    decay: float = 0.0
    damping: float | None = None
    fastest: float | None = None


@dataclasses.dataclass(frozen=True)
class Solution:
    """gains: K at each vertex. P: of the bound x' P x of the cost. cost: over that of the LQR at the middle of the box.
    accurate: False where the solver stopped short of its tolerances."""

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
    options: PoleLimits,
) -> Solution | None:
    """P of least trace, in the nominal's coordinates, that bounds the cost of given gains; None where there is none."""
    cp = _cvxpy()
    T, back = _coordinates(nominal)
    n = len(Q)
    P = cp.Variable((n, n), symmetric=True)
    rules = [P >> _INSIDE * np.eye(n)]
    for i, j in _pairs(B):
        closed = back @ (0.5 * (A[i] + B[i] @ K[j] + A[j] + B[j] @ K[i])) @ T
        spent = T.T @ (Q + 0.5 * (K[i].T @ R @ K[i] + K[j].T @ R @ K[j])) @ T
        room = spent + _INSIDE * np.linalg.norm(spent, 2) * np.eye(n)
        left = closed.T @ P + P @ closed + 2.0 * options.decay * P + room
        rules.append(_symmetric(left) << 0)
    solved = _solve(cp.Problem(cp.Minimize(cp.trace(P)), rules))
    if solved is None or P.value is None:
        return None
    value, accurate = solved
    return Solution(K, _symmetric(back.T @ P.value @ back), value / n, accurate)


def synthesise(
    A: Float[np.ndarray, "v n n"],
    B: Float[np.ndarray, "v n m"],
    Q: Float[np.ndarray, "n n"],
    R: Float[np.ndarray, "m m"],
    nominal: Float[np.ndarray, "n n"],
    options: PoleLimits,
) -> Solution | None:
    """Gains and P of the least bound of the cost, in X = inv(P) and Y = K X; None where there is none.

    The inequality times X from both sides, with the cost by Schur's complement:
        [ A X + B Y + (.)' + 2 beta X,  X sqrt(Q),  Y' sqrt(R);  (.)', -1, 0;  (.)', 0, -1 ] <= 0
    """
    cp = _cvxpy()
    T, back = _coordinates(nominal)
    n, m = B.shape[1:]
    a = back @ A @ T
    root_r = np.linalg.cholesky(R)
    b = back @ B @ np.linalg.inv(root_r).T  # inputs scaled so that their weight is 1
    root_q = T.T @ np.linalg.cholesky(Q)
    X, Z = (cp.Variable((n, n), symmetric=True) for _ in range(2))
    Y = [cp.Variable((m, n)) for _ in A]
    one = np.eye(n)
    rules = [cp.bmat([[Z, one], [one, X]]) >> 0]

    def moved(i: int, j: int) -> Any:
        return 0.5 * (a[i] @ X + b[i] @ Y[j] + a[j] @ X + b[j] @ Y[i])

    for i, j in _pairs(B):
        M, spent = moved(i, j), 0.5 * (Y[i] + Y[j])
        corner = M + M.T + 2.0 * options.decay * X + _INSIDE * one
        whole = cp.bmat(
            [
                [corner, X @ root_q, spent.T],
                [root_q.T @ X, -one, np.zeros((n, m))],
                [spent, np.zeros((m, n)), -np.eye(m)],
            ]
        )
        rules.append(_symmetric(whole) << 0)
        if options.fastest is not None:
            rules.append(_symmetric(M + M.T + 2.0 * options.fastest * X) >> 0)
        if options.damping is not None:
            s, c = options.damping, math.sqrt(1.0 - options.damping**2)
            s, c = c, s  # cone of half-angle acos(damping): sin and cos of it
            turned = cp.bmat([[s * (M + M.T), c * (M - M.T)], [c * (M.T - M), s * (M + M.T)]])
            rules.append(_symmetric(turned) << 0)
    solved = _solve(cp.Problem(cp.Minimize(cp.trace(Z)), rules))
    if solved is None or X.value is None:
        return None
    value, accurate = solved
    inverse = np.linalg.inv(_symmetric(X.value))
    gains = np.array([np.linalg.solve(root_r.T, y.value @ inverse @ back) for y in Y])
    return Solution(gains, _symmetric(back.T @ inverse @ back), value / n, accurate)


def _symmetric(M: Any) -> Any:
    return 0.5 * (M + M.T)


def _coordinates(nominal: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, np.ndarray]:
    """T with T' P_nominal T = 1, and its inverse."""
    root = np.linalg.cholesky(nominal)
    return np.linalg.inv(root).T, root.T


def _pairs(B: Float[np.ndarray, "v n m"]) -> list[tuple[int, int]]:
    """Every vertex; where B varies, every pair."""
    count = len(B)
    if not np.ptp(B, axis=0).any():
        return [(i, i) for i in range(count)]
    return [(i, j) for i in range(count) for j in range(i, count)]


def _solve(problem: Any) -> tuple[float, bool] | None:
    """The least value, and whether the solver reached its tolerances; None where there is no solution."""
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
