"""Speeds of rotors from their measurements: noise, lag and delay by maximum likelihood, then smoothed speeds with variances.

    y_k = w(t_k) + r n_k                                            measured speed, white noise and quantisation
    w(t) = theta . phi(t) + e(t),   e' = -e / T + s n(t)            a rotor whose command is logged
    w(t) = m + e(t)                                                 a rotor without a command, m its mean

phi has the first powers of the command, 1, c and c^2, and V and V c with the battery voltage V, each after a delay d and a lag
of first order tau; theta (of each rotor), tau and d minimise the squared error of the speeds. T and s / r maximise the
likelihood of the innovations of a Kalman filter, whose scale r follows in closed form. The Rauch-Tung-Striebel smoother gives
w and its variance P. Without a command, e is what the rotor's lag makes of irregular commands: a random walk over times below
T. A smoother walk (of the rate) would take fast speed changes for noise. The modes of the rotors (thrust, roll, pitch, yaw)
have each their own s and T, since torques vary far less than the thrust; the noise of all modes is the same.

Errors in the input. Let a torque be proportional to the true w, and y = w + v what was measured. Regression on y attenuates the
torque by var(w) / (var(w) + var(v)), so an inertia comes out too large by the inverse. With the smoothed speed
w* = E[w | y], the error w - w* is orthogonal to w* and to all that is made from it: regression on w* has a noise more, which
widens the standard deviations, and no bias (an error of Berkson's type). Thrusts use E[w^2 | y] = w*^2 + P.

References: H. E. Rauch, F. Tung, C. T. Striebel, Maximum likelihood estimates of linear dynamic systems, AIAA J. 3 (1965);
J. Berkson, Are there two regressions?, JASA 45 (1950); R. J. Carroll et al., Measurement error in nonlinear models, 2nd ed.
(2006), ch. 4 (regression calibration).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

_BUCKET = 2048  # rows are filled up to a multiple, so that flights of like length share a compiled function
_STEP = 0.005  # s, greatest step of the smoothed speeds
_LAGS, _DELAYS = (0.015, 0.05, 0.15), (0.0, 0.03)  # s, starts of the search
_MOST_DELAY, _MOST_LAG, _LEAST_LAG = 0.2, 1.0, 1e-3  # s
_SEARCH_ROWS = 4096  # for the noise, the lag and the delay
_MODE_TIMES = np.geomspace(1.0, 2000.0, 16)  # T over the period of the log
_MODE_NOISES = np.array([0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1])  # r over that of a white series
_LEAST_SHARE = 0.2  # of the samples of a rotor, below which its speed counts as not measured


@dataclasses.dataclass(frozen=True)
class RotorCommandSeries:
    """Commands of the rotors.

    Attributes:
        t: s.
        values: 0 to 1.
        voltage: of the battery at these times, V; None: unknown.
    """

    t: Float[np.ndarray, " n"]
    values: Float[np.ndarray, "n rotors"]
    voltage: Float[np.ndarray, " n"] | None = None


@dataclasses.dataclass(frozen=True)
class CommandResponse:
    """Response of the speeds to the commands. lag: tau, s. lag_std: its standard deviation, s. delay: d, s. explained: share of
    the variance of the speeds."""

    lag: float
    lag_std: float
    delay: float
    explained: float


@dataclasses.dataclass(frozen=True)
class SmoothedSpeeds:
    """Speeds of the rotors.

    Attributes:
        t: s; a speed holds until the next time.
        speed: w*, rad/s.
        variance: P, (rad/s)^2.
        noise: r, rad/s; NaN where nothing is measured.
        quantum: smallest difference of two measured values, rad/s.
        response: to the commands; None without commands.
        is_measured: of each rotor.
    """

    t: Float[np.ndarray, " m"]
    speed: Float[np.ndarray, "m rotors"]
    variance: Float[np.ndarray, "m rotors"]
    noise: float
    quantum: float
    response: CommandResponse | None
    is_measured: Bool[np.ndarray, " rotors"]

    @property
    def effective_speed(self) -> Float[np.ndarray, "m rotors"]:
        """Square root of E[w^2 | y], rad/s, with the sign of the speed."""
        sign = np.where(self.speed < 0.0, -1.0, 1.0)
        return sign * np.sqrt(self.speed**2 + self.variance)


def smooth_speeds(
    t: Float[np.ndarray, " n"],
    measured: Float[np.ndarray, "n rotors"],
    commands: RotorCommandSeries | None = None,
    yaw: Float[np.ndarray, " rotors"] | None = None,
    modes: Float[np.ndarray, "rotors rotors"] | None = None,
) -> SmoothedSpeeds:
    """Smooth the measured speeds of the rotors of one flight.

    A rotor without measurements follows its command as the others follow theirs. Without commands, the torques about the yaw
    axis are taken to be balanced, or, where they cannot be, the rotor turns like the mean of the others.

    Args:
        t: s, increasing.
        measured: rad/s; NaN where it is missing.
        commands: of the same rotors; None: not logged.
        yaw: +1 or -1, the sense in which each rotor turns; None: unknown.
        modes: orthonormal rows: combinations of the rotors that a vehicle moves by, such as all alike, roll, pitch and yaw.
            Without commands each has its own s and T; None: the rotors are alike and independent.
    """
    is_known = np.isfinite(measured)
    is_measured = is_known.mean(axis=0) > _LEAST_SHARE
    t, measured, is_known = _with_gap_rows(t, measured, is_known & is_measured)
    y = np.where(is_known, measured, 0.0)
    step = float(np.median(np.diff(t)))
    count = max(1, math.ceil(step / _STEP - 1e-6))
    start = t[0] + (step / count) * np.arange(int((t[-1] - t[0]) / step * count + 1e-6) + 1)
    middle = start + 0.5 * step / count
    used = np.flatnonzero(is_measured)
    speed, P = (np.zeros((len(middle), measured.shape[1])) for _ in range(2))
    if len(used) == 0:
        return SmoothedSpeeds(start, speed, P, math.nan, math.nan, None, is_measured)
    model = None if commands is None else _fit_response(t, y, is_known, commands, used)
    if model is None:
        mean = np.sum(y, axis=0) / np.maximum(is_known.sum(axis=0), 1) + 0.0 * y
        speed += mean[0]
    else:
        mean, speed = model.at(t), model.at(middle)
    error, weight = np.where(is_known, y - mean, 0.0)[:, used], is_known[:, used]
    quantum = _quantum(measured[:, used], weight)
    if model is None and modes is not None and len(used) == len(modes):
        weight = np.repeat(weight.all(axis=1, keepdims=True), len(modes), axis=1)
        noise, ratio, time = _estimate_mode_noise(t, error @ modes.T, weight, quantum)
        smoothed, variance = _run(_smoothed, ratio, time, t, error @ modes.T, weight)
        smoothed, variance = smoothed @ modes, variance @ modes**2
    else:
        noise, ratio, time = _estimate_noise(t, error, weight, quantum)
        smoothed, variance = _run(_smoothed, ratio, time, t, error, weight)
    speed[:, used] += CubicSpline(t, smoothed)(np.clip(middle, t[0], t[-1]))
    for k, j in enumerate(used):
        P[:, j] = noise**2 * np.interp(middle, t, variance[:, k])
    if model is None:
        _fill_from_others(speed, P, is_measured, yaw)
        return SmoothedSpeeds(start, speed, P, noise, quantum, None, is_measured)
    P[:, ~is_measured] = model.between_rotors**2
    return SmoothedSpeeds(start, speed, P, noise, quantum, model.response, is_measured)


def _with_gap_rows(t, y, is_known):
    """The rows, and more at the usual period where rows are missing."""
    period = float(np.median(np.diff(t)))
    filled = [t]
    for k in np.flatnonzero(np.diff(t) > 1.5 * period):
        filled.append(np.arange(t[k] + period, t[k + 1] - 0.5 * period, period))
    if len(filled) == 1:
        return t, y, is_known
    order = np.argsort(np.concatenate(filled), kind="stable")
    more = len(order) - len(t)
    y, is_known = (np.concatenate([v, np.zeros((more, v.shape[1]), v.dtype)])[order] for v in (y, is_known))
    return np.concatenate(filled)[order], y, is_known


def _quantum(y: Float[np.ndarray, "n rotors"], is_known: Bool[np.ndarray, "n rotors"]) -> float:
    """Smallest difference of two measured values."""
    steps = np.diff(np.unique(np.round(y[is_known], 9)))
    return float(np.percentile(steps, 5)) if len(steps) else 0.0


# --- response to commands ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _ResponseModel:
    response: CommandResponse
    commands: RotorCommandSeries
    theta: Float[np.ndarray, "rotors k"]
    between_rotors: float

    def at(self, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n rotors"]:
        phi = _regressors(self.commands, self.response.lag, self.response.delay, t)
        return np.einsum("njk,jk->nj", phi, self.theta)


def _regressors(
    commands: RotorCommandSeries, lag: float, delay: float, t: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n rotors k"]:
    """phi at these times."""
    from scipy.signal import lfilter  # slow to import, and rarely needed

    period = float(np.median(np.diff(commands.t)))
    h = period / max(1, math.ceil(period / (0.5 * _STEP) - 1e-6))
    s = commands.t[0] + h * np.arange(int((commands.t[-1] - commands.t[0]) / h) + 2)
    held = np.clip(np.searchsorted(commands.t, s, side="right") - 1, 0, None)
    c = commands.values[held]
    columns = [c, c**2]
    if commands.voltage is not None and np.ptp(commands.voltage) > 0.0:
        V = (commands.voltage / np.mean(commands.voltage) - 1.0)[held, None]
        columns += [V * c, V + 0.0 * c]
    a = math.exp(-h / lag)
    at = np.clip((t - delay - s[0]) / h, 0.0, len(s) - 1.001)
    low = at.astype(int)
    part = (at - low)[:, None]
    parts = [np.ones((len(t), c.shape[1]))]
    for x in columns:
        # the lag's state at each time, from commands held up to it
        followed = np.concatenate([x[:1], lfilter([1.0 - a], [1.0, -a], x[:-1], axis=0, zi=a * x[:1])[0]])
        parts.append(followed[low] + part * (followed[low + 1] - followed[low]))
    return np.stack(parts, axis=2)


def _fit_response(t, y, is_known, commands: RotorCommandSeries, used) -> _ResponseModel:
    """The response with the least squared error."""

    def solve(lag: float, delay: float) -> tuple[np.ndarray, np.ndarray]:
        phi = _regressors(commands, lag, delay, t)
        theta, error = np.zeros(phi.shape[1:]), np.zeros_like(y)
        for j in used:
            rows = is_known[:, j]
            theta[j] = np.linalg.lstsq(phi[rows, j], y[rows, j], rcond=1e-8)[0]
            error[rows, j] = y[rows, j] - phi[rows, j] @ theta[j]
        return theta, error

    def cost(x: np.ndarray) -> float:
        lag, delay = unpack(x)
        return math.log(float(np.sum(solve(lag, delay)[1] ** 2)) + 1e-300)

    def unpack(x: np.ndarray) -> tuple[float, float]:
        lag = float(np.clip(math.exp(x[0]), _LEAST_LAG, _MOST_LAG))
        return lag, float(np.clip(x[1], -_MOST_DELAY, _MOST_DELAY))

    starts = [(cost(np.array([math.log(lag), d])), math.log(lag), d) for lag in _LAGS for d in _DELAYS]
    _, *first = min(starts)
    simplex = np.array([first, [first[0] + 0.3, first[1]], [first[0], first[1] + 0.005]])
    options = {"initial_simplex": simplex, "xatol": 3e-4, "fatol": 1e-4, "maxiter": 40}
    x = minimize(cost, np.array(first), method="Nelder-Mead", options=options).x
    lag, delay = unpack(x)
    theta, error = solve(lag, delay)
    rows = int(is_known[:, used].sum())
    # curvature of n/2 log(sum of squares) along log tau; n is reduced by the autocorrelation of the error
    e = error[:, used]
    rho = float(np.clip(np.sum(e[1:] * e[:-1]) / max(float(np.sum(e**2)), 1e-300), 0.0, 0.99))
    d = 0.05
    step = np.array([d, 0.0])
    bend = (cost(x + step) - 2.0 * cost(x) + cost(x - step)) / d**2
    independent = rows * (1.0 - rho) / (1.0 + rho)
    lag_std = lag / math.sqrt(max(0.5 * independent * bend, 1e-6))
    total = sum(float(np.sum((y[k, j] - y[k, j].mean()) ** 2)) for j in used for k in [is_known[:, j]])
    explained = 1.0 - float(np.sum(e**2)) / max(total, 1e-300)
    mean = theta[used].mean(axis=0)
    missing = np.setdiff1d(np.arange(y.shape[1]), used)
    theta[missing] = mean
    phi = _regressors(commands, lag, delay, t[:: max(1, len(t) // 500)])[:, used]
    spread = np.einsum("njk,jk->nj", phi, theta[used] - mean)
    between = math.sqrt(
        float(np.mean(spread**2)) * len(used) / max(len(used) - 1, 1) + float(np.sum(e**2)) / rows
    )
    return _ResponseModel(CommandResponse(lag, lag_std, delay, explained), commands, theta, between)


# --- filter and smoother ----------------------------------------------------------------------------------------------------


def _estimate_noise(t, error, is_known, quantum: float) -> tuple[float, float, float]:
    """r, the variance of e over r^2, and T of the largest likelihood. The variance of the noise is at least that of the
    quantisation."""
    t, error, is_known = (v[:_SEARCH_ROWS] for v in (t, error, is_known))
    period = float(np.median(np.diff(t)))
    floor = max(quantum / math.sqrt(12.0), 1e-6 * float(np.std(error[is_known])), 1e-9)

    def unpack(x: np.ndarray) -> tuple[float, float]:
        return float(np.exp(np.clip(x[0], -12.0, 12.0))), float(np.clip(math.exp(x[1]), period, 30.0))

    def cost(x: np.ndarray) -> float:
        return -_log_likelihood(*unpack(x), t, error, is_known)[0]

    starts = [np.array([a, math.log(b)]) for a in (-1.0, 1.5, 4.0) for b in (0.03, 0.2, 1.0)]
    best = min(starts, key=cost)
    simplex = best + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.5]])
    options = {"initial_simplex": simplex, "xatol": 0.03, "fatol": 0.1, "maxiter": 50}
    ratio, time = unpack(minimize(cost, best, method="Nelder-Mead", options=options).x)
    noise = math.sqrt(_log_likelihood(ratio, time, t, error, is_known)[1])
    return (noise, ratio, time) if noise > floor else (floor, ratio * (noise / floor) ** 2, time)


def _estimate_mode_noise(t, error, is_known, quantum: float) -> tuple[float, np.ndarray, np.ndarray]:
    """r of all modes; the variance of e over r^2 and T of each mode, whose marginal variance is that of the data."""
    t, error, is_known = (v[:_SEARCH_ROWS] for v in (t, error, is_known))
    period = float(np.median(np.diff(t)))
    variance = np.array([float(np.var(e[k])) for e, k in zip(error.T, is_known.T, strict=True)])
    steps = np.diff(error, n=3, axis=0)[is_known[3:, 0] & is_known[:-3, 0]]
    most = min(float(np.sqrt(np.mean(steps**2, axis=0) / 20.0).min()), float(np.sqrt(variance.min())))
    floor = max(quantum / math.sqrt(12.0), 1e-3 * most, 1e-9)
    times = period * _MODE_TIMES[_MODE_TIMES * period < 0.5 * (t[-1] - t[0])]
    best = (-math.inf, floor, np.ones(len(variance)), np.ones(len(variance)))
    for noise in np.maximum(most * _MODE_NOISES, floor):
        ratio = np.maximum(variance / noise**2 - 1.0, 1e-3)
        values = []
        for time in times:
            innovation, S = _run(_innovations, ratio, np.full(len(ratio), time), t, error, is_known)
            terms = innovation**2 / (S * noise**2) + np.log(S * noise**2)
            values.append(-0.5 * np.sum(np.where(is_known, terms, 0.0), axis=0))
        total = float(np.max(values, axis=0).sum())
        if total > best[0]:
            best = (total, float(noise), ratio, times[np.argmax(values, axis=0)])
    return best[1:]


def _log_likelihood(ratio: float, time: float, t, error, is_known) -> tuple[float, float]:
    """Largest log-likelihood over r, and r^2."""
    innovation, variance = _run(_innovations, ratio, time, t, error, is_known)
    n = max(int(is_known.sum()), 1)
    r2 = max(float(np.sum((innovation**2 / variance)[is_known])) / n, 1e-300)
    return -0.5 * (n * math.log(r2) + float(np.sum(np.log(variance[is_known])))), r2


def _run(function, ratio: Any, time: Any, t, error, is_known) -> tuple[np.ndarray, ...]:
    """A function of rows that are filled up to a multiple of the bucket, on the rows."""
    more = -len(t) % _BUCKET
    dt = np.concatenate([[0.0], np.diff(t), np.zeros(more)])
    pad = np.zeros((more, error.shape[1]))
    with jax.enable_x64(True):
        columns = (dt, np.concatenate([error, pad]), np.concatenate([is_known, pad > 0.0]))
        return tuple(np.asarray(v)[: len(t)] for v in function(ratio, time, *map(jnp.asarray, columns)))


def _filter(ratio, time, dt: Array, y: Array, is_known: Array) -> tuple[Array, ...]:
    """Of each row: decay f of e since the row before, state and variance over r^2 ahead of the measurement, and after it."""

    def step(carry, row):
        x, P = carry
        dt, y, is_known = row
        f = jnp.exp(-dt / time)
        x_ahead, P_ahead = f * x, f**2 * P + ratio * (1.0 - f**2)
        K = jnp.where(is_known, P_ahead / (P_ahead + 1.0), 0.0)
        x, P = x_ahead + K * (y - x_ahead), (1.0 - K) * P_ahead
        return (x, P), (f + 0.0 * P, x_ahead, P_ahead, x, P)

    start = (jnp.zeros(y.shape[1]), ratio * jnp.ones(y.shape[1]))
    return jax.lax.scan(step, start, (dt, y, is_known), unroll=4)[1]


@jax.jit
def _innovations(ratio: Any, time: Any, dt: Array, y: Array, is_known: Array) -> tuple[Array, Array]:
    """Innovations, and their variances over r^2."""
    _, x_ahead, P_ahead, _, _ = _filter(ratio, time, dt, y, is_known)
    return y - x_ahead, P_ahead + 1.0


@jax.jit
def _smoothed(ratio: Any, time: Any, dt: Array, y: Array, is_known: Array) -> tuple[Array, Array]:
    """The smoothed e of each row, and its variance over r^2."""
    f, x_ahead, P_ahead, x, P = _filter(ratio, time, dt, y, is_known)

    def step(carry, row):
        f, x_next, P_next, x, P = row
        G = f * P / P_next
        later = (x + G * (carry[0] - x_next), P + G**2 * (carry[1] - P_next))
        return later, later

    rows = (f[1:], x_ahead[1:], P_ahead[1:], x[:-1], P[:-1])
    _, (earlier, variance) = jax.lax.scan(step, (x[-1], P[-1]), rows, reverse=True, unroll=4)
    return jnp.concatenate([earlier, x[-1:]]), jnp.concatenate([variance, P[-1:]])


def _fill_from_others(speed, P, is_measured, yaw) -> None:
    """Speeds of rotors without measurements, in place, from those of the others."""
    missing, used = np.flatnonzero(~is_measured), np.flatnonzero(is_measured)
    if len(missing) == 0:
        return
    squares = speed[:, used] ** 2
    mean = squares.mean(axis=1)
    value, variance = mean, squares.var(axis=1) + 1e-4 * mean**2
    if len(missing) == 1 and yaw is not None and float(np.sum(yaw)) == 0.0:
        balanced = -yaw[missing[0]] * (squares @ yaw[used])
        value = np.clip(balanced, 0.25 * mean, 4.0 * mean)
    for j in missing:
        speed[:, j] = np.sqrt(value)
        P[:, j] = variance / (4.0 * np.maximum(value, 1e-300))
