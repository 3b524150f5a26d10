"""Flying back recorded flights: PX4's simulated body with what is known of it, and a Crazyflie with what was published."""

from __future__ import annotations

import dataclasses

import pytest

from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe, with_numbers
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.workflows.fly_back.validate import fly_back

STILL = [(12.0, 45.0)]  # s, in still air with a mass of 1 kg


@pytest.fixture(autouse=True)
def _few_vehicles(monkeypatch):
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)


@pytest.fixture(scope="module")
def px4(flights):
    return read(flights / "px4_sih" / "dev.ulg")


def truth() -> Airframe:
    known = with_numbers(load_airframe("px4-sih-quad"), {"drag": 0.6})
    quantities = {n: dataclasses.replace(q, std=None) for n, q in known.quantities.items()}
    return dataclasses.replace(known, quantities=quantities)


def test_what_px4_flew_is_accepted(px4):
    found = fly_back(truth(), load_airframe("px4-sih-quad"), [px4], spans=[STILL])
    assert found.accepted, found.reasons
    for signal in found.signals:
        assert min(signal.coverage) > 0.88
        assert all(m < 0.5 * c for m, c in zip(signal.model, signal.constant, strict=True))
    errors = {s.name: s.model[-1] for s in found.signals}
    assert errors["position"] < 0.15
    assert errors["velocity"] < 0.15
    assert errors["attitude"] < 0.02
    for gain in found.gains:
        assert gain.value == pytest.approx(1.0, abs=0.015), gain


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"inertia_x": 0.035, "inertia_y": 0.035, "inertia_z": 0.042}, ("turn_x", 1.3)),
        ({"thrust_curve_1": 5.5}, ("thrust", 0.91)),
    ],
)
def test_what_px4_did_not_fly_is_refused(px4, wrong, reason):
    model = with_numbers(truth(), wrong)
    worse = with_numbers(model, {"mass": 1.6, "inertia_x": 0.08, "inertia_y": 0.08})
    found = fly_back(model, worse, [px4], spans=[STILL])
    assert not found.accepted
    name, value = reason
    first = found.findings[0]
    assert (first.code, first.values["name"]) == ("response_gain", name)
    assert first.values["value"] == pytest.approx(value, abs=0.1 if name == "turn_x" else 0.01)


def test_a_mass_that_changes_in_flight_is_said(px4):
    found = fly_back(truth(), truth(), [px4], spans=[[(48.0, 74.0)]], horizons=(0.1, 0.5))
    assert not found.accepted
    assert found.findings[0].code == "thrust_gain_changes"
    assert 0.8 <= found.findings[0].values["least"] < 0.9


def test_without_attitude_thrust_and_turning_are_told(flights):
    """The published thrust is some 6 % too small (see the flights' README), within what may be left of an accelerometer's
    scale; the published inertia and lag answer as the vehicle does."""
    places = ((0.028, -0.028, "ccw"), (-0.028, -0.028, "cw"), (-0.028, 0.028, "ccw"), (0.028, 0.028, "cw"))
    quantities = {
        "mass": Quantity((0.027,), "kg"),
        "inertia": Quantity((1.029e-5, 1.105e-5, 1.955e-5), "kg m^2"),
        "motor_time_constant": Quantity((0.072,), "s"),
        "torque_ratio": Quantity((4.548e-3,), "m"),
    }
    rotors = tuple(Rotor((x, y, 0.0), direction) for x, y, direction in places)
    curve = ThrustCurve((0.02127, -0.01118, 0.12013))
    published = Airframe("published", "", quantities, rotors, curve)
    weak = dataclasses.replace(
        published, thrust_curve=ThrustCurve(tuple(0.88 * c for c in curve.coefficients))
    )
    log = read(flights / "crazyflie_arpl" / "log15")
    found = fly_back(weak, published, [log])
    assert not found.accepted
    assert found.findings[0].values["value"] == pytest.approx(1.17, abs=0.01)
    answers = {g.name: g.value for g in found.gains}
    for axis in "xy":  # a thrust that is too small turns too little as well
        assert 0.88 * answers[f"turn_{axis}"] == pytest.approx(1.0, abs=0.08)
