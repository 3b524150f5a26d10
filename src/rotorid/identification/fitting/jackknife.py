"""Covariance of an estimate by the delete-one-block jackknife.

    d_b = (H - H_b)^-1 g_b,    cov = (B - 1) / B sum_b d_b d_b^T

H_b and g_b are the contributions of block b to the Hessian and to the gradient at the optimum; d_b is the step of the estimate
without the block, to first order. Residuals may be autocorrelated within a block, and larger or smaller than the assumed noise.
Unlike in a sandwich estimate from the scores alone, blocks with high leverage keep their full influence.

With few blocks the covariance is singular. It is shrunk, in coordinates in which the model covariance is 1, towards a multiple
of the data's part of it, by the weight of Ledoit and Wolf, and scaled by the ratio of Student's quantile to the normal one, so
that 1.96 standard deviations are 95 %.

Flights differ by more than their noise: batteries, air, propellers. With several flights, the ratio of variances

    R = F / (F - 1) sum_f u_f^2 / sum_b d_b^2,    u_f = sum of d_b over the blocks of flight f, less their mean

is about 1 where they differ by noise alone. R of a few flights is uncertain; it is shrunk towards 1 by two prior degrees of
freedom (Smyth), and it never reduces a standard deviation.

References: A. C. Cameron, D. L. Miller, A practitioner's guide to cluster-robust inference, J. Human Resources 50 (2015); B. E.
Hansen, Jackknife standard errors for clustered regression (2022); O. Ledoit, M. Wolf, A well-conditioned estimator for
large-dimensional covariance matrices, J. Multivariate Analysis 88 (2004); G. K. Smyth, Linear models and empirical Bayes
methods, Stat. Appl. Genet. Mol. Biol. 3 (2004).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm, t

MIN_BLOCKS = 8
"""Least number of blocks for the jackknife."""

_PRIOR_FREEDOM = 2  # flights, of the prior that flights differ by noise alone


def delete_block_steps(
    hessians: Float[np.ndarray, "blocks free free"],
    gradients: Float[np.ndarray, "blocks free"],
    whole: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "blocks free"]:
    """d_b of each block, scaled so that the sum of their outer products is the covariance. whole: H, with the prior's
    contribution."""
    count = len(gradients)
    steps = np.linalg.solve(whole - hessians, gradients[..., None])[..., 0]
    return np.sqrt((count - 1) / count) * steps


def student_t_factor(blocks: int, each: float = 1.0) -> float:
    """Factor on standard deviations estimated from a number of blocks. each: scalars by which each block shows their size."""
    return float(t.ppf(0.975, (blocks - 1) * max(each, 1.0)) / norm.ppf(0.975))


def between_flight_factor(
    steps: Float[np.ndarray, "blocks numbers"], flight: Int[np.ndarray, " blocks"]
) -> Float[np.ndarray, " numbers"]:
    """Factor (1 or more) on the standard deviation of each quantity for the variation between flights.

    Args:
        steps: d_b in the quantities.
        flight: of each block.
    """
    flights, of = np.unique(flight, return_inverse=True)
    more = len(flights) - 1
    if more < 1:
        return np.ones(steps.shape[1])
    whole = np.zeros((more + 1, steps.shape[1]))
    np.add.at(whole, of, steps - steps.mean(axis=0))  # the mean is the pull of the prior on all of them
    within = np.sum(steps**2, axis=0)
    ratio = (more + 1) / more * np.sum(whole**2, axis=0) / np.maximum(within, 1e-300)
    shrunk_ratio = (_PRIOR_FREEDOM + more * np.where(within > 0, ratio, 1.0)) / (_PRIOR_FREEDOM + more)
    return np.sqrt(np.maximum(shrunk_ratio, 1.0))


def shrink_covariance(
    steps: Float[np.ndarray, "blocks free"],
    root: Float[np.ndarray, "free free"],
    data_part: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "free free"]:
    """A root A of the covariance A A^T of these steps, shrunk towards a multiple of the model covariance.

    Args:
        steps: of `delete_block_steps`.
        root: of the model covariance, with the prior's part.
        data_part: the data's part of it, in the coordinates in which all of it is 1; directions outside of it do not vary.
    """
    blocks = len(steps)
    x = np.linalg.solve(root, steps.T).T * np.sqrt(blocks)
    S = x.T @ x / blocks
    target = float(np.trace(S) / max(np.trace(data_part), 1e-12)) * data_part
    apart = float(np.sum((S - target) ** 2))
    uncertain = float(np.sum(np.sum(x**2, axis=1) ** 2) - blocks * np.sum(S**2)) / blocks**2
    share = min(1.0, uncertain / apart) if apart > 0 else 1.0
    values, vectors = np.linalg.eigh((1.0 - share) * S + share * target)
    return root @ (vectors * np.sqrt(np.maximum(values, 0.0)))
