"""What some of the flights of a fit would have found by themselves, to first order, and how well.

    d = -(H + P)^-1 (g + p),    cov = (H + P)^-1 (sum_b g_b g_b^T + P) (H + P)^-1,    g_b <- g_b + H_b d

H, g: Hessian and gradient of these flights at the optimum of all; P, p: of the prior; b: blocks of consecutive windows.
Nothing is fitted anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.identification.blocks import block_keys, block_sums
from rotorid.identification.jackknife import widening
from rotorid.identification.solving import Solved

_FEWEST = 4  # blocks


class Opinion(NamedTuple):
    """values: of the fit's quantities, in their units and order. root: A of their covariance A A^T."""

    values: Float[np.ndarray, " quantities"]
    root: Float[np.ndarray, "quantities columns"]


class Scores(NamedTuple):
    """Of blocks of windows: the flight of each, what it adds to Hessian and gradient; and the prior's root. What rests at its
    bound stays there."""

    flight: Int[np.ndarray, " blocks"]
    hessians: Float[np.ndarray, "blocks free free"]
    gradients: Float[np.ndarray, "blocks free"]
    prior: Float[np.ndarray, "rows free"]


def scores_of(solved: Solved) -> Scores:
    """Of a fit's windows, at its optimum."""
    problem = solved.problem
    hessians, gradients = block_sums(problem, solved.triangle, solved.weight)
    rests = solved.z <= problem.coordinates.least(problem.centre, problem.scale)
    hessians[:, rests], gradients[:, rests] = 0.0, 0.0
    hessians[:, :, rests] = 0.0
    flight = block_keys(problem.data)[0][:, 0].astype(int)
    return Scores(flight, hessians, gradients, problem.prior_slopes(solved.z))


def opinion(solved: Solved, scores: Scores, flights: Bool[np.ndarray, " flights"]) -> Opinion | None:
    """Of these flights; None where they are too short to have one."""
    use = flights[scores.flight]
    if use.sum() < _FEWEST:
        return None
    P, p = scores.prior.T @ scores.prior, -scores.gradients.sum(axis=0)
    H, g = scores.hessians[use], scores.gradients[use]
    inverse = np.linalg.inv(H.sum(axis=0) + P)
    step = -inverse @ (g.sum(axis=0) + p)
    left = (g + H @ step) * widening(int(use.sum()))
    slopes = solved.problem.quantity_slopes(solved.z)
    root = slopes @ inverse @ np.concatenate([left, scores.prior]).T
    return Opinion(solved.problem.quantities(solved.z) + slopes @ step, root)
