"""A rotor that loses thrust in a flight without an external wrench; and one whose motor stops."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.control.setpoints import Lissajous, Setpoints
from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.wrench.contacts import find_contacts
from rotorid.workflows.wrench.observe import WrenchTrack, with_rotors, wrench, wrench_system
from rotorid.workflows.wrench.parameter_uncertainty import parameter_stds
from rotorid.workflows.wrench.rotor_faults import without_lost_thrust
from rotorid.workflows.wrench.summary import wrench_verdict

AT, ROTOR = 9.0, 1
SETPOINTS = Setpoints(moves=(Lissajous(1.0, 14.0, (1.0, 0.7, 0.3), (5.0, 4.0, 3.0), ramp=1.0),))


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


def flown(airframe: Airframe, loss: float) -> Flight:
    def scale(t: np.ndarray) -> np.ndarray:
        return np.where((t[:, None] >= AT) & (np.arange(4) == ROTOR), 1.0 - loss, 1.0)

    return with_rotors(fly(airframe, SETPOINTS, seed=2, duration=16.0, rotor_scale=scale), airframe)


def observed(flight: Flight, airframe: Airframe) -> WrenchTrack:
    system = wrench_system(flight, airframe)
    corrected, faults = without_lost_thrust(flight, airframe)
    return wrench(corrected, system, stds=parameter_stds(airframe, system), faults=faults)


def test_lost_thrust_is_no_external_wrench(airframe: Airframe) -> None:
    flight = flown(airframe, 0.25)
    found = observed(flight, airframe)
    after = found.t > AT
    std = np.stack([found.track.quantities[f"torque_{axis}"].std for axis in "xyz"], axis=1)
    assert np.mean(np.abs(found.wrench[after, 3:]) < 1.96 * std[after]) > 0.95
    assert set(found.track.health[found.t > AT + 0.5]) == {Health.ROTOR_FAULT}
    system = wrench_system(flight, airframe)
    naive = wrench(flight, system, stds=parameter_stds(airframe, system))
    settled = found.t > AT + 1.0
    assert np.mean(np.abs(naive.wrench[settled, 3])) > 5.0 * np.mean(np.abs(found.wrench[settled, 3]))
    contacts = find_contacts(found)
    assert contacts.events == ()
    verdict = wrench_verdict(found, contacts)
    assert verdict.tone == "caution"
    assert verdict.headline.startswith(f"Rotor {ROTOR} lost ")


def test_nothing_is_observed_after_a_motor_stops(airframe: Airframe) -> None:
    found = observed(flown(airframe, 1.0), airframe)
    assert found.t[-1] == pytest.approx(AT, abs=0.3)
    assert f"rotor {ROTOR} stopped" in wrench_verdict(found, find_contacts(found)).headline
