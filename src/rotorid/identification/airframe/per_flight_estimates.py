"""Estimates of some of the flights of a fit by themselves, to first order, with covariance.

    d = -(H + P)^-1 (g + p),    cov = (H + P)^-1 (sum_b g_b g_b^T + P) (H + P)^-1,    g_b <- g_b + H_b d

H, g: Hessian and gradient of these flights at the optimum of all; P, p: of the prior; b: blocks of consecutive windows.
No fit is repeated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.uncertainty import block_information, block_keys, student_t_factor

_MIN_BLOCKS = 4  # blocks


class PerFlightEstimate(NamedTuple):
    """Attributes:
    values: of the fit's quantities, in their units and order.
    root: A of their covariance A A^T.
    """

    values: Float[np.ndarray, " quantities"]
    root: Float[np.ndarray, "quantities columns"]


class BlockScores(NamedTuple):
    """Contributions of blocks of windows; quantities at their bound have none.

    Attributes:
        flight: of each block.
        hessians, gradients: contribution of each block.
        prior: root of the prior's contribution to the Hessian.
    """

    flight: Int[np.ndarray, " blocks"]
    hessians: Float[np.ndarray, "blocks free free"]
    gradients: Float[np.ndarray, "blocks free"]
    prior: Float[np.ndarray, "rows free"]


def block_scores(estimation: Estimation) -> BlockScores:
    """Contributions of the blocks of a fit, at its optimum."""
    problem = estimation.problem
    hessians, gradients = block_information(problem, estimation.triangle, estimation.weight)
    is_at_bound = estimation.z <= problem.coordinates.lower_bounds(problem.centre, problem.scale)
    hessians[:, is_at_bound], gradients[:, is_at_bound] = 0.0, 0.0
    hessians[:, :, is_at_bound] = 0.0
    flight = block_keys(problem.data)[0][:, 0].astype(int)
    return BlockScores(flight, hessians, gradients, problem.prior_jacobian(estimation.z))


def per_flight_estimate(
    estimation: Estimation, scores: BlockScores, flights: Bool[np.ndarray, " flights"]
) -> PerFlightEstimate | None:
    """The estimate of these flights by themselves; None where they have too few blocks."""
    is_used = flights[scores.flight]
    if is_used.sum() < _MIN_BLOCKS:
        return None
    P, p = scores.prior.T @ scores.prior, -scores.gradients.sum(axis=0)
    H, g = scores.hessians[is_used], scores.gradients[is_used]
    inverse = np.linalg.inv(H.sum(axis=0) + P)
    step = -inverse @ (g.sum(axis=0) + p)
    leave_one_out = (g + H @ step) * student_t_factor(int(is_used.sum()))
    slopes = estimation.problem.quantity_jacobian(estimation.z)
    root = slopes @ inverse @ np.concatenate([leave_one_out, scores.prior]).T
    return PerFlightEstimate(estimation.problem.quantities(estimation.z) + slopes @ step, root)
