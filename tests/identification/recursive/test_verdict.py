"""A vehicle that its airframe file does not describe is found within seconds, and the right one is left alone."""

from __future__ import annotations

import dataclasses

import pytest

from rotorid.identification.recursive.estimator import identify_recursively
from rotorid.identification.recursive.verdict import AirframeVerdict
from rotorid.identification.rotor_geometry.text import cause_text
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.thrust import ThrustCurve
from tests.identification.recursive.small_flight import CURVE, TRUTH, exchanged, flight, prior

START = 0.5


@pytest.fixture(scope="module")
def log() -> Flight:
    return flight(3, 6.0)


def described() -> Airframe:
    """The airframe file of the vehicle, by a fit."""
    airframe = prior(CURVE)
    fitted = {
        "inertia": Quantity(
            (TRUTH["inertia_x"], TRUTH["inertia_y"], 0.018), "kg m^2", (0.0005, 0.0005, 0.001)
        ),
        "motor_time_constant": Quantity((TRUTH["motor_time_constant"],), "s", (0.003,)),
    }
    curve = ThrustCurve(CURVE, std=(0.01, 0.05, 0.1))
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **fitted}, thrust_curve=curve)


def contradictions(log: Flight, airframe: Airframe, end: float) -> dict[str, float]:
    """Time in the air at which each contradiction is reported, s."""
    verdict, found = AirframeVerdict(airframe), {}
    for t, identifier in identify_recursively(log, airframe, [(START, end)], 0.25):
        if verdict.check_rotors(identifier) is not None:
            found.setdefault("rotors", t - START)
        if identifier.duration > 2.0 and t - START > 2.0 and round(t / 0.25) % 3 == 0:
            for mismatch in verdict.check_quantities(identifier.estimates()):
                found[mismatch.quantity] = t - START
    return found


def test_the_right_airframe_is_not_contradicted(log):
    assert contradictions(log, described(), 6.0) == {}
    assert contradictions(log, prior(), 6.0) == {}


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (0, 3)])
def test_exchanged_rotors_are_found_within_three_seconds(log, pair):
    assert contradictions(log, exchanged(described(), *pair), 4.0)["rotors"] < 3.0


def test_two_exchanged_rotors_are_named(log):
    airframe = exchanged(described(), 0, 1)
    verdict = AirframeVerdict(airframe)
    for _, identifier in identify_recursively(log, airframe, [(START, 6.0)], 0.25):
        verdict.check_rotors(identifier)
        if verdict.conflict is not None:
            break
    assert verdict.conflict is not None
    assert "rotor" in cause_text(verdict.conflict)
    assert {wrong.rotor for wrong in verdict.conflict.wrong} <= {0, 1}


def test_reversed_directions_are_found_by_yawing():
    airframe = described()
    reverse = {"cw": "ccw", "ccw": "cw"}
    rotors = tuple(dataclasses.replace(r, direction=reverse[r.direction]) for r in airframe.rotors)
    verdict, directions = AirframeVerdict(airframe), []
    log = flight(3, 10.0, gyro=0.001)
    for _, identifier in identify_recursively(
        log, dataclasses.replace(airframe, rotors=rotors), [(START, 10.0)], 0.25
    ):
        verdict.check_rotors(identifier)
        directions.append(identifier.rotor_torques.direction())
    assert directions[0] == 0  # not tested yet
    assert set(directions[-8:]) == {-1}
    assert verdict.conflict is not None
    assert "all rotors turn in the other direction" in cause_text(verdict.conflict)
    assert verdict.conflict.rotors == airframe.rotors


def test_a_mirrored_frame_is_found(log):
    airframe = described()
    mirrored = tuple(
        dataclasses.replace(r, position=(r.position[0], -r.position[1], 0.0)) for r in airframe.rotors
    )
    assert contradictions(log, dataclasses.replace(airframe, rotors=mirrored), 4.0)["rotors"] < 3.0


def test_other_propellers_are_found(log):
    airframe = described()
    weaker = dataclasses.replace(airframe, thrust_curve=ThrustCurve((0.0, 2.4, 4.0), std=(0.01, 0.05, 0.1)))
    assert contradictions(log, weaker, 5.0)["thrust_scale"] < 4.0


def test_another_inertia_is_found(log):
    airframe = described()
    inertia = Quantity((0.018, TRUTH["inertia_y"], 0.018), "kg m^2", (0.0005, 0.0005, 0.001))
    other = dataclasses.replace(airframe, quantities={**airframe.quantities, "inertia": inertia})
    found = contradictions(log, other, 6.0)
    assert set(found) == {"inertia_x"}
