"""Angular drag with one number for each body axis, in every target."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rotorid.export.autopilot.ardupilot import ardupilot_files
from rotorid.export.autopilot.ardupilot_frame import frame_limitations, frame_values
from rotorid.export.autopilot.ardupilot_reader import read_ardupilot_frame
from rotorid.export.autopilot.px4 import px4_limitations, px4_values
from rotorid.export.controller.header import header_files
from rotorid.export.controller.state_space import hover_model
from rotorid.export.limitations import angular_drag_by_axis
from rotorid.export.simulator.gazebo import gazebo_files
from rotorid.export.simulator.mujoco import mujoco_files, mujoco_limitations
from rotorid.export.simulator.urdf import urdf_limitations
from rotorid.export.text import limitation_text
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.properties import vehicle_properties
from tests.export.vehicles import accepted, skewed, with_quantities

BY_AXIS, MEAN = (0.03, 0.01, 0.02), 0.02
INERTIA = (0.025, 0.022, 0.03)


def damped(airframe: Airframe, value: tuple[float, ...] = BY_AXIS) -> Airframe:
    return with_quantities(airframe, angular_drag=Quantity(value, "N m s", (0.001,) * len(value)))


def codes(findings: list) -> set[str]:
    return {finding.code for finding in findings}


def test_targets_with_one_number_get_the_mean_and_say_so() -> None:
    plain = damped(load_airframe("px4-sih-quad"))
    values = px4_values(plain)
    assert values["SIH_KDW"] == pytest.approx(MEAN)
    assert "angular_drag_mean" in codes(px4_limitations(plain, values))
    model = ElementTree.fromstring(mujoco_files(damped(skewed()))["model.xml"])
    (ball,) = [joint for joint in model.iter("joint") if joint.get("name") == "attitude"]
    assert float(ball.get("damping") or 0.0) == pytest.approx(MEAN)
    vehicle = vehicle_properties(damped(skewed()))
    assert "angular_drag_mean" in codes(mujoco_limitations(vehicle))
    (no_drag,) = [f for f in urdf_limitations(vehicle) if f.code == "no_drag"]
    assert no_drag.values["angular"] == pytest.approx(MEAN)
    (mean,) = angular_drag_by_axis(vehicle)
    assert limitation_text(mean) == (
        "angular drag: one number for all axes, 0.02 N m s, the mean of the airframe's 0.03, 0.01, 0.02 N m s about x, y and z"
    )


def test_one_number_is_exact_there() -> None:
    one = vehicle_properties(damped(skewed(), (MEAN,)))
    np.testing.assert_array_equal(one.drag.angular, [MEAN] * 3)
    assert angular_drag_by_axis(one) == []


def test_targets_with_three_numbers_get_each() -> None:
    airframe = damped(skewed())
    root = ElementTree.fromstring(gazebo_files(accepted(airframe))["model.sdf"])
    (drag,) = [p for p in root.iter("plugin") if p.get("name") == "gz::sim::systems::Hydrodynamics"]
    assert [float(drag.findtext(name) or 0.0) for name in ("kP", "mQ", "nR")] == [-k for k in BY_AXIS]
    header = header_files(accepted(airframe))["skewed.h"].decode()
    assert (
        "about x, y, z, N m s; std 0.001 N m s */\n#define SKEWED_ANGULAR_DRAG {0.03, 0.01, 0.02}" in header
    )
    diagonal = damped(with_quantities(load_airframe("px4-sih-quad"), inertia=Quantity(INERTIA, "kg m^2")))
    model = hover_model(diagonal)
    at = model.system.states.tangent["body_rate"]
    np.testing.assert_allclose(np.diag(model.matrices["A"])[at], -np.array(BY_AXIS) / INERTIA, rtol=1e-6)


def test_one_decay_rate_is_the_mean_and_is_read_as_the_damping_of_each_axis(tmp_path: Path) -> None:
    plain = with_quantities(load_airframe("px4-sih-quad"), inertia=Quantity(INERTIA, "kg m^2"))
    airframe = damped(plain)
    (tmp_path / "frame.json").write_bytes(ardupilot_files(airframe)["frame.json"])
    found = read_ardupilot_frame(tmp_path / "frame.json")
    rate = np.mean(np.array(BY_AXIS) / INERTIA)
    np.testing.assert_allclose(found.vector("angular_drag"), rate * np.array(INERTIA), rtol=1e-6)
    assert "single_damping" in codes(frame_limitations(vehicle_properties(airframe), frame_values(airframe)))
    alike = damped(plain, tuple(2.0 * J for J in INERTIA))
    assert "single_damping" not in codes(frame_limitations(vehicle_properties(alike), frame_values(alike)))
