"""Thrust per command and drag from the specific force, by banks over lag and noise.

    f_z = s (phi_1 + e phi_2 - kappa phi_3) - b v_z + a
    f_xy = -(d / m) (R^T (v - w))_xy + b_xy + a_xy

phi_1, phi_2 and phi_3 are sums of T, psi and delta of the rotors over the mass, delayed and behind a lag (`lagged_thrusts`), s
the thrust in hover over that of the airframe file, s (1 + e) the same of the slope of the thrust curve (`hover_shape`), b the
loss of thrust by inflow, d the drag, w the wind, b_xy a bias (accelerometer, centre of mass), and a a first-order coloured
noise. The regression on v and d w is linear.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.identification.recursive.filter_bank import DIFFUSE, FilterBank, ordered_sum
from rotorid.identification.recursive.posterior import THRUST_DELAYS, THRUST_LAGS, over_delays_and_lags

_DISTURBANCES: Final = (0.03, 0.2, 1.0, 5.0, 25.0)  # std of a over that of the white noise
_CORRELATIONS: Final = (0.15, 1.0)  # s
_GUSTS: Final = (0.15, 1.0, 4.0)  # s, the same of the drag
_LEAST_ROWS: Final = 25
_SCALE: Final = (1.0, 0.5)  # of s, mean and std of the prior
_INFLOW_STD: Final = 0.5  # 1/s
_DRAG: Final = (0.3, 0.7)  # 1/s, mean and std of d / m
_WIND: Final = 2.0  # m/s^2, std of d w / m
_BIAS: Final = 0.15  # m/s^2
_VELOCITY_ERROR: Final = 0.035  # m/s, std of the velocity of an autopilot
_MOTION_MEMORY: Final = 4.0  # s
_WINDOW: Final = 0.1  # s, of the means of the drag
_LARGEST_ATTENUATION: Final = 0.5


class _Coloured:
    """Noises of a bank, and the decay of a coloured noise. repeats: number of other hypotheses of each. correlations: s."""

    def __init__(self, repeats: int, correlations: Sequence[float]) -> None:
        noises = np.array(list(itertools.product(_DISTURBANCES, correlations)))
        self.count = len(noises)
        self.variance, self._time = np.repeat(noises[:, 0], repeats) ** 2, np.repeat(noises[:, 1], repeats)

    def decay(self, filters: FilterBank, states: Sequence[int], dt: float) -> None:
        """Predict the coloured noises. dt: s."""
        factor = np.exp(-dt / self._time)
        for state in states:
            filters.x[state] *= factor
            filters.P[state] *= factor
            filters.P[:, state] *= factor
            filters.P[state, state] += (1.0 - factor * factor) * self.variance


_STATES: Final = 4  # s, s e, s kappa, b


class ThrustPrior(NamedTuple):
    """Of the thrust. shape_std: standard deviation of e. speed: mean and standard deviation of kappa."""

    shape_std: float
    speed: tuple[float, float]

    def moments(self) -> tuple[Float64[np.ndarray, " 4"], Float64[np.ndarray, "4 4"]]:
        """Mean and covariance of s, s e, s kappa and b."""
        mean = np.array([_SCALE[0], 0.0, self.speed[0], 0.0])
        covariance = np.diag([_SCALE[1], self.shape_std, self.speed[1], _INFLOW_STD]) ** 2
        covariance[2, 0] = covariance[0, 2] = self.speed[0] * _SCALE[1] ** 2
        covariance[2, 2] += (self.speed[0] * _SCALE[1]) ** 2
        return mean, covariance


Rows = Float64[np.ndarray, "delays lags 3"]
"""phi_1, phi_2 and -phi_3, m/s^2."""


class ThrustBank:
    """Thrust per command, over noises, `THRUST_DELAYS` and `THRUST_LAGS`."""

    def __init__(self) -> None:
        nodes = len(THRUST_DELAYS) * len(THRUST_LAGS)
        self._noise = _Coloured(nodes, _CORRELATIONS)
        self.filters = FilterBank(np.array([DIFFUSE] * _STATES + [0.0]), nodes * self._noise.count)
        self._warm_up = _STATES
        self.restart()
        self._states: tuple[int, np.ndarray, np.ndarray] | None = None  # of `predict`

    def restart(self) -> None:
        """Forget the coloured noise, after an interruption."""
        self.filters.set_unknown(_STATES)
        self.filters.P[_STATES, _STATES] = self._noise.variance

    def step(self, force: float, rows: Rows, climb: float, dt: float) -> None:
        """Use a specific force.

        Args:
            force: along body z, m/s^2.
            rows: of the rotors.
            climb: velocity along body z, m/s; 0 if unknown.
            dt: time since the previous one, s.
        """
        self._noise.decay(self.filters, (_STATES,), dt)
        h = np.empty((_STATES + 1, self.filters.x.shape[1]))
        h[:3] = np.tile(rows.reshape(-1, 3).T, self._noise.count)
        h[3], h[_STATES] = -climb, 1.0
        self.filters.update(force, h, counts=self._warm_up == 0)
        self._warm_up = max(self._warm_up - 1, 0)

    def predict(
        self, rows: Rows, climb: float, prior: ThrustPrior, *, is_refreshed: bool
    ) -> tuple[float, float]:
        """A specific force along body z without coloured noise, and its standard deviation, m/s^2.

        Args:
            rows, climb: as of `step`.
            prior: of the states.
            is_refreshed: whether the states so far are used, or those of the last time that they were.
        """
        nodes = rows.reshape(-1, 3)
        if self.filters.count < _LEAST_ROWS:
            self._states = len(nodes) // 2, *prior.moments()
        elif is_refreshed or self._states is None:
            result = self.filters.posterior(range(_STATES), *prior.moments())
            node = int(np.argmax(result.log_evidence)) % len(nodes)
            self._states = node, *result.mixture()
        assert self._states is not None
        node, mean, covariance = self._states
        row = np.array([*nodes[node], -climb])
        variance = ordered_sum(row * ordered_sum(covariance * row[:, None]))
        return float(ordered_sum(row * mean)), math.sqrt(max(float(variance), 0.0))

    def posterior(
        self, prior: ThrustPrior, log_lag: tuple[float, float], delay: tuple[float, float]
    ) -> tuple[Float64[np.ndarray, " 4"], Float64[np.ndarray, "4 4"]]:
        """The states with their covariance: s, s e, s kappa and b.

        Args:
            prior: of the states.
            log_lag: mean and standard deviation of the prior of the logarithm of the lag, s.
            delay: the same of the delay, s.
        """
        mean, covariance = prior.moments()
        if self.filters.count >= _LEAST_ROWS:
            result = self.filters.posterior(range(_STATES), mean, covariance)
            mean, covariance = over_delays_and_lags(result, log_lag, delay)
        return mean, covariance


class DragBank:
    """Drag over mass, from means over windows, in which fast errors of the velocity average out.

    A slow error of the measured velocity attenuates the drag: with all frequencies alike, its estimate converges to d (1 - a)
    with a = var(error) / var(v + error) (Fuller, "Measurement error models", 1987, section 1.1). Slow errors matter less, as
    the noise model leaves out slow changes: half of a is corrected, and the rest is uncertainty.
    """

    def __init__(self) -> None:
        self._noise = _Coloured(1, _GUSTS)
        self.filters = FilterBank(np.array([DIFFUSE] * 5 + [0.0, 0.0]), self._noise.count)
        for state in (5, 6):
            self.filters.P[state, state] = self._noise.variance
        self._warm_up = 4
        self._mean, self._square, self._steps = np.zeros(2), 0.0, 0
        self._samples: list[tuple[float, np.ndarray]] = []
        self._last = -math.inf

    def add(self, t: float, force: Sequence[float], velocity: np.ndarray, R: np.ndarray) -> None:
        """Add a specific force.

        Args:
            t: s.
            force: along body x and y, without that of the rotors, m/s^2.
            velocity: world, m/s.
            R: rotation matrix, body to world.
        """
        values = np.concatenate(
            [force, ordered_sum(R * velocity[:, None])[:2], R[0, :2], R[1, :2], velocity[:2]]
        )
        if self._samples and t - self._samples[-1][0] > _WINDOW:
            self._samples.clear()
        elif self._samples and t - self._samples[0][0] >= _WINDOW:
            times, rows = zip(*self._samples, strict=True)
            self._step(sum(times) / len(times), ordered_sum(np.array(rows)) / len(rows))
            self._samples.clear()
        self._samples.append((t, values))

    def _step(self, t: float, means: Float64[np.ndarray, " 10"]) -> None:
        """Use the means of a window. t: its middle, s."""
        force, body, x, y, velocity = means.reshape(5, 2)
        dt = min(t - self._last, 1.0)
        self._last = t
        self._noise.decay(self.filters, (5, 6), dt)
        share = 1.0 if self._steps == 0 else -math.expm1(-dt / _MOTION_MEMORY)
        self._mean = self._mean + share * (velocity - self._mean)
        change = velocity - self._mean
        self._steps += 1
        self._square += (float(ordered_sum(change * change)) / 2.0 - self._square) / self._steps
        for i in range(2):
            row = np.zeros(7)
            row[0], row[1], row[2] = -body[i], x[i], y[i]
            row[3 + i] = row[5 + i] = 1.0
            h = np.broadcast_to(row[:, None], self.filters.x.shape)
            self.filters.update(float(force[i]), h, counts=self._warm_up == 0)
        self._warm_up = max(self._warm_up - 1, 0)

    def posterior(self) -> tuple[float, float]:
        """d / m and its standard deviation, 1/s; the prior while the velocity changes by little more than its error."""
        if _LARGEST_ATTENUATION * self._square < _VELOCITY_ERROR**2:
            return _DRAG
        value, covariance = self._mixture()
        share = 0.5 * _VELOCITY_ERROR**2 / self._square
        d, std = float(value[0]) / (1.0 - share), float(np.sqrt(covariance[0, 0])) / (1.0 - share)
        return d, math.hypot(std, share * d)

    def wind(self) -> Float64[np.ndarray, " 2"]:
        """d w / m along world x and y, m/s^2."""
        return self._mixture()[0][1:3]

    def _mixture(self) -> tuple[Float64[np.ndarray, " 5"], Float64[np.ndarray, "5 5"]]:
        prior = np.diag([_DRAG[1], _WIND, _WIND, _BIAS, _BIAS]) ** 2
        mean = np.array([_DRAG[0], 0.0, 0.0, 0.0, 0.0])
        if self.filters.count < _LEAST_ROWS:
            return mean, prior
        return self.filters.posterior(range(5), mean, prior).mixture()
