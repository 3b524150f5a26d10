"""Blocks of consecutive windows, within which residuals may hang together."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.search import Problem
from rotorid.identification.segments import Segments

LENGTH = 2.0
"""s of a block, by which the jackknife counts."""

_ENOUGH = 14  # blocks: of flights too short for as many, blocks are shorter


def block_keys(
    data: Segments, longest: float = LENGTH
) -> tuple[Float[np.ndarray, "blocks 2"], Int[np.ndarray, " w"]]:
    """Flight and place in it of each block, and the block of each window. longest: of a block, s."""
    window = float(np.max(data.end - data.start))
    length = min(longest, max(window, len(data.start) * window / _ENOUGH))
    keys = np.stack([data.flight, np.floor(data.start / length)], axis=1)
    found, block = np.unique(keys, axis=0, return_inverse=True)
    return found, block.ravel()


def summed(
    data: Segments, g: Float[np.ndarray, "w ..."], longest: float = LENGTH
) -> Float[np.ndarray, "blocks ..."]:
    """What windows add to a gradient or a Hessian, summed over each block. longest: as of `block_keys`."""
    keys, block = block_keys(data, longest)
    found = np.zeros((len(keys), *g.shape[1:]))
    np.add.at(found, block, g)
    return found


def block_sums(
    problem: Problem,
    triangle: Float[np.ndarray, "w rows columns"],
    weight: Float[np.ndarray, " w"],
    longest: float = LENGTH,
) -> tuple[Float[np.ndarray, "blocks free free"], Float[np.ndarray, "blocks free"]]:
    """What each block adds to the Hessian and to the gradient. triangle, weight: of windows (see `Found`). longest: as of
    `block_keys`."""
    n = problem.start
    B, r = triangle[:, n:, n : n + problem.free], triangle[:, n:, -1]
    hessians = weight[:, None, None] * (np.swapaxes(B, 1, 2) @ B)
    gradients = weight[:, None] * np.einsum("wij,wi->wj", B, r)
    return summed(problem.data, hessians, longest), summed(problem.data, gradients, longest)


def rows_of(
    problem: Problem,
    z: Float[np.ndarray, " free"],
    triangle: Float[np.ndarray, "w rows columns"],
    weight: Float[np.ndarray, " w"],
) -> Float[np.ndarray, "all free"]:
    """J of the windows and, last, of the prior: J^T J is the whole Hessian."""
    n, free = problem.start, problem.free
    B = np.sqrt(weight)[:, None, None] * triangle[:, n:, n : n + free]
    return np.concatenate([B.reshape(-1, free), problem.prior_slopes(z)])
