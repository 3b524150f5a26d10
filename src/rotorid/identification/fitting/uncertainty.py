"""Covariance of an estimate, and weights of its outputs, from residuals that are autocorrelated within blocks of windows.

Delete-one-block jackknife:

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

Variance inflation of each output for the autocorrelation of its residuals:

    c_o = (B - 1) / B sum_b d_bo^T W d_bo / tr(W^-1 H_o),    d_bo = (W - H_b)^-1 g_bo,    W = sum_o H_o + P

g_bo is the contribution of output o to the gradient of block b, H_o that of the output to the Hessian, P that of the prior.
c_o is 1 for white residuals. For positively autocorrelated ones, such as those of attitudes and velocities from an onboard
estimator, it is the number of rows that carry the information of one independent row. It is below 1 where residuals are of
higher frequency than the effect of the parameters, such as the vibration of an airframe. Weights from the size of residuals
alone would overrate outputs with slow residuals. Noise inflated by sqrt(c_o) gives each output the weight of its information.
c_o of an output with little information is shrunk towards that of the vector which it is a component of.

References: A. C. Cameron, D. L. Miller, A practitioner's guide to cluster-robust inference, J. Human Resources 50 (2015); B. E.
Hansen, Jackknife standard errors for clustered regression (2022); O. Ledoit, M. Wolf, A well-conditioned estimator for
large-dimensional covariance matrices, J. Multivariate Analysis 88 (2004); G. K. Smyth, Linear models and empirical Bayes
methods, Stat. Appl. Genet. Mol. Biol. 3 (2004); E. A. Morelli, V. Klein, Accuracy of aerodynamic model parameters estimated
from flight test data, J. Guidance, Control, and Dynamics 20 (1997); J. W. Miller, D. B. Dunson, Robust Bayesian inference via
coarsening, J. Am. Stat. Assoc. 114 (2019).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri, stdtrit

from rotorid.identification.fitting.gauss_newton import (
    GaussNewtonResult,
    triangular_factor,
)
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.windows import Windows

BLOCK_LENGTH = 2.0
"""Length of a block of the jackknife, s."""

_TARGET_BLOCKS = 14  # flights too short for as many blocks have shorter blocks


def block_keys(
    windows: Windows, longest: float = BLOCK_LENGTH
) -> tuple[Float[np.ndarray, "blocks 2"], Int[np.ndarray, " w"]]:
    """Flight and position of each block, and the block of each window. longest: greatest length of a block, s."""
    window = float(np.max(windows.end - windows.start))
    length = min(longest, max(window, len(windows.start) * window / _TARGET_BLOCKS))
    keys = np.stack([windows.flight, np.floor(windows.start / length)], axis=1)
    found, block = np.unique(keys, axis=0, return_inverse=True)
    return found, block.ravel()


def sum_by_block(
    windows: Windows, g: Float[np.ndarray, "w ..."], longest: float = BLOCK_LENGTH
) -> Float[np.ndarray, "blocks ..."]:
    """Contributions of windows to a gradient or a Hessian, summed over each block. longest: as of `block_keys`."""
    keys, block = block_keys(windows, longest)
    found = np.zeros((len(keys), *g.shape[1:]))
    np.add.at(found, block, g)
    return found


def block_information(
    problem: EstimationProblem,
    triangle: Float[np.ndarray, "w rows columns"],
    weight: Float[np.ndarray, " w"],
    longest: float = BLOCK_LENGTH,
) -> tuple[Float[np.ndarray, "blocks free free"], Float[np.ndarray, "blocks free"]]:
    """Contribution of each block to the Hessian and to the gradient.

    A block depends on the numbers of its own flight only: its products are formed of those columns.

    Args:
        problem: what is estimated.
        triangle, weight: of the windows (see `GaussNewtonResult`).
        longest: as of `block_keys`.
    """
    n, free = problem.start_size, problem.free_size
    keys, block = block_keys(problem.windows, longest)
    root = np.sqrt(weight)
    hessians, gradients = np.zeros((len(keys), free, free)), np.zeros((len(keys), free))
    for b in range(len(keys)):
        mine = np.flatnonzero(block == b)
        B = (root[mine, None, None] * triangle[mine, n:, n : n + free]).reshape(-1, free)
        r = (root[mine, None] * triangle[mine, n:, -1]).ravel()
        used = np.flatnonzero(B.any(axis=0))
        hessians[b][np.ix_(used, used)] = B[:, used].T @ B[:, used]
        gradients[b, used] = B[:, used].T @ r
    return hessians, gradients


MIN_BLOCKS = 8
"""Least number of blocks for the jackknife."""

_PRIOR_FREEDOM = 2  # flights, of the prior that flights differ by noise alone


def delete_block_steps(
    hessians: Float[np.ndarray, "blocks free free"],
    gradients: Float[np.ndarray, "blocks *some free"],
    whole: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "blocks *some free"]:
    """d_b of each block, scaled so that the sum of their outer products is the covariance.

    Args:
        hessians: of each block.
        gradients: of each block, or several of each, such as those of single outputs.
        whole: H, with the prior's contribution.
    """
    count = len(gradients)
    several = gradients.reshape(count, -1, len(whole))
    steps = np.swapaxes(np.linalg.solve(whole - hessians, np.swapaxes(several, 1, 2)), 1, 2)
    return np.sqrt((count - 1) / count) * steps.reshape(gradients.shape)


def student_t_factor(blocks: int, each: float = 1.0) -> float:
    """Factor on standard deviations estimated from a number of blocks. each: scalars by which each block shows their size."""
    return float(stdtrit((blocks - 1) * max(each, 1.0), 0.975) / ndtri(0.975))


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


INFLATION_BLOCK = 1.0
"""Length of a block of `variance_inflation`, s; residuals may be autocorrelated within it."""

_PRIOR_INFORMATION = 1.0  # scalars, of the prior that the outputs of one vector have the same inflation
_LEAST_INFORMATION = 1e-3  # scalars


def variance_inflation(
    problem: EstimationProblem,
    found: GaussNewtonResult,
    sigma: Float[np.ndarray, " compared"],
    vectors: Iterable[slice],
) -> Float[np.ndarray, " compared"]:
    """c of each compared output at a minimum; 1 for all where the flights have too few blocks.

    Args:
        problem: what is estimated.
        found: the minimum.
        sigma: noise of the compared outputs in that minimisation, in their units.
        vectors: slices of outputs that are components of one vector.
    Returns:
        c of each compared output. All outputs have one value where measured states are corrected by their measurements: the
        innovations of a predictor contain the model's error, which is no reason to weight one output less. Where only states
        without a measurement of their own are corrected, such as slow forces, the predictions of the measured ones are those
        of output error, and each has its own value.
    """
    inflation = np.ones(len(sigma))
    if len(block_keys(problem.windows, INFLATION_BLOCK)[0]) < MIN_BLOCKS:
        return inflation
    moves = found.z > problem.coordinates.lower_bounds(problem.centre, problem.scale)
    factor = triangular_factor(problem, found.z, found.triangle, found.weight)
    R = np.asarray(np.linalg.qr(factor[:, :-1][:, moves], mode="r"))
    root = np.zeros((len(moves), len(R)))
    root[moves] = np.linalg.inv(R)
    information, gradients = problem.output_information(found.x, found.z, sigma, found.weight, root)
    gradients = sum_by_block(problem.windows, gradients[..., moves], INFLATION_BLOCK)
    within = block_information(problem, found.triangle, found.weight, INFLATION_BLOCK)[0][:, moves][
        :, :, moves
    ]
    steps = delete_block_steps(within, gradients, R.T @ R)
    spread = np.sum((steps @ R.T) ** 2, axis=(0, 2))
    if _corrects_measured_states(problem):
        return inflation * spread.sum() / max(information.sum(), _LEAST_INFORMATION)
    for place in vectors:
        if information[place].sum() > _LEAST_INFORMATION:
            together = spread[place].sum() / information[place].sum()
            inflation[place] = (spread[place] + _PRIOR_INFORMATION * together) / (
                information[place] + _PRIOR_INFORMATION
            )
    return inflation


def _corrects_measured_states(problem: EstimationProblem) -> bool:
    """Whether the windows' predictor corrects a state by the compared output of the same name."""
    if problem.K is None:
        return False
    tangent = problem.shooting.system.states.tangent
    return any(
        bool(np.any(problem.K[tangent[name]])) for name in problem.shooting.compared if name in tangent
    )
