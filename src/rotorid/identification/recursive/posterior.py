"""Motor lag, delay and gains of the axes from banks over noise, delay and lag.

The likelihood of a hypothesis is

    log p = -1/2 sum log S_k - n / 2 log(sum e_k^2 / S_k) + log evidence of the prior

For a given noise, sum e^2 / S is nearly quadratic in delay and lag: it and the other terms are interpolated by cubic splines
over (delay, log lag), and the likelihoods of all noises and axes and the priors are summed over a fine grid about the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.interpolate import BarycentricInterpolator, CubicSpline, RectBivariateSpline

from rotorid.identification.recursive.filter_bank import Posterior, ordered_sum

LAGS: Final = np.geomspace(0.006, 0.3, 15)
"""Motor lags of the banks, s."""

DELAYS: Final = np.linspace(0.0, 0.04, 6)
"""Delays from commands to the rates of the banks, s."""

THRUST_LAGS: Final = LAGS[::2]
"""Motor lags of the thrust, s."""

THRUST_DELAYS: Final = np.array([0.0, 0.01, 0.025])
"""Delays from commands to specific forces, s."""

_FINE: Final = 61  # points of the fine grid in each direction
_FINE_DELAYS, _FINE_LAGS = 25, 101  # of the thrust
_DEPTH: Final = 15.0  # of the log evidence below its maximum that counts

Grid = Float64[np.ndarray, "delays lags"]


class LagPosterior(NamedTuple):
    """log_lag: mean and standard deviation of the logarithm of the lag, s. delay: s. gains: of each axis, see
    `lag_posterior`."""

    log_lag: tuple[float, float]
    delay: tuple[float, float]
    gains: tuple[tuple[float, float], ...]


def lag_posterior(
    axes: Sequence[Posterior],
    log_lag_prior: tuple[float, float],
    delay_prior: tuple[float, float],
    shape_slope: float = 0.0,
) -> LagPosterior:
    """Combine the banks of the axes.

    Args:
        axes: of the banks; hypotheses are noises, delays and lags, the last one fastest. The first states are theta and
            theta e.
        log_lag_prior: mean and standard deviation of the logarithm of the lag, s.
        delay_prior: mean and standard deviation of the delay, s.
        shape_slope: k; the gains are theta (1 + e k).
    """
    if not axes:
        return LagPosterior(log_lag_prior, delay_prior, ())
    surfaces = [_surfaces(axis, np.array([1.0, shape_slope])) for axis in axes]
    d, x = (
        np.linspace(DELAYS[0], DELAYS[-1], _FINE),
        np.linspace(math.log(LAGS[0]), math.log(LAGS[-1]), _FINE),
    )
    by_axis, L = _evidence(surfaces, d, x, log_lag_prior, delay_prior)
    for _ in range(2):
        is_likely = L.max() - _DEPTH < L
        d, x = _likely_part(d, is_likely.any(axis=1)), _likely_part(x, is_likely.any(axis=0))
        by_axis, L = _evidence(surfaces, d, x, log_lag_prior, delay_prior)
    weight = np.exp(L - L.max())
    weight /= weight.sum()
    lag = _moments(weight.sum(axis=0), x)
    delay = _moments(weight.sum(axis=1), d)
    gains = []
    for axis, values in zip(surfaces, by_axis, strict=True):
        share = weight * np.exp(values - np.logaddexp.reduce(values))
        gain = np.stack([s.gain(d, x) for s in axis])
        variance = np.stack([np.maximum(s.variance(d, x), 0.0) for s in axis])
        mean = float(np.sum(share * gain))
        gains.append((mean, math.sqrt(float(np.sum(share * (variance + (gain - mean) ** 2))))))
    return LagPosterior(lag, delay, tuple(gains))


class _Surface:
    """Interpolated results of one noise over delay and logarithm of the lag."""

    def __init__(self, half_count: float, squares: Grid, other: Grid, gain: Grid, variance: Grid) -> None:
        log_lags = np.log(LAGS)
        self._half_count, self._floor = half_count, 0.5 * squares.min()
        self._squares = RectBivariateSpline(DELAYS, log_lags, squares)
        self._other = RectBivariateSpline(DELAYS, log_lags, other)
        self.gain = RectBivariateSpline(DELAYS, log_lags, gain)
        self.variance = RectBivariateSpline(DELAYS, log_lags, variance, kx=1, ky=1)

    def log_evidence(self, d: Float64[np.ndarray, " d"], x: Float64[np.ndarray, " x"]) -> np.ndarray:
        return self._other(d, x) - self._half_count * np.log(np.maximum(self._squares(d, x), self._floor))


def _surfaces(axis: Posterior, weights: Float64[np.ndarray, " 2"]) -> list[_Surface]:
    """Of the noises that are likely somewhere. weights: of the first states in the gain."""
    shape = (-1, len(DELAYS), len(LAGS))
    L, squares, other = (a.reshape(shape) for a in (axis.log_evidence, axis.squares, axis.other))
    gain = (axis.mean[:, :2] @ weights).reshape(shape)
    variance = (axis.covariance[:, :2, :2] @ weights @ weights).reshape(shape)
    kept = _likely_noises(L)
    return [_Surface(axis.half_count, squares[i], other[i], gain[i], variance[i]) for i in kept]


def _likely_noises(log_evidence: Float64[np.ndarray, "noises delays lags"]) -> Int[np.ndarray, " kept"]:
    """Numbers of the noises that are likely somewhere."""
    best = log_evidence.max(axis=(1, 2))
    return np.flatnonzero(best > best.max() - 2.0 * _DEPTH)


def _evidence(
    surfaces: Sequence[Sequence[_Surface]],
    d: Float64[np.ndarray, " d"],
    x: Float64[np.ndarray, " x"],
    log_lag_prior: tuple[float, float],
    delay_prior: tuple[float, float],
) -> tuple[list[Float64[np.ndarray, "noises d x"]], Float64[np.ndarray, "d x"]]:
    """Log evidence of each noise of each axis, and of all together with the priors."""
    by_axis = [np.stack([s.log_evidence(d, x) for s in axis]) for axis in surfaces]
    L = ordered_sum(np.stack([np.logaddexp.reduce(values) for values in by_axis]))
    L = L - 0.5 * ((d - delay_prior[0]) / delay_prior[1])[:, None] ** 2
    return by_axis, L - 0.5 * ((x - log_lag_prior[0]) / log_lag_prior[1])[None] ** 2


def _likely_part(grid: Float64[np.ndarray, " n"], is_likely: np.ndarray) -> Float64[np.ndarray, " n"]:
    """A grid over the likely part of another one, with one more point of that on each side."""
    inside = np.flatnonzero(is_likely)
    low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, len(grid) - 1)]
    return np.linspace(low, high, _FINE)


def _moments(weight: Float64[np.ndarray, " n"], grid: Float64[np.ndarray, " n"]) -> tuple[float, float]:
    mean = float(np.sum(weight * grid))
    return mean, math.sqrt(max(float(np.sum(weight * (grid - mean) ** 2)), 0.0))


def over_delays_and_lags(
    bank: Posterior, log_lag_prior: tuple[float, float], delay_prior: tuple[float, float]
) -> tuple[Float64[np.ndarray, " k"], Float64[np.ndarray, "k k"]]:
    """Mean and covariance of the states of a bank over noises, `THRUST_DELAYS` and `THRUST_LAGS`.

    Args:
        bank: hypotheses are noises, delays and lags, the last one fastest.
        log_lag_prior: mean and standard deviation of the logarithm of the lag, s.
        delay_prior: mean and standard deviation of the delay, s.
    """
    log_lags, k = np.log(THRUST_LAGS), bank.mean.shape[1]
    shape = (-1, len(THRUST_DELAYS), len(THRUST_LAGS))
    kept = _likely_noises(bank.log_evidence.reshape(shape))
    squares, other = (a.reshape(shape)[kept] for a in (bank.squares, bank.other))
    d = np.linspace(THRUST_DELAYS[0], THRUST_DELAYS[-1], _FINE_DELAYS)
    x = np.linspace(log_lags[0], log_lags[-1], _FINE_LAGS)
    to_d, to_x = _interpolation(THRUST_DELAYS, d), _interpolation(log_lags, x)

    def fine(values: Float64[np.ndarray, "noises delays lags"]) -> Float64[np.ndarray, "noises d x"]:
        return to_d @ values @ to_x.T

    L = fine(other) - bank.half_count * np.log(
        np.maximum(fine(squares), 0.5 * squares.min(axis=(1, 2), keepdims=True))
    )
    L = L - 0.5 * ((x - log_lag_prior[0]) / log_lag_prior[1]) ** 2
    L = L - 0.5 * ((d - delay_prior[0]) / delay_prior[1])[:, None] ** 2
    weight = np.exp(L - L.max())
    weight /= weight.sum()
    means = np.stack([fine(bank.mean[:, i].reshape(shape)[kept]) for i in range(k)])
    total = np.sum(weight * means, axis=(1, 2, 3))
    deviation = means - total[:, None, None, None]
    node_weight = to_d.T @ weight @ to_x  # covariances are interpolated like the means
    covariance = bank.covariance.reshape(*shape, k, k)[kept]
    spread = np.sum(node_weight[..., None, None] * covariance, axis=(0, 1, 2))
    for i in range(k):
        spread[i] += np.sum(weight * deviation[i] * deviation, axis=(1, 2, 3))
    return total, spread


def _interpolation(
    nodes: Float64[np.ndarray, " n"], points: Float64[np.ndarray, " p"]
) -> Float64[np.ndarray, "p n"]:
    """The matrix that interpolates values at nodes, by cubic splines or a parabola through three nodes."""
    eye = np.eye(len(nodes))
    return CubicSpline(nodes, eye)(points) if len(nodes) > 3 else BarycentricInterpolator(nodes, eye)(points)
