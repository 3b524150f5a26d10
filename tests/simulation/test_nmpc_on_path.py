"""NMPC along a path: with the right model it flies vehicles of any motor lag, with a wrong one it does not."""

import dataclasses

import numpy as np
import pytest

from rotorid.models.airframe.airframe import Quantity
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.simulation.nmpc_on_path import LOOK_AHEAD, RATE, FlightPath, fly_path
from tests.workflows.flights_for_tests import TRUTH

SECONDS = 1.5


def light(lag_of="", **changes):
    """A light vehicle with strong and fast rotors: thrust 10 times its weight, a motor lag of 5 ms."""
    values = {"mass": (0.5,), "inertia": (0.0037, 0.0037, 0.007), "motor_time_constant": (0.005,)}
    values |= dict(zip(ROTOR_AERODYNAMICS, ((0.05,), (0.1,), (0.003,), (0.001,)), strict=True))
    values |= {"drag": (0.0,), "angular_drag": (0.0,), "drag_area": (0.008, 0.008, 0.016)}
    quantities = {name: Quantity(value, "") for name, value in (values | changes).items()}
    return dataclasses.replace(
        TRUTH,
        quantities={**TRUTH.quantities, **quantities},
        thrust_curve=ThrustCurve((0.0, 0.0, 12.5)),
        lag_of=lag_of,
    )


def path():
    """A circle with a radius of 1 m and a period of 3 s, from rest."""
    t = np.arange(round((SECONDS + LOOK_AHEAD) * RATE)) / RATE
    radius = np.minimum(t, 1.0) ** 2 * (3.0 - 2.0 * np.minimum(t, 1.0))
    angle = 2.0 * np.pi * t / 3.0
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.0 * t], axis=1)
    level = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    return FlightPath(position, np.gradient(position, t, axis=0), level)


def distances(model, *vehicles):
    """Largest distance of each vehicle from the path, m."""
    flown = fly_path(model, vehicles, path())
    return [
        np.inf if p is None else np.linalg.norm(p - path().position[: len(p)], axis=1).max() for p in flown
    ]


@pytest.mark.parametrize("lag_of", ["", "speed"])
def test_rotors_much_faster_than_the_controller_are_flown(lag_of, capfd):
    model = light(lag_of)
    near = light(lag_of, mass=(0.51,), motor_time_constant=(0.006,), rotor_inflow=(0.08,))
    assert max(distances(model, model, near)) < 0.12
    slow = light(lag_of, motor_time_constant=(0.06,))
    assert max(distances(slow, slow)) < 0.12
    assert capfd.readouterr() == ("", "")


def test_with_a_wrong_model_the_vehicle_leaves_the_path(capfd):
    late = light(command_delay=(0.06,))
    (away,) = distances(light(), late)
    assert away > 0.5
    (on_time,) = distances(late, late)
    assert on_time < 0.15
    (weak,) = distances(light(inertia=(0.0002, 0.0002, 0.0004)), light())
    assert weak > 0.5
    assert capfd.readouterr() == ("", "")
