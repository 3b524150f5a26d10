"""The battery in flight is that of the log of the same flight."""

from __future__ import annotations

from pathlib import Path

import pytest

from rotorid import read
from rotorid.live.estimation.battery_monitor import BatteryMonitor
from rotorid.workflows.track.battery.estimate import battery_of


def test_it_is_that_of_the_log(flights: Path) -> None:
    flight = read(flights / "ardupilot_propeller" / "good_hover_1.BIN")
    airborne = flight["attitude"].times
    airborne = airborne[(airborne > 20.0) & (airborne < 80.0)]
    logged = battery_of(flight, airborne)
    assert logged is not None
    monitor = BatteryMonitor()
    monitor.learn(flight.parameters)
    names = ("specific_force", "velocity", "battery_voltage", "battery_remaining", "battery_current")
    rows = [
        (t, order, name, values)
        for order, name in enumerate(names)
        for t, values in zip(flight[name].times.tolist(), flight[name].values.tolist(), strict=True)
    ]
    for t, _, name, values in sorted(rows):
        monitor.add(name, t, tuple(values), is_flying=20.0 < t < 80.0)
    readings = monitor.readings()
    assert readings["battery_resistance"].value == pytest.approx(logged.resistance, rel=0.03)
    assert readings["hover_power"].value == pytest.approx(logged.hover_power, rel=0.02)
    assert readings["hover_time"].value == pytest.approx(logged.hover_time, rel=0.02)


def test_nothing_is_said_without_current() -> None:
    monitor = BatteryMonitor()
    for k in range(100):
        monitor.add("battery_voltage", 0.1 * k, (12.0,), is_flying=True)
    assert not monitor.readings()
