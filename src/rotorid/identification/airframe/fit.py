"""Estimation of an airframe's parameters: prediction errors over many short windows, from the rotors' commands.

The estimation problem is that of `fitting`. Estimated parameters act on the body (`logged_body`) and on its inputs
(`window_inputs`); windows are corrected by their measurements as much as the process noise of the flights requires
(`process_noise`). The first fit, whose parameters may be far off, follows its measurements within a few hundredths of a
second. Wind, and mass where it is free, are constant in segments of a flight: the estimates of the single windows, to first
order, are divided into as few segments as explain them (`segment_mass`, `segment_wind`), and the fit is repeated until the
segments are constant. Windows near a boundary of segments are left out.

Where unmodelled torques act on the body, each window also estimates their initial value, and follows them as a random walk.
An autopilot compensates slow torques: commands without a rotation would look like a large inertia. Likewise for slow
unmodelled forces, whose initial values have a prior.

Reference: R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.airframe.alternatives.command_delay import other_delays, with_likeliest_delay
from rotorid.identification.airframe.alternatives.lag_kind import (
    OtherLag,
    compare_other_lag,
    has_speed_lag,
    with_other_lag,
)
from rotorid.identification.airframe.priors import (
    BODY,
    ROTOR_MOMENTUM,
    airframe_priors,
    local_input_prior,
    prior_value,
)
from rotorid.identification.airframe.process_noise import (
    FAST_DRIFT,
    ProcessNoise,
    estimate_process_noise,
    estimate_torque_drift_rate,
    estimate_unmodelled_force,
    following_noise,
    predictor_gain,
    states_with_process_noise,
)
from rotorid.identification.airframe.rotor_thrusts import RotorCommands, rotor_model
from rotorid.identification.airframe.window_inputs import (
    TIME_CONSTANT,
    AirframeInputs,
    Segmentation,
    segment_mass,
    segment_wind,
)
from rotorid.identification.fitting.estimation import TOLERANCE, Estimation, blas_threads, estimate_parameters
from rotorid.identification.fitting.free_parameters import Prior, coordinates_from_priors
from rotorid.identification.fitting.gauss_newton import gauss_newton
from rotorid.identification.fitting.multiple_shooting import ShootingSetup
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.result import Fit
from rotorid.identification.fitting.windows import (
    Windows,
    compared_outputs,
    cut_windows,
    estimate_white_noise,
)
from rotorid.models.airframe.airframe import LAGS, Airframe, Quantity
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.logged_body import LOCAL, LoggedBody, local_width
from rotorid.models.system import Parameter
from rotorid.progress import Progress, no_progress
from rotorid.signals.samples import Samples

_ITERATIONS = 40
_PASSES = 6  # greatest number
_LAGS = (0.02, 0.05, 0.12)  # s
_EXACT_DELAY = 1e-5  # s
_CONTRADICTED = 4.0  # prior standard deviations
_FEW = 40  # windows, to choose between starts
_START_ITERATIONS = 25  # of the minimisation from each start
_SAME = 0.01  # relative difference of the costs of two starts that end in one minimum, at most
_SAME_LAG = 0.2  # likewise of their time constants
_HOPELESS = 3.0  # times the least cost of all starts
_ROUGH = 0.3  # tolerance of a fit whose segments may change, standard deviations
_OPTIONAL = (*ROTOR_AERODYNAMICS, "drag_area", ROTOR_MOMENTUM)
_TURNING = {"inertia": (1.0, 1.0, 1.0), "torque_ratio": (0.0,)}  # of a body whose torques are not observable


@dataclasses.dataclass(frozen=True)
class FlightRecord:
    """A flight to identify from.

    name: of its log. samples: of the System of `make_logged_body`. commands: of the rotors, with the degree and lag of the
    rotor chain.
    """

    name: str
    samples: Samples
    commands: RotorCommands


@dataclasses.dataclass(frozen=True)
class AirframeFit:
    """The result of `fit_airframe`.

    Attributes:
        estimation: of all numbers, those of segments included.
        segmentations: segments of each flight-dependent input.
        windows: the windows of the last pass.
        process_noise: with which they were predicted.
        lag_of: what follows the commands with the motor lag (see `Airframe`).
        other_lag: what else might; None where the airframe or the logs leave no choice.
        delay_covariance: what other minima of the command delay add to the covariance of the quantities.
    """

    estimation: Estimation
    segmentations: Mapping[str, Segmentation]
    windows: Windows
    process_noise: ProcessNoise
    lag_of: str
    other_lag: OtherLag | None
    delay_covariance: Float[np.ndarray, "free free"]

    def with_fit(self, fit: Fit) -> AirframeFit:
        """The same with another covariance of its estimates."""
        return dataclasses.replace(self, estimation=dataclasses.replace(self.estimation, fit=fit))


def make_logged_body(
    airframe: Airframe, free: Sequence[str], has_pose: bool, torques_observable: bool
) -> LoggedBody:
    """The System of an airframe's body; with drag of rotors and body where the airframe has it or where it is free.

    Args:
        airframe: values of the parameters.
        free: names of the free parameters.
        has_pose: whether attitude and velocity are logged.
        torques_observable: whether torques follow from the commands.
    """
    names = [n for n in BODY if n not in _OPTIONAL or n in free or airframe.get(n) is not None]
    values = {
        name: prior_value(airframe, name) if torques_observable or name not in _TURNING else _TURNING[name]
        for name in names
    }
    parameters = tuple(
        Parameter(name, value if len(value) > 1 else sum(value), unit=BODY[name])
        for name, value in values.items()
    )
    return LoggedBody(parameters, airframe.rotors, has_pose, torques_observable)


def fit_airframe(
    airframe: Airframe,
    flights: Sequence[FlightRecord],
    free: Sequence[str],
    body: LoggedBody,
    *,
    has_motor_lag: bool = True,
    horizon: float = 0.5,
    loss: str = "huber",
    progress: Progress = no_progress,
) -> AirframeFit:
    """Estimate free parameters of an airframe from flights; mass (if free), wind and biases are separate for each flight.

    Args:
        airframe: prior values and standard deviations.
        flights: one or more flights of one vehicle.
        free: names of `BODY` and `ROTORS`, and "mass".
        body: of `make_logged_body`.
        has_motor_lag: whether rotors lag behind their commands. Where they do not, their speeds are measured: the errors of
            measured speeds are disturbances of the motion, and process noise is always estimated.
        horizon: length of a window, s.
        loss: "huber" or "squares" (see `gauss_newton`).
        progress: called with each pass.
    Raises:
        SettingError, SignalError, ExcitationError: as `cut_windows`.
    Source: Jategaonkar (2015), ch. 4 and 5.
    """
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        outputs = compared_outputs(body, ("specific_force",))
        windows = cut_windows(body, [f.samples for f in flights], horizon, outputs)
        noise = estimate_white_noise(body, [f.samples for f in flights], outputs)
        parts = {name: Segmentation.one_per_flight(len(flights)) for name in LOCAL}
        current, previous, is_noise_fixed = windows, None, np.zeros(len(noise), bool)
        process_noise, corrected_fit, passes = None, None, 0
        is_noise_known = is_force_known = has_converged = False
        is_lag_open = has_motor_lag and not airframe.lag_of
        while True:
            progress(f"Fitting {len(current.start)} windows, pass {passes + 1}", passes, 0)
            problem, priors = _estimation_problem(
                _with_exact_delay(airframe) if previous is None and not has_motor_lag else airframe,
                flights,
                free,
                body,
                has_motor_lag,
                outputs,
                current,
                parts,
            )
            if process_noise is None:
                process_noise = following_noise(problem, noise)
            if process_noise != ProcessNoise():
                problem = dataclasses.replace(
                    problem,
                    K=predictor_gain(problem, noise, process_noise),
                    start_priors=process_noise.start_priors,
                )
            last = (has_converged and is_noise_known and is_force_known) or passes == _PASSES
            if previous is None:
                estimation = _first_estimation(problem, priors, noise, is_noise_fixed, loss, is_lag_open)
                problem = estimation.problem
                airframe = dataclasses.replace(airframe, lag_of=_lag_of(problem))
            else:
                z, tolerance = _carry_over(previous, problem), TOLERANCE if last else _ROUGH
                estimation = estimate_parameters(
                    problem, priors, noise, is_noise_fixed, loss, _ITERATIONS, z, tolerance, previous.noise
                )
            if last:
                other = None
                estimation, delays = with_likeliest_delay(
                    estimation, priors, noise, is_noise_fixed, loss, _ITERATIONS
                )
                if is_lag_open and TIME_CONSTANT in problem.coordinates.slices:
                    own = estimation
                    estimation, other = _with_likelier_lag(estimation, priors, noise, is_noise_fixed, loss)
                    if estimation is not own:
                        delays = other_delays(estimation, loss)
                lag_of = _lag_of(estimation.problem)
                return AirframeFit(
                    estimation, dict(parts), current, process_noise, lag_of, other, delays.covariance
                )
            is_first, estimated_with = corrected_fit is None, process_noise
            if corrected_fit is None:
                corrected_fit = (estimation, parts)
            if is_first and has_motor_lag:  # whether there is process noise is seen without it
                process_noise = ProcessNoise()
            elif not is_noise_known:
                is_noise_known = True
                disturbed_states = states_with_process_noise(
                    corrected_fit[0].problem,
                    corrected_fit[0].z,
                    corrected_fit[0].weight,
                    estimation.sigma,
                    noise,
                    is_always_disturbed=not has_motor_lag,
                )
                if disturbed_states:
                    estimation, parts = corrected_fit
                    process_noise = estimate_process_noise(
                        estimation.problem, estimation.z, noise, disturbed_states
                    )
                if "body_rate" in disturbed_states:
                    body = dataclasses.replace(body, has_unmodelled_torque=True)
                    windows = cut_windows(body, [f.samples for f in flights], horizon, outputs)
                    subset = windows.subsample(_FEW)
                    disturbed, priors = _estimation_problem(
                        airframe, flights, free, body, has_motor_lag, outputs, subset, parts
                    )
                    process_noise = dataclasses.replace(process_noise, torque_drift_rate=FAST_DRIFT)
                    gain = predictor_gain(disturbed, noise, process_noise)
                    disturbed = dataclasses.replace(disturbed, K=gain)
                    subset_fit = estimate_parameters(
                        disturbed,
                        priors,
                        noise,
                        is_noise_fixed,
                        loss,
                        _ITERATIONS,
                        estimation.z,
                        _ROUGH,
                        estimation.noise,
                    )
                    process_noise = estimate_torque_drift_rate(
                        disturbed, subset_fit.x, subset_fit.z, noise, process_noise
                    )
            if is_noise_known and process_noise == estimated_with and not is_force_known:
                is_force_known = True
                process_noise = estimate_unmodelled_force(estimation, noise, process_noise)
                if process_noise.force_std:
                    body = dataclasses.replace(body, has_unmodelled_force=True)
                    windows = cut_windows(body, [f.samples for f in flights], horizon, outputs)
            cut = dict(parts)
            if "mass" in free:
                cut["mass"] = segment_mass(estimation, windows, parts["mass"])
            if body.has_pose:
                cut["wind"] = segment_wind(estimation, windows, parts["wind"])
            has_converged = all(_is_same_segmentation(cut[name], parts[name]) for name in ("mass", "wind"))
            parts = cut
            is_near_boundary = _near_boundary(windows, parts["mass"]) | _near_boundary(windows, parts["wind"])
            current = windows.take(np.flatnonzero(~is_near_boundary))
            previous, passes = estimation, passes + 1


def _with_exact_delay(airframe: Airframe) -> Airframe:
    """An airframe whose command delay hardly moves from its prior; from a delay that is far off, a fit may not converge."""
    delay = Quantity(prior_value(airframe, "command_delay"), "s", (_EXACT_DELAY,))
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "command_delay": delay})


def _first_estimation(
    problem: EstimationProblem,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
    is_lag_open: bool,
) -> Estimation:
    """The most likely of fits that start at several time constants of the motors; from a wrong one, a fit may not converge.

    About an axis, the rate follows the commands by the poles of motor lag and damping, k / J, and hardly differs if the two
    change places. Fits whose lag contradicts its prior are the last choice.

    is_lag_open: whether the lag may be one of the thrusts or of the rotor speeds. The fit has the more likely of both.
    """
    place = problem.coordinates.slices.get(TIME_CONSTANT)
    z, first_noise = np.zeros(problem.free_size), noise
    if place is not None:
        subset = problem.windows.subsample(_FEW)
        few = dataclasses.replace(problem, windows=subset)
        starts = [_with_time_constant(problem, place, lag) for lag in _LAGS]

        def estimate(
            problem_of_few: EstimationProblem,
            start: Float[np.ndarray, " free"],
            first_noise: Float[np.ndarray, " compared"],
        ) -> Estimation:
            return estimate_parameters(
                problem_of_few, priors, noise, is_noise_fixed, loss, _ITERATIONS, start, _ROUGH, first_noise
            )

        def rank(estimation: Estimation) -> tuple[bool, float]:
            is_contradicted = bool(np.abs(estimation.z[place]).max() > _CONTRADICTED)
            return is_contradicted, _negative_log_likelihood(estimation, noise)

        minima = _distinct_minima(few, place, starts, noise, loss)
        best = min((estimate(few, start, noise) for start in minima), key=rank)
        if is_lag_open:
            other = estimate(with_other_lag(few), best.z, best.noise)
            best = min(best, other, key=rank)
        if len(subset.start) == len(problem.windows.start):
            return best
        problem = dataclasses.replace(best.problem, windows=problem.windows)
        z, first_noise = best.z, best.noise
    return estimate_parameters(
        problem, priors, noise, is_noise_fixed, loss, _ITERATIONS, z, _ROUGH, first_noise
    )


def _distinct_minima(
    problem: EstimationProblem,
    place: slice,
    starts: Sequence[Float[np.ndarray, " free"]],
    noise: Float[np.ndarray, " compared"],
    loss: str,
) -> list[Float[np.ndarray, " free"]]:
    """Where minimisations from these starts end, the one with the least cost first; without those that end at the same time
    constants (at `place`) and cost, or at far higher costs."""
    ends = [
        gauss_newton(problem, z, problem.windows.x, noise, loss, _START_ITERATIONS, _ROUGH) for z in starts
    ]
    costs = np.array([end.cost(problem) for end in ends])
    lags = np.array([problem.scale[place] * end.z[place] for end in ends])  # logarithms
    kept: list[int] = []
    for k in np.argsort(costs):
        is_same = (np.abs(costs[kept] / costs[k] - 1.0) < _SAME) & (
            np.abs(lags[kept] - lags[k]).max(axis=1) < _SAME_LAG
        )
        if not is_same.any() and costs[k] < _HOPELESS * costs.min():
            kept.append(int(k))
    return [ends[k].z for k in kept]


def _with_time_constant(problem: EstimationProblem, place: slice, lag: float) -> Float[np.ndarray, " free"]:
    """The prior means, with this time constant of the motors, s."""
    z = np.zeros(problem.free_size)
    z[place] = (np.log(lag) - problem.centre[place]) / problem.scale[place]
    return z


def _with_likelier_lag(
    estimation: Estimation,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    is_noise_fixed: Bool[np.ndarray, " compared"],
    loss: str,
) -> tuple[Estimation, OtherLag]:
    """The fit with that lag, of the thrusts or of the speeds, which predicts better; and the other one.

    Where the noise of the two fits differs, each may predict worse than the other with its own noise: the mean of both
    probabilities decides.
    """
    other = compare_other_lag(estimation, loss)
    if other.probability <= 0.5:
        return estimation, other
    second = estimate_parameters(
        other.problem,
        priors,
        noise,
        is_noise_fixed,
        loss,
        _ITERATIONS,
        other.z,
        first_noise=estimation.noise,
    )
    first_of_second = compare_other_lag(second, loss)
    probability = 0.5 * (other.probability + 1.0 - first_of_second.probability)
    if probability <= 0.5:
        return estimation, other._replace(probability=probability)
    return second, first_of_second._replace(probability=1.0 - probability)


def _lag_of(problem: EstimationProblem) -> str:
    return LAGS[has_speed_lag(problem)]


def _negative_log_likelihood(estimation: Estimation, least: Float[np.ndarray, " compared"]) -> float:
    """Mean over rows. least: lower bound of the noise; where the noise is there, the residuals tell two fits apart."""
    z, x, sigma, weight = estimation.z, estimation.x, estimation.sigma, estimation.weight
    squares = np.where(sigma <= least, estimation.problem.mean_squares(x, z, sigma, weight), 1.0)
    return float(np.sum(np.log(sigma) + 0.5 * squares) + _prior_cost(estimation))


def _prior_cost(estimation: Estimation) -> float:
    """The prior's contribution to the mean over rows of the negative log-likelihood."""
    rows = max(float(np.sum(estimation.problem.windows.counts)) / max(len(estimation.sigma), 1), 1.0)
    e = estimation.problem.prior_errors(estimation.z)
    return 0.5 * float(e @ e) / rows


def _estimation_problem(
    airframe: Airframe,
    flights: Sequence[FlightRecord],
    free: Sequence[str],
    body: LoggedBody,
    lags: bool,
    outputs: tuple[str, ...],
    windows: Windows,
    parts: Mapping[str, Segmentation],
):
    local_names = [n for n in LOCAL if _is_estimated(n, free, body)]
    priors = (
        *airframe_priors(airframe, [n for n in free if n != "mass"]),
        *(local_input_prior(airframe, name, len(parts[name].start)) for name in local_names),
    )
    coordinates, centre, scale = coordinates_from_priors(priors)
    of_body = tuple(p.name for p in coordinates.parameters if p.name in BODY)
    rotors = rotor_model(airframe, lags=lags)
    widths = {"mass": airframe.mass.value, "wind": (0.0,) * 2}
    fixed = {name: widths.get(name, (0.0,) * 3) for name in LOCAL}
    drive = AirframeInputs(
        body,
        rotors.chain,
        rotors.numbers,
        tuple(f.commands for f in flights),
        fixed,
        parts,
        coordinates,
        of_body,
    )
    numbers = np.concatenate([np.ravel(p.value).astype(float) for p in body.parameters])
    shooting = ShootingSetup(body, outputs, of_body, (), has_input_model=True)
    return EstimationProblem(shooting, coordinates, windows, numbers, centre, scale, drive), priors


def _is_estimated(name: str, free: Sequence[str], body: LoggedBody) -> bool:
    """Whether a flight-dependent input is estimated."""
    return name in free if name == "mass" else name != "wind" or body.has_pose


def _carry_over(previous: Estimation, problem: EstimationProblem) -> Float[np.ndarray, " free"]:
    """Coordinates of an earlier fit in this problem; new segments start at the mean of the earlier ones."""
    old, z = previous.problem, previous.z
    z_new = np.zeros(problem.free_size)
    for name, place in problem.coordinates.slices.items():
        old_slice = old.coordinates.slices[name]
        if old_slice.stop - old_slice.start == place.stop - place.start:
            z_new[place] = z[old_slice] * old.scale[old_slice] / problem.scale[place]
        else:
            width = local_width(name)
            z_new[place] = np.tile(
                z[old_slice].reshape(-1, width).mean(axis=0), (place.stop - place.start) // width
            )
    return z_new


def _is_same_segmentation(a: Segmentation, b: Segmentation) -> bool:
    return len(a.start) == len(b.start) and bool(np.all(a.flight == b.flight) and np.all(a.start == b.start))


def _near_boundary(windows: Windows, parts: Segmentation) -> Bool[np.ndarray, " w"]:
    """Windows near the beginning of a segment that is not a flight's first."""
    is_near_any = np.zeros(len(windows.start), bool)
    for flight, start in zip(parts.flight, parts.start, strict=True):
        length = windows.end - windows.start
        is_near = (windows.start < start + 0.5 * length) & (windows.end > start - 0.5 * length)
        is_near_any |= (windows.flight == flight) & is_near & (start > 0)
    return is_near_any
