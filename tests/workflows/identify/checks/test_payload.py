"""Payloads that are picked up or dropped, of vehicles whose mass is held fixed."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.system import GRAVITY
from rotorid.workflows.identify.checks.payload import mass_changes, without_payload
from rotorid.workflows.identify.preparation import AvailableSignals, Preparation, PreparedFlight

AIRFRAME = load_airframe("ardupilot-sitl-x")
AVAILABLE = AvailableSignals("rotor_command", has_pose=True, torques_observable=False)
SPANS = [(0.0, 60.0)]


@functools.cache
def flight(payload: float, fall: float = 0.0) -> Flight:
    """A minute up and down, with a payload from 30 s on (of the mass), and a battery that falls (V/s)."""
    curve = AIRFRAME.thrust_curve
    assert curve is not None
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 60.0, 0.1)
    force = GRAVITY + 2.0 * np.sin(0.9 * t) * (np.sin(0.2 * t) > 0.3) + rng.normal(0.0, 0.02, len(t))
    mass = AIRFRAME.mass.number * np.where(t > 30.0, 1.0 + payload, 1.0)
    share = mass * force / (4.0 * sum(curve.coefficients)) * (1.0 - fall * t / curve.voltage) ** -2
    c = (-0.35 + np.sqrt(0.35**2 + 4.0 * 0.65 * share)) / 1.3
    u = (curve.zero + (curve.full - curve.zero) * c)[:, None] * np.ones(4)
    battery = Signal("battery_voltage", t[[0, -1]], np.full((2, 1), curve.voltage), "made")
    acceleration = np.column_stack([np.zeros((len(t), 2)), force])
    return Flight(
        {
            "rotor_command": Signal("rotor_command", t, u, "made"),
            "specific_force": Signal("specific_force", t, acceleration, "made"),
            "battery_voltage": battery,
        },
        source=Path("made.BIN"),
        format="simulation",
    )


def bent(airframe: Airframe, coefficients: tuple[float, ...]) -> Airframe:
    assert airframe.thrust_curve is not None
    curve = dataclasses.replace(airframe.thrust_curve, coefficients=coefficients)
    return dataclasses.replace(airframe, thrust_curve=curve)


@pytest.mark.parametrize("curve", [(0.0, 6.6007, 12.2584), (0.0, 20.0, 0.0)])
def test_a_payload_is_found_whatever_the_curve(curve: tuple[float, ...]) -> None:
    kept, (other,) = mass_changes(flight(0.33), bent(AIRFRAME, curve), SPANS)
    assert other.start == pytest.approx(30.0, abs=1.0) or other.end == pytest.approx(30.0, abs=1.0)
    assert sum(end - start for start, end in kept) == pytest.approx(29.5, abs=1.5)
    assert abs(other.change) == pytest.approx(0.33 if curve[2] > 0 else 0.2, abs=0.1)


@pytest.mark.parametrize("curve", [(0.0, 6.6007, 12.2584), (0.0, 20.0, 0.0), (3.0, 0.0, 15.0)])
def test_neither_climbs_nor_a_battery_are_payloads(curve: tuple[float, ...]) -> None:
    """Thrust goes up and down by a fifth, and 20 % of it are lost on the way."""
    assert mass_changes(flight(0.0, fall=0.02), bent(AIRFRAME, curve), SPANS) == (SPANS, [])


def prepared(one: Flight) -> Preparation:
    return Preparation(AIRFRAME, AVAILABLE, (PreparedFlight(one, one, AIRFRAME, SPANS),))


def test_the_parts_with_a_payload_are_left_out_and_reported() -> None:
    kept, (finding,) = without_payload(prepared(flight(0.33)))
    assert kept.parts != [SPANS]
    assert (finding.code, finding.values["flight"]) == ("payload", "made.BIN")
    assert len(finding.values["parts"]) == 1
    kept, findings = without_payload(prepared(flight(0.0)))
    assert (kept.parts, findings) == ([SPANS], [])
    bare = flight(0.33)
    signals = {name: signal for name, signal in bare.signals.items() if name != "specific_force"}
    kept, findings = without_payload(prepared(dataclasses.replace(bare, signals=signals)))
    assert (kept.parts, findings) == ([SPANS], [])
