"""Blocks of consecutive windows, within which residuals may be autocorrelated."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.fitting.gauss_newton import EstimationProblem
from rotorid.identification.fitting.windows import WindowData

BLOCK_LENGTH = 2.0
"""Length of a block of the jackknife, s."""

_MIN_BLOCKS = 14  # blocks: of flights too short for as many, blocks are shorter


def block_keys(
    data: WindowData, longest: float = BLOCK_LENGTH
) -> tuple[Float[np.ndarray, "blocks 2"], Int[np.ndarray, " w"]]:
    """Flight and position of each block, and the block of each window. longest: greatest length of a block, s."""
    window = float(np.max(data.end - data.start))
    length = min(longest, max(window, len(data.start) * window / _MIN_BLOCKS))
    keys = np.stack([data.flight, np.floor(data.start / length)], axis=1)
    found, block = np.unique(keys, axis=0, return_inverse=True)
    return found, block.ravel()


def sum_by_block(
    data: WindowData, g: Float[np.ndarray, "w ..."], longest: float = BLOCK_LENGTH
) -> Float[np.ndarray, "blocks ..."]:
    """Contributions of windows to a gradient or a Hessian, summed over each block. longest: as of `block_keys`."""
    keys, block = block_keys(data, longest)
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

    Args:
        problem: what is estimated.
        triangle, weight: of the windows (see `GaussNewtonResult`).
        longest: as of `block_keys`.
    """
    n = problem.start_size
    B, r = triangle[:, n:, n : n + problem.free_size], triangle[:, n:, -1]
    hessians = weight[:, None, None] * (np.swapaxes(B, 1, 2) @ B)
    gradients = weight[:, None] * np.einsum("wij,wi->wj", B, r)
    return sum_by_block(problem.data, hessians, longest), sum_by_block(problem.data, gradients, longest)


def jacobian_rows(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    triangle: Float[np.ndarray, "w rows columns"],
    weight: Float[np.ndarray, " w"],
) -> Float[np.ndarray, "all free"]:
    """J of all windows and, last, of the prior; J^T J is the full Hessian."""
    n, free = problem.start_size, problem.free_size
    B = np.sqrt(weight)[:, None, None] * triangle[:, n:, n : n + free]
    return np.concatenate([B.reshape(-1, free), problem.prior_jacobian(z)])
