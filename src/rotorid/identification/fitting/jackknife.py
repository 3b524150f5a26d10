"""How uncertain a fit is by what happens to it without one block of its data: the delete-one-block jackknife.

    d_b = (H - H_b)^-1 g_b,    cov = (B - 1) / B sum_b d_b d_b^T

H_b and g_b are what block b adds to the Hessian and to the gradient at the optimum: d_b is the step that the fit takes without
it, to first order. Residuals may be coloured within a block, larger or smaller than the noise that was assumed, and a block
that the fit bent to has its full weight, unlike in a sandwich of the scores alone.

Few blocks leave a covariance that is singular. In the coordinates in which the model's own covariance is 1, it is therefore
drawn towards a multiple of what the data tell there, as far as it is uncertain (Ledoit and Wolf); and it is widened as
Student's quantile is over the normal one, so that 1.96 standard deviations are 95 %.

Flights differ by more than their noise: batteries, air, propellers. Where several are fitted together, what a flight as a whole
does to a number shows by how much,

    R = F / (F - 1) sum_f u_f^2 / sum_b d_b^2,    u_f = sum of d_b over the blocks of flight f, less their mean

which is about 1 where they differ by noise alone. A few flights tell R badly, so that it is drawn towards 1 as if two more
flights had said so (Smyth), and it never makes a number surer.

References: A. C. Cameron, D. L. Miller, A practitioner's guide to cluster-robust inference, J. Human Resources 50 (2015); B. E.
Hansen, Jackknife standard errors for clustered regression (2022); O. Ledoit, M. Wolf, A well-conditioned estimator for
large-dimensional covariance matrices, J. Multivariate Analysis 88 (2004); G. K. Smyth, Linear models and empirical Bayes
methods, Stat. Appl. Genet. Mol. Biol. 3 (2004).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import norm, t

LEAST = 8
"""Blocks from which on the jackknife tells anything."""

_ALIKE = 2  # flights that are as if they had differed by noise alone


def left_out(
    hessians: Float[np.ndarray, "blocks free free"],
    gradients: Float[np.ndarray, "blocks free"],
    whole: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "blocks free"]:
    """d_b, scaled so that the sum of their outer products is the covariance. whole: H, with what the prior adds."""
    count = len(gradients)
    steps = np.linalg.solve(whole - hessians, gradients[..., None])[..., 0]
    return np.sqrt((count - 1) / count) * steps


def widening(blocks: int, each: float = 1.0) -> float:
    """Factor on standard deviations from so many blocks. each: numbers by which each block tells how large they are."""
    return float(t.ppf(0.975, (blocks - 1) * max(each, 1.0)) / norm.ppf(0.975))


def between_flights(
    steps: Float[np.ndarray, "blocks numbers"], flight: Int[np.ndarray, " blocks"]
) -> Float[np.ndarray, " numbers"]:
    """Factor on the standard deviation of each number, 1 or more, by what flights differ. flight: of each block."""
    flights, of = np.unique(flight, return_inverse=True)
    more = len(flights) - 1
    if more < 1:
        return np.ones(steps.shape[1])
    whole = np.zeros((more + 1, steps.shape[1]))
    np.add.at(whole, of, steps - steps.mean(axis=0))  # the mean is what a prior holds against all of them
    within = np.sum(steps**2, axis=0)
    ratio = (more + 1) / more * np.sum(whole**2, axis=0) / np.maximum(within, 1e-300)
    drawn = (_ALIKE + more * np.where(within > 0, ratio, 1.0)) / (_ALIKE + more)
    return np.sqrt(np.maximum(drawn, 1.0))


def shrunk(
    steps: Float[np.ndarray, "blocks free"],
    root: Float[np.ndarray, "free free"],
    told: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "free free"]:
    """A root A of the covariance A A^T of these steps (`left_out`), drawn towards a multiple of the model's.

    root: of the model's covariance, the prior's part in it. told: the part of the data, in the coordinates in which the whole
    is 1: what they do not tell, no step moves.
    """
    blocks = len(steps)
    x = np.linalg.solve(root, steps.T).T * np.sqrt(blocks)
    S = x.T @ x / blocks
    target = float(np.trace(S) / max(np.trace(told), 1e-12)) * told
    apart = float(np.sum((S - target) ** 2))
    uncertain = float(np.sum(np.sum(x**2, axis=1) ** 2) - blocks * np.sum(S**2)) / blocks**2
    share = min(1.0, uncertain / apart) if apart > 0 else 1.0
    values, vectors = np.linalg.eigh((1.0 - share) * S + share * target)
    return root @ (vectors * np.sqrt(np.maximum(values, 0.0)))
