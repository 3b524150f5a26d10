"""The same flight with commands, thrusts or speeds of its rotors: every command takes what `rotorid identify` takes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.identification.airframe.rotor_thrusts import rotor_thrusts
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.registry import MODEL_INPUTS, SYSTEMS
from rotorid.workflows.calibrate.thrust_scale import calibrate
from rotorid.workflows.export.onboard import ExportSettings, exported_system
from rotorid.workflows.fly_back.validate import fly_back
from rotorid.workflows.identify.preparation import prepare_flights
from rotorid.workflows.inspect.summary import rotor_signals_text
from rotorid.workflows.track.plausibility import hover_mass, rotation_gain
from rotorid.workflows.track.track import track
from rotorid.workflows.wrench.observe import with_rotors, wrench_system
from tests.workflows.flights_for_tests import SECONDS, TRUTH, made_flight

COEFFICIENT = 1e-6  # N s^2


def rotor_signal(name: str) -> Signal:
    """What the made flight would have logged of its rotors."""
    commands = made_flight()["rotor_command"]
    if name == "rotor_command":
        return commands
    if name == "rotor_thrust":
        assert TRUTH.thrust_curve is not None
        values = np.polynomial.polynomial.polyval(commands.values, TRUTH.thrust_curve.coefficients)
    else:
        _, thrust = rotor_thrusts(TRUTH, made_flight(), commands.times)
        values = np.sqrt(thrust / COEFFICIENT)
    return Signal(name, commands.times, values, "made")


def log_with(*names: str) -> Flight:
    flight = made_flight()
    signals = {name: signal for name, signal in flight.signals.items() if name != "rotor_command"}
    signals |= {name: rotor_signal(name) for name in names}
    return dataclasses.replace(flight, signals=signals)


def airframe_for(name: str) -> Airframe:
    """The true airframe with no more than the signal needs."""
    if name == "rotor_command":
        return TRUTH
    quantities = dict(TRUTH.quantities)
    if name == "rotor_speed":
        quantities["thrust_coefficient"] = Quantity((COEFFICIENT,), "N s^2")
    return dataclasses.replace(TRUTH, thrust_curve=None, quantities=quantities)


@pytest.mark.parametrize("name", MODEL_INPUTS)
def test_a_track_and_a_calibration(name: str) -> None:
    flight, airframe = log_with(name), airframe_for(name)
    guess = Quantity((1.0,), "kg", (0.2,))
    airframe = dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": guess})
    mass = track(flight, airframe).quantities["mass"]
    assert abs(mass.value[-1] - 1.0) < max(3.0 * mass.std[-1], 0.02)
    bare = track(flight, airframe, system="multirotor-bare").quantities["mass"]
    assert abs(bare.value[-1] - 1.0) < 0.1
    scale = calibrate([flight], airframe, 1.0)
    assert abs(scale.value - 1.0) < 3.0 * scale.std


@pytest.mark.parametrize("name", MODEL_INPUTS)
def test_the_system_of_each_command(name: str) -> None:
    flight, airframe = log_with(name), airframe_for(name)
    assert prepare_flights([flight], airframe).available.rotors == name
    assert wrench_system(with_rotors(flight, airframe), airframe).rotor_input == name
    for system, entry in SYSTEMS.items():
        built = exported_system(system, airframe, ExportSettings(), flight)
        inputs = entry.rotor_inputs
        assert (name if name in inputs else "thrust") in built.inputs


@pytest.mark.parametrize("name", MODEL_INPUTS)
def test_checks_against_the_airframe(name: str) -> None:
    flight, airframe = log_with(name), airframe_for(name)
    force = np.tile([0.0, 0.0, 9.81], (len(flight["velocity"].times), 1))
    flight = flight.with_signals(Signal("specific_force", flight["velocity"].times, force, "made"))
    scale = Quantity((1.1,), "1")
    scaled = dataclasses.replace(airframe, quantities={**airframe.quantities, "thrust_scale": scale})
    parts = [(0.0, SECONDS)]
    masses = [hover_mass(flight, a, parts) for a in (airframe, scaled)]
    assert masses[0] is not None
    assert masses[1] is not None
    assert abs(masses[0].value - 1.0) < 0.15  # it tilts, and the force is that of a hover
    assert abs(masses[1].value / masses[0].value - 1.1) < 1e-9
    gain = rotation_gain(flight, airframe, parts)
    assert gain is not None
    assert abs(gain.value - 1.0) < 0.1


@pytest.mark.parametrize("names", [("rotor_thrust",), ("rotor_command", "rotor_thrust")])
def test_a_model_of_thrusts_is_validated(names, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the log has commands too, for which the model has no curve."""
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)
    airframe = airframe_for("rotor_thrust")
    quantities = {**airframe.quantities, "mass": Quantity((1.1,), "kg")}
    found = fly_back(airframe, dataclasses.replace(airframe, quantities=quantities), [log_with(*names)])
    assert found.accepted, found.reasons
    preparation = prepare_flights([log_with(*names)], airframe)
    assert preparation.available.rotors == "rotor_thrust"
    assert np.isfinite(preparation.flights[0].torque_balance.thrust).all()


def test_inspect_says_which_signal_is_used() -> None:
    assert rotor_signals_text(log_with("rotor_speed")) == ""
    text = rotor_signals_text(log_with(*MODEL_INPUTS))
    assert "track, calibrate, compare: rotor_command, else rotor_thrust, else rotor_speed" in text
    assert "wrench, learn: rotor_thrust, else rotor_speed, else rotor_command" in text
