"""Uncertainty of the thrust by the battery voltage and by motors that warm up, causally.

`workflows.track` has the same terms for a whole flight. Here the voltage at which a weighed mass calibrates the thrust is the
median until now, from `CALIBRATION_TIME` s on that of the first `CALIBRATION_TIME` s.
"""

from __future__ import annotations

import math
from bisect import insort

import numpy as np

from rotorid.live.estimation.thrust_model import ThrustModel
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust_uncertainty import (
    CALIBRATION_TIME,
    is_weighed,
    voltage_relative_std,
)


class ThrustError:
    """Relative standard deviation of the thrust over time.

    Args:
        airframe: of the vehicle.
        thrust_model: has the latest voltage.
        known_mass: kg, where the thrust scale is tracked.
    """

    def __init__(self, airframe: Airframe, thrust_model: ThrustModel, known_mass: float | None) -> None:
        curve = airframe.thrust_curve
        self._curve = curve if curve is not None and curve.voltage_exponent_std else None
        self._thrust_model = thrust_model
        self._is_calibrated = known_mass is not None or is_weighed(airframe)
        self._start = math.nan
        self._first_voltages: list[float] = []  # sorted
        self._first_voltage = math.nan

    def relative_std(self, t: float) -> float:
        """At the next row of the tracker. t: session time, s."""
        if self._curve is None:
            return 0.0
        if math.isnan(self._start):
            self._start = t
        elapsed, voltage = t - self._start, self._thrust_model.voltage
        is_known = voltage > 0.0
        if is_known and (elapsed < CALIBRATION_TIME or not self._first_voltages):
            insort(self._first_voltages, voltage)
            self._first_voltage = self._first_voltages[len(self._first_voltages) // 2]
        std = voltage_relative_std(
            self._curve,
            np.array(elapsed),
            np.array(voltage) if is_known else None,
            self._first_voltage,
            is_calibrated=self._is_calibrated,
        )
        return float(std)
