"""Training of the network that estimates the mass of a multirotor (see `rotorid.estimators.elm`).

A row of training is one of a flight of known mass m: the ratios of its windows, and y = 1 / (m b_0). The hidden layer is
random, beta the regularised least squares of SESAME D2.2, eq. 28. Errors of rows that the network was not trained on come from
training without one flight each, or without one fifth of a single flight each; from them follow by maximum likelihood

    s^2 = floor + slope d^2,    floor, slope >= 0

and the error from flight to flight: of n flights with the mean relative errors e_i, each estimated without the flight, and a
prior that counts as two flights,

    s_flight^2 = (2 s_0^2 + sum e_i^2) / (2 + n),    s_0: of the airframe's thrust, before a flight

Neighbouring rows share their windows, so P is that of one row for each longest time constant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.estimators.elm.estimator import LEAST_TIME, ElmMass, ElmState
from rotorid.estimators.elm.network import (
    HeldOutErrors,
    HiddenLayer,
    MassNetwork,
    Readout,
    TrainingRange,
    disagreement,
)
from rotorid.estimators.elm.windows import RATIOS, TIME_CONSTANTS, window_ratios
from rotorid.learning.hidden_layer import random_layer, standardisation
from rotorid.learning.least_squares import RecursiveLeastSquares, Solution
from rotorid.signals.samples import Samples

HIDDEN: Final = 60
"""Nodes."""

ALPHA: Final = 1.0
"""lambda of eq. 28."""

MIN_DURATION: Final = 5.0
"""Shortest training, s of rows with windows."""

_WEIGHT_SCALE = 1.0
_QUANTILE = 0.001  # of the ratios, outside of which the range ends
_LEAST_HALF_WIDTH = 0.01  # of the range of a ratio
_PRIOR_FLIGHTS = 2.0
_PARTS = 5  # of a single flight
_STEPS = 50  # of the likelihood
_NORMAL_MEDIAN = 0.6745
_MOST_ROWS = 20_000  # of a flight


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """Rows of one flight. ratios, thrust (N): of the windows. y: 1 / (m b_0). period: s between rows."""

    ratios: Float[np.ndarray, "n ratios"]
    thrust: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]
    period: float

    @property
    def duration(self) -> float:
        """s."""
        return self.period * len(self.y)


@dataclasses.dataclass(frozen=True)
class TrainedNetwork:
    """A network, with relative errors of rows that it was not trained on: rms, of all rows, and mean of each flight."""

    network: MassNetwork
    held_out_rms: float
    flight_errors: tuple[float, ...]


def untrained_network(velocity_noise: float) -> MassNetwork:
    """A network that gives the windows' own mass, 1 / b_0, in float64. velocity_noise: sigma_v, m/s."""
    layer = HiddenLayer(np.zeros((1, RATIOS)), np.full(1, 50.0), np.zeros(RATIOS), np.ones(RATIOS))
    errors = HeldOutErrors(np.array(0.01), np.array(0.0), np.array(0.1), np.ones(len(TIME_CONSTANTS) - 1))
    limits = TrainingRange(np.full(RATIOS, -1e6), np.full(RATIOS, 1e6), np.array([-20.0, 20.0]))
    return MassNetwork(layer, Readout(np.ones(1), np.zeros((1, 1))), errors, limits, np.array(velocity_noise))


def training_rows(
    estimator: ElmMass, samples: Samples, mass: Float[np.ndarray, " n"], every: int = 1
) -> TrainingRows:
    """The rows of a flight on which a network can be trained.

    Args:
        estimator: with the velocity noise of the network.
        samples: n rows.
        mass: true mass of each, kg.
        every: use every n-th row.
    """
    b, ratios, level, is_usable = jax.tree.map(np.asarray, _window_rows(estimator, samples))
    t = np.asarray(samples.t)
    period = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    every = max(every, -(-len(t) // _MOST_ROWS))
    rows = np.flatnonzero(is_usable)[::every]
    return TrainingRows(ratios[rows], level[rows], 1.0 / (mass[rows] * b[rows]), mass[rows], every * period)


def train_mass_network(
    flights: Sequence[TrainingRows],
    velocity_noise: float,
    thrust_std: float,
    *,
    hidden: int = HIDDEN,
    alpha: float = ALPHA,
    seed: int = 0,
) -> TrainedNetwork:
    """Train a network.

    Args:
        flights: rows of each.
        velocity_noise: sigma_v of the windows of these rows, m/s.
        thrust_std: relative standard deviation of the airframe's thrust before a flight, s_0.
        hidden: nodes.
        alpha: lambda of eq. 28.
        seed: of the hidden layer.
    Raises:
        SettingError: a setting is not positive.
        ExcitationError: too few rows.
    Source: SESAME D2.2, eqs. 24-28.
    """
    if hidden < 1 or not 0.0 < alpha < np.inf:
        raise SettingError(f"{hidden} nodes and alpha {alpha:g}: both must be above 0")
    flights = [rows for rows in flights if len(rows.y)]
    duration = sum(rows.duration for rows in flights)
    if duration < MIN_DURATION:
        raise ExcitationError(
            f"{duration:.3g} s of flight with known thrust and velocity for a mass network; at least {MIN_DURATION:g} s are "
            "needed"
        )
    X = np.concatenate([rows.ratios for rows in flights])
    y = np.concatenate([rows.y for rows in flights])
    layer = random_layer(np.random.RandomState(seed), *standardisation(X), hidden, "sigmoid", _WEIGHT_SCALE)
    hidden_layer = HiddenLayer(layer.weights.T, layer.bias, layer.mean, layer.scale)
    H = np.concatenate([block.copy() for _, block in layer.blocks(X)])
    groups = _groups(flights)
    errors, flight_errors = np.empty(len(y)), []
    for k in range(groups.max() + 1):
        is_out = groups == k
        beta = _solution(H[~is_out], y[~is_out], alpha).beta[:, 0]
        errors[is_out] = H[is_out] @ beta / y[is_out] - 1.0
        flight_errors.append(float(errors[is_out].mean()))
    if len(flights) == 1:
        flight_errors = []
    typical = _typical(X)
    d = np.asarray(disagreement(X, typical))
    floor, slope = _error_model(np.square(errors), d)
    flight_std = np.sqrt(
        (_PRIOR_FLIGHTS * thrust_std**2 + np.sum(np.square(flight_errors)))
        / (_PRIOR_FLIGHTS + len(flight_errors))
    )
    solution = _solution(H, y, alpha)
    independent = max(1.0, TIME_CONSTANTS[-1] / float(np.mean([rows.period for rows in flights])))
    root = solution.inverse_root * np.sqrt(float(solution.noise_variance[0]) * independent)
    low, high = np.quantile(X, [_QUANTILE, 1.0 - _QUANTILE], axis=0)
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), _LEAST_HALF_WIDTH)
    level = np.log(np.concatenate([rows.thrust for rows in flights]))
    limits = TrainingRange(middle - half, middle + half, np.quantile(level, [_QUANTILE, 1.0 - _QUANTILE]))
    held_out = HeldOutErrors(np.array(floor), np.array(slope), np.array(flight_std), typical)
    network = MassNetwork(
        hidden_layer, Readout(solution.beta[:, 0], root), held_out, limits, np.array(velocity_noise)
    )
    return TrainedNetwork(network, float(np.sqrt(np.mean(np.square(errors)))), tuple(flight_errors))


def _groups(flights: Sequence[TrainingRows]) -> np.ndarray:
    """The held-out group of each row: its flight, or the fifth of the one flight."""
    if len(flights) > 1:
        return np.repeat(np.arange(len(flights)), [len(rows.y) for rows in flights])
    n = len(flights[0].y)
    return np.arange(n) * _PARTS // n


def _solution(H: Float[np.ndarray, "n hidden"], y: Float[np.ndarray, " n"], alpha: float) -> Solution:
    squares = RecursiveLeastSquares(H.shape[1], 1, alpha)
    squares.update(lambda: [(slice(0, len(y)), np.asfortranarray(np.column_stack([H, y])))], len(y))
    return squares.solution()


def _typical(X: Float[np.ndarray, "n ratios"]) -> Float[np.ndarray, " short"]:
    """Robust standard deviation of the differences of the short windows from the longest one."""
    differences = np.abs(X[:, : len(TIME_CONSTANTS) - 1] - 1.0)
    return np.maximum(np.median(differences, axis=0) / _NORMAL_MEDIAN, 1e-3)


def _error_model(squares: Float[np.ndarray, " n"], d: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """floor and slope of s^2 = floor + slope d^2 of normal errors with these squares, by Fisher's scoring."""
    A = np.column_stack([np.ones(len(d)), d])
    theta = np.array([squares.mean(), 0.0])
    least = max(1e-6 * squares.mean(), 1e-12)
    for _ in range(_STEPS):
        w = 1.0 / np.maximum(A @ theta, least) ** 2
        M, v = A.T @ (w[:, None] * A), A.T @ (w * squares)
        new = np.linalg.lstsq(M, v, rcond=None)[0]
        if new[0] < least:
            new = np.array([least, max((v[1] - M[0, 1] * least) / M[1, 1], 0.0)])
        elif new[1] < 0.0:
            new = np.array([v[0] / M[0, 0], 0.0])
        theta = 0.5 * (theta + new)
    return float(theta[0]), float(theta[1])


@eqx.filter_jit
def _window_rows(
    estimator: ElmMass, samples: Samples
) -> tuple[
    Float[jax.Array, " n"], Float[jax.Array, "n ratios"], Float[jax.Array, " n"], Bool[jax.Array, " n"]
]:
    """b_0, ratios, mean thrust, and whether the windows are full, after each row."""

    def step(state: ElmState, sample: Samples):
        state = estimator.update(estimator.predict(state, sample.u, sample.dt), sample)
        b, ratios = window_ratios(state.windows, estimator.network.velocity_noise)
        is_usable = (state.elapsed >= LEAST_TIME) & (b > 0.0) & state.has_velocity & state.holds
        return state, (b, ratios, state.level, is_usable & jnp.all(jnp.isfinite(ratios)))

    first = estimator.init(jax.tree.map(lambda leaf: leaf[0], samples))
    return jax.lax.scan(step, first, samples)[1]
