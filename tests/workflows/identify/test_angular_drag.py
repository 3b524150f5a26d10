"""Damping of rotation by body axis, from simulated flights of a vehicle that is damped differently about each axis."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from rotorid.control.setpoints import Chirp, Setpoints
from rotorid.identification.airframe.priors import airframe_priors, prior_std, prior_value
from rotorid.models.airframe.airframe import (
    Airframe,
    Quantity,
    airframe_toml,
    load_airframe,
    parse_airframe,
)
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.result import Identification

TRUTH = {
    "inertia_x": 0.025, "inertia_y": 0.025, "inertia_z": 0.03,
    "angular_drag_x": 0.015, "angular_drag_y": 0.05, "angular_drag_z": 0.03,
}  # fmt: skip
DAMPING = ("angular_drag_x", "angular_drag_y", "angular_drag_z")
VALUE, STD, SECONDS = 0.025, 0.015, 18.0
FREE = ("inertia", "angular_drag", "drag", "motor_time_constant")


def damped(value: tuple[float, ...], std: tuple[float, ...] | None) -> Airframe:
    airframe = load_airframe("px4-sih-quad")
    quantity = Quantity(value, "N m s", std)
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "angular_drag": quantity})


@functools.cache
def identified(axes: str) -> Identification:
    """From a flight with chirps about these axes, one after the other; the prior has one number for all axes."""
    length = (SECONDS - 3.0) / 3.0
    chirps = tuple(
        Chirp(f"rate_{axis}", 1.0, 2.0 + k * length, length, 0.3, 5.0)
        for k, axis in enumerate("xyz")
        if axis in axes
    )
    vehicle = damped(tuple(TRUTH[name] for name in DAMPING), None)
    flight = fly(
        vehicle, Setpoints(moves=(), excitations=chirps), seed=2, duration=SECONDS, sensors="crazyflie"
    )
    return identify([flight], damped((VALUE,), (STD,)), FREE, spans=[[(1.0, SECONDS - 0.5)]])


def test_the_damping_of_each_axis_is_identified() -> None:
    found = identified("xyz")
    for name, truth in TRUTH.items():
        assert found.fit.std[name] < 0.1 * truth, name
        assert abs(found.fit.values[name] - truth) < 3.0 * found.fit.std[name], name
    damping = tuple(found.fit.values[name] for name in DAMPING)
    assert found.airframe.vector("angular_drag") == damping
    written = parse_airframe(airframe_toml(found.airframe), "x.toml")
    assert written.vector("angular_drag") == pytest.approx(damping)
    assert written.quantities["angular_drag"].std == pytest.approx(tuple(found.fit.std[n] for n in DAMPING))


def test_without_yaw_its_damping_keeps_the_prior_and_roll_and_pitch_do_not_change() -> None:
    found, with_yaw = identified("xy"), identified("xyz")
    assert found.fit.values["angular_drag_z"] == pytest.approx(VALUE, abs=0.5 * STD)
    assert found.fit.std["angular_drag_z"] > 0.7 * STD
    assert found.fit.information_gain["angular_drag_z"] < 0.3
    for name in ("inertia_x", "inertia_y", "angular_drag_x", "angular_drag_y"):
        assert abs(found.fit.values[name] - TRUTH[name]) < 3.0 * found.fit.std[name], name
        assert found.fit.std[name] < 1.2 * with_yaw.fit.std[name], name


def test_the_prior_of_an_axis_is_that_of_the_file_or_follows_from_its_inertia() -> None:
    one, three, none = damped((0.02,), (0.01,)), damped((0.02, 0.03, 0.0), None), damped((0.02,), None)
    without = dataclasses.replace(
        none, quantities={n: q for n, q in none.quantities.items() if n != "angular_drag"}
    )
    default = tuple(3.0 * J for J in one.vector("inertia"))
    assert (prior_value(one, "angular_drag"), prior_std(one, "angular_drag")) == ((0.02,) * 3, (0.01,) * 3)
    assert (prior_value(three, "angular_drag"), prior_std(three, "angular_drag")) == (
        (0.02, 0.03, 0.0),
        default,
    )
    assert prior_std(none, "angular_drag") == default
    assert (prior_value(without, "angular_drag"), prior_std(without, "angular_drag")) == ((0.0,) * 3, default)
    for airframe in (one, three, none, without):
        (prior,) = airframe_priors(airframe, ["angular_drag"])
        assert prior.parameter.quantities == DAMPING
