"""Gauss-Newton minimisation over the free parameters, the initial states of the windows eliminated.

A step is the best one within the lower bounds of the parameters, to first order. One that does not reduce the cost is
shortened, and damped (Levenberg-Marquardt) where that does not reduce the cost as expected.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import lsq_linear

from rotorid.errors import SettingError
from rotorid.identification.fitting.multiple_shooting import WindowCosts
from rotorid.identification.fitting.problem import EstimationProblem

_HUBER = 3.0  # robust standard deviations above the median from which on a window's residual counts linearly
_LEAST_SPREAD = 0.02  # of the windows' residuals, over their median
_LEAST_STEP = 1e-10  # in prior standard deviations: below it is rounding
_SHARES = (1.0, 0.5, 0.25, 0.125)  # of an undamped step, tried in this order
_SUFFICIENT = 0.25  # of the decrease to first order, for an undamped step to be taken
_DAMPING = 1e-3  # the first, where one is needed
_MOST_DAMPING = 1e9
_ROUNDING = 1e-9  # of the cost
_ROUGH = 0.1  # tolerance of intermediate results, at least
_CURVATURE = 5.0  # of the next step over that along the last one, which its cost shows
_CONTRACTION = 0.01  # of the next step over the last one, at least


@dataclasses.dataclass(frozen=True)
class GaussNewtonResult:
    """Where a minimisation ended.

    Attributes:
        z: coordinates of the free parameters.
        x: initial state of each window.
        triangle: triangular factors of the windows there (see `EstimationProblem.linearise`), to first order.
        squared_residuals: by window and output, in sigma.
        weight: robust weight of each window.
        iterations: number of steps.
        converged: whether the last step met the tolerance.
    """

    z: Float[np.ndarray, " free"]
    x: Float[np.ndarray, "w states"]
    triangle: Float[np.ndarray, "w rows columns"]
    squared_residuals: Float[np.ndarray, "w compared"]
    weight: Float[np.ndarray, " w"]
    iterations: int
    converged: bool

    def cost(self, problem: EstimationProblem) -> float:
        """Weighted sum of squares of the residuals, and of the deviations from the prior."""
        e = problem.prior_errors(self.z)
        return float(self.weight @ self.squared_residuals.sum(axis=1) + e @ e)


def gauss_newton(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    x: Float[np.ndarray, "w states"],
    sigma: Float[np.ndarray, " compared"],
    loss: str = "squares",
    max_iterations: int = 50,
    tolerance: float = 0.01,
) -> GaussNewtonResult:
    """Minimise the cost from z and the initial states x.

    Args:
        problem: what to estimate.
        z: initial coordinates of the free parameters.
        x: initial states of the windows, packed.
        sigma: noise of each compared output, in its unit.
        loss: "squares", or "huber": windows with unusually large residuals are down-weighted.
        max_iterations: greatest number of steps.
        tolerance: in posterior standard deviations; a smaller undamped step is the last one. From 0.1 on, for intermediate
            results, a longer one is the last one too if the next one would be smaller: the triangular factors of the result are
            then those before a long step. Where steps are shortened or damped, the last one reduces the cost by less than the
            tolerance squared.
    Returns:
        The minimum found, whether converged or not.
    Raises:
        SettingError: the model is not finite at the initial values.
    """
    n, free = problem.start_size, problem.free_size
    count = max(int(problem.measurement_counts.sum()), 1)
    damping, steps = 0.0, 0
    while True:
        (triangle, costs), steps = problem.linearise(x, z, sigma), steps + 1
        if not np.isfinite(triangle).all():
            raise SettingError(
                "the model is not finite with these values of the parameters: give prior values near the vehicle's"
            )
        weight = _huber_weights(problem, triangle, costs.total, loss)
        e = problem.prior_errors(z)
        R = triangular_factor(problem, z, triangle, weight)
        spread = np.linalg.norm(np.linalg.pinv(R[:free, :free], rcond=1e-15), axis=1)
        cost = float(weight @ costs.total + e @ e)
        cost_per_number = max(cost / count, 1.0)
        small = np.maximum(tolerance * spread, _LEAST_STEP)
        negligible = small, free * tolerance**2
        step = _improving_step(problem, triangle, R, (z, x), sigma, weight, cost, damping, negligible)
        if step is None:
            return GaussNewtonResult(z, x, triangle, costs.squared_residuals, weight, steps, False)
        damping, is_whole = step.damping, step.damping == 0.0 and step.share == 1.0
        is_small = bool(np.all(np.abs(step.whole) < small))
        # with shortened or damped steps, the minimum is where the cost falls by no more than rounding
        has_converged = (is_small and damping == 0.0) or (
            not is_whole and cost - step.cost < tolerance**2 * cost_per_number
        )
        dz = step.z - z
        if is_whole and not has_converged and tolerance >= _ROUGH:
            length = _next_length(step, triangle[:, :n, -1], R, weight, cost)
            has_converged = length < tolerance and _are_weights_settled(
                problem, step, _triangle_after_step(triangle, n, dz), loss, small
            )
        z, x = step.z, step.x
        if has_converged or steps == max_iterations:
            after, squares = _triangle_after_step(triangle, n, dz), step.costs.squared_residuals
            return GaussNewtonResult(z, x, after, squares, weight, steps, has_converged)
        del triangle  # as large as the next one
        damping = 0.0 if damping <= _DAMPING else 0.1 * damping


def triangular_factor(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    triangle: Float[np.ndarray, "w rows columns"],
    weight: Float[np.ndarray, " w"],
) -> Float[np.ndarray, "k m"]:
    """R of the QR decomposition of [J r] of all windows and of the prior; J^T J is the Hessian, J^T r the gradient.

    The windows of a flight do not depend on the numbers of other flights: each flight is reduced to a triangle in its own
    numbers first, so that the work grows with the number of flights and not with its cube.

    Args:
        problem: what is estimated.
        z: coordinates of the free parameters.
        triangle, weight: of the windows (see `GaussNewtonResult`).
    """
    n, free = problem.start_size, problem.free_size
    columns = np.concatenate([triangle[:, n:, n : n + free], triangle[:, n:, -1:]], axis=2)
    columns *= np.sqrt(weight)[:, None, None]
    parts = []
    for flight in np.unique(problem.windows.flight):
        own = columns[problem.windows.flight == flight].reshape(-1, free + 1)
        used = np.flatnonzero(own.any(axis=0))
        own_factor = np.linalg.qr(own[:, used], mode="r")
        parts.append(np.zeros((len(own_factor), free + 1)))
        parts[-1][:, used] = own_factor
    prior = np.column_stack([problem.prior_jacobian(z), problem.prior_errors(z)])
    return np.asarray(np.linalg.qr(np.concatenate([*parts, prior]), mode="r"))


def best_starts(
    problem: EstimationProblem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    sigma: Float[np.ndarray, " compared"],
) -> Float[np.ndarray, "w states"]:
    """The initial state of each window that fits it best with these parameters, to first order about x."""
    triangle = problem.linearise(x, z, sigma).triangle
    return problem.shift_starts(x, _start_steps(triangle, problem.start_size, np.zeros(problem.free_size)))


def _huber_weights(
    problem: EstimationProblem,
    triangle: Float[np.ndarray, "w rows columns"],
    cost: Float[np.ndarray, " w"],
    loss: str,
) -> Float[np.ndarray, " w"]:
    if loss == "squares":
        return np.ones(len(triangle))
    n = problem.start_size
    reduced = cost - np.sum(triangle[:, :n, -1] ** 2, axis=1)
    q = np.maximum(reduced, 0.0) / np.maximum(problem.windows.counts.sum(axis=1), 1)
    size = np.sqrt(q)
    median = np.median(size)
    spread = max(1.4826 * float(np.median(np.abs(size - median))), _LEAST_SPREAD * float(median), 1e-300)
    return np.minimum(1.0, _HUBER / np.maximum((size - median) / spread, 1e-12))


class _Step(NamedTuple):
    """A step that does not raise the cost.

    Attributes:
        z, x: coordinates and initial states at its end.
        costs: of the windows there.
        cost: sum of squares there.
        whole: the step of the coordinates before it was shortened.
        share: of it that was taken.
        damping: with which it was computed.
    """

    z: Float[np.ndarray, " free"]
    x: Float[np.ndarray, "w states"]
    costs: WindowCosts
    cost: float
    whole: Float[np.ndarray, " free"]
    share: float
    damping: float


def _improving_step(
    problem: EstimationProblem,
    triangle: Float[np.ndarray, "w rows columns"],
    R: Float[np.ndarray, "k m"],
    start: tuple[Float[np.ndarray, " free"], Float[np.ndarray, "w states"]],
    sigma: Float[np.ndarray, " compared"],
    weight: Float[np.ndarray, " w"],
    cost: float,
    damping: float,
    negligible: tuple[Float[np.ndarray, " free"], float],
) -> _Step | None:
    """The first step from (z, x) that reduces the cost, with the initial states that belong to it; None where none does.

    An undamped one has to reduce it by a good part of what it promises. negligible: a step of coordinates below which it may as
    well raise the cost, since rounding counts as much there; and by how much.
    """
    z, x = start
    lower = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    while damping <= _MOST_DAMPING:
        whole = _levenberg_marquardt_step(R, z, lower, damping)
        is_small = bool(damping == 0.0 and np.all(np.abs(whole) < negligible[0]))
        for share in _SHARES if damping == 0.0 else (1.0,):
            new_z = z + share * whole
            new_z = np.where(new_z < lower + _LEAST_STEP, lower, new_z)
            new_x = problem.shift_starts(x, _start_steps(triangle, problem.start_size, new_z - z))
            costs = problem.costs(new_x, new_z, sigma)
            e = problem.prior_errors(new_z)
            new_cost = float(weight @ costs.total + e @ e)
            least_decrease = _SUFFICIENT * _linear_decrease(R, share * whole) if damping == 0.0 else 0.0
            least_decrease = -negligible[1] if is_small else least_decrease
            if new_cost <= cost * (1.0 + _ROUNDING) + _ROUNDING - least_decrease:
                return _Step(new_z, new_x, costs, new_cost, whole, share, damping)
        damping = max(10.0 * damping, _DAMPING)
    return None


def _next_length(
    step: _Step,
    start_residuals: Float[np.ndarray, "w tangent"],
    R: Float[np.ndarray, "rows columns"],
    weight: Float[np.ndarray, " w"],
    cost: float,
) -> float:
    """Length of the step after a whole one, in posterior standard deviations, as the cost shows it.

    Along a step of length l, a cost that is d above that to first order has a gradient of 2 d / l (from a wrong Hessian) to
    3 d / l (from third derivatives), and the next step is half as long; errors across the step are as large.

    Args:
        step: a whole step.
        start_residuals: of the initial states, before it.
        R: of [J r] before it.
        weight: of the windows.
        cost: before it.
    """
    decrease = _linear_decrease(R, step.whole)
    length = math.sqrt(max(decrease, _LEAST_STEP**2))
    excess = step.cost - (cost - decrease - float(weight @ np.sum(start_residuals**2, axis=1)))
    return float(max(_CURVATURE * abs(excess) / length, _CONTRACTION * length))


def _are_weights_settled(
    problem: EstimationProblem,
    step: _Step,
    triangle: Float[np.ndarray, "w rows columns"],
    loss: str,
    small: Float[np.ndarray, " free"],
) -> bool:
    """Whether the weights after a step would only lead to a small next one. triangle: after it, to first order."""
    if loss == "squares":
        return True
    weight = _huber_weights(problem, triangle, step.costs.total, loss)
    R = triangular_factor(problem, step.z, triangle, weight)
    lower = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    return bool(np.all(np.abs(_levenberg_marquardt_step(R, step.z, lower, 0.0)) < small))


def _linear_decrease(R: Float[np.ndarray, "rows columns"], dz: Float[np.ndarray, " free"]) -> float:
    """What a step reduces the cost by, to first order."""
    J, r = R[:, : len(dz)], R[:, -1]
    return float(r @ r - np.sum((J @ dz + r) ** 2))


def _levenberg_marquardt_step(
    R: Float[np.ndarray, "rows columns"],
    z: Float[np.ndarray, " free"],
    lower: Float[np.ndarray, " free"],
    damping: float,
) -> Float[np.ndarray, " free"]:
    """The damped step from the triangular factor of [J r], the best one above the lower bounds."""
    free = len(z)
    J, r = R[:free, :free], R[:free, -1]
    size = np.linalg.norm(J, axis=0)
    damped = np.concatenate([J / size, np.sqrt(damping) * np.eye(free)])
    least = (lower - z) * size
    step = lsq_linear(damped, -np.concatenate([r, np.zeros(free)]), (least, np.inf), method="bvls").x
    return np.where(step <= least, lower - z, step / size)


def _start_steps(
    triangle: Float[np.ndarray, "w rows columns"], n: int, dz: Float[np.ndarray, " free"]
) -> Float[np.ndarray, "w tangent"]:
    """Tangent steps of the initial states that belong to a step dz of the parameters."""
    rhs = triangle[:, :n, -1] + triangle[:, :n, n : n + len(dz)] @ dz
    return -np.linalg.solve(triangle[:, :n, :n], rhs[..., None])[..., 0]


def _triangle_after_step(
    triangle: Float[np.ndarray, "w rows columns"], n: int, dz: Float[np.ndarray, " free"]
) -> Float[np.ndarray, "w rows columns"]:
    """The triangular factors after a step dz and the initial states that belong to it, to first order."""
    result = triangle.copy()
    result[:, n:, -1] += triangle[:, n:, n : n + len(dz)] @ dz
    result[:, :n, -1] = 0.0
    return result
