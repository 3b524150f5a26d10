"""The airframe of a vehicle while it flies, measurement by measurement.

Thrusts of the rotors follow from the commands by the airframe's thrust curve, behind every lag of a grid (`lagged_thrusts`).
Banks of Kalman filters explain the body rates about x and y (`rotation`) and the specific force (`translation`) by them; their
posterior gives thrust, motor lag, delay, inertia and drag (`posterior`). Each is relative to the mass of the airframe.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import AirframeError
from rotorid.geometry.rotation_rows import rotation_matrix
from rotorid.identification.recursive.estimates import Estimate, lag_prior_of, make_estimates
from rotorid.identification.recursive.excitation import (
    Activity,
    ClimbRange,
    CommandSampling,
    MassMonitor,
    UnmodelledLift,
    vertical_gust_std,
)
from rotorid.identification.recursive.filter_bank import Posterior, ordered_sum
from rotorid.identification.recursive.hover_shape import HoverShape
from rotorid.identification.recursive.lagged_thrusts import LaggedThrusts
from rotorid.identification.recursive.posterior import (
    DELAYS,
    LAGS,
    THRUST_DELAYS,
    LagPosterior,
    lag_posterior,
)
from rotorid.identification.recursive.rotation import RotationBank
from rotorid.identification.recursive.rotor_torques import RotorTorques
from rotorid.identification.recursive.translation import DragBank, ThrustBank, ThrustPrior
from rotorid.identification.recursive.window_means import RecentValues, WindowMeans
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.size_priors import size_priors
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.signals.series import Intervals

SIGNALS: Final = ("rotor_command", "body_rate", "specific_force", "velocity", "attitude", "battery_voltage")
"""Signals that are used; the first three are needed."""

_WINDOW: Final = 0.0105  # s, of the means of rates and specific forces
_WIND_STEP: Final = 0.25  # s
_PREDICTION_STEP: Final = 0.1  # s
_MAX_GAP: Final = 0.12  # s between two rates
_DELAY: Final = (0.006, 0.008)  # s, mean and std of the prior
_WIDE: Final = 3.0  # std of the logarithm of a lag, which is combined with its prior afterwards
_LEAST_ROWS: Final = 25  # of a bank that is used
_GAIN: Final = (1.0, 1.0)  # theta, mean and std of the prior
_LEAD: Final = 1.0  # s of commands before a flight
_SHAPE_STD: Final = 0.12  # of the slope of a thrust curve without std, relative
_LEAST_SHAPE_STD: Final = 0.03
# Of kappa, mean and std, where the file does not say whether thrust or speed lags; where it does, less that of the file.
_UNKNOWN_LAG: Final = (0.5, 0.5)
_SPEED_LAG: Final = (0.0, 0.15)
_THRUST_LAG_STD: Final = 0.1  # of the logarithm of the lag of specific forces over that of body rates
_NOMINAL_DELAY: Final = 1  # number of the delay in `THRUST_DELAYS` by which the drag is found
# Of e in the response of the body rates: curves have other forms, and rates show other effects as e.
_CURVE_STD: Final = 0.2


class AirframeIdentifier:
    """Recursive identification of one vehicle.

    Args:
        airframe: with rotors and a thrust curve; its numbers are priors.

    duration: time in the air that was used, s. slope_std: relative, of the slope of the thrust curve in hover, as of the
    latest estimates, which inertia has too. rotor_torques: of each rotor. sampling: of
    the commands. mass_monitor: whether thrust over mass is constant.

    Raises AirframeError if the airframe lacks them.
    """

    def __init__(self, airframe: Airframe) -> None:
        if airframe.thrust_curve is None or not airframe.rotors:
            raise AirframeError(
                f"{airframe.source}: no [thrust_curve] or no [[rotor]], which the identification in flight needs"
            )
        self.airframe = airframe
        self._curve: ThrustCurve = airframe.thrust_curve
        self._mass = airframe.mass.number
        inertia = airframe.get("inertia")
        if inertia is None:
            positions = np.array([rotor.position for rotor in airframe.rotors])
            inertia = size_priors(self._mass, positions)["inertia"]
        self.inertia = inertia
        G = fixed_allocation(airframe.rotors, _torque_ratio(airframe))
        self._force_rows, self._moment_rows = G[:3], G[3:] / np.array(inertia.value)[:, None]
        self._scales = np.array([rotor.thrust_scale for rotor in airframe.rotors])
        self._shape = HoverShape(self._curve, self._mass * GRAVITY / float(G[2] @ self._scales))
        std = self._shape.prior_std
        self._shape_std = _SHAPE_STD if math.isnan(std) else max(std, _LEAST_SHAPE_STD)
        self._thrusts = LaggedThrusts(
            LAGS, len(airframe.rotors), self._psi, has_speed_lag=airframe.has_speed_lag
        )
        self._lag_prior = lag_prior_of(airframe)
        self._nominal = int(np.argmin(np.abs(np.log(LAGS) - self._lag_prior[0])))
        shape = len(DELAYS), len(LAGS)
        self._axes = RotationBank(shape), RotationBank(shape)
        self._activities = Activity(), Activity()
        self.sampling, self.mass_monitor = CommandSampling(_WINDOW), MassMonitor()
        self.rotor_torques = RotorTorques(airframe, G[3:], np.array(inertia.value))
        self._lift, self._climb = UnmodelledLift(), ClimbRange()
        self._thrust, self._drag = ThrustBank(), DragBank()
        self._rates, self._forces = WindowMeans(_WINDOW), WindowMeans(_WINDOW)
        self._last_rate: tuple[float, Float64[np.ndarray, "delays lags 3 rotors"]] | None = None
        self._last_force: float | None = None
        self._next_prediction = -math.inf
        self._speed = _SPEED_LAG if airframe.lag_of else _UNKNOWN_LAG
        self._signs = np.array([1.0, 1.0, 1.0 if airframe.has_speed_lag else -1.0])
        self._prior = ThrustPrior(self._shape_std, self._speed)
        self._velocity, self._attitude = RecentValues(3), RecentValues(4)
        self._voltage = math.nan
        self._is_flying = False
        self._wind, self._next_wind = np.zeros(2), 1.0
        self._load = 1.0
        self.duration, self.slope_std = 0.0, math.inf

    def _psi(self, thrusts: Float64[np.ndarray, "*n rotors"]) -> Float64[np.ndarray, "*n rotors"]:
        return self._shape.of_thrust(thrusts / self._scales) * self._scales

    def set_flying(self, is_flying: bool) -> None:
        """Begin or end the use of measurements."""
        if is_flying and not self._is_flying:
            self._last_rate = self._last_force = None
        self._is_flying = is_flying

    def add(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        """Add a measurement, in SI units, body frame FLU, world ENU. t: s."""
        if signal == "rotor_command":
            thrusts = self._commanded(values)
            self._thrusts.add(t, thrusts)
            if self._is_flying:
                self.sampling.add(t, weighted(self._moment_rows[:2], thrusts))
        elif signal == "body_rate":
            self._rates.add(t, values)
        elif signal == "specific_force":
            self._forces.add(t, values)
        elif signal == "velocity":
            self._velocity.add(t, values)
        elif signal == "attitude":
            self._attitude.add(t, values)
        elif signal == "battery_voltage":
            self._voltage = values[0]

    def _commanded(self, commands: tuple[float, ...]) -> Float64[np.ndarray, " rotors"]:
        """Thrusts of commands, N."""
        curve = self._curve
        c = np.clip((np.array(commands) - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
        thrust = np.polynomial.polynomial.polyval(c, curve.coefficients) * self._scales
        if curve.voltage_exponent and self._voltage > 0.0:
            thrust = thrust * (self._voltage / curve.voltage) ** curve.voltage_exponent
        return thrust

    def advance(self) -> None:
        """Use all measurements for which the commands are known."""
        latest = self._thrusts.latest + DELAYS[0]
        for t, rates in self._rates.take(latest):
            self._use_rate(t, rates)
        for t, force in self._forces.take(latest - 0.5 * _WINDOW):
            self._use_force(t, force)

    def _use_rate(self, t: float, rates: tuple[float, ...]) -> None:
        if not self._is_flying or t - DELAYS[-1] < self._thrusts.earliest:
            self._last_rate = None
            return
        last = self._last_rate
        impulse = self._thrusts.impulse(t, DELAYS)
        self._last_rate = t, impulse
        if last is None or t - last[0] > _MAX_GAP:
            for activity in self._activities:
                activity.restart()
            self.rotor_torques.restart()
            return
        dt, change = t - last[0], impulse - last[1]
        self.duration += dt
        x, y, z = self.inertia.value
        p, q, r = rates
        gyroscopic = (y - z) / x * q * r, (z - x) / y * p * r
        middle = len(change) // 6
        self.rotor_torques.step(rates, change[middle, :, 0], dt)
        if not self.mass_monitor.is_constant:
            for activity in self._activities:
                activity.restart()
            return
        for axis, (bank, activity) in enumerate(zip(self._axes, self._activities, strict=True)):
            was_active = activity.is_active
            if activity.update(rates[axis], dt):
                moments = weighted(change, self._moment_rows[axis]) * self._signs if was_active else None
                bank.step(rates[axis], moments, gyroscopic[axis], dt)

    def _use_force(self, t: float, force: tuple[float, ...]) -> None:
        if not self._is_flying or t - DELAYS[-1] < self._thrusts.earliest:
            self._last_force = None
            return
        last = self._last_force
        self._last_force = t
        if last is None or t - last > _MAX_GAP:
            return
        dt = t - last
        width = min(dt, _WINDOW)  # all commands up to its end are known
        n = len(THRUST_DELAYS)
        ends = np.concatenate([THRUST_DELAYS - 0.5 * width, THRUST_DELAYS + 0.5 * width])
        impulse = self._thrusts.impulse(t, ends)
        T = (impulse[:n] - impulse[n:]) / width
        axis = self._force_rows[2] / self._mass
        velocity, attitude = self._velocity.at(t), self._attitude.at(t)
        R = None if attitude is None or velocity is None else rotation_matrix(attitude)
        climb = 0.0 if R is None or velocity is None else float(ordered_sum(R[:, 2] * velocity))
        wind = self._wind_force(R)
        force_z = force[2] - wind
        rows = weighted(T[:, ::2], axis) * self._signs
        monitor, is_due = self.mass_monitor, t >= self._next_prediction
        self._next_prediction = t + _PREDICTION_STEP if is_due else self._next_prediction
        expected, std = self._thrust.predict(rows, climb, self._prior, is_refreshed=is_due)
        was_constant = monitor.is_constant
        if not monitor.update((force_z - expected) / GRAVITY, std / GRAVITY, dt):
            if monitor.is_wrong:
                self._thrust, self._lift, self._load = ThrustBank(), UnmodelledLift(), 1.0
                self._climb = ClimbRange()
                monitor.restart()
            return
        if not was_constant:
            self._thrust.restart()
        self._thrust.step(force_z, rows, climb, dt)
        self._lift.add(float(rows[_NOMINAL_DELAY, self._nominal // 2, 1]), wind)
        self._climb.add(climb, dt)
        self._load += (force_z / GRAVITY - self._load) / max(self._thrust.filters.count, 1)
        if R is not None and velocity is not None:
            side = weighted(self._force_rows[:2], T[_NOMINAL_DELAY, self._nominal, 0]) / self._mass
            self._drag.add(t, (force[0] - side[0], force[1] - side[1]), velocity, R)

    def _wind_force(self, R: Float64[np.ndarray, "3 3"] | None) -> float:
        """Specific force of the wind's drag along body z, by the drag so far, m/s^2."""
        if R is None:
            return 0.0
        if self.duration >= self._next_wind:
            self._next_wind = self.duration + _WIND_STEP
            self._wind = self._drag.wind()
        return float(R[0, 2] * self._wind[0] + R[1, 2] * self._wind[1])

    def estimates(self) -> dict[str, Estimate]:
        """All quantities so far; see `estimates.QUANTITIES`."""
        axes = self._axis_posteriors()
        states, covariance = self._thrust_states(axes)
        hover = self._shape.at_hover(float(states[0]), float(states[1]), covariance[:2, :2])
        lag = self._lag(axes, hover.shape_slope)
        weakened = self._shape.at_hover(*self._weakened(states, covariance))
        self.slope_std = weakened.slope_std / weakened.slope
        gust_std = vertical_gust_std(float(np.linalg.norm(self._drag.wind())), self.duration)
        has_thrust = self._thrust.filters.count >= _LEAST_ROWS
        return make_estimates(
            self.airframe,
            self.inertia,
            hover=hover if has_thrust else None,
            lag=lag if axes else None,
            lag_prior=self._lag_prior,
            gains=dict(zip(axes, lag.gains, strict=True)),
            drag=self._drag.posterior(),
            load=self._load,
            lift_std=math.hypot(self._lift.thrust_std, self._climb.thrust_std, gust_std),
            slope=(weakened.slope, self.slope_std),
            sampling=self.sampling,
        )

    def still_axes(self) -> tuple[str, ...]:
        """Axes about which the vehicle has hardly turned: "x", "y"."""
        return tuple(
            name for name, bank in zip("xy", self._axes, strict=True) if bank.filters.count < _LEAST_ROWS
        )

    def thrust_curve(self) -> tuple[ThrustCurve, tuple[float, ...]]:
        """The thrust curve so far, and the standard deviations of its coefficients, N."""
        states, covariance = self._thrust_states(self._axis_posteriors())
        s, se, spread = self._weakened(states, covariance)
        return self._shape.curve(s, se), self._shape.coefficient_stds(spread)

    def _weakened(
        self, states: Float64[np.ndarray, " 4"], covariance: Float64[np.ndarray, "4 4"]
    ) -> tuple[float, float, Float64[np.ndarray, "2 2"]]:
        """s, s e and their covariance with the error of e by unmodelled lift. states, covariance: of the thrust."""
        s, se = float(states[0]), float(states[1])
        return self._shape.weaken(s, se, covariance[:2, :2], self._shape_std, self._lift.slope_std)

    def _axis_posteriors(self) -> dict[int, Posterior]:
        """Of the axes that have turned."""
        shape = 0.0, math.hypot(self._shape_std, _CURVE_STD)
        return {
            axis: bank.posterior(_GAIN, shape, self._speed)
            for axis, bank in enumerate(self._axes)
            if bank.filters.count >= _LEAST_ROWS
        }

    def _lag(self, axes: Mapping[int, Posterior], shape_slope: float = 0.0) -> LagPosterior:
        """Lag, delay and gains of some axes. shape_slope: see `lag_posterior`."""
        return lag_posterior(list(axes.values()), (self._lag_prior[0], _WIDE), _DELAY, shape_slope)

    def _thrust_states(
        self, axes: Mapping[int, Posterior]
    ) -> tuple[Float64[np.ndarray, " 4"], Float64[np.ndarray, "4 4"]]:
        """The states of the thrust with their covariance, with the lag of the body rates."""
        mean, std = self._lag(axes).log_lag if axes else (0.0, math.inf)
        prior_mean, prior_std = self._lag_prior
        share = prior_std**2 / (prior_std**2 + std**2 + _THRUST_LAG_STD**2)
        combined = prior_mean + share * (mean - prior_mean), prior_std * math.sqrt(1.0 - share)
        return self._thrust.posterior(self._prior, combined, _DELAY)


def weighted(
    values: Float64[np.ndarray, "*shape rotors"], weights: Float64[np.ndarray, " rotors"]
) -> Float64[np.ndarray, "*shape"]:
    """Sum over the rotors, one after the other (see `ordered_sum`)."""
    return ordered_sum(np.moveaxis(values, -1, 0) * weights.reshape(-1, *[1] * (values.ndim - 1)))


def _torque_ratio(airframe: Airframe) -> float:
    try:
        return torque_ratio_of(airframe)
    except AirframeError:
        return size_priors(airframe.mass.number, np.array([rotor.position for rotor in airframe.rotors]))[
            "torque_ratio"
        ].number


def identify_recursively(
    flight: Flight, airframe: Airframe, parts: Intervals, every: float = 1.0
) -> Iterator[tuple[float, AirframeIdentifier]]:
    """Replay a log.

    Args:
        flight: the log, with the signals of `SIGNALS`; the first three are needed.
        airframe: of its vehicle.
        parts: of the flight in the air, start and end in s.
        every: time between two results, s.
    Yields:
        Time of the log in s, and the identifier, which goes on.
    """
    identifier = AirframeIdentifier(airframe)
    for start, end in parts:
        due = start + every
        for t, _, signal, values in _measurements(flight, start - _LEAD, end):
            identifier.set_flying(t >= start)
            identifier.add(signal, t, values)
            identifier.advance()
            if t >= due:
                yield t, identifier
                due += every
        identifier.set_flying(False)


def _measurements(
    flight: Flight, start: float, end: float
) -> Iterator[tuple[float, int, str, tuple[float, ...]]]:
    columns = []
    for number, name in enumerate(SIGNALS):
        if name in flight:
            signal = flight[name]
            inside = (signal.times >= start) & (signal.times <= end)
            pairs = zip(signal.times[inside].tolist(), signal.values[inside].tolist(), strict=True)
            columns.append([(t, number, name, tuple(values)) for t, values in pairs])
    return heapq.merge(*columns)
