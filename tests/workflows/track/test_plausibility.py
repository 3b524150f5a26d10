"""Airframe and log of one vehicle agree, those of two do not: flights made of the equations of motion."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.rotors import allocation
from rotorid.workflows.track.plausibility import (
    fast_motion_share,
    hover_mass,
    plausibility_findings,
    rotation_gain,
)
from rotorid.workflows.track.summary import track_verdict
from rotorid.workflows.track.text import to_text
from rotorid.workflows.track.track import with_doubts
from tests.workflows.tracks_for_tests import made_track

AIRFRAME = load_airframe("px4-sih-quad")
RATE, DURATION = 250.0, 40.0
PARTS = [(0.0, DURATION)]


def made_flight(
    airframe: Airframe, *, frequency: float = 1.5, rate: float = RATE, noise: float = 0.0
) -> Flight:
    """A hover with torques about x and y at a frequency (Hz), by the equations of motion.

    rate: of the logged commands, Hz. noise: of them.
    """
    t = np.arange(0.0, DURATION, 1.0 / RATE)
    J = np.array(airframe.quantities["inertia"].value)
    curve = airframe.thrust_curve
    assert curve is not None
    G = np.asarray(allocation(airframe.rotors, airframe.number("torque_ratio")))
    wave = 2.0 * np.pi * frequency * t
    angular = np.stack([np.sin(wave), np.cos(1.1 * wave), 0.0 * t], axis=1)  # rad/s^2, of the rotors' torque
    w = np.cumsum(angular, axis=0) / RATE  # no gyroscopic torque, since J_x = J_y and w_z = 0
    wanted = np.concatenate(
        [np.tile([0.0, 0.0, airframe.mass.number * 9.81], (len(t), 1)), J * angular], axis=1
    )
    thrust = wanted[:, 2:] @ np.linalg.pinv(G[2:]).T
    command = thrust / curve.coefficients[1]
    slow = slice(None, None, round(RATE / rate))
    command = command[slow] + noise * np.random.default_rng(0).standard_normal(command[slow].shape)
    force = np.tile([0.0, 0.0, 9.81], (len(t), 1))
    signals = (
        Signal("rotor_command", t[slow], command, "made"),
        Signal("body_rate", t, w, "made"),
        Signal("specific_force", t, force, "made"),
    )
    return Flight({s.name: s for s in signals}, Path("made.csv"), "simulation")


def scaled(airframe: Airframe, name: str, factor: float, std: float | None = None) -> Airframe:
    """An airframe with a quantity times a factor, and with this relative standard deviation."""
    quantity = airframe.quantities[name]
    value = tuple(factor * v for v in quantity.value)
    other = Quantity(value, quantity.unit, None if std is None else tuple(std * v for v in value))
    return dataclasses.replace(airframe, quantities={**airframe.quantities, name: other})


WITHOUT_LAG = scaled(AIRFRAME, "motor_time_constant", 0.0)
T = np.arange(0.0, DURATION, 0.02)


def codes(flight: Flight, airframe: Airframe) -> dict[str, Severity]:
    return {f.code: f.severity for f in plausibility_findings(flight, airframe, T)}


@pytest.mark.parametrize("factor", [1.0, 0.25, 6.0])
def test_the_gain_is_the_ratio_of_inertias(factor: float) -> None:
    gain = rotation_gain(made_flight(WITHOUT_LAG), scaled(WITHOUT_LAG, "inertia", factor), PARTS)
    assert gain is not None
    assert gain.value == pytest.approx(factor, rel=0.05)
    assert gain.log_std < 0.1


def test_errors_of_the_commands_alone_contradict_nothing() -> None:
    for noise in np.geomspace(1e-3, 0.3, 8):
        gain = rotation_gain(made_flight(WITHOUT_LAG, noise=float(noise)), WITHOUT_LAG, PARTS)
        assert gain is None or gain.sigmas < 1.8


def test_one_vehicle_has_no_findings() -> None:
    flight = made_flight(WITHOUT_LAG)
    assert not codes(flight, WITHOUT_LAG)
    for factor in (0.7, 1.4):
        assert not codes(flight, scaled(WITHOUT_LAG, "inertia", factor))


def test_another_vehicle_is_an_error_with_its_numbers() -> None:
    wrong = scaled(WITHOUT_LAG, "inertia", 6.0)
    (finding,) = plausibility_findings(made_flight(WITHOUT_LAG), wrong, T)
    assert (finding.code, finding.severity) == ("rotation_implausible", Severity.ERROR)
    text = to_text(finding)
    assert "Do not trust the mass" in text
    assert f"{finding.values['gain']:.2g} times" in text
    assert f"{finding.values['sigmas']:.1f} standard deviations" in text


def test_an_inertia_that_is_known_better_is_contradicted_sooner() -> None:
    flight = made_flight(WITHOUT_LAG)
    assert "rotation_implausible" in codes(flight, scaled(WITHOUT_LAG, "inertia", 1.8, std=0.01))
    assert not codes(flight, scaled(WITHOUT_LAG, "inertia", 1.8, std=0.5))


def test_the_number_of_rotors() -> None:
    fewer = dataclasses.replace(WITHOUT_LAG, rotors=WITHOUT_LAG.rotors[:3])
    assert codes(made_flight(WITHOUT_LAG), fewer) == {"rotor_count": Severity.ERROR}
    (finding,) = plausibility_findings(made_flight(WITHOUT_LAG), fewer, T)
    assert "commands of 4 rotors" in to_text(finding)


def test_hover_carries_the_mass() -> None:
    quantities = {n: q for n, q in WITHOUT_LAG.quantities.items() if n != "thrust_scale"}
    guessed = dataclasses.replace(WITHOUT_LAG, quantities=quantities)
    flight = made_flight(WITHOUT_LAG)
    carried = hover_mass(flight, guessed, PARTS)
    assert carried is not None
    assert carried.value == pytest.approx(guessed.mass.number, rel=0.01)
    assert carried.std == pytest.approx(0.1 * carried.value)
    weighed = scaled(guessed, "mass", 1.6, std=0.01)
    assert codes(flight, weighed) == {"hover_implausible": Severity.WARNING}
    assert not codes(flight, scaled(guessed, "mass", 1.2, std=0.01))
    (finding,) = plausibility_findings(flight, weighed, T)
    assert "carries 1.00 ± 0.10 kg" in to_text(finding)


@pytest.mark.parametrize(("frequency", "is_fast"), [(1.5, False), (8.0, True)])
def test_commands_that_are_slower_than_the_motion(frequency: float, is_fast: bool) -> None:
    flight = made_flight(WITHOUT_LAG, frequency=frequency, rate=10.0)
    share = fast_motion_share(flight, PARTS)
    assert share is not None
    assert (share > 0.9) if is_fast else (share < 0.01)
    assert ("slow_commands" in codes(flight, WITHOUT_LAG)) == is_fast
    assert fast_motion_share(made_flight(WITHOUT_LAG, frequency=frequency), PARTS) is None
    found = [f for f in plausibility_findings(flight, WITHOUT_LAG, T) if f.code == "slow_commands"]
    assert all("logged at 10 Hz" in to_text(f) for f in found)


def test_white_noise_is_no_motion() -> None:
    flight = made_flight(WITHOUT_LAG, rate=10.0)
    rate = flight["body_rate"]
    noise = 0.05 * np.random.default_rng(1).standard_normal(rate.values.shape)
    share = fast_motion_share(
        flight.with_signals(dataclasses.replace(rate, values=rate.values + noise)), PARTS
    )
    assert share is not None
    assert share < 0.1


ERROR = Finding("rotor_count", Severity.ERROR, {"logged": 6, "expected": 4, "airframe": "mine"})
WARNING = Finding("slow_commands", Severity.WARNING, {"rate": 10.0, "share": 0.3})


def test_an_error_is_the_headline_and_no_row_is_healthy() -> None:
    track = with_doubts(made_track(1.0), [ERROR])
    assert track.health_share(Health.OK) == 0.0
    verdict = track_verdict([track], doubts=[ERROR])
    assert verdict.tone == "bad"
    assert verdict.codes == ["rotor_count", "constant"]


def test_a_warning_follows_the_headline() -> None:
    track = with_doubts(made_track(1.0), [WARNING])
    assert track.health_share(Health.OK) == 1.0
    verdict = track_verdict([track], doubts=[WARNING])
    assert (verdict.tone, verdict.codes) == ("caution", ["constant", "slow_commands"])
