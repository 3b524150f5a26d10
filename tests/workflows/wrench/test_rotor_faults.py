"""A rotor that loses thrust in a flight without an external wrench; and one whose motor stops."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.workflows.wrench.contacts import find_contacts
from rotorid.workflows.wrench.observe import WrenchTrack, with_rotors, wrench, wrench_system
from rotorid.workflows.wrench.parameter_uncertainty import parameter_stds
from rotorid.workflows.wrench.rotor_faults import without_lost_thrust
from rotorid.workflows.wrench.summary import wrench_verdict
from tests.workflows.flights_for_tests import WEAK_FROM, WEAK_ROTOR, weakened_flight


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


def flown(airframe: Airframe, loss: float) -> Flight:
    return with_rotors(weakened_flight(airframe, loss), airframe)


def observed(flight: Flight, airframe: Airframe) -> WrenchTrack:
    system = wrench_system(flight, airframe)
    corrected, faults = without_lost_thrust(flight, airframe)
    return wrench(corrected, system, stds=parameter_stds(airframe, system), faults=faults)


def test_lost_thrust_is_no_external_wrench(airframe: Airframe) -> None:
    flight = flown(airframe, 0.25)
    found = observed(flight, airframe)
    after = found.t > WEAK_FROM
    std = np.stack([found.track.quantities[f"torque_{axis}"].std for axis in "xyz"], axis=1)
    assert np.mean(np.abs(found.wrench[after, 3:]) < 1.96 * std[after]) > 0.95
    assert set(found.track.health[found.t > WEAK_FROM + 0.5]) == {Health.ROTOR_FAULT}
    system = wrench_system(flight, airframe)
    naive = wrench(flight, system, stds=parameter_stds(airframe, system))
    settled = found.t > WEAK_FROM + 1.0
    assert np.mean(np.abs(naive.wrench[settled, 3])) > 5.0 * np.mean(np.abs(found.wrench[settled, 3]))
    contacts = find_contacts(found)
    assert contacts.events == ()
    verdict = wrench_verdict(found, contacts)
    assert verdict.tone == "caution"
    assert verdict.headline.startswith(f"Rotor {WEAK_ROTOR} lost ")


def test_nothing_is_observed_after_a_motor_stops(airframe: Airframe) -> None:
    found = observed(flown(airframe, 1.0), airframe)
    assert found.t[-1] == pytest.approx(WEAK_FROM, abs=0.3)
    assert f"rotor {WEAK_ROTOR} stopped" in wrench_verdict(found, find_contacts(found)).headline
