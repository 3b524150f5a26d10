"""A rotor that loses thrust in a tracked flight: mass, health, findings; a recorded flight whose commands are changed alike."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.rotor_faults.flight import FlightFaults, find_rotor_faults
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.workflows.track.text import to_text
from rotorid.workflows.track.track import track
from tests.workflows.flights_for_tests import WEAK_FROM, WEAK_ROTOR, weakened_flight

SECONDS = 16.0


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


@pytest.mark.parametrize("loss", [0.12, 0.4])
def test_the_mass_stays_right_when_a_rotor_weakens(airframe: Airframe, loss: float) -> None:
    flight = weakened_flight(airframe, loss)
    found = find_rotor_faults(flight, airframe, [(0.0, SECONDS)])
    (fault,) = found.faults
    assert (fault.rotor, fault.is_stopped) == (WEAK_ROTOR, False)
    result = track(flight, airframe)
    mass, truth, after = result.quantities["mass"], result.truth["mass"], result.t > WEAK_FROM + 0.5
    error = np.abs(mass.value - truth)
    assert 100.0 * np.mean(error[after] / truth[after]) < 1.5
    assert np.mean(error < 1.96 * mass.std) > 0.95
    assert (result.health[after] == Health.ROTOR_FAULT).mean() > 0.9
    assert not (result.health[result.t < WEAK_FROM - 0.5] == Health.ROTOR_FAULT).any()
    (finding,) = found.findings
    assert to_text(finding).startswith(f"Rotor {WEAK_ROTOR} lost ")


def test_nothing_is_estimated_after_a_motor_stops(airframe: Airframe) -> None:
    flight = weakened_flight(airframe, 1.0)
    found = find_rotor_faults(flight, airframe, [(0.0, SECONDS)])
    (fault,) = found.faults
    assert (fault.rotor, fault.is_stopped) == (WEAK_ROTOR, True)
    assert fault.detected - WEAK_FROM < 0.5
    result = track(flight, airframe)
    assert result.t[-1] == pytest.approx(WEAK_FROM, abs=0.3)
    assert result.quantities["mass"].value[-1] == pytest.approx(1.0, rel=0.02)
    assert f"rotor {WEAK_ROTOR} stopped" in to_text(found.findings[0])
    assert found.within([(0.0, 5.0), (6.0, 14.0)]) == [(0.0, 5.0), (6.0, found.stop)]


def test_a_flight_without_a_fault_is_not_changed(airframe: Airframe) -> None:
    flight = weakened_flight(airframe, 0.0)
    assert find_rotor_faults(flight, airframe, [(0.0, SECONDS)]).faults == ()
    assert FlightFaults().corrected(flight, airframe) is flight


def test_a_recorded_flight_whose_commands_rise_as_those_of_a_weak_rotor(flights: Path) -> None:
    """The motion is as recorded; the command of a rotor is what it needs with 0.75 of its thrust, which is linear in it."""
    flight, airframe = read(flights / "px4_sih" / "dev.ulg"), load_airframe("px4-sih-quad")
    part = [(60.0, 80.0)]
    assert find_rotor_faults(flight, airframe, part).faults == ()
    command = flight["rotor_command"]
    values = command.values.copy()
    values[command.times >= 70.0, 2] /= 0.75
    changed = flight.with_signals(dataclasses.replace(command, values=values))
    found = find_rotor_faults(changed, airframe, part)
    (fault,) = found.faults
    assert (fault.rotor, round(fault.onset, 0)) == (2, 70.0)
    assert abs(fault.share - 0.25) < 2.0 * fault.std
    corrected = dataclasses.replace(
        found, faults=(dataclasses.replace(fault, share=0.25, onset=70.0),)
    ).corrected(changed, airframe)
    is_below_limit = values[:, 2] < 1.0
    assert corrected["rotor_command"].values[is_below_limit, 2] == pytest.approx(
        command.values[is_below_limit, 2], abs=1e-3
    )
