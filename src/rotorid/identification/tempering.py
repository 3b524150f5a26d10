"""How much flights say beside what was believed before, where their residuals hang together: less than their number suggests.

    c = sum_b |W^-T/2 g_b|^2 / tr(W^-T/2 H W^-1/2),    W = H + P

g_b are the scores of blocks of some seconds, H what the flights add to the Hessian, P what the prior does. Of white residuals
c is 1. Of coloured ones, which attitudes and velocities from an estimator leave, it is the number of rows that together say
what one would: then a flight in which hardly anything happened, but which has thousands of rows, draws numbers that it does
not tell far from their prior. Where that matters, the fit is made again with noise that is sqrt(c) times as large.

Reference: J. W. Miller, D. B. Dunson, Robust Bayesian inference via coarsening, J. Am. Stat. Assoc. 114 (2019).
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.identification.flight_opinions import scores_of
from rotorid.identification.jackknife import LEAST
from rotorid.identification.priors import Prior
from rotorid.identification.solving import SETTLED, Solved, settle

_WHITE: Final = 2.0  # c up to which residuals pass for white
_MATTERS: Final = 1.0  # standard deviations by which a number moves
_WIDE: Final = 1.5  # times the prior's, of a standard deviation that is more than was unknown before


def tempered(solved: Solved, priors: tuple[Prior, ...], loss: str, iterations: int) -> Solved:
    """A fit that believes its flights as far as their residuals allow. loss, iterations: as of `settle`."""
    scores = scores_of(solved)
    if len(scores.gradients) < LEAST:
        return solved
    H, P = scores.hessians.sum(axis=0), scores.prior.T @ scores.prior
    root = np.linalg.cholesky(np.linalg.inv(H + P))
    told = float(np.trace(root.T @ H @ root))
    c = float(np.sum((scores.gradients @ root) ** 2)) / max(told, 1e-12)
    if c < _WHITE:
        return solved
    less = np.linalg.inv(H / c + P)
    step = less @ scores.gradients.sum(axis=0) * (1.0 - 1.0 / c)
    wide = any(solved.fit.std[name] > _WIDE * solved.fit.prior_std[name] for name in solved.fit.names)
    if not wide and np.max(np.abs(step) / np.sqrt(np.diag(less))) < _MATTERS:
        return solved
    sigma = np.sqrt(c) * solved.sigma
    again = settle(
        solved.problem, priors, sigma, np.ones(len(sigma), bool), loss, iterations, solved.z, SETTLED
    )
    fit = dataclasses.replace(again.fit, noise=solved.fit.noise, rms_before=solved.fit.rms_before)
    return dataclasses.replace(again, fit=fit)
