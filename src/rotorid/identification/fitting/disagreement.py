"""Disagreement of disjoint parts of the data, or of two frequency bands, about the parameters; covariance that contains it.

A split divides the data into two parts k with a Hessian H_k and gradients g_kb of blocks b each, at the optimum of all data.
To first order, each part alone, with a prior of precision P about the estimate of all data, estimates

    theta_k = theta - S (H_k + P)^-1 (sum_b g_kb - G_k),    G_k = H_k H^-1 G,    y = W theta,    W = K^-1/2 D^-1

S: derivatives of the quantities by the coordinates; G: gradient of all data, which balances that of the prior; D, K: standard
deviations and correlation of the estimate of all data. The components of y have variance 1, are uncorrelated, and
are each as close to one quantity as possible (ZCA-cor whitening). d = y_1 - y_2 has by H_k the variance s_m^2, by
the scatter of the blocks s_b^2, and s is the larger one; with the prior as an observation of each part it has s_p^2. What of d
exceeds the noise,

    e_j = d_j sqrt(1 - t^2 s_j^2 / d_j^2)      where |d_j| > t s_j and s_p,j <= 4, else 0

with t the two-sided 99.5 % quantile of Student's distribution with B - 2 degrees of freedom, is the disagreement, and

    cov <- cov + sum_splits (W^-1 e) (W^-1 e)^T

so that no standard deviation is smaller than what the parts disagree by. A part that does not identify a component by itself
has a large s_p (two equal halves have 2) and takes no part. Combinations of quantities that are identified far better than the
quantities themselves, such as the thrust in hover, are compared as well as these. Parts of a right model differ by noise; then
the covariance is unchanged, mostly.

References: G. C. Chow, Tests of equality between sets of coefficients in two linear regressions, Econometrica 28 (1960);
R. DerSimonian, N. Laird, Meta-analysis in clinical trials, Controlled Clinical Trials 7 (1986); A. Kessy, A. Lewin, K.
Strimmer, Optimal whitening and decorrelation, The American Statistician 72 (2018); B. Wahlberg, L. Ljung, Design variables for
bias distribution in transfer function estimation, IEEE Trans. Automatic Control 31 (1986).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtrit

from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.result import Fit
from rotorid.identification.fitting.uncertainty import MIN_BLOCKS, block_keys, sum_by_block

_QUANTILE: Final = 0.9975  # 99.5 %, two-sided
_MOST_VARIANCE: Final = 16.0  # s_p^2
_PRIOR_SHARE: Final = 1e-6  # of P, that is added to a singular H
_LEAST_EIGENVALUE: Final = 1e-9  # of a correlation


class PartInformation(NamedTuple):
    """Contribution of a part of the data to the Hessian, and of each of its blocks to the gradient, at the optimum."""

    hessian: Float[np.ndarray, "free free"]
    gradients: Float[np.ndarray, "blocks free"]


class Split(NamedTuple):
    """A division of the data into two parts. name: what the parts differ in."""

    name: str
    parts: tuple[PartInformation, PartInformation]


class Disagreement(NamedTuple):
    """What the estimates of the two parts of a split disagree by, beyond their noise. difference: of the quantities, in their
    units; 0 where they agree."""

    name: str
    difference: Float[np.ndarray, " quantities"]


class _Comparison(NamedTuple):
    """d, s^2 and s_p^2 of a split."""

    difference: Float[np.ndarray, " quantities"]
    variance: Float[np.ndarray, " quantities"]
    posterior: Float[np.ndarray, " quantities"]


def window_splits(estimation: Estimation, groups: Mapping[str, Bool[np.ndarray, " w"]]) -> tuple[Split, ...]:
    """Splits of the windows of a fit. groups: by name of the split, the windows of its first part."""
    gradients = _window_gradients(estimation)
    everything = np.ones(len(gradients), bool)
    whole = _hessian(estimation, everything)
    splits = []
    for name, is_first in groups.items():
        first = _hessian(estimation, is_first)
        by_block = [
            sum_by_block(estimation.problem.windows, np.where(rows[:, None], gradients, 0.0))
            for rows in (is_first, ~is_first)
        ]
        splits.append(
            Split(name, (PartInformation(first, by_block[0]), PartInformation(whole - first, by_block[1])))
        )
    return tuple(splits)


def band_splits(estimation: Estimation, modes: Sequence[int]) -> tuple[Split, ...]:
    """Splits of the residuals of a fit into the slowest cosines of each window and the rest.

    Args:
        estimation: the fit.
        modes: numbers of cosines; with m of them, a window of T seconds is split at (m - 1) / (2 T) Hz.
    """
    problem = estimation.problem
    point = estimation.x, estimation.z, estimation.sigma
    low = problem.low_band_information(*point, estimation.weight, tuple(modes))
    everything = np.ones(len(estimation.weight), bool)
    whole, gradients = _hessian(estimation, everything), _window_gradients(estimation)
    splits = []
    for hessian, low_gradients in low:
        rest = sum_by_block(problem.windows, gradients - low_gradients)
        slow = PartInformation(hessian, sum_by_block(problem.windows, low_gradients))
        splits.append(Split("frequency", (slow, PartInformation(whole - hessian, rest))))
    return tuple(splits)


def disagreements(estimation: Estimation, splits: Sequence[Sequence[Split]]) -> tuple[Disagreement, ...]:
    """What the parts of each split disagree by.

    Args:
        estimation: the fit.
        splits: one or several alternatives each, such as bands with different edges: each component is taken from the one
            whose parts identify it best.
    Returns:
        A disagreement for each, none where the flights have too few blocks.
    """
    count = len(block_keys(estimation.problem.windows)[0])
    if count < MIN_BLOCKS:
        return ()
    whitening, colouring = _whitening(estimation.fit)
    limit = float(stdtrit(count - 2, _QUANTILE)) ** 2
    found = []
    for alternatives in splits:
        compared = [_compare(estimation, split, whitening) for split in alternatives]
        best = np.argmin([c.posterior for c in compared], axis=0)
        d, variance, posterior = (
            np.choose(best, [getattr(c, name) for c in compared]) for name in _Comparison._fields
        )
        noise = limit * variance / np.maximum(d**2, 1e-300)
        excess = d * np.sqrt(np.maximum(1.0 - noise, 0.0)) * (posterior <= _MOST_VARIANCE)
        found.append(Disagreement(alternatives[0].name, colouring @ excess))
    return tuple(found)


def add_disagreement(fit: Fit, found: Sequence[Disagreement]) -> Fit:
    """The fit with the disagreements in its covariance."""
    covariance = fit.covariance.copy()
    for disagreement in found:
        covariance += np.outer(disagreement.difference, disagreement.difference)
    return fit.with_covariance(covariance)


def _compare(estimation: Estimation, split: Split, whitening: Float[np.ndarray, "q q"]) -> _Comparison:
    problem, z = estimation.problem, estimation.z
    is_free = z > problem.coordinates.lower_bounds(problem.centre, problem.scale)
    E = problem.prior_jacobian(z)
    P, slopes = E.T @ E, whitening @ problem.quantity_jacobian(z)
    free = np.ix_(is_free, is_free)
    whole = sum((part.hessian for part in split.parts), _PRIOR_SHARE * P)
    of_prior = np.zeros(len(z))
    total = sum((part.gradients.sum(axis=0) for part in split.parts), np.zeros(len(z)))
    of_prior[is_free] = np.linalg.solve(whole[free], total[is_free])
    count = len(split.parts[0].gradients)
    difference, by_block = np.zeros(len(slopes)), np.zeros((count, len(slopes)))
    model, posterior = np.zeros(len(slopes)), np.zeros(len(slopes))
    for sign, (hessian, gradients) in zip((1.0, -1.0), split.parts, strict=True):
        used = np.flatnonzero(gradients.any(axis=1))
        step = np.zeros_like(slopes)
        step[:, is_free] = -np.linalg.solve((hessian + P)[free], slopes[:, is_free].T).T
        steps = (gradients[used] - hessian @ of_prior / max(len(used), 1)) @ step.T
        difference += sign * steps.sum(axis=0)
        by_block[used] += sign * (steps - steps.mean(axis=0)) if len(used) else 0.0
        model += np.sum((step @ hessian) * step, axis=1)
        posterior -= np.sum(step * slopes, axis=1)
    scatter = np.sum(by_block**2, axis=0) * count / (count - 2)
    return _Comparison(difference, np.maximum(scatter, model), posterior)


def _whitening(fit: Fit) -> tuple[Float[np.ndarray, "q q"], Float[np.ndarray, "q q"]]:
    """W and its inverse."""
    std = np.maximum(np.sqrt(np.diag(fit.covariance)), 1e-300)
    values, vectors = np.linalg.eigh(fit.covariance / np.outer(std, std))
    root = np.sqrt(np.maximum(values, _LEAST_EIGENVALUE))
    return (vectors / root) @ vectors.T / std, std[:, None] * ((vectors * root) @ vectors.T)


def _window_gradients(estimation: Estimation) -> Float[np.ndarray, "w free"]:
    n, free = estimation.problem.start_size, estimation.problem.free_size
    B, r = estimation.triangle[:, n:, n : n + free], estimation.triangle[:, n:, -1]
    return estimation.weight[:, None] * np.einsum("wrf,wr->wf", B, r)


def _hessian(estimation: Estimation, is_used: Bool[np.ndarray, " w"]) -> Float[np.ndarray, "free free"]:
    """Contribution of some windows; those of a flight depend on the numbers of their own flight only."""
    problem = estimation.problem
    n, free = problem.start_size, problem.free_size
    H = np.zeros((free, free))
    for flight in np.unique(problem.windows.flight):
        mine = np.flatnonzero(is_used & (problem.windows.flight == flight))
        root = np.sqrt(estimation.weight[mine])[:, None, None]
        B = (root * estimation.triangle[mine, n:, n : n + free]).reshape(-1, free)
        used = np.flatnonzero(B.any(axis=0))
        H[np.ix_(used, used)] += B[:, used].T @ B[:, used]
    return H
