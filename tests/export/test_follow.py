"""The models for MuJoCo and CasADi fly as rotorid's own simulation does: to 1e-3 over 5 s of manoeuvres, in every state."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from rotorid.export.controller.acados import acados_files
from rotorid.export.simulator.mujoco import mujoco_files
from rotorid.export.simulator.urdf import urdf_files
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from tests.export.simulated import simulate_commands
from tests.export.vehicles import accepted, skewed, with_quantities
from tests.loading import load_file

mujoco = pytest.importorskip("mujoco")

DT, STEPS, TOLERANCE = 0.004, 1250, 1e-3
AIRFRAME = accepted(
    with_quantities(
        skewed(), rotor_drag=Quantity((0.1,), "N^0.5 s/m"), rotor_inflow=Quantity((0.05,), "N^0.5 s/m")
    )
)


def written(files: dict[str, bytes], folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def flown() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First state, commands, and states of rotorid's simulation: attitude, position, velocity, body rate, thrusts."""
    t = DT * np.arange(STEPS)
    waves = np.sin(np.outer(t, [2.0, 3.0, 4.0, 5.0])) * [0.02, 0.012, 0.015, 0.01]
    commands = hover_trim(vehicle_properties(AIRFRAME)).command + waves
    x0, states = simulate_commands(AIRFRAME, commands, DT)
    assert np.abs(states[:, 7:10]).max() > 1.0  # it moves
    assert np.abs(states[:, 10:13]).max() > 0.3  # and turns
    return x0, commands, states


@pytest.fixture(scope="module")
def acados(tmp_path_factory) -> types.ModuleType:
    """The exported file, beside its functions."""
    folder = written(acados_files(AIRFRAME), tmp_path_factory.mktemp("acados"))
    return load_file(folder / "acados_model.py")


def test_mujoco_follows(flown, tmp_path):
    x0, commands, states = flown
    folder = written(mujoco_files(AIRFRAME), tmp_path)
    thrust = load_file(folder / "fly.py").thrust
    model = mujoco.MjModel.from_xml_path(str(folder / "model.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    np.testing.assert_allclose([*data.qpos[3:], *data.act[:4]], [*x0[:4], *x0[13:]], atol=1e-9)
    np.testing.assert_allclose(data.ctrl, thrust(load_file(folder / "fly.py").HOVER), atol=1e-9)
    asked, found = thrust(commands), np.zeros_like(states)
    for k in range(STEPS):
        data.ctrl[:] = asked[k]
        mujoco.mj_step(model, data, round(DT / model.opt.timestep))
        found[k] = [*data.qpos[3:], *data.qpos[:3], *data.qvel, *data.act[:4]]
    assert (
        np.abs(found - states).max() < 3.0 * TOLERANCE
    )  # drag of the rotors is of first order in the thrust


def test_mujoco_drags_the_rotors_as_at_hover():
    """Against the airframe's force of the air, in numpy, at any attitude and speed; exact at the thrusts of hover."""
    vehicle = vehicle_properties(AIRFRAME)
    model = mujoco.MjModel.from_xml_string(mujoco_files(AIRFRAME)["model.xml"].decode())
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    rng = np.random.default_rng(0)
    data.qpos[3:] = np.array([0.9, *rng.normal(0.0, 0.3, 3)])
    data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
    data.qvel[:3] = v = rng.normal(0.0, 3.0, 3)
    mujoco.mj_forward(model, data)
    mujoco.mju_quat2Mat(flat := np.zeros(9), data.qpos[3:])
    R, hover = flat.reshape(3, 3), hover_trim(vehicle).thrust
    inside = R.T @ v
    rotor_drag = sum(
        np.sqrt(T)
        * (vehicle.drag.rotor * (inside - a * (a @ inside)) + vehicle.drag.inflow * a * (a @ inside))
        for T, a in zip(hover, vehicle.rotors.axes, strict=True)
    )
    force = R @ (vehicle.rotors.allocation[:3] @ hover - rotor_drag) - [0.0, 0.0, vehicle.body.weight]
    force = (
        force
        - (vehicle.drag.mean_linear + 0.5 * AIR_DENSITY * vehicle.drag.mean_area * np.linalg.norm(v)) * v
    )
    np.testing.assert_allclose(vehicle.body.mass * data.qacc[:3], force, atol=1e-6)


def test_casadi_follows(flown, acados):
    x0, commands, states = flown
    x, u, p, _, slope = acados.symbols()
    vehicle = ca.Function("f", [x, u, p], [slope])
    values = ca.DM(acados.parameters)
    a = vehicle(x, u, values)
    b = vehicle(x + 0.5 * DT * a, u, values)
    c = vehicle(x + 0.5 * DT * b, u, values)
    d = vehicle(x + DT * c, u, values)
    step = ca.Function("step", [x, u], [x + DT / 6.0 * (a + 2.0 * b + 2.0 * c + d)])
    found = step.mapaccum(STEPS)(x0, commands.T).full().T
    assert np.abs(found - states).max() < TOLERANCE
    np.testing.assert_allclose(vehicle(acados.hover_x, acados.hover_u, values).full(), 0.0, atol=1e-9)


def test_acados_gets_its_model(acados, monkeypatch):
    class AcadosModel:
        pass

    monkeypatch.setitem(sys.modules, "acados_template", types.SimpleNamespace(AcadosModel=AcadosModel))
    model = acados.acados_model()
    assert (model.name, model.x.shape, model.u.shape) == ("skewed", (17, 1), (4, 1))
    assert model.f_impl_expr.shape == model.f_expl_expr.shape == model.xdot.shape == (17, 1)


def test_acados_follows(flown, acados, tmp_path, monkeypatch):
    """By an integrator that acados makes of the model, compiles and runs; where it is installed, with its C library."""
    template = pytest.importorskip("acados_template")
    monkeypatch.chdir(tmp_path)
    x0, commands, states = flown
    sim = template.AcadosSim()
    sim.model = acados.acados_model()
    sim.parameter_values = np.array(acados.parameters)
    options = sim.solver_options
    options.T, options.integrator_type, options.num_stages, options.num_steps = DT, "ERK", 4, 1
    integrator, x, found = template.AcadosSimSolver(sim), x0, np.zeros_like(states)
    for k in range(STEPS):
        integrator.set("x", x)
        integrator.set("u", commands[k])
        assert integrator.solve() == 0
        found[k] = x = integrator.get("x")
    assert np.abs(found - states).max() < TOLERANCE


def test_the_example_hovers(tmp_path):
    """Of rotors without a thrust curve, which are asked for newtons."""
    written(mujoco_files(load_airframe("fully-actuated-hexarotor")), tmp_path)
    said = subprocess.run(
        [sys.executable, "fly.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    place = np.array(said[said.index("[") + 1 : said.index("]")].split(), dtype=float)
    assert np.abs(place).max() < 1e-3


def test_mujoco_loads_the_urdf():
    """With the body's links kept apart, it has the airframe's mass, inertia and places."""
    vehicle = vehicle_properties(skewed())
    text = urdf_files(accepted(skewed()))["model.urdf"].decode()
    kept = '  <mujoco><compiler fusestatic="false"/></mujoco>\n  <link name="base_link">'
    model = mujoco.MjModel.from_xml_string(text.replace('  <link name="base_link">', kept, 1))
    body = model.body("base_link")
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, body.iquat)
    R = R.reshape(3, 3)
    assert body.mass[0] == vehicle.body.mass
    np.testing.assert_allclose(body.ipos, vehicle.body.centre_of_mass, atol=1e-12)
    np.testing.assert_allclose(R @ np.diag(body.inertia) @ R.T, vehicle.body.inertia, atol=1e-9)
    for k in range(vehicle.rotors.count):
        rotor = model.body(f"rotor_{k}")
        np.testing.assert_allclose(
            rotor.pos, vehicle.rotors.positions[k] + vehicle.body.centre_of_mass, atol=1e-12
        )
        mujoco.mju_quat2Mat(flat := np.zeros(9), rotor.quat)
        np.testing.assert_allclose(flat.reshape(3, 3)[:, 2], vehicle.rotors.axes[k], atol=1e-9)
