"""Gazebo's model is the airframe: mass, inertia and wrench add up again, and its own parser takes it where there is one."""

from __future__ import annotations

import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.simulator.gazebo import classic_limitations, gazebo_files, gazebo_limitations
from rotorid.export.text import limitation_text
from rotorid.models.airframe.airframe import Quantity
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties
from tests.export.vehicles import accepted, skewed, with_quantities

AIRFRAME = with_quantities(
    skewed(), rotor_drag=Quantity((0.1,), "N^0.5 s/m"), rotor_inflow=Quantity((0.05,), "N^0.5 s/m")
)


def numbers(element, path: str) -> np.ndarray:
    return np.array(element.findtext(path).split(), dtype=float)


def rotation(angles) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


@pytest.fixture(scope="module", params=["model.sdf", "classic.sdf"])
def model(request):
    files = gazebo_files(accepted(AIRFRAME))
    root = ElementTree.fromstring(files[request.param])
    versions = {"model.sdf": "1.9", "classic.sdf": "1.6"}
    assert (root.tag, root.get("version")) == ("sdf", versions[request.param])
    listed = ElementTree.fromstring(files["model.config"]).findall("sdf")
    assert {entry.text: entry.get("version") for entry in listed} == versions
    return root.find("model")


@pytest.fixture
def vehicle() -> VehicleProperties:
    return vehicle_properties(AIRFRAME)


def test_links_add_up_to_the_airframe(model, vehicle):
    masses, centres, inertias = [], [], []
    for link in model.findall("link"):
        pose, inner = numbers(link, "pose"), numbers(link, "inertial/pose")
        R = rotation(pose[3:])
        J = [
            [float(link.findtext(f"inertial/inertia/i{min(a, b)}{max(a, b)}")) for b in "xyz"] for a in "xyz"
        ]
        masses.append(float(link.findtext("inertial/mass")))
        centres.append(pose[:3] + R @ inner[:3])
        inertias.append(R @ J @ R.T)
    centre = np.average(centres, axis=0, weights=masses)
    assert sum(masses) == pytest.approx(vehicle.body.mass)
    np.testing.assert_allclose(centre, vehicle.body.centre_of_mass, atol=1e-12)
    whole = sum(
        J + m * ((c - centre) @ (c - centre) * np.eye(3) - np.outer(c - centre, c - centre))
        for m, c, J in zip(masses, centres, inertias, strict=True)
    )
    np.testing.assert_allclose(whole, vehicle.body.inertia, atol=1e-11)


def test_rotors_pull_turn_and_drag_as_the_airframe(model, vehicle):
    """By the formulas of MulticopterMotorModel.cc, at the largest speed."""
    links = {link.get("name"): link for link in model.findall("link")}
    joints = {joint.get("name"): joint for joint in model.findall("joint")}
    motors = [plugin for plugin in model.findall("plugin") if plugin.find("motorNumber") is not None]
    assert [int(m.findtext("motorNumber")) for m in motors] == list(range(vehicle.rotors.count))
    for k, motor in enumerate(motors):
        joint = joints[motor.findtext("jointName")]
        assert joint.findtext("child") == motor.findtext("linkName")
        assert joint.findtext("parent") in links
        pose = numbers(links[motor.findtext("linkName")], "pose")
        axis = rotation(pose[3:])[:, 2]
        speed, constant, ratio = (
            float(motor.findtext(name)) for name in ("maxRotVelocity", "motorConstant", "momentConstant")
        )
        turns = 1.0 if motor.findtext("turningDirection") == "ccw" else -1.0
        thrust = constant * speed**2
        torque = (
            np.cross(pose[:3] - vehicle.body.centre_of_mass, axis * thrust) - turns * thrust * ratio * axis
        )
        np.testing.assert_allclose(
            [*axis * thrust, *torque],
            vehicle.rotors.allocation[:, k] * vehicle.rotors.full_thrusts[k],
            atol=1e-9,
        )
        drag = float(motor.findtext("rotorDragCoefficient")) * speed
        assert drag == pytest.approx(vehicle.drag.rotor * np.sqrt(vehicle.rotors.full_thrusts[k]))
        assert float(motor.findtext("timeConstantUp")) == vehicle.rotors.lag


def test_the_body_has_the_drag_of_the_airframe():
    root = ElementTree.fromstring(gazebo_files(accepted(AIRFRAME))["model.sdf"])
    (drag,) = [p for p in root.iter("plugin") if p.get("name") == "gz::sim::systems::Hydrodynamics"]
    found = {e.tag: float(e.text) for e in drag if e.tag[0] in "xyzkmn" and e.text}
    area = 0.5 * AIR_DENSITY * 0.05
    expected = {
        "xU": 0.5,
        "yV": 0.5,
        "zW": 0.5,
        "xUabsU": area,
        "yVabsV": area,
        "zWabsW": area,
        "kP": 0.025,
        "mQ": 0.025,
        "nR": 0.025,
    }
    added = dict.fromkeys(("xDotU", "yDotV", "zDotW", "kDotP", "mDotQ", "nDotR"), 0.0)
    assert found == pytest.approx({name: -value for name, value in expected.items()} | added)


def test_limitations_are_in_the_header():
    files = gazebo_files(AIRFRAME)
    assert b"NOT VALIDATED" in files["model.sdf"]
    codes = {finding.code for finding in gazebo_limitations(AIRFRAME)}
    assert {"drag_area_by_axis", "no_inflow"} <= codes
    (body_drag,) = classic_limitations(vehicle_properties(AIRFRAME))
    assert body_drag.values["area"] == 0.05
    for limitation in (*gazebo_limitations(AIRFRAME), body_drag):
        assert limitation_text(limitation)[:40].encode() in files["classic.sdf"]
    with pytest.raises(AirframeError, match="too small for rotors at these positions"):
        gazebo_files(
            with_quantities(
                AIRFRAME, inertia=Quantity((3e-4, 3e-4, 3e-4), "kg m^2"), products_of_inertia=ZERO
            )
        )


ZERO = Quantity((0.0, 0.0, 0.0), "kg m^2")


@pytest.mark.parametrize("name", ["model.sdf", "classic.sdf"])
def test_drake_reads_it(tmp_path, name, vehicle):
    """Its parser is Gazebo's own, libsdformat; where Drake is installed: it is too large to be installed for this alone."""
    pytest.importorskip("pydrake")
    from pydrake.multibody.parsing import Parser  # pyright: ignore[reportMissingImports]
    from pydrake.multibody.plant import MultibodyPlant  # pyright: ignore[reportMissingImports]

    (tmp_path / name).write_bytes(gazebo_files(accepted(AIRFRAME))[name])
    plant = MultibodyPlant(0.001)
    (model,) = Parser(plant).AddModels(str(tmp_path / name))
    plant.Finalize()
    context, base = plant.CreateDefaultContext(), plant.GetFrameByName("base_link")
    whole = plant.CalcSpatialInertia(context, base, plant.GetBodyIndices(model))
    offset = whole.get_com()
    inertia = whole.Shift(offset).CalcRotationalInertia().CopyToFullMatrix3()
    assert whole.get_mass() == pytest.approx(vehicle.body.mass)
    pose = plant.CalcRelativeTransform(context, plant.GetFrameByName("__model__"), base)
    R = pose.rotation().matrix()
    np.testing.assert_allclose(pose @ offset, vehicle.body.centre_of_mass, atol=1e-9)
    np.testing.assert_allclose(R @ inertia @ R.T, vehicle.body.inertia, atol=1e-9)
    assert plant.num_joints() >= vehicle.rotors.count


@pytest.mark.skipif(shutil.which("gz") is None, reason="no Gazebo here")
def test_gazebo_takes_it(tmp_path):
    for name, content in gazebo_files(accepted(AIRFRAME)).items():
        (tmp_path / name).write_bytes(content)
    for name in ("model.sdf", "classic.sdf"):
        done = subprocess.run(["gz", "sdf", "--check", str(tmp_path / name)], capture_output=True, text=True)
        assert "Valid" in done.stdout, done.stdout + done.stderr
