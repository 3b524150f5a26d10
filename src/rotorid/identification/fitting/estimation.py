"""Parameter estimation: minimisation with estimated noise, then the covariance, and the residuals of the fit.

    cov = A A^T + H^-1 P_0^-1 H^-1,    H = J^T J + P_0^-1

A A^T is the jackknife covariance of the data's contribution over blocks of windows (see `uncertainty`). It allows for residuals
that are autocorrelated within a block, and larger or smaller than the assumed noise. Before, output weights are corrected for
residual autocorrelation. With too few blocks the covariance is scaled by the size of the residuals. Variation between flights
beyond that of their blocks is included in the standard deviations. Where parameters with joint coordinates, such as those of an
inertia, end at a bound, the covariance has d d^T more: d is the step to the minimum beyond that bound, to first order. Data
that contradict a bound show a model that is wrong, and d by how much.

The autocorrelation of the residuals of an output at a lag of l rows is

    r_l = sum_k e_k e_{k+l} / sqrt(sum_k e_k^2 sum_k e_{k+l}^2)

over the n_l pairs of rows of one window that are l rows apart; both sums of squares are over these pairs, so that outputs with
few pairs at a lag are normalised by those pairs. Of white residuals, 95 % of the r_l are within 1.96 / sqrt(n_l) of 0.

Reference: L. Ljung, System identification, 2nd ed. (1999), ch. 16.6.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int
from threadpoolctl import ThreadpoolController

from rotorid.geometry.spaces import Space
from rotorid.identification.fitting.disturbance_tests import (
    disturbed_spans,
    estimate_disturbances,
    normalised_excesses,
)
from rotorid.identification.fitting.free_parameters import Prior
from rotorid.identification.fitting.gauss_newton import (
    GaussNewtonResult,
    best_starts,
    gauss_newton,
    triangular_factor,
)
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.result import (
    DisturbedSpan,
    Fit,
    ResidualStatistics,
    SearchRecord,
    unidentifiable_directions,
)
from rotorid.identification.fitting.uncertainty import (
    INFLATION_BLOCK,
    MIN_BLOCKS,
    between_flight_factor,
    block_information,
    block_keys,
    delete_block_steps,
    shrink_covariance,
    student_t_factor,
    variance_inflation,
)
from rotorid.identification.fitting.windows import WindowPart, Windows, cut_windows, evenly_spaced
from rotorid.models.system import System
from rotorid.signals.samples import Samples

TOLERANCE = 0.01
"""Length of the last step of a minimisation, in standard deviations of each parameter."""

MOST_WEIGHED = 2048
"""Number of windows above which a sample of them weighs the outputs."""

_COARSE_WINDOWS = 64  # windows that the search begins with
_ROUGH_WINDOWS = 32  # likewise, of a rough one
_MANY_WINDOWS = 256  # more are many: the search continues with as many before it takes all
_SAMPLE_WINDOWS = 1024  # of very many
_LAST_ROUGH_STEPS = 1  # of a rough search with many windows, on all of them
_ROUGH_TOLERANCE = 0.2  # standard deviations to which they settle it, and to which noise is weighed
_MAX_REWEIGHTINGS = 4  # of weighing
_NOISE_TOLERANCE = 0.1  # relative change of a noise below which weighting ends
_MAX_LAG = 40  # rows, of the autocorrelation
_MIN_PAIRS = 20  # pairs of rows at a lag
_BAND = 1.96  # standard deviations of the autocorrelation of white residuals


@dataclasses.dataclass(frozen=True)
class Estimation:
    """A fit, with the problem and the linearisation that it comes from.

    Attributes:
        fit: the result.
        problem: what was estimated.
        z: coordinates of the free parameters.
        noise: estimated noise of each compared output, in its unit.
        sigma: noise by which each output was weighted: `noise` with variance inflation.
        root: root of the model covariance of z, at this noise.
        x, triangle, weight: of the windows at the minimum (see `GaussNewtonResult`).
    """

    fit: Fit
    problem: EstimationProblem
    z: Float[np.ndarray, " free"]
    noise: Float[np.ndarray, " compared"]
    sigma: Float[np.ndarray, " compared"]
    root: Float[np.ndarray, "free free"]
    x: Float[np.ndarray, "w states"]
    triangle: Float[np.ndarray, "w rows columns"]
    weight: Float[np.ndarray, " w"]

    def disturbed_spans(self, flights: Sequence[Samples], horizon: float) -> tuple[DisturbedSpan, ...]:
        """Spans of flights with a significant disturbance, with these parameters; the flights need not be those of the fit.

        Args:
            flights: samples, one a flight.
            horizon: length of a window, s.
        """
        shooting = self.problem.shooting
        with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
            windows = cut_windows(shooting.system, flights, horizon, shooting.compared, shooting.rules)
            problem = dataclasses.replace(self.problem, windows=windows)
            x = best_starts(problem, windows.x, self.z, self.sigma)
            triangle = problem.linearise(x, self.z, self.sigma).triangle
            return _disturbed_spans(problem, triangle, self.root)


def estimate_parameters(
    problem: EstimationProblem,
    priors: tuple[Prior, ...],
    noise_floor: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
    max_iterations: int,
    z: Float[np.ndarray, " free"] | None = None,
    tolerance: float = TOLERANCE,
    first_noise: Float[np.ndarray, " compared"] | None = None,
) -> Estimation:
    """Estimate the free parameters of a problem.

    In very long flights, noise and its inflation by autocorrelation are those of a sample of the windows; the last
    minimisation, and the covariance, are of all.

    Args:
        problem: what to estimate.
        priors: of the free parameters, for the result.
        noise_floor: lower bound of the noise of each compared output, in its unit; where the noise is given, the noise.
        is_noise_fixed: outputs whose noise is given and not estimated.
        loss: "squares" or "huber" (see `gauss_newton`).
        max_iterations: of each minimisation.
        z: initial coordinates; None: the prior means.
        tolerance: of the last minimisation, in standard deviations. A tolerance of 0.2 or more is for intermediate
            results: fewer windows are used first, of many windows all are used for the last steps only, output weights are not
            corrected for autocorrelation, and `rms_before` is NaN.
        first_noise: noise to begin with, such as that of an intermediate result; None: the lower bound. Where several values
            of the noise agree with their residuals, it decides which one is found.
    """
    sigma = noise_floor
    if first_noise is not None:
        sigma = np.where(is_noise_fixed, noise_floor, np.maximum(first_noise, noise_floor))
    windows, steps, is_rough = problem.windows, 0, tolerance >= _ROUGH_TOLERANCE
    is_many, is_started = len(windows.start) > 2 * _MANY_WINDOWS, z is not None
    z = np.zeros(problem.free_size) if z is None else z
    for count in (_ROUGH_WINDOWS if is_rough else _COARSE_WINDOWS, _MANY_WINDOWS):
        # few windows of many flights would lead away from a good start
        if len(windows.start) > 2 * count and (count == _MANY_WINDOWS or not (is_many and is_started)):
            subset = dataclasses.replace(problem, windows=windows.subsample(count))
            result, sigma = _iterate_noise(
                subset, z, sigma, noise_floor, is_noise_fixed, loss, max_iterations, _ROUGH_TOLERANCE
            )
            z, steps = result.z, steps + result.iterations
    if is_rough and is_many:
        result = gauss_newton(problem, z, windows.x, sigma, loss, _LAST_ROUGH_STEPS, tolerance)
        steps += result.iterations
        return _estimation(problem, priors, sigma, sigma, _no_rms(problem), result, steps)
    is_sampled = len(windows.start) > MOST_WEIGHED
    sample = dataclasses.replace(problem, windows=_sample_of_blocks(windows)) if is_sampled else problem
    rms_before = _no_rms(problem) if is_rough else _rms_before(sample, sigma)
    result, sigma = _iterate_noise(
        sample, z, sigma, noise_floor, is_noise_fixed, loss, max_iterations, max(tolerance, _ROUGH_TOLERANCE)
    )
    noise, steps = sigma, steps + result.iterations
    if not is_rough:
        is_noise_fixed = is_noise_fixed | bool(
            problem.shooting.disturbances
        )  # autocorrelation there is a disturbance
        result, sigma = _reweight_by_autocorrelation(
            sample, result, sigma, is_noise_fixed, loss, max_iterations
        )
        steps += result.iterations
        x = windows.x if is_sampled else result.x
        result = gauss_newton(problem, result.z, x, sigma, loss, max_iterations, tolerance)
        steps += result.iterations
    return _estimation(problem, priors, noise, sigma, rms_before, result, steps)


def _sample_of_blocks(windows: Windows) -> Windows:
    """Whole blocks of windows, as of `variance_inflation`, evenly spaced over the flights."""
    keys, block = block_keys(windows, INFLATION_BLOCK)
    most = _SAMPLE_WINDOWS * len(keys) // len(windows.start)
    return windows.take(np.flatnonzero(np.isin(block, evenly_spaced(len(keys), most))))


def _rms_before(problem: EstimationProblem, sigma: Float[np.ndarray, " compared"]) -> dict[str, float]:
    """Root mean square of the residuals with the prior means."""
    z = np.zeros(problem.free_size)
    costs = problem.costs(best_starts(problem, problem.windows.x, z, sigma), z, sigma)
    return _rms(problem, sigma, costs.squared_residuals)


def _no_rms(problem: EstimationProblem) -> dict[str, float]:
    return dict.fromkeys(output_slices(problem.shooting.system, problem.shooting.compared), math.nan)


@functools.cache
def blas_threads() -> ThreadpoolController:
    """Controller of the threads of linear algebra libraries."""
    return ThreadpoolController()


def _iterate_noise(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    sigma: Float[np.ndarray, " compared"],
    floor: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
    max_iterations: int,
    tolerance: float,
) -> tuple[GaussNewtonResult, Float[np.ndarray, " compared"]]:
    """Minimise until the noise agrees with the residuals: the minimum, with the number of all steps, and the noise."""
    x, steps = problem.windows.x, 0
    for _ in range(_MAX_REWEIGHTINGS):
        result = gauss_newton(problem, z, x, sigma, loss, max_iterations, tolerance)
        z, x, steps = result.z, result.x, steps + result.iterations
        estimate = np.maximum(
            _residual_noise(problem, result.squared_residuals, result.weight) * sigma, floor
        )
        estimate = np.where(is_noise_fixed, sigma, estimate)
        if np.all(np.abs(estimate / sigma - 1.0) < _NOISE_TOLERANCE):
            return dataclasses.replace(result, iterations=steps), sigma
        sigma = estimate
    result = gauss_newton(problem, z, x, sigma, loss, max_iterations, tolerance)
    return dataclasses.replace(result, iterations=steps + result.iterations), sigma


def _reweight_by_autocorrelation(
    problem: EstimationProblem,
    result: GaussNewtonResult,
    sigma: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
    max_iterations: int,
) -> tuple[GaussNewtonResult, Float[np.ndarray, " compared"]]:
    """Minimise roughly until the variance inflation of each output is constant: the minimum, with the number of all steps,
    and the inflated noise."""
    vectors = tuple(output_slices(problem.shooting.system, problem.shooting.compared).values())
    noise, steps = sigma, 0
    for _ in range(0 if is_noise_fixed.all() else _MAX_REWEIGHTINGS):
        size = _residual_noise(problem, result.squared_residuals, result.weight)
        inflation = variance_inflation(problem, result, sigma, vectors)
        # the noise is a lower bound for residuals
        inflated = np.where(
            is_noise_fixed, sigma, np.sqrt(inflation) * np.maximum(sigma, noise / np.maximum(size, 1e-300))
        )
        if np.all(np.abs(inflated / sigma - 1.0) < _NOISE_TOLERANCE):
            break
        sigma = inflated
        result = gauss_newton(problem, result.z, result.x, sigma, loss, max_iterations, _ROUGH_TOLERANCE)
        steps += result.iterations
    return dataclasses.replace(result, iterations=steps), sigma


def _residual_noise(
    problem: EstimationProblem, squares: Float[np.ndarray, "w compared"], weight: Float[np.ndarray, " w"]
) -> Float[np.ndarray, " compared"]:
    """Root mean square of the residuals of each output, in sigma, corrected for the estimated initial states; 1 without
    residuals."""
    counts = problem.measurement_counts
    total = counts.sum()
    correction = total / max(total - problem.start_size * len(counts), 0.1 * total)
    many = weight @ counts
    return np.where(many > 0, np.sqrt(correction * (weight @ squares) / np.maximum(many, 1e-300)), 1.0)


def _estimation(
    problem: EstimationProblem,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    sigma: Float[np.ndarray, " compared"],
    rms_before: dict[str, float],
    result: GaussNewtonResult,
    steps: int,
) -> Estimation:
    free, system, compared = problem.free_size, problem.shooting.system, problem.shooting.compared
    coordinates, z = problem.coordinates, result.z
    E = problem.prior_jacobian(z)
    R = triangular_factor(problem, z, result.triangle, result.weight)[:free, :free]
    within, scores = block_information(problem, result.triangle, result.weight)
    inverse = scipy.linalg.solve_triangular(R, np.eye(free))
    prior_share = E @ inverse
    data_share = np.eye(free) - prior_share.T @ prior_share
    if len(scores) < MIN_BLOCKS:
        size = max(1.0, float(np.mean(_residual_noise(problem, result.squared_residuals, result.weight))))
        shares, directions = np.linalg.eigh(data_share)
        by_flights = size * inverse @ (directions * np.sqrt(np.maximum(shares, 0.0)))
    else:
        by_flights = shrink_covariance(delete_block_steps(within, scores, R.T @ R), inverse, data_share)
        by_flights *= student_t_factor(len(scores), float(np.trace(data_share)) / len(sigma))
    slopes = problem.quantity_jacobian(z)
    root = slopes @ np.concatenate([by_flights, inverse @ prior_share.T], axis=1)
    lower = coordinates.lower_bounds(problem.centre, problem.scale)
    is_free = z > lower  # an estimate at its bound does not vary between flights
    contributions = slopes[:, is_free] @ np.linalg.solve(
        (R.T @ R)[np.ix_(is_free, is_free)], scores[:, is_free].T
    )
    flight = block_keys(problem.windows)[0][:, 0].astype(int)
    root[:, : -len(E)] *= between_flight_factor(contributions.T, flight)[:, None]
    is_joint = np.zeros(free, bool)
    for name, _ in coordinates.groups:
        is_joint[coordinates.slices[name]] = True
    if np.any(is_joint & ~is_free):
        gradient = scores.sum(axis=0) + E.T @ problem.prior_errors(z)
        released = is_free | is_joint
        beyond = -np.linalg.solve((R.T @ R)[np.ix_(released, released)], gradient[released])
        root = np.concatenate([root, slopes[:, released] @ beyond[:, None]], axis=1)
    names = tuple(q for p in coordinates.parameters for q in p.quantities)
    numbers, std = problem.quantities(z), np.sqrt(np.sum(root**2, axis=1))
    spread = tuple(s for p in priors for s in p.std)
    posterior = prior_share @ prior_share.T
    relative = np.where(coordinates.is_log, problem.scale, 0.0)

    def by_name(numbers) -> dict[str, float]:
        return {name: float(v) for name, v in zip(names, numbers, strict=True)}

    values: dict[str, float | tuple[float, ...]] = {}
    for prior in priors:
        part = tuple(float(v) for v in numbers[coordinates.slices[prior.parameter.name]])
        values[prior.parameter.name] = part if isinstance(prior.parameter.value, tuple) else part[0]
    fit = Fit(
        values=by_name(numbers),
        std=by_name(std),
        unit={q: p.parameter.unit for p in priors for q in p.parameter.quantities},
        covariance=root @ root.T,
        prior=by_name(tuple(v for p in priors for v in p.value)),
        prior_std=by_name(spread),
        at_bound=tuple(name for name, is_at_bound in zip(names, z <= lower, strict=True) if is_at_bound),
        information_gain=by_name(1.0 - np.sqrt(np.minimum(np.diag(posterior), 1.0))),
        unidentifiable_directions=unidentifiable_directions(names, posterior, relative),
        residuals=ResidualStatistics(
            rms_before=rms_before,
            rms=_rms(problem, sigma, result.squared_residuals),
            noise={
                name: tuple(float(v) for v in noise[place])
                for name, place in output_slices(system, compared).items()
            },
            disturbed_spans=_disturbed_spans(problem, result.triangle, inverse),
        ),
        search=SearchRecord(len(problem.windows.start), steps, result.converged),
        parameters=values,
    )
    return Estimation(fit, problem, z, noise, sigma, inverse, result.x, result.triangle, result.weight)


def output_slices(system: System, compared: Sequence[str]) -> dict[str, slice]:
    """Tangent slice of each compared output among all of them."""
    return Space(tuple((name, system.outputs[name]) for name in compared)).tangent


def _rms(
    problem: EstimationProblem,
    sigma: Float[np.ndarray, " compared"],
    squares: Float[np.ndarray, "w compared"],
) -> dict[str, float]:
    """Root mean square of the residuals of each output block, the length of a vector's, in its unit."""
    total = sigma**2 * squares.sum(axis=0) / np.maximum(problem.measurement_counts.sum(axis=0), 1)
    slices = output_slices(problem.shooting.system, problem.shooting.compared)
    return {name: float(np.sqrt(total[place].sum())) for name, place in slices.items()}


def _disturbed_spans(
    problem: EstimationProblem,
    triangle: Float[np.ndarray, "w rows columns"],
    root: Float[np.ndarray, "free free"],
) -> tuple[DisturbedSpan, ...]:
    shooting = problem.shooting
    if not shooting.disturbances:
        return ()
    parameters = [shooting.system.parameter(name) for name in shooting.disturbances]
    disturbances = estimate_disturbances(triangle, problem.start_size, root)
    return disturbed_spans(
        problem.windows,
        disturbances.w,
        normalised_excesses(problem.windows, disturbances, parameters),
        parameters,
    )


@dataclasses.dataclass(frozen=True)
class OutputResiduals:
    """Residuals of one output in the windows of a fit; NaN where it was not measured.

    Attributes:
        name, unit: of the output block.
        t: s of its flight.
        flight: number of each window's flight.
        measured: the measurements.
        error: predicted less measured.
    """

    name: str
    unit: str
    t: Float[np.ndarray, "w rows"]
    flight: Int[np.ndarray, " w"]
    measured: Float[np.ndarray, "w rows stored"]
    error: Float[np.ndarray, "w rows dim"]


@dataclasses.dataclass(frozen=True)
class Autocorrelation:
    """Autocorrelation of the residuals of one output, an axis a column; NaN with too few pairs.

    Attributes:
        name: of the output.
        lag: s.
        value: r_l.
        band: half width of the 95 % band of white residuals.
        share_outside: share of the values outside of the band.
    """

    name: str
    lag: Float[np.ndarray, " lags"]
    value: Float[np.ndarray, "lags dim"]
    band: Float[np.ndarray, "lags dim"]
    share_outside: float


def output_residuals(estimation: Estimation) -> tuple[OutputResiduals, ...]:
    """Residuals of every compared output."""
    problem, windows = estimation.problem, estimation.problem.windows
    with jax.enable_x64(True):
        error = problem.residuals(estimation.x, estimation.z, estimation.sigma)
    error *= estimation.sigma
    elapsed = np.concatenate([np.zeros((len(error), 1)), np.cumsum(windows.dt[:, 1:], axis=1)], axis=1)
    t = windows.start[:, None] + elapsed
    system, compared = problem.shooting.system, problem.shooting.compared
    residuals = []
    for name, place in output_slices(system, compared).items():
        measured = _measured(windows, system.outputs.stored[name], system.outputs.tangent[name])
        unit = system.outputs[name].unit
        residuals.append(OutputResiduals(name, unit, t, windows.flight, measured, error[..., place]))
    return tuple(residuals)


def _measured(windows: Windows, stored: slice, tangent: slice) -> Float[np.ndarray, "w rows n"]:
    """Values of an output, NaN without a measurement. stored, tangent: its places in values and in the mask."""

    def of_part(part: WindowPart) -> Float[np.ndarray, "w rows n"]:
        is_measured = part.data.mask[..., tangent].all(axis=2, keepdims=True)
        return np.where(is_measured, part.data.y[..., stored], np.nan)

    return windows.gather(of_part)


def autocorrelation(residuals: OutputResiduals) -> Autocorrelation:
    """Autocorrelation of the residuals of one output."""
    e = residuals.error
    rows = e.shape[1]
    is_known = np.isfinite(e)
    e = np.where(is_known, e, 0.0)
    lags = np.arange(1, max(2, min(_MAX_LAG, rows // 2) + 1))
    value = np.full((len(lags), e.shape[2]), np.nan)
    band = value.copy()
    for k, lag in enumerate(lags[lags < rows]):
        both = is_known[:, lag:] & is_known[:, :-lag]
        e_before, e_after = np.where(both, e[:, :-lag], 0.0), np.where(both, e[:, lag:], 0.0)
        pairs = both.sum(axis=(0, 1))
        size = np.sqrt(np.sum(e_before**2, axis=(0, 1)) * np.sum(e_after**2, axis=(0, 1)))
        has_pairs = (pairs >= _MIN_PAIRS) & (size > 0)
        product = np.sum(e_before * e_after, axis=(0, 1))
        value[k] = np.where(has_pairs, product / np.where(size > 0, size, 1.0), np.nan)
        band[k] = np.where(has_pairs, _BAND / np.sqrt(np.maximum(pairs, 1)), np.nan)
    has_value = np.isfinite(value)
    share_outside = (
        float(np.mean(np.abs(value[has_value]) > band[has_value])) if has_value.any() else float("nan")
    )
    step = float(np.median(np.diff(residuals.t, axis=1))) if rows > 1 else 0.0
    return Autocorrelation(residuals.name, lags * step, value, band, share_outside)
