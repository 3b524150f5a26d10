"""Estimates of some of the flights of a fit by themselves, with covariance.

    d = -(H + P)^-1 (g + p),    cov = (H + P)^-1 (sum_b g_b g_b^T + P) (H + P)^-1,    g_b <- g_b + H_b d

H, g: Hessian and gradient of these flights at the optimum of all; P, p: of the prior; b: blocks of consecutive windows. The
step d is of the fit's coordinates, whose every value is physically consistent (see `priors`): an inertia stays that of a rigid
body. To first order no fit is repeated (`per_flight_estimate`). First order does not hold for large steps; `refit_flights`
minimises the cost of these flights alone, with the noise of the fit of all.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import SettingError
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.gauss_newton import gauss_newton
from rotorid.identification.fitting.uncertainty import block_information, block_keys, student_t_factor

_MIN_BLOCKS = 4  # blocks
_REFIT_WINDOWS = 240  # greatest number
_REFIT_STEPS = 25
_REFIT_TOLERANCE = 0.2  # standard deviations


class PerFlightEstimate(NamedTuple):
    """Attributes:
    values: of the fit's quantities, in their units and order.
    root: A of their covariance A A^T.
    posterior, prior: roots of the covariance after and before these flights if the model were exact.
    """

    values: Float[np.ndarray, " quantities"]
    root: Float[np.ndarray, "quantities columns"]
    posterior: Float[np.ndarray, "quantities free"]
    prior: Float[np.ndarray, "quantities free"]

    def information_gain(self, a: Float[np.ndarray, " quantities"]) -> float:
        """Share of the prior standard deviation of a linear combination of the quantities that these flights alone remove."""
        return 1.0 - float(
            np.linalg.norm(a @ self.posterior) / max(float(np.linalg.norm(a @ self.prior)), 1e-300)
        )


class BlockScores(NamedTuple):
    """Contributions of blocks of windows; quantities at their bound have none.

    Attributes:
        flight: of each block.
        hessians, gradients: contribution of each block.
        prior: root of the prior's contribution to the Hessian.
        prior_gradient: the prior's contribution to the gradient.
    """

    flight: Int[np.ndarray, " blocks"]
    hessians: Float[np.ndarray, "blocks free free"]
    gradients: Float[np.ndarray, "blocks free"]
    prior: Float[np.ndarray, "rows free"]
    prior_gradient: Float[np.ndarray, " free"]


def block_scores(estimation: Estimation) -> BlockScores:
    """Contributions of the blocks of a fit, at its optimum."""
    problem = estimation.problem
    hessians, gradients = block_information(problem, estimation.triangle, estimation.weight)
    prior, error = problem.prior_jacobian(estimation.z), problem.prior_errors(estimation.z)
    prior_gradient = prior.T @ error
    is_at_bound = estimation.z <= problem.coordinates.lower_bounds(problem.centre, problem.scale)
    hessians[:, is_at_bound], gradients[:, is_at_bound] = 0.0, 0.0
    hessians[:, :, is_at_bound] = 0.0
    prior_gradient[is_at_bound] = 0.0
    flight = block_keys(problem.windows)[0][:, 0].astype(int)
    return BlockScores(flight, hessians, gradients, prior, prior_gradient)


def per_flight_estimate(
    estimation: Estimation, scores: BlockScores, flights: Bool[np.ndarray, " flights"]
) -> PerFlightEstimate | None:
    """The estimate of these flights by themselves, to first order; None where they have too few blocks."""
    is_used = flights[scores.flight]
    if is_used.sum() < _MIN_BLOCKS:
        return None
    problem = estimation.problem
    P = scores.prior.T @ scores.prior
    H, g = scores.hessians[is_used], scores.gradients[is_used]
    inverse = np.linalg.inv(H.sum(axis=0) + P)
    step = -inverse @ (g.sum(axis=0) + scores.prior_gradient)
    leave_one_out = (g + H @ step) * student_t_factor(int(is_used.sum()))
    lower = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    z = np.maximum(estimation.z + step, lower)
    slopes = problem.quantity_jacobian(z)
    root = slopes @ inverse @ np.concatenate([leave_one_out, scores.prior]).T
    posterior = slopes @ np.linalg.cholesky(inverse)
    return PerFlightEstimate(problem.quantities(z), root, posterior, slopes @ np.linalg.inv(scores.prior))


def refit_flights(
    estimation: Estimation, flights: Bool[np.ndarray, " flights"], loss: str = "huber"
) -> PerFlightEstimate | None:
    """The estimate of these flights by themselves, by a fit of their windows alone.

    Args:
        estimation: of all flights; its noise and process noise are kept.
        flights: which are used.
        loss: see `gauss_newton`.
    Returns:
        The estimate; None where they have too few blocks, or where the fit does not converge.
    """
    whole = estimation.problem
    mine = np.flatnonzero(flights[whole.windows.flight])
    mine = mine[np.unique(np.linspace(0, len(mine) - 1, min(len(mine), _REFIT_WINDOWS)).astype(int))]
    problem = dataclasses.replace(whole, windows=whole.windows.take(mine))
    if len(mine) == 0:
        return None
    try:
        result = gauss_newton(
            problem,
            estimation.z,
            estimation.x[mine],
            estimation.sigma,
            loss,
            _REFIT_STEPS,
            _REFIT_TOLERANCE,
        )
    except SettingError:
        return None
    if not result.converged:
        return None
    own = dataclasses.replace(
        estimation, problem=problem, z=result.z, x=result.x, triangle=result.triangle, weight=result.weight
    )
    return per_flight_estimate(own, block_scores(own), flights)
