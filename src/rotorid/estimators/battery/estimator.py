"""Internal resistance of a battery, power in hover and remaining hover time, from its voltage and current.

With n cells, V the voltage, I the current, q the charge that was drawn (A h), U the open-circuit voltage, s its slope and R the
resistance, a Kalman filter of (U, R, s) has

    V = U - R I + e                     std(e) = 5 mV n: converter, and I and V that are not measured at the same instant
    U' = -s I / 3600 + w                w: 3 mV n per square root of a second: polarisation, which follows the current slowly
    R = (0.02 +- 0.02) n Ohm,  s = (0.25 +- 0.25) n V / A h            priors

Its covariance is multiplied by the mean normalised innovation squared where that is above 1. What is identified is the voltage
drop within about a second. Polarisation adds 9 to 14 % within a minute on twelve real flights; `_MODEL_STD` of R allows for it.

The power V I in hover is that at the weight: of a rotor in hover P ~ T^1.5 (momentum theory), so that with the load factor
l = a_z / g (specific force along the rotor axis)

    P_h = mean of V I l^-1.5            over means of 2 s, weighted by exp(-age / 60 s)

with the standard error of these means, twice that of independent ones, and `SENSOR_STD` for the scale of the current.

Where the capacity C is known (a parameter of the autopilot, or the charge that was drawn while the remaining share eta fell),
the time until the charge is used up in hover is

    t_h = C eta (U - R I_h) / P_h,      I_h = P_h / (U - R I_h)

with relative standard deviations of C (`CAPACITY_STD`), of P_h, of the voltage until then (`VOLTAGE_STD`) and of eta (0.01).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import numpy as np

SENSOR_STD: Final = 0.05
"""Relative standard deviation of the scale of a current sensor."""

CAPACITY_STD: Final = 0.1
"""Relative standard deviation of a capacity by its label: age, temperature, current."""

VOLTAGE_STD: Final = 0.05
"""Relative standard deviation of the mean voltage until the charge is used up, over that of now."""

_VOLTAGE_NOISE, _DRIFT = 0.005, 0.003  # V, V / sqrt(s) of a cell
_RESISTANCE, _SLOPE = 0.02, 0.25  # Ohm, V / A h of a cell; as large are their standard deviations
_LEAST_RESISTANCE: Final = 0.002  # Ohm of a cell
_OPEN_CIRCUIT_STD: Final = 0.1  # V of a cell
_MODEL_STD: Final = 0.08  # of the resistance
_IDENTIFIED: Final = 0.3  # of the prior standard deviation
_NIS_MEMORY: Final = 500  # rows
_FULLEST_CELL: Final = 4.35  # V
_FULL_CELL: Final = 4.05  # V at rest; below, a battery is not full
_BLOCK, _MEMORY = 2.0, 60.0  # s, of the power
_CORRELATION: Final = 2.0  # standard error of the power over that of independent means
_FEWEST_BLOCKS: Final = 3
_LOAD: Final = (0.7, 1.4)  # load factors that are near hover
_LEAST_FALL: Final = 0.05  # of the remaining share, that gives the capacity
_SHARE_STD: Final = 0.01  # of the remaining share: whole per cent, rounded down
_MOST_CAPACITY_STD: Final = 0.3
_LONGEST_STEP: Final = 5.0  # s; longer pauses count no charge


@dataclasses.dataclass(frozen=True)
class BatteryEstimate:
    """The battery at one time. A number is NaN where it cannot be identified; a name with `_std` is its standard deviation.

    resistance: internal resistance, Ohm. open_circuit: open-circuit voltage, V. slope: decrease of the open-circuit voltage
    with the drawn charge, V per A h. hover_power: electrical power in hover, W. hover_time: time in hover until the charge is
    used up, s; without a reserve for landing. capacity: A h. no_time: reason for no hover time: "capacity" (unknown), "share"
    (remaining share unknown), "not_full" (the autopilot counts from a full battery, and it was not full), "hover" (no hover),
    or "".
    """

    resistance: float = math.nan
    resistance_std: float = math.nan
    open_circuit: float = math.nan
    slope: float = math.nan
    slope_std: float = math.nan
    hover_power: float = math.nan
    hover_power_std: float = math.nan
    hover_time: float = math.nan
    hover_time_std: float = math.nan
    capacity: float = math.nan
    no_time: str = "hover"


def capacity_of(parameters: Mapping[str, float]) -> float:
    """Capacity of the first battery by the autopilot's parameters, A h; NaN where they do not have it."""
    capacities = (parameters.get(name, 0.0) for name in ("BATT_CAPACITY", "BAT1_CAPACITY", "BAT_CAPACITY"))
    return next((c / 1000.0 for c in capacities if c > 0.0), math.nan)


def _cells(voltage: float, current: float) -> int:
    """Number of cells in series, of which none has more than `_FULLEST_CELL` V."""
    cells = max(math.ceil(voltage / _FULLEST_CELL), 1)
    return math.ceil((voltage + _LEAST_RESISTANCE * cells * current) / _FULLEST_CELL)


class BatteryEstimator:
    """A recursive estimator of the state of one battery.

    Args:
        capacity: capacity by the autopilot's parameters, A h; NaN where unknown.
    """

    def __init__(self, capacity: float = math.nan) -> None:
        self.capacity = capacity
        self._t = math.nan
        self._current = self._share = math.nan
        self._charge = 0.0  # A h
        self._first_share: tuple[float, float] | None = None  # and the charge at it
        self._x, self._P = np.zeros(3), np.zeros((3, 3))
        self._prior_std = np.zeros(3)
        self._cells, self._rest_voltage = 0, math.nan
        self._nis, self._rows = 0.0, 0
        self._block: list[tuple[float, float]] = []  # time and power over the load
        self._weight = self._weight_sq = self._power = self._scatter = 0.0
        self._blocks, self._block_time = 0, math.nan

    def update(
        self, t: float, voltage: float, current: float, *, share: float = math.nan, load: float = math.nan
    ) -> None:
        """Add a row of measurements.

        Args:
            t: time, s.
            voltage: V.
            current: current that the battery supplies, A.
            share: remaining share of the charge by the autopilot, 0 to 1; NaN where unknown.
            load: specific force along the rotor axis over g while the vehicle is nearly in hover; NaN elsewhere.
        """
        if not (voltage > 0.0 and current >= 0.0) or t <= self._t:
            return
        self._update_resistance(t, voltage, current)
        if not math.isnan(share):
            self._share = share
            self._first_share = self._first_share or (share, self._charge)
        if _LOAD[0] < load < _LOAD[1]:
            self._update_power(t, voltage * current * load**-1.5)
        self._t, self._current = t, current

    def _update_resistance(self, t: float, voltage: float, current: float) -> None:
        if not self._cells:
            n = self._cells = _cells(voltage, current)
            self._x = np.array([voltage + _RESISTANCE * n * current, _RESISTANCE * n, _SLOPE * n])
            self._prior_std = np.array([_OPEN_CIRCUIT_STD * n, _RESISTANCE * n, _SLOPE * n])
            self._prior_std[0] = math.hypot(self._prior_std[0], self._prior_std[1] * current)
            self._P = np.diag(self._prior_std**2)
            self._rest_voltage = self._x[0]
        dt = 0.0 if math.isnan(self._t) else min(t - self._t, _LONGEST_STEP)
        drawn = 0.0 if math.isnan(self._current) else self._current * dt / 3600.0
        self._charge += drawn
        F = np.array([[1.0, 0.0, -drawn], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        P = F @ self._P @ F.T
        P[0, 0] += (_DRIFT * self._cells) ** 2 * dt
        x = F @ self._x
        H = np.array([1.0, -current, 0.0])
        S = float(H @ P @ H) + (_VOLTAGE_NOISE * self._cells) ** 2
        innovation = voltage - float(H @ x)
        K = P @ H / S
        I_KH = np.eye(3) - np.outer(K, H)
        self._x = x + K * innovation
        self._P = I_KH @ P @ I_KH.T + np.outer(K, K) * (_VOLTAGE_NOISE * self._cells) ** 2
        self._rows += 1
        self._nis += (innovation**2 / S - self._nis) / min(self._rows, _NIS_MEMORY)

    def _update_power(self, t: float, power: float) -> None:
        if self._block and t - self._block[0][0] >= _BLOCK:
            mean = sum(p for _, p in self._block) / len(self._block)
            kept = 1.0 if math.isnan(self._block_time) else math.exp(-(t - self._block_time) / _MEMORY)
            self._weight = kept * self._weight + 1.0
            self._weight_sq = kept**2 * self._weight_sq + 1.0
            departure = mean - self._power
            self._power += departure / self._weight
            self._scatter = kept * self._scatter + departure * (mean - self._power)
            self._blocks, self._block_time, self._block = self._blocks + 1, t, []
        self._block.append((t, power))

    def estimate(self) -> BatteryEstimate:
        """The battery after the latest row."""
        if not self._rows:
            return BatteryEstimate()
        std = np.sqrt(np.diag(self._P) * max(self._nis, 1.0))
        is_known = std < _IDENTIFIED * self._prior_std
        R, R_std = float(self._x[1]), math.hypot(float(std[1]), _MODEL_STD * float(self._x[1]))
        power, power_std = self._hover_power()
        capacity, capacity_std = self._capacity()
        reason = self._no_time(capacity, power)
        time = time_std = math.nan
        if not reason:
            U = float(self._x[0])
            loaded = 0.5 * (U + math.sqrt(max(U**2 - 4.0 * max(R, 0.0) * power, 0.0)))
            time = 3600.0 * capacity * self._share * loaded / power
            share_std = _SHARE_STD / max(self._share, _SHARE_STD)
            time_std = time * math.hypot(capacity_std, power_std / power, VOLTAGE_STD, share_std)
        return BatteryEstimate(
            R if is_known[1] else math.nan,
            R_std if is_known[1] else math.nan,
            float(self._x[0]),
            float(self._x[2]) if is_known[2] else math.nan,
            float(std[2]) if is_known[2] else math.nan,
            power,
            power_std,
            time,
            time_std,
            capacity,
            reason,
        )

    def _hover_power(self) -> tuple[float, float]:
        if self._blocks < _FEWEST_BLOCKS or self._power <= 0.0:
            return math.nan, math.nan
        variance = self._scatter / self._weight * self._weight_sq / self._weight**2
        return self._power, math.hypot(_CORRELATION * math.sqrt(max(variance, 0.0)), SENSOR_STD * self._power)

    def _capacity(self) -> tuple[float, float]:
        """A h, and its relative standard deviation; NaN where unknown."""
        if self.capacity > 0.0:
            return self.capacity, CAPACITY_STD
        if self._first_share is None:
            return math.nan, math.nan
        fall = self._first_share[0] - self._share
        std = math.hypot(math.sqrt(2.0) * _SHARE_STD / max(fall, 1e-9), CAPACITY_STD)
        if fall < _LEAST_FALL or std > _MOST_CAPACITY_STD:
            return math.nan, math.nan
        return (self._charge - self._first_share[1]) / fall, std

    def _no_time(self, capacity: float, power: float) -> str:
        """Why there is no hover time, "" if there is one."""
        if math.isnan(power):
            return "hover"
        if self._first_share is None or math.isnan(self._share):
            return "share"
        if math.isnan(capacity):
            return "capacity"
        counts_from_full = self.capacity > 0.0 and self._first_share[0] > 0.95
        if counts_from_full and self._rest_voltage < _FULL_CELL * self._cells:
            return "not_full"
        return ""
