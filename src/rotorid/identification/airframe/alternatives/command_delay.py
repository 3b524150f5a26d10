"""The delay of commands that are logged in steps: minima of the fit one step apart, compared by what they predict.

Commands are constant between the times at which they are logged. Where they vary from one to the next, such as those of a
controller that answers vibrations, the thrusts of a step of the model change their character as the delay passes through
multiples of that time, and the fit has a minimum near each of them. A search ends at the one nearest to its start, with a
standard deviation that only tells how narrow that minimum is. From the estimate, minima in both directions are visited, the sum
of delay and motor lag constant, as long as they may be right. With p_k the probability of minimum k in place of that of the
estimate (see `lag_kind`), and d_k the difference that it makes,

    o_k = p_k / (1 - p_k),    cov <- cov + sum_k o_k d_k d_k^T / (1 + sum_k o_k)

which is the covariance of the minima as a mixture about the estimate. An estimate that is not the likeliest is replaced.
"""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.airframe.alternatives.lag_kind import Minimum, probability_in_place
from rotorid.identification.airframe.window_inputs import TIME_CONSTANT, AirframeInputs
from rotorid.identification.fitting.estimation import Estimation, estimate_parameters
from rotorid.identification.fitting.free_parameters import Prior
from rotorid.identification.fitting.gauss_newton import GaussNewtonResult, gauss_newton
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.windows import evenly_spaced

_DELAY: Final = "command_delay"

_WINDOWS: Final = 48
_STEPS: Final = 8
_TOLERANCE: Final = 0.2  # standard deviations
_MOST: Final = 6  # minima in each direction
_MOST_MOVES: Final = 3  # from one minimum to a likelier one
_UNLIKELY: Final = 0.01  # probability of two minima in a row that ends the search in a direction
_HOPELESS: Final = 1e-6  # likewise of one
_FAR_AT_START: Final = 4.0  # times the cost of the fit, where the search for another minimum begins
_FAR: Final = 1.3  # likewise, after one step
_LEAST_DOUBT: Final = 1e-9
_LEAST_LAG: Final = 0.2  # of the estimated motor lag, that is left when the delay takes its place


class OtherDelays(NamedTuple):
    """Minima beside that of a fit.

    Attributes:
        z: coordinates at the likeliest one; None where that is the fit.
        covariance: what they add to that of the quantities of the fit.
    """

    z: Float[np.ndarray, " free"] | None
    covariance: Float[np.ndarray, "free free"]


def other_delays(estimation: Estimation, loss: str) -> OtherDelays:
    """The minima of other command delays, where the delay is estimated. loss: of the fit (see `gauss_newton`)."""
    problem, sigma = estimation.problem, estimation.sigma
    none = OtherDelays(None, np.zeros((len(estimation.z),) * 2))
    if _DELAY not in problem.coordinates.slices or TIME_CONSTANT not in problem.coordinates.slices:
        return none
    which = evenly_spaced(len(estimation.x), _WINDOWS)
    sample = dataclasses.replace(problem, windows=problem.windows.take(which))
    own = gauss_newton(sample, estimation.z, estimation.x[which], sigma, loss, _STEPS, _TOLERANCE)
    step = _command_step(problem)
    odds, differences, best, least = [], [], None, 0.5
    for direction in (1.0, -1.0):
        unlikely = 0
        for k in range(1, _MOST + 1):
            start = _with_delay(problem, own.z, direction * k * step)
            if start is None:
                break
            found = _minimum(sample, start, own, sigma, loss)
            if found is None:
                break
            p = probability_in_place(
                Minimum(sample, found.z, found.squared_residuals),
                Minimum(sample, own.z, own.squared_residuals),
                own.weight,
            )
            odds.append(p / max(1.0 - p, _LEAST_DOUBT))
            differences.append(problem.quantities(found.z) - problem.quantities(own.z))
            if p > least:
                best, least = found.z, p
            unlikely = unlikely + 1 if p < _UNLIKELY else 0
            if unlikely == 2 or p < _HOPELESS:
                break
    if not odds:
        return none
    weights, d = np.array(odds) / (1.0 + sum(odds)), np.array(differences)
    return OtherDelays(best, np.einsum("k,ki,kj->ij", weights, d, d))


def with_likeliest_delay(
    estimation: Estimation,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
    max_iterations: int,
) -> tuple[Estimation, OtherDelays]:
    """The fit at the likeliest of the minima of the command delay, and the others. Arguments: as of `estimate_parameters`."""
    delays, moves = other_delays(estimation, loss), 0
    while delays.z is not None and moves < _MOST_MOVES:
        estimation = estimate_parameters(
            estimation.problem,
            priors,
            noise,
            is_noise_fixed,
            loss,
            max_iterations,
            delays.z,
            first_noise=estimation.noise,
        )
        delays, moves = other_delays(estimation, loss), moves + 1
    return estimation, delays


def _minimum(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    own: GaussNewtonResult,
    sigma: Float[np.ndarray, " compared"],
    loss: str,
) -> GaussNewtonResult | None:
    """The minimum near z; None where the cost shows at once that it is far above that of the fit."""
    cost = own.cost(problem)
    if own.weight @ problem.costs(own.x, z, sigma).total > _FAR_AT_START * cost:
        return None
    first = gauss_newton(problem, z, own.x, sigma, loss, 1, _TOLERANCE)
    if not first.cost(problem) < _FAR * cost:
        return None
    return gauss_newton(problem, first.z, first.x, sigma, loss, _STEPS, _TOLERANCE)


def _command_step(problem: EstimationProblem) -> float:
    """Usual time between two commands, s."""
    assert isinstance(problem.input_model, AirframeInputs)
    return float(np.median(np.concatenate([np.diff(c.t) for c in problem.input_model.commands])))


def _with_delay(
    problem: EstimationProblem, z: Float[np.ndarray, " free"], change: float
) -> Float[np.ndarray, " free"] | None:
    """Coordinates with another delay, and as much less motor lag; None where none would be left. change: of the delay, s."""
    z = z.copy()
    delay, lag = (problem.coordinates.slices[name] for name in (_DELAY, TIME_CONSTANT))
    z[delay] += change / problem.scale[delay]
    before = np.exp(problem.centre[lag] + problem.scale[lag] * z[lag])
    after = before - change
    if np.any(after < _LEAST_LAG * before):
        return None
    z[lag] = (np.log(after) - problem.centre[lag]) / problem.scale[lag]
    lower = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    return None if np.any(z < lower - 1e-9) else z
