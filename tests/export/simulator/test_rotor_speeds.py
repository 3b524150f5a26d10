"""RotorPy, drone-models and crazyflow fly the exported vehicles beside rotorid's own simulation, over 5 s of manoeuvres.

With properties that a simulator has, every state agrees to 1e-4; what it lacks is left out one by one, with the error.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.simulator.drone_models import drone_models_files
from rotorid.export.simulator.rotorpy import rotorpy_files
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from tests.export.simulated import simulate_commands
from tests.export.vehicles import accepted, skewed, with_quantities
from tests.loading import load_file

DT, STEPS, TOLERANCE = 0.01, 500, 1e-3
MODULES = {
    "drone_models": "drone_models.first_principles",
    "crazyflow": "crazyflow.dynamics.first_principles",
}
NOTHING = Quantity((0.0, 0.0, 0.0), "N s/m")


def upright(**values: Quantity) -> Airframe:
    """The skewed quadrotor with vertical rotors whose speeds lag, and without drag other than the given one."""
    airframe = skewed()
    rotors = tuple(dataclasses.replace(rotor, axis=(0.0, 0.0, 1.0)) for rotor in airframe.rotors)
    airframe = dataclasses.replace(airframe, rotors=rotors, lag_of="speed")
    kept = {k: v for k, v in airframe.quantities.items() if k not in ("drag_area", "angular_drag")}
    airframe = dataclasses.replace(airframe, quantities=kept)
    return accepted(with_quantities(airframe, **{"drag": NOTHING, **values}))


FOR_ROTORPY = upright(
    rotor_drag=Quantity((0.1,), "N^0.5 s/m"),
    rotor_inflow=Quantity((0.05,), "N^0.5 s/m"),
    translational_lift=Quantity((0.003,), "N s^2/m^2"),
    flapping_moment=Quantity((0.002,), "N^0.5 s"),
    drag_area=Quantity((0.05, 0.04, 0.06), "m^2"),
)
FOR_DRONE_MODELS = upright(
    drag=Quantity((0.3, 0.4, 0.5), "N s/m"),
    motor_time_constant_down=Quantity((0.08,), "s"),
)


def commands_of(airframe: Airframe) -> np.ndarray:
    """Commands around hover."""
    t = DT * np.arange(STEPS)
    waves = np.cos(np.outer(t, [6.0, 7.0, 8.0, 9.0])) * [0.02, 0.012, 0.015, 0.01]
    return hover_trim(vehicle_properties(airframe)).command + waves


def simulated(airframe: Airframe) -> np.ndarray:
    """rotorid's states: attitude x y z w, position, velocity, body rate, thrusts."""
    _, states = simulate_commands(airframe, commands_of(airframe), DT)
    assert np.abs(states[:, 7:10]).max() > 0.5  # it moves
    assert np.abs(states[:, 10:13]).max() > 0.1  # and turns
    return states[:, [1, 2, 3, 0, *range(4, states.shape[1])]]


def written(files: dict[str, bytes], folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def in_rotorpy(airframe: Airframe, folder: Path) -> np.ndarray:
    multirotor = pytest.importorskip("rotorpy.vehicles.multirotor")
    module = load_file(written(rotorpy_files(airframe), folder) / "rotorpy_vehicle.py")
    hover = hover_trim(vehicle_properties(airframe))
    state = {"x": np.zeros(3), "v": np.zeros(3), "q": hover.attitude[[1, 2, 3, 0]], "w": np.zeros(3)}
    state |= {"wind": np.zeros(3), "rotor_speeds": module.motor_speeds(module.HOVER)}
    tight = {"method": "RK45", "rtol": 1e-7, "atol": 1e-9}
    vehicle = multirotor.Multirotor(module.quad_params, initial_state=state, integrator_kwargs=tight)
    found = []
    for speeds in module.motor_speeds(commands_of(airframe)):
        state = vehicle.step(state, {"cmd_motor_speeds": speeds}, DT)
        thrusts = vehicle.k_eta * state["rotor_speeds"] ** 2
        found.append(np.concatenate([state["q"], state["x"], state["v"], state["w"], thrusts]))
    return np.array(found)


FLY = """
import importlib
import sys

import numpy as np

dynamics = importlib.import_module(sys.argv[1]).dynamics  # sets SCIPY_ARRAY_API before scipy is imported
import fly

model, inputs, dt = fly.first_principles(dynamics), fly.motor_rpm(np.load("commands.npy")), float(sys.argv[2])
x = np.concatenate([np.zeros(3), np.load("attitude.npy"), np.zeros(6), fly.motor_rpm(fly.HOVER)])


def rate(x, u):
    v, _, a, alpha, n = model(x[:3], x[3:7], x[7:10], x[10:13], u, x[13:])
    q, w, rates = x[3:6], x[6], x[10:13]  # their rate of the quaternion is documented as not to be integrated
    turn = 0.5 * np.append(w * rates + np.cross(q, rates), -q @ rates)
    return np.concatenate([v, turn, a, alpha, n])


states = []
for u in inputs:
    a = rate(x, u)
    b = rate(x + 0.5 * dt * a, u)
    c = rate(x + 0.5 * dt * b, u)
    x = x + dt / 6.0 * (a + 2.0 * b + 2.0 * c + rate(x + dt * c, u))
    x[3:7] /= np.linalg.norm(x[3:7])
    thrusts = fly.parameters["rpm2thrust"][2] * x[13:] ** 2
    states.append(np.concatenate([x[3:7], x[:3], x[7:13], thrusts]))
np.save("states.npy", states)
"""


def in_first_principles(airframe: Airframe, folder: Path, package: str) -> np.ndarray:
    """Of drone-models or crazyflow, by Runge-Kutta steps of their rates, in a process of their own."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    written(drone_models_files(airframe), folder)
    np.save(folder / "commands.npy", commands_of(airframe))
    np.save(folder / "attitude.npy", hover_trim(vehicle_properties(airframe)).attitude[[1, 2, 3, 0]])
    command = [sys.executable, "-c", FLY, MODULES[package], str(DT)]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.load(folder / "states.npy")


def test_rotorpy_follows(tmp_path):
    error = np.abs(in_rotorpy(FOR_ROTORPY, tmp_path) - simulated(FOR_ROTORPY)).max()
    assert error < 0.1 * TOLERANCE


def test_rotorpy_takes_the_speeds_of_an_airframe_without_a_thrust_curve(tmp_path):
    known = with_quantities(FOR_ROTORPY, thrust_coefficient=Quantity((5e-6,), "N s^2"))
    by_speed = accepted(dataclasses.replace(known, thrust_curve=None))
    folders = [tmp_path / "commands", tmp_path / "speeds"]
    modules = []
    for airframe, folder in zip((accepted(known), by_speed), folders, strict=True):
        folder.mkdir()
        modules.append(load_file(written(rotorpy_files(airframe), folder) / "rotorpy_vehicle.py"))
    by_command, by_speeds = modules
    assert by_speeds.quad_params.pop("rotor_speed_max") == np.inf
    assert by_command.quad_params.pop("rotor_speed_max") < 2000.0
    numbers = {name: value for name, value in by_command.quad_params.items() if isinstance(value, float)}
    assert {name: by_speeds.quad_params[name] for name in numbers} == numbers
    hover = by_command.motor_speeds(by_command.HOVER)
    assert by_speeds.motor_speeds(by_speeds.HOVER) == pytest.approx(hover, rel=1e-9)
    assert pytest.approx(hover / np.sqrt([r.thrust_scale for r in known.rotors]), rel=1e-9) == by_speeds.HOVER
    unknown = accepted(dataclasses.replace(FOR_ROTORPY, thrust_curve=None))
    with pytest.raises(AirframeError, match=r"\[thrust_curve\]"):
        rotorpy_files(unknown)
    pytest.importorskip("rotorpy")
    said = subprocess.run(
        [sys.executable, "rotorpy_vehicle.py"], cwd=folders[1], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("package", MODULES)
def test_first_principles_follow(package, tmp_path):
    found = in_first_principles(FOR_DRONE_MODELS, tmp_path, package)
    assert np.abs(found - simulated(FOR_DRONE_MODELS)).max() < 0.1 * TOLERANCE


MISSING = {
    "lag of thrusts": lambda: dataclasses.replace(upright(), lag_of="thrust"),
    "linear drag": lambda: upright(drag=Quantity((0.5,), "N s/m")),
    "rotor drag": lambda: upright(rotor_drag=Quantity((0.1,), "N^0.5 s/m")),
    "drag area": lambda: upright(drag_area=Quantity((0.05,), "m^2")),
    "angular drag": lambda: upright(angular_drag=Quantity((0.025,), "N m s")),
    "rotor momentum": lambda: upright(rotor_momentum=Quantity((0.0005,), "N^0.5 m s")),
}
"""Airframes with one property that one of the simulators lacks."""

POSITION_ERRORS = {
    "lag of thrusts": (0.22, 0.22),
    "linear drag": (0.45, 0.0),
    "rotor drag": (0.0, 6.5),
    "drag area": (0.0, 0.73),
    "angular drag": (3.6, 3.6),
    "rotor momentum": (0.024, 0.003),
}
"""Largest error of the position over 5 s, m, in RotorPy and in drone-models, as docs/export-airframe.md has them."""


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_has_the_stated_error(name, tmp_path):
    airframe = MISSING[name]()
    expected = simulated(airframe)
    rotorpy = in_rotorpy(airframe, tmp_path) - expected
    model = in_first_principles(airframe, tmp_path, "drone_models") - expected
    for error, stated in zip((rotorpy, model), POSITION_ERRORS[name], strict=True):
        assert np.abs(error[:, 4:7]).max() == pytest.approx(stated, rel=0.1, abs=TOLERANCE)


@pytest.mark.parametrize("files", [rotorpy_files, drone_models_files])
def test_a_hexarotor_is_refused(files):
    with pytest.raises(AirframeError, match=r"fully-actuated-hexarotor.*\[thrust_curve\]|6 \[\[rotor\]\]"):
        files(load_airframe("fully-actuated-hexarotor"))


def test_the_files_run(tmp_path):
    pytest.importorskip("rotorpy")
    pytest.importorskip("array_api_compat")
    written(rotorpy_files(FOR_ROTORPY) | drone_models_files(FOR_ROTORPY), tmp_path)
    for file in ("rotorpy_vehicle.py", "fly.py"):
        run = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=True)
        for values in run.stdout.split("[")[1:]:
            numbers = np.array(values[: values.index("]")].split(), dtype=float)
            assert np.abs(numbers).max() < 1e-3
