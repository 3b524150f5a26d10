"""Tracks of flights of RotorPy with wrong airframes: bands contain the true mass and wind, or the health is not ok."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.studies.rotorpy.flights import Task, simulate_task
from rotorid.studies.rotorpy.vehicles import hover_speed, parameters_of, true_airframe
from rotorid.workflows.track.track import Track, track

pytest.importorskip("rotorpy")

TASK = Task("hummingbird", True, "steady", "rotor_command", 3, 20.0, has_payload=True)
PARAMETERS = parameters_of(TASK.vehicle)
MASS, HOVER = PARAMETERS["mass"], hover_speed(PARAMETERS) / PARAMETERS["rotor_speed_max"]
SIGMAS, START = 1.96, 5.0


@functools.cache
def flight() -> Flight:
    return simulate_task(TASK)


def airframe(mass: float, mass_std: float, curve: tuple[float, ...]) -> Airframe:
    """The true airframe with another mass (kg, relative standard deviation), and a thrust curve that it claims to 1 %."""
    truth = true_airframe(PARAMETERS, TASK.vehicle)
    quantities = {**truth.quantities, "mass": Quantity((mass,), "kg", (mass_std * mass,))}
    claimed = ThrustCurve(curve, std=tuple(0.01 * c for c in curve))
    return dataclasses.replace(truth, quantities=quantities, thrust_curve=claimed)


def with_drag(frame: Airframe, drag: float) -> Airframe:
    """An airframe that claims a drag (N s/m) to 3 %."""
    return dataclasses.replace(
        frame, quantities={**frame.quantities, "drag": Quantity((drag,), "N s/m", (0.03 * drag,))}
    )


FULL = MASS * GRAVITY / 4.0 / HOVER**2
CURVE, LINEAR = (0.0, 0.0, FULL), (0.0, FULL * HOVER)
AIRFRAMES: dict[str, Callable[[], Airframe]] = {
    "right": lambda: airframe(1.1 * MASS, 0.3, CURVE),
    "half the slope": lambda: airframe(1.1 * MASS, 0.3, LINEAR),
    "10 % too much thrust, mass known": lambda: airframe(MASS, 0.01, (0.0, 0.0, 1.1 * FULL)),
    "20 % too much mass": lambda: airframe(1.2 * MASS, 0.01, CURVE),
    "three times the drag": lambda: with_drag(airframe(1.1 * MASS, 0.3, CURVE), 0.9 * MASS),
}


@functools.cache
def tracked(name: str) -> tuple[Track, np.ndarray]:
    """The track with an airframe, and its rows from 5 s on."""
    with jax.enable_x64(True):
        result = track(flight(), AIRFRAMES[name]())
    return result, result.t >= result.t[0] + START


def inside(result: Track, name: str) -> np.ndarray:
    quantity = result.quantities[name]
    return np.abs(quantity.value - result.truth[name]) <= SIGMAS * quantity.std


@pytest.mark.parametrize("name", AIRFRAMES)
def test_the_health_is_rarely_ok_while_the_mass_is_outside_of_its_band(name: str) -> None:
    result, rows = tracked(name)
    wrong = (result.health == Health.OK) & ~inside(result, "mass")
    assert np.mean(wrong[rows]) <= 0.1


def test_a_right_airframe_keeps_a_narrow_band() -> None:
    result, rows = tracked("right")
    mass = result.quantities["mass"]
    assert np.median((mass.std / mass.value)[rows]) < 0.03
    assert np.sqrt(np.mean((mass.value / result.truth["mass"] - 1.0)[rows] ** 2)) < 0.032


def test_a_logged_command_acts_from_its_time_on() -> None:
    """Were commands read a row too early or too late, the tracked motor lag would be wrong by that row of 4 ms."""
    result, rows = tracked("right")
    lag = np.median(result.quantities["motor_time_constant"].value[rows])
    assert lag == pytest.approx(PARAMETERS["tau_m"], abs=0.001)


def test_a_wrong_drag_does_not_leave_a_narrow_band_of_the_wind() -> None:
    result, rows = tracked("three times the drag")
    for name in ("wind_x", "wind_y"):
        assert np.mean(inside(result, name)[rows]) >= 0.9
