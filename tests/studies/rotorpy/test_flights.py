"""Flights of RotorPy: the true values reproduce RotorPy's forces, and a log is a pure function of its task."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import airframe_toml, parse_airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import GRAVITY
from rotorid.studies.rotorpy.flights import PAYLOAD, Task, simulate_task
from rotorid.studies.rotorpy.vehicles import (
    VEHICLES,
    engineers_airframe,
    hover_signal,
    parameters_of,
    true_airframe,
    true_values,
)

pytest.importorskip("rotorpy", reason="RotorPy is not installed: pip install 'rotorid[referee]'")

TASK = Task("hummingbird", True, "steady", "rotor_speed", 3, 4.0, has_payload=True)


@pytest.fixture(scope="module")
def log():
    return simulate_task(TASK)


@pytest.mark.parametrize("name", VEHICLES)
def test_true_values_reproduce_the_wrench(name: str) -> None:
    """Force and torque of RotorPy at a random state, by the formulas and the names of rotorid."""
    from rotorpy.vehicles.multirotor import Multirotor

    p = parameters_of(name)
    values, airframe = true_values(p, "rotor_command"), true_airframe(p, name)
    rng = np.random.default_rng(1)
    speed = hover_signal(p, "rotor_speed") * rng.uniform(0.7, 1.3, 4)
    velocity, rate = rng.normal(0.0, 3.0, 3), rng.normal(0.0, 2.0, 3)
    thrust = p["k_eta"] * speed**2
    G = np.asarray(allocation(airframe.rotors, values["torque_ratio"]))
    force, torque = np.split(G @ thrust, 2)
    for rotor, T in zip(airframe.rotors, thrust, strict=True):
        v = velocity + np.cross(rate, rotor.position)
        across = v * [1.0, 1.0, 0.0]
        air = -values["rotor_drag"] * np.sqrt(T) * across
        air[2] += -values["rotor_inflow"] * np.sqrt(T) * v[2] + values["translational_lift"] * across @ across
        force, torque = force + air, torque + np.cross(rotor.position, air)
    areas = np.array([values[f"drag_area_{axis}"] for axis in "xyz"])
    force = force - 0.5 * AIR_DENSITY * areas * np.linalg.norm(velocity) * velocity
    expected_force, expected_torque = Multirotor(p).compute_body_wrench(rate, speed, velocity)
    np.testing.assert_allclose(force, expected_force, rtol=1e-9)
    np.testing.assert_allclose(torque, expected_torque, rtol=1e-9, atol=1e-12)
    assert 4.0 * values["thrust_at_hover"] == pytest.approx(values["mass"] * GRAVITY)


def test_log(log) -> None:
    again = simulate_task(TASK)
    for name, signal in log.signals.items():
        np.testing.assert_array_equal(signal.values, again[name].values)
    p = parameters_of(TASK.vehicle)
    assert log["body_rate"].rate == pytest.approx(250.0)
    assert log["attitude"].rate == pytest.approx(100.0)
    assert log["velocity"].times[-1] == pytest.approx(4.0)
    np.testing.assert_allclose(np.linalg.norm(log["attitude"].values, axis=1), 1.0, atol=1e-9)
    assert np.all(log["true_wind"].values == log["true_wind"].values[0])
    mass = log["true_mass"].values[:, 0]
    np.testing.assert_allclose(mass[[0, -1]], p["mass"] * np.array([1.0, 1.0 + PAYLOAD]))
    first_second = slice(10, 250)
    force, speed = log["specific_force"].values[first_second, 2], log["rotor_speed"].values[first_second]
    weight = p["k_eta"] * np.mean(np.sum(speed**2, axis=1)) / p["mass"]
    assert weight == pytest.approx(GRAVITY, rel=0.05)
    assert np.mean(force) == pytest.approx(weight, rel=0.04)


@pytest.mark.parametrize("name", VEHICLES)
def test_engineers_airframe_is_off_as_described(name: str) -> None:
    p = parameters_of(name)
    truth, airframe = true_values(p, "rotor_command"), engineers_airframe(p, name, 7)
    assert parse_airframe(airframe_toml(airframe), name).quantities.keys() == airframe.quantities.keys()
    assert 0.15 < abs(airframe.vector("inertia")[0] / truth["inertia_x"] - 1.0) <= 0.3
    assert abs(airframe.number("torque_ratio") / truth["torque_ratio"] - 1.0) == pytest.approx(0.2)
    assert abs(airframe.mass.number / truth["mass"] - 1.0) < 0.04
    assert airframe.get("drag") is None


def test_missing_rotorpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rotorpy", None)
    monkeypatch.setitem(sys.modules, "rotorpy.vehicles.multirotor", None)
    with pytest.raises(SettingError, match=r"pip install 'rotorid\[referee\]'"):
        parameters_of("hummingbird")
