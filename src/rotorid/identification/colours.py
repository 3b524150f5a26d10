"""How much each output says of the parameters, where its residuals hang together: more or less than their size suggests.

    c_o = (B - 1) / B sum_b d_bo^T W d_bo / tr(W^-1 H_o),    d_bo = (W - H_b)^-1 g_bo,    W = sum_o H_o + P

g_bo: what output o adds to the gradient of block b, one of B of some seconds; H_o: to the Hessian; H_b: likewise, what the
block does; P: the prior. d_bo is how the fit would move without it (see `jackknife`). Of white residuals c is 1. Of coloured
ones, as attitudes and velocities from an estimator leave them, it is the number of rows that together say what one would; and
it is below 1 where residuals come and go faster than the parameters act: the shaking of an airframe hides little of how it
turns. Weighed by size alone, outputs that wander outvote those that shake.

Noise of sqrt(c_o) times its size in each output makes the rows count as what they say. An output that says little tells little
of its own colour: it is drawn towards that of the vector to which it belongs.

References: E. A. Morelli, V. Klein, Accuracy of aerodynamic model parameters estimated from flight test data, J. Guidance,
Control, and Dynamics 20 (1997); J. W. Miller, D. B. Dunson, Robust Bayesian inference via coarsening, J. Am. Stat. Assoc. 114
(2019).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from rotorid.identification.blocks import block_keys, block_sums, rows_of, summed
from rotorid.identification.jackknife import LEAST, left_out
from rotorid.identification.search import Found, Problem

_BLOCK = 1.0  # s: within it residuals hang together, and the more blocks there are, the surer is the colour
_ALIKE = 1.0  # numbers that outputs of one vector are as if they had told with one colour
_LITTLE = 1e-3  # numbers that a vector must tell for a colour


def colours_of(
    problem: Problem, found: Found, sigma: Float[np.ndarray, " compared"], vectors: Iterable[slice]
) -> Float[np.ndarray, " compared"]:
    """c of each compared output at the end of a search; 1 of all where the flights are too short to tell.

    sigma: noise of the outputs in that search. vectors: which outputs belong together. Of windows that follow what was
    measured all do, and have one colour: what a predictor leaves is the model's error, no reason to trust one output less.
    """
    colours = np.ones(len(sigma))
    if len(block_keys(problem.data, _BLOCK)[0]) < LEAST:
        return colours
    moves = found.z > problem.coordinates.least(problem.centre, problem.scale)
    R = np.asarray(np.linalg.qr(rows_of(problem, found.z, found.triangle, found.weight)[:, moves], mode="r"))
    root = np.zeros((len(moves), len(R)))
    root[moves] = np.linalg.inv(R)
    ran = problem.run(found.x, found.z, sigma)
    told, gradients = problem.by_output(ran, found.z, sigma, found.weight, root)
    gradients = summed(problem.data, gradients[..., moves], _BLOCK)
    within = block_sums(problem, found.triangle, found.weight, _BLOCK)[0][:, moves][:, :, moves]
    steps = (left_out(within, gradients[:, o], R.T @ R) for o in range(len(sigma)))
    spread = np.array([np.sum((d @ R.T) ** 2) for d in steps])
    if problem.K is not None:
        return colours * spread.sum() / max(told.sum(), _LITTLE)
    for place in vectors:
        if told[place].sum() > _LITTLE:
            together = spread[place].sum() / told[place].sum()
            colours[place] = (spread[place] + _ALIKE * together) / (told[place] + _ALIKE)
    return colours
