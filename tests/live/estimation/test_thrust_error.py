"""The band of the mass grows with the voltage and while motors warm up, in flight as in a track."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.live.estimation.thrust_error import SagMonitor, ThrustError
from rotorid.live.estimation.thrust_model import ThrustModel
from rotorid.live.snapshot import Event
from rotorid.live.text import event_text
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.workflows.track.model_errors import model_errors
from tests.live import simulated_flight
from tests.live.conftest import estimates, fed, session

CURVE = ThrustCurve((0.0, 5.0), voltage=16.0, voltage_exponent=1.5, std=(0.0, 0.5), voltage_exponent_std=0.7)


def with_curve(airframe: Airframe, **changes) -> Airframe:
    return dataclasses.replace(airframe, thrust_curve=dataclasses.replace(CURVE, **changes))


@pytest.mark.parametrize("known_mass", [None, 1.0])
def test_it_is_the_same_as_of_a_log(airframe: Airframe, known_mass: float | None) -> None:
    t = np.arange(0.0, 100.0, 0.5)
    volts = 16.0 * np.exp(-0.001 * t)
    signals = {
        "rotor_command": Signal("rotor_command", t, np.full((len(t), 4), 0.5), "made"),
        "battery_voltage": Signal("battery_voltage", t, volts[:, None], "made"),
    }
    vehicle = with_curve(airframe)
    expected = model_errors(Flight(signals, Path("made"), "made"), vehicle, t, known_mass).voltage
    model = ThrustModel(vehicle)
    error = ThrustError(vehicle, model, known_mass)
    live = []
    for time, voltage in zip(t.tolist(), volts.tolist(), strict=True):
        model.voltage = voltage
        live.append(error.relative_std(time))
    assert expected is not None
    np.testing.assert_allclose(live, expected, atol=0.7 * 0.006)
    np.testing.assert_allclose(live[20:], expected[20:], atol=0.7 * 0.0005)  # half a sample


def test_a_curve_of_a_known_exponent_has_none(airframe: Airframe) -> None:
    vehicle = with_curve(airframe, voltage_exponent_std=0.0)
    assert ThrustError(vehicle, ThrustModel(vehicle), None).relative_std(30.0) == 0.0


def test_the_readings_have_it(airframe: Airframe, pieces: list[simulated_flight.Piece]) -> None:
    """Without a voltage on the link, 5.1 % are added within some 10 s, and 2.5 % for warm motors."""
    known, unknown = (
        estimates(fed(session(with_curve(airframe, voltage=math.nan, voltage_exponent=0.0, **std)), pieces))
        for std in ({"voltage_exponent_std": 0.0}, {"voltage_exponent_std": 1.7})
    )
    (last, wide) = (snapshots[-1].readings["mass"] for snapshots in (known, unknown))
    seconds = unknown[-1].t - unknown[0].t + 2.0  # of the measurement noise
    added = 1.7 * 0.03 * -math.expm1(-seconds / 10.0)
    assert wide.value == last.value
    expected = math.hypot(last.std, last.value * math.hypot(added, 0.025))
    assert wide.std == pytest.approx(expected, rel=0.03)


def monitored(
    airframe: Airframe, rate: float, voltage: float, *, pick_up: float = 0.0
) -> tuple[SagMonitor, list]:
    """A minute of a mass of 1 kg that rises. rate: 1/s. pick_up: kg at 30 s."""
    model = ThrustModel(airframe)
    model.voltage = voltage
    monitor, rng = SagMonitor(airframe, model, "mass"), np.random.default_rng(0)
    for t in np.arange(5.0, 65.0, 0.1).tolist():
        mass = math.exp(rate * t) + pick_up * (t > 30.0) + 0.003 * rng.normal()
        monitor.update(t, mass)
    return monitor, monitor.take_events()


@pytest.mark.parametrize("voltage", [math.nan, 15.0])
def test_a_mass_that_rises_steadily_may_be_a_sag_of_the_battery(airframe: Airframe, voltage: float) -> None:
    """Without a voltage, and with one that the thrust curve does not use."""
    monitor, events = monitored(airframe, 0.001, voltage)
    assert [code for code, _, _ in events] == ["unlogged_sag"]
    text = event_text(Event(0.0, "unlogged_sag", values=events[0][2]))
    assert ("no battery voltage is received" in text) == math.isnan(voltage)
    rise = math.exp(0.06) - 1.0
    assert 2.0 * monitor.relative_std(65.0) > rise
    assert monitor.relative_std(5.0) == 0.0
    monitor.restart()
    assert monitor.relative_std(65.0) == 0.0


def test_a_voltage_in_the_thrust_and_a_payload_are_no_sag(airframe: Airframe) -> None:
    for vehicle, rate, pick_up in (
        (with_curve(airframe), 0.001, 0.0),
        (airframe, 0.0, 0.0),
        (airframe, 0.0, 0.2),
        (airframe, -0.001, 0.0),
    ):
        monitor, events = monitored(vehicle, rate, 15.0, pick_up=pick_up)
        assert not events
        assert monitor.relative_std(65.0) == 0.0
