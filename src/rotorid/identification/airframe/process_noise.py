"""Process noise of the flights, and the gain of the windows' predictor.

    x+ = x [-] K e,    K = p / (p + 1),    p = (q + sqrt(q^2 + 4 q)) / 2,    q = s^2 dt / r^2

In closed loop the commands are correlated with the disturbances, which biases an open-loop fit: inertia and mass are
overestimated, the more so the longer the window. A predictor with the correct process noise has no such bias (L. Ljung, System
Identification, 2nd ed. (1999), ch. 13.4; R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 5: the
filter-error method). Without disturbances s is 0 and the method is output error: uncorrected windows then fit about as well as
corrected ones.

Unmodelled forces and torques act on velocity and body rate. K is the steady-state gain of the Kalman filter of a random
walk that is measured with the white noise r of the flights. The attitude follows from the body rate. s is the candidate
for which windows are predicted best some time ahead (least sum of logarithms of mean squares), for body rate and
velocity in turn. One row ahead, a large gain would always look best where the logged measurements are filtered, as in
most logs.

Unmodelled torques are mostly slow, while s n has the same power at all frequencies. A predictor with the latter alone
leaves slow errors, which a fit explains by the commands that compensated the torques: the inertia is overestimated, the
more so the less excitation there is. With an unmodelled torque (see `logged_body`) e is a random walk, too,

    omega' = ... + e + s n_1,    e' = a s n_2

whose drift rate a minimises the prediction error, and K is the steady-state gain of both. The later response to a
torque that an autopilot compensates then carries no information beyond the earlier measurements (Ljung, ch. 13.4: in
closed loop an estimate is consistent if the noise model is correct).

Unmodelled forces, of gusts above all, are slow, too, and appear in the specific force. A controller compensates them: in gusts,
commands look weaker than they are. Each window has a force f of its own, with prior N(0, S^2), that drifts as a random walk,

    f' = s_f n,    S^2 = mean(m^2) - c - s_f^2 T / 3,    s_f^2 = 3 / T (mean((m_1 - m_2)^2) - 4 c)

m is the mean error of a window's specific force without f, over its T seconds; m_1 and m_2 are those of its halves. c is the
mean square of m that noise alone would have, from the differences of neighbouring sixteenths of a window. There is a force
where mean(m^2) is much larger.

Gusts last for seconds, longer than a window or a block of the jackknife. Their mean along body z over a flight is then not
zero, and looks like more or less thrust. With the autocovariance s^2 exp(-|t| / tau) the mean has the variance s^2 r (see
`mean_variance`), and m, less its mean over the flight, has the autocovariances s^2 (exp(-|t| / tau) - r). Those at one window
and at 2 s give s and tau (G. E. P. Box, G. M. Jenkins, G. C. Reinsel, Time Series Analysis, 4th ed. (2008), ch. 2).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float, Int

from rotorid.identification.fitting.estimation import Estimation, output_slices
from rotorid.identification.fitting.multiple_shooting import StartPriors, predict_rows
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.windows import WindowData
from rotorid.numerics.mean_variance import mean_variance

CANDIDATES = {
    "body_rate": (0.0, *np.geomspace(0.03, 100.0, 12)),
    "velocity": (0.0, *np.geomspace(0.01, 10.0, 10)),
}
"""Candidates of the process noise of a state: rad/s^2 and m/s^2, per square root of Hz."""

_DRIFT_RATES = (0.0, *np.geomspace(6.25, 400.0, 10))
FAST_DRIFT = 50.0
"""1/s: drift rate of the unmodelled torque with which a body follows its measurements closely."""

_WINDOWS = 48  # to choose by
_AHEAD = 0.1  # s
_SOON = 0.02  # s, for the drift rate: errors one row ahead should be white
_FOLLOWING = 0.03  # s
_STRIDE = 5  # rows from one prediction to the next
_ROUNDS = 2
_DISTURBED = 8.0  # times
_UNMODELLED = 3.0
_LEAST_FORCE = 0.1  # of that variance: S^2 of an axis without a force
_GREATEST_FORCE = 0.5  # m/s^2: beyond it, it is the model that is wrong
_PARTS = 16  # of a window
_FEWEST = 8  # windows, to estimate a force
_LATER = 2.0  # s, between two windows whose slow force is compared
_MOST_SLOW = 4.0  # greatest variance of a slow force over the mean square of m
_SIGNIFICANT = 2.0  # standard deviations of an autocorrelation of white errors
_CORRELATION_TIMES = np.geomspace(0.05, 0.5, 100)  # tau over T
_MOST = 1e8  # greatest variance of a walk over that of the noise


@dataclasses.dataclass(frozen=True)
class ProcessNoise:
    """Process noise by state (see `CANDIDATES`).

    Attributes:
        torque_drift_rate: a of the unmodelled torque, 1/s.
        force_std, force_walk: S and s_f of the unmodelled force, m/s^2 and m/s^2 per square root of a second, by body axis;
            empty where there is none.
    """

    body_rate: float = 0.0
    velocity: float = 0.0
    torque_drift_rate: float = 0.0
    force_std: tuple[float, ...] = ()
    force_walk: tuple[float, ...] = ()

    @property
    def start_priors(self) -> StartPriors:
        """Of the windows' unmodelled force."""
        return (("unmodelled_force", np.array(self.force_std)),) if self.force_std else ()


_LARGE = ProcessNoise(30.0, 3.0)  # with which windows follow their measurements closely


def following_noise(
    problem: EstimationProblem, noise: Float[np.ndarray, " compared"], time: float = _FOLLOWING
) -> ProcessNoise:
    """Process noise with which windows follow their measurements within `time`, s, for models that may be far off.

    Where commands respond to the noise of the measurements, as those of rate controllers do, a gain near 1 would bias a fit:
    a predictor that starts at a noisy measurement errs in proportion to this noise, and so to the command. Where the body rate
    is the only state that is measured, windows follow it closely all the same: slower ones let the lag go astray.

    Args:
        problem: of the windows.
        noise: white noise of the compared outputs, in their units.
    """
    shooting = problem.shooting
    if "velocity" not in shooting.system.states:
        return _LARGE
    slices, dt = output_slices(shooting.system, shooting.compared), problem.windows.usual_step
    K = 1.0 - math.exp(-dt / time)
    size = math.sqrt(K**2 / (1.0 - K) / dt)
    rms = {name: float(np.sqrt(np.mean(noise[slices[name]] ** 2))) for name in CANDIDATES if name in slices}
    return ProcessNoise(size * rms.get("body_rate", 0.0), size * rms.get("velocity", 0.0))


def states_with_process_noise(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    weight: Float[np.ndarray, " w"],
    free: Float[np.ndarray, " compared"],
    noise: Float[np.ndarray, " compared"],
    *,
    is_always_disturbed: bool = False,
) -> tuple[str, ...]:
    """States that uncorrected windows predict far worse than windows that follow their measurements closely.

    Args:
        problem: of the windows.
        z: coordinates of the free parameters.
        weight: of each window, with which `free` was estimated, too.
        free: standard deviation of the residuals of uncorrected windows.
        noise: white noise of the compared outputs, in their units.
        is_always_disturbed: True: all states that may have process noise, such as with measured inputs.
    """
    shooting = problem.shooting
    K = predictor_gain(problem, noise, _LARGE)
    squares = dataclasses.replace(problem, K=K).mean_squares(problem.windows.x, z, noise, weight)
    following = np.maximum(np.sqrt(squares), 1.0) * noise
    slices = output_slices(shooting.system, shooting.compared)
    return tuple(
        name
        for name in CANDIDATES
        if name in slices
        and (is_always_disturbed or np.median(free[slices[name]] / following[slices[name]]) > _DISTURBED)
    )


def estimate_process_noise(
    problem: EstimationProblem,
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    states: Sequence[str],
) -> ProcessNoise:
    """Estimate the process noise of these states, with given parameters.

    Args:
        problem: of the windows.
        z: coordinates of the free parameters.
        noise: white noise of the compared outputs, in their units.
        states: names of the states; others have none.
    """
    subset = dataclasses.replace(problem, windows=problem.windows.subsample(_WINDOWS))
    best = ProcessNoise()
    for _ in range(_ROUNDS):
        previous = best
        for name in states:
            candidates = [dataclasses.replace(best, **{name: float(s)}) for s in CANDIDATES[name]]
            best = _best(subset, subset.windows.x, z, noise, candidates)
        if best == previous:
            break
    return best


def estimate_torque_drift_rate(
    problem: EstimationProblem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    process_noise: ProcessNoise,
) -> ProcessNoise:
    """Estimate the drift rate of the unmodelled torque, with given parameters and initial states.

    The parameters should be those found with `FAST_DRIFT`: with too slow a drift, commands would explain what is
    unmodelled torque.

    Args:
        problem: of the windows.
        x: initial states, packed.
        z: coordinates of the free parameters.
        noise: white noise of the compared outputs, in their units.
        process_noise: of the states.
    """
    candidates = [dataclasses.replace(process_noise, torque_drift_rate=float(a)) for a in _DRIFT_RATES]
    return _best(problem, x, z, noise, candidates, _SOON)


def _best(
    problem: EstimationProblem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    candidates: Sequence[ProcessNoise],
    ahead: float = _AHEAD,
) -> ProcessNoise:
    """The candidate with which windows are predicted best `ahead` seconds ahead."""
    data, p = problem.windows.rows, problem.all_values(z)
    if problem.input_model is not None:
        data = data._replace(u=problem.input_model.inputs(data, problem.quantities(z)))
    costs = [
        _cost(problem, data, x, p, predictor_gain(problem, noise, candidate), ahead)
        for candidate in candidates
    ]
    return candidates[int(np.argmin(costs))]


def predictor_gain(
    problem: EstimationProblem,
    noise: Float[np.ndarray, " compared"],
    process_noise: ProcessNoise,
) -> Float[np.ndarray, "tangent compared"]:
    """K, the gain by which each row's error corrects the state."""
    shooting = problem.shooting
    states, slices = shooting.system.states, output_slices(shooting.system, shooting.compared)
    dt = problem.windows.usual_step
    K = np.zeros((states.dim, len(noise)))
    for name, size in (("body_rate", process_noise.body_rate), ("velocity", process_noise.velocity)):
        if name in states and size > 0:
            columns = np.arange(slices[name].start, slices[name].stop)
            has_torque = name == "body_rate" and "unmodelled_torque" in states
            both = [
                steady_state_gains(
                    size**2 * dt / r**2, process_noise.torque_drift_rate * dt if has_torque else 0.0
                )
                for r in noise[columns]
            ]
            K[np.arange(states.tangent[name].start, states.tangent[name].stop), columns] = [
                k for k, _ in both
            ]
            if has_torque:
                place = states.tangent["unmodelled_torque"]
                K[np.arange(place.start, place.stop), columns] = [k / dt for _, k in both]
    if process_noise.force_walk:
        place, columns = states.tangent["unmodelled_force"], slices["specific_force"]
        K[np.arange(place.start, place.stop), np.arange(columns.start, columns.stop)] = [
            steady_state_gains(s**2 * dt / r**2, 0.0)[0]
            for s, r in zip(process_noise.force_walk, noise[columns], strict=True)
        ]
    return K


def estimate_unmodelled_force(
    estimation: Estimation, noise: Float[np.ndarray, " compared"], process_noise: ProcessNoise
) -> ProcessNoise:
    """The process noise with an unmodelled force, where there is one.

    Args:
        estimation: a fit with this process noise.
        noise: white noise of the compared outputs, in their units.
        process_noise: of the states.
    """
    problem, weight = estimation.problem, estimation.weight
    K = None if process_noise == ProcessNoise() else predictor_gain(problem, noise, process_noise)
    place = output_slices(problem.shooting.system, problem.shooting.compared)["specific_force"]
    following = dataclasses.replace(problem, K=K)
    error = following.residuals(estimation.x, estimation.z, noise, place) * noise[place]
    if error.shape[1] < 2 * _PARTS:
        return process_noise
    edges = np.linspace(0, error.shape[1], _PARTS + 1).astype(int)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # parts without measurements
        parts = np.stack([np.nanmean(error[:, i:j], axis=1) for i, j in itertools.pairwise(edges)], axis=1)
        halves = [np.nanmean(part, axis=1) for part in np.split(parts, 2, axis=1)]
    is_measured = np.isfinite(parts).all(axis=(1, 2))
    if is_measured.sum() < _FEWEST:
        return process_noise

    def mean(values: Float[np.ndarray, "w 3"]) -> Float[np.ndarray, " 3"]:
        return np.average(values[is_measured], axis=0, weights=weight[is_measured])

    length = float(np.median(problem.windows.end - problem.windows.start))
    of_noise = mean(np.mean(np.diff(parts, axis=1) ** 2, axis=1)) / (2.0 * _PARTS)
    square = mean((0.5 * (halves[0] + halves[1])) ** 2)
    if np.max(square / of_noise) < _UNMODELLED:
        return process_noise
    walk = np.maximum(mean((halves[0] - halves[1]) ** 2) - 4.0 * of_noise, 0.0) * 3.0 / length
    variance = np.maximum(square - of_noise - walk * length / 3.0, _LEAST_FORCE * of_noise)
    if np.max(variance) > _GREATEST_FORCE**2:
        return process_noise
    return dataclasses.replace(
        process_noise,
        force_std=tuple(float(v) for v in np.sqrt(variance)),
        force_walk=tuple(float(v) for v in np.sqrt(walk)),
    )


class SlowForce(NamedTuple):
    """Specific force along body z that varies slowly about zero. std: m/s^2. time: tau, s. duration: of all windows, s."""

    std: float = 0.0
    time: float = 0.0
    duration: float = 0.0

    def mean_std(self, duration: float) -> float:
        """Standard deviation of its mean over a duration (s), m/s^2."""
        if self.std == 0.0 or duration <= 0.0:
            return self.std
        return self.std * math.sqrt(float(mean_variance(np.asarray(self.time / duration))))


def slow_vertical_force(estimation: Estimation) -> SlowForce:
    """The slow force along body z in the windows of a fit; std is 0 where their errors are white, or are few."""
    problem, windows = estimation.problem, estimation.problem.windows
    states, x = problem.shooting.system.states, estimation.x
    if "unmodelled_force" in states:
        x = x.copy()
        x[:, states.stored["unmodelled_force"]] = 0.0
    free = dataclasses.replace(problem, K=None, start_priors=())
    place = output_slices(problem.shooting.system, problem.shooting.compared)["specific_force"].stop - 1
    with jax.enable_x64(True):
        error = free.residuals(x, estimation.z, estimation.sigma, slice(place, place + 1))[..., 0]
    is_measured = np.isfinite(error).any(axis=1)
    mean = np.nanmean(error[is_measured], axis=1) * estimation.sigma[place]
    flight, start, end = (v[is_measured] for v in (windows.flight, windows.start, windows.end))
    return slow_force_of(mean, flight, start, end)


def slow_force_of(
    values: Float[np.ndarray, " w"],
    flight: Int[np.ndarray, " w"],
    start: Float[np.ndarray, " w"],
    end: Float[np.ndarray, " w"],
) -> SlowForce:
    """The slow force of means over windows.

    Args:
        values: m of each window along body z, m/s^2.
        flight: of each window.
        start, end: of each window, s.
    """
    if len(values) < _FEWEST:
        return SlowForce()
    values = values.copy()
    for f in np.unique(flight):
        values[flight == f] -= values[flight == f].mean()
    window = float(np.median(end - start))

    def autocovariance(lag: float) -> float:
        total, pairs = 0.0, 0
        for f in np.unique(flight):
            order = np.argsort(start[flight == f], kind="stable")
            t, v = start[flight == f][order], values[flight == f][order]
            first = np.searchsorted(t, t + (lag - 0.5 * window), side="right")
            last = np.maximum(np.searchsorted(t, t + (lag + 0.5 * window)), first)
            sums = np.concatenate([[0.0], np.cumsum(v)])
            total, pairs = total + float(v @ (sums[last] - sums[first])), pairs + int(np.sum(last - first))
        return total / pairs if pairs else 0.0

    square, first = float(np.mean(values**2)), autocovariance(window)
    if first < _SIGNIFICANT * square / math.sqrt(len(values)):
        return SlowForce()
    later = max(_LATER, 2.0 * window)
    duration = len(values) * window / len(np.unique(flight))
    times = duration * _CORRELATION_TIMES
    r = mean_variance(_CORRELATION_TIMES)
    near, far = (np.exp(-lag / times) - r for lag in (window, later))
    is_slower = (near > 0.0) & (far >= autocovariance(later) / first * near)
    k = int(np.argmax(is_slower)) if is_slower.any() else len(times) - 1
    variance = min(first / max(float(near[k]), 1e-3), _MOST_SLOW * square)
    return SlowForce(math.sqrt(variance), float(times[k]), len(values) * window)


def steady_state_gains(q: float, a: float) -> tuple[float, float]:
    """Steady-state gains of a state and of a step of its rate: both are random walks, and the state is measured.

    Args:
        q: variance that the state's walk gains in a step, over the variance of the measurement noise; of the rate's it
            is a^2 q.
        a: drift rate times the step.
    """
    q = min(q, _MOST)
    if a == 0.0:
        p = 0.5 * (q + np.sqrt(q**2 + 4.0 * q))
        return p / (p + 1.0), 0.0
    # P: covariance ahead of a measurement
    P = scipy.linalg.solve_discrete_are(
        np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[1.0], [0.0]]), q * np.diag([1.0, a**2]), np.eye(1)
    )
    return float(P[0, 0] / (P[0, 0] + 1.0)), float(P[0, 1] / (P[0, 0] + 1.0))


def _cost(
    problem: EstimationProblem,
    data: WindowData,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    K: Float[np.ndarray, "tangent compared"],
    ahead: float,
) -> float:
    """Sum of the logarithms of the mean squared prediction errors `ahead` seconds ahead, of the outputs that measure a
    state."""
    shooting = problem.shooting
    weight = 1.0 * data.mask[..., shooting.step_model.compared_indices]
    sigma = np.ones(weight.shape[2])
    corrected = predict_rows(shooting, x, data.u, data.y, weight, data.dt, p, sigma, K)[2]
    w, rows = data.dt.shape
    m = min(max(1, round(ahead / float(np.median(data.dt[:, 1:])))), rows - 1)
    start = np.arange(0, rows - m, _STRIDE)
    along = start[:, None] + np.arange(m + 1)
    x_start = corrected[:, start].reshape(w * len(start), -1)
    columns = (
        v[:, along].reshape(w * len(start), m + 1, *v.shape[2:]) for v in (data.u, data.y, weight, data.dt)
    )
    error = predict_rows(shooting, x_start, *columns, p, sigma, None)[1][:, -1]
    is_measured = weight[:, start + m].reshape(w * len(start), -1) > 0
    total = 0.0
    for name, place in output_slices(shooting.system, shooting.compared).items():
        if name in shooting.system.states:
            squares = error[:, place] ** 2
            mean = np.sum(squares, axis=0) / np.maximum(is_measured[:, place].sum(axis=0), 1)
            total += float(np.sum(np.log(np.maximum(mean, 1e-30))))
    return total if np.isfinite(total) else np.inf
