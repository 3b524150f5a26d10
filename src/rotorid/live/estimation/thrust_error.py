"""Uncertainty of the thrust by the battery voltage, by motors that warm up and by a sag of the battery, causally.

`workflows.track` has the same terms for a whole flight. Here the voltage at which a weighed mass calibrates the thrust is the
median until now, from `CALIBRATION_TIME` s on that of the first `CALIBRATION_TIME` s.
"""

from __future__ import annotations

import math
from bisect import insort

import numpy as np

from rotorid.live.estimation.airframe_identification import SessionEvent
from rotorid.live.estimation.thrust_model import ThrustModel
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust_uncertainty import (
    CALIBRATION_TIME,
    is_weighed,
    voltage_relative_std,
)
from rotorid.workflows.track.battery.sag import BIN, UnloggedSag, steady_rise


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


class SagMonitor:
    """A mass that rises steadily over a flight, where a sag of the battery may cause it; see `workflows.track.battery.sag`.

    It is looked for where the thrust model does not use the battery voltage: none is received, or the thrust curve has no
    exponent of it.

    Args:
        airframe: of the vehicle.
        thrust_model: has the latest voltage.
        main_quantity: that is tracked; nothing is looked for in others than `mass` and `thrust_scale`.
    """

    def __init__(self, airframe: Airframe, thrust_model: ThrustModel, main_quantity: str) -> None:
        curve = airframe.thrust_curve
        self._has_exponent = curve is not None and bool(curve.voltage_exponent)
        self._thrust_model, self._quantity = thrust_model, main_quantity
        self._sign = {"mass": 1.0, "thrust_scale": -1.0}.get(main_quantity, 0.0)
        self._events: list[SessionEvent] = []
        self.restart()

    def restart(self) -> None:
        """A further flight begins."""
        self._start = math.nan
        self._bin: list[tuple[float, float]] = []
        self._times: list[float] = []
        self._medians: list[float] = []
        self._sag: UnloggedSag | None = None
        self._has_reported = False

    def update(self, t: float, value: float) -> None:
        """Use an estimate with good health. t: session time, s. value: of the main quantity."""
        is_voltage_used = self._has_exponent and self._thrust_model.voltage > 0.0
        if not self._sign or is_voltage_used or not value > 0.0:
            return
        if math.isnan(self._start):
            self._start = t
        if self._bin and t >= self._bin[0][0] + BIN:
            self._end_bin(t)
        self._bin.append((t, value))

    def _end_bin(self, t: float) -> None:
        times, values = zip(*self._bin, strict=True)
        self._bin = []
        self._times.append(sum(times) / len(times))
        self._medians.append(self._sign * math.log(float(np.median(values))))
        self._sag = steady_rise(np.array(self._times), np.array(self._medians), self._start, t)
        if self._sag is None or self._has_reported:
            return
        self._has_reported = True
        values = dict(self._sag.finding().values) | {
            "quantity": self._quantity,
            "is_voltage_known": self._thrust_model.voltage > 0.0,
        }
        self._events.append(("unlogged_sag", t, values))

    def take_events(self) -> list[SessionEvent]:
        """Remove and return the events since the last call: one for each flight with such a rise."""
        events, self._events = self._events, []
        return events

    def relative_std(self, t: float) -> float:
        """Relative standard deviation of the main quantity by the rise, at session time t, s."""
        return 0.0 if self._sag is None else float(self._sag.relative_std(np.array(t)))
