"""Whether the motors have a lag of their thrusts or of their speeds, compared by what the fits of both predict.

With m_b the log-likelihood of block b of the flights under the lag of a fit, less that under the other lag, both with the
noise of the fit, and with e the difference of the logarithms of the prior, likewise,

    V = (sum_b m_b + e) / (sqrt(B) s),    s^2 = variance of the m_b,    p = P(T > V),    T: Student's, B - 1 degrees of freedom

p is the probability of the other lag: that it would predict other flights of this kind better. The likelihoods themselves
would be far too sure of one lag, since neither is the exact model, and since residuals are autocorrelated. The estimates
with the other lag differ by d, and

    cov <- cov + p d d^T

Reference: Q. H. Vuong, Likelihood ratio tests for model selection and non-nested hypotheses, Econometrica 57 (1989).
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import stdtr

from rotorid.identification.airframe.window_inputs import AirframeInputs
from rotorid.identification.fitting.estimation import MOST_WEIGHED, Estimation
from rotorid.identification.fitting.gauss_newton import gauss_newton
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.result import Fit
from rotorid.identification.fitting.uncertainty import sum_by_block
from rotorid.identification.fitting.windows import evenly_spaced

_STEPS = 20  # of the search with the other lag, at most
_TOLERANCE = 0.2  # of its last step, standard deviations
_SAMPLE_WINDOWS = 256  # with which it begins in very long flights
_LAST_STEPS = 1  # with all of them


class OtherLag(NamedTuple):
    """The lag that a fit does not have.

    Attributes:
        problem: with it.
        z: the estimate with it.
        probability: of it.
        difference: of the estimates with it from those of the fit, of all its quantities, in their units.
    """

    problem: EstimationProblem
    z: Float[np.ndarray, " free"]
    probability: float
    difference: Float[np.ndarray, " free"]


class Minimum(NamedTuple):
    """A minimum of a problem. squared_residuals: of each window and output there, whitened."""

    problem: EstimationProblem
    z: Float[np.ndarray, " free"]
    squared_residuals: Float[np.ndarray, "w compared"]


def has_speed_lag(problem: EstimationProblem) -> bool:
    """Whether the motor lag of a problem is one of the rotor speeds, and not of the thrusts."""
    assert isinstance(problem.input_model, AirframeInputs)
    return problem.input_model.chain.has_speed_lag


def with_other_lag(problem: EstimationProblem) -> EstimationProblem:
    """The problem with a lag of the rotor speeds in place of one of the thrusts, or the other way round."""
    assert isinstance(problem.input_model, AirframeInputs)
    chain = dataclasses.replace(problem.input_model.chain, has_speed_lag=not has_speed_lag(problem))
    return dataclasses.replace(problem, input_model=dataclasses.replace(problem.input_model, chain=chain))


def compare_other_lag(estimation: Estimation, loss: str) -> OtherLag:
    """The other lag, and how probable it is. loss: of the fit (see `gauss_newton`)."""
    return OtherLag(*compare_problem(estimation, with_other_lag(estimation.problem), loss))


def compare_problem(
    estimation: Estimation, other: EstimationProblem, loss: str
) -> tuple[EstimationProblem, Float[np.ndarray, " free"], float, Float[np.ndarray, " free"]]:
    """Another problem with the same data and coordinates: itself, its estimate, how probable it is in place of that of the fit,
    and the difference that it makes. loss: of the fit (see `gauss_newton`)."""
    own = estimation.problem
    z, x, sigma, weight = estimation.z, estimation.x, estimation.sigma, estimation.weight
    start, steps = z, _STEPS
    if len(x) > MOST_WEIGHED:
        which = evenly_spaced(len(x), _SAMPLE_WINDOWS)
        sample = dataclasses.replace(other, windows=own.windows.take(which))
        start, steps = gauss_newton(sample, z, x[which], sigma, loss, _STEPS, _TOLERANCE).z, _LAST_STEPS
    result = gauss_newton(other, start, x, sigma, loss, steps, _TOLERANCE)
    squares = own.costs(x, z, sigma).squared_residuals
    found, mine = Minimum(other, result.z, result.squared_residuals), Minimum(own, z, squares)
    difference = other.quantities(result.z) - own.quantities(z)
    return other, result.z, probability_in_place(found, mine, weight), difference


def probability_in_place(other: Minimum, own: Minimum, weight: Float[np.ndarray, " w"]) -> float:
    """p of a minimum in place of that of a fit to the same windows. weight: of each window in the fit."""
    gain = 0.5 * weight * np.sum(other.squared_residuals - own.squared_residuals, axis=1)
    squares = [np.sum(m.problem.prior_errors(m.z) ** 2) for m in (other, own)]
    by_prior = 0.5 * float(squares[0] - squares[1])
    return other_lag_probability(sum_by_block(own.problem.windows, gain), by_prior)


def other_lag_probability(by_block: Float[np.ndarray, " blocks"], by_prior: float) -> float:
    """p. by_block: m of each block. by_prior: e. 0.5 where fewer than two blocks show no scatter."""
    count = len(by_block)
    scatter = math.sqrt(count) * float(np.std(by_block, ddof=1)) if count > 1 else 0.0
    return float(stdtr(count - 1, -(by_block.sum() + by_prior) / scatter)) if scatter > 0.0 else 0.5


def add_lag_uncertainty(fit: Fit, other: OtherLag) -> Fit:
    """The fit with the difference that the other lag would make in its covariance."""
    d = other.difference
    return fit.with_covariance(fit.covariance + other.probability * np.outer(d, d))
