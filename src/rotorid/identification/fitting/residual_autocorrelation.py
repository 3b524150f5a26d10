"""Variance inflation of each output for the autocorrelation of its residuals.

    c_o = (B - 1) / B sum_b d_bo^T W d_bo / tr(W^-1 H_o),    d_bo = (W - H_b)^-1 g_bo,    W = sum_o H_o + P

g_bo is the contribution of output o to the gradient of block b, one of B blocks; H_o that of the output to the Hessian,
H_b that of the block, P that of the prior. d_bo is the step of the estimate without block b of output o (see
`jackknife`). c_o is 1 for white residuals. For positively autocorrelated ones, such as those of attitudes and
velocities from an onboard estimator, it is the number of rows that carry the information of one independent row. It is
below 1 where residuals are of higher frequency than the effect of the parameters, such as the vibration of an airframe.
Weights from the size of residuals alone would overrate outputs with slow residuals.

Noise inflated by sqrt(c_o) gives each output the weight of its information. c_o of an output with little information is shrunk
towards that of the vector which it is a component of.

References: E. A. Morelli, V. Klein, Accuracy of aerodynamic model parameters estimated from flight test data, J. Guidance,
Control, and Dynamics 20 (1997); J. W. Miller, D. B. Dunson, Robust Bayesian inference via coarsening, J. Am. Stat. Assoc. 114
(2019).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from rotorid.identification.fitting.gauss_newton import EstimationProblem, GaussNewtonResult
from rotorid.identification.fitting.jackknife import MIN_BLOCKS, delete_block_steps
from rotorid.identification.fitting.window_blocks import (
    block_information,
    block_keys,
    jacobian_rows,
    sum_by_block,
)

_BLOCK = 1.0  # s; residuals may be autocorrelated within it
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
        c of each compared output. All outputs have one value where windows are corrected by measurements: the innovations of a
        predictor contain the model's error, which is no reason to weight one output less.
    """
    inflation = np.ones(len(sigma))
    if len(block_keys(problem.data, _BLOCK)[0]) < MIN_BLOCKS:
        return inflation
    moves = found.z > problem.coordinates.lower_bounds(problem.centre, problem.scale)
    R = np.asarray(
        np.linalg.qr(jacobian_rows(problem, found.z, found.triangle, found.weight)[:, moves], mode="r")
    )
    root = np.zeros((len(moves), len(R)))
    root[moves] = np.linalg.inv(R)
    ran = problem.predict(found.x, found.z, sigma)
    information, gradients = problem.output_information(ran, found.z, sigma, found.weight, root)
    gradients = sum_by_block(problem.data, gradients[..., moves], _BLOCK)
    within = block_information(problem, found.triangle, found.weight, _BLOCK)[0][:, moves][:, :, moves]
    steps = (delete_block_steps(within, gradients[:, o], R.T @ R) for o in range(len(sigma)))
    spread = np.array([np.sum((d @ R.T) ** 2) for d in steps])
    if problem.K is not None:
        return inflation * spread.sum() / max(information.sum(), _LEAST_INFORMATION)
    for place in vectors:
        if information[place].sum() > _LEAST_INFORMATION:
            together = spread[place].sum() / information[place].sum()
            inflation[place] = (spread[place] + _PRIOR_INFORMATION * together) / (
                information[place] + _PRIOR_INFORMATION
            )
    return inflation
