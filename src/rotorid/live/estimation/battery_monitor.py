"""The battery in flight, from the messages of its voltage and current: see `estimators.battery.estimator`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from rotorid.estimators.battery.estimator import BatteryEstimator, capacity_of
from rotorid.live.snapshot import Reading
from rotorid.models.system import GRAVITY
from rotorid.workflows.track.battery.estimate import HOVER_SPEED

_LOAD_TIME: Final = 0.1  # s, of the mean load
_INTERVAL: Final = 0.1  # s between two rows
_MAX_AGE: Final = 1.0  # s of load and speed
_FIELDS: Final = {
    "battery_resistance": ("resistance", "ohm"),
    "hover_power": ("hover_power", "W"),
    "hover_time": ("hover_time", "s"),
}
"""Reading -> the field of the estimate, and its unit."""


class BatteryMonitor:
    """Battery of one vehicle."""

    def __init__(self) -> None:
        self._estimator = BatteryEstimator()
        self._voltage = self._share = math.nan
        self._load = self._load_time = self._speed = self._speed_time = math.nan
        self._last = -math.inf
        self._readings: dict[str, Reading] = {}

    def learn(self, parameters: Mapping[str, float]) -> None:
        """Use the capacity among the parameters of the vehicle."""
        if math.isnan(self._estimator.capacity):
            self._estimator.capacity = capacity_of(parameters)

    def add(self, signal: str, t: float, values: tuple[float, ...], *, is_flying: bool) -> None:
        """Add a measurement. t: session time, s. is_flying: whether the vehicle is in free flight."""
        if signal == "specific_force":
            gain = (
                1.0
                if not t - self._load_time <= _MAX_AGE
                else -math.expm1(-(t - self._load_time) / _LOAD_TIME)
            )
            load = values[2] / GRAVITY
            self._load = load if gain == 1.0 else self._load + max(gain, 0.0) * (load - self._load)
            self._load_time = t
        elif signal == "velocity":
            self._speed, self._speed_time = math.hypot(*values), t
        elif signal == "battery_voltage":
            self._voltage = values[0]
        elif signal == "battery_remaining":
            self._share = values[0]
        elif signal == "battery_current" and t >= self._last + _INTERVAL:
            is_hover = is_flying and t - self._load_time <= _MAX_AGE
            if t - self._speed_time <= _MAX_AGE:
                is_hover = is_hover and self._speed < HOVER_SPEED
            load = self._load if is_hover else math.nan
            self._estimator.update(t, self._voltage, values[0], share=self._share, load=load)
            self._last = t
            self._readings = self._make_readings()

    def _make_readings(self) -> dict[str, Reading]:
        estimate = self._estimator.estimate()
        numbers = {
            name: (getattr(estimate, field), getattr(estimate, f"{field}_std"), unit)
            for name, (field, unit) in _FIELDS.items()
        }
        return {name: Reading(*number) for name, number in numbers.items() if not math.isnan(number[0])}

    def readings(self) -> dict[str, Reading]:
        """`battery_resistance` (ohm), `hover_power` (W) and `hover_time` (s until the charge is used up), as far as known."""
        return self._readings
