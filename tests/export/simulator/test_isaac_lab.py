"""The file for Isaac Lab, with classes that have the fields of its own: Isaac Lab itself is not run."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.simulator.isaac_lab import LEAST_CONSTANT, isaac_lab_files, isaac_lab_limitations
from rotorid.export.text import limitation_text
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties
from tests.export.simulator.test_rotor_speeds import DT, FOR_DRONE_MODELS, commands_of, simulated, upright
from tests.export.vehicles import skewed, with_quantities
from tests.loading import load_file

THRUSTER_CFG = (
    "class_type", "dt", "thrust_range", "max_thrust_rate", "thrust_const_range", "tau_inc_range", "tau_dec_range",
    "torque_to_thrust_ratio", "use_discrete_approximation", "integration_scheme", "thruster_names_expr",
)  # fmt: skip
"""Fields of isaaclab_contrib/actuators/thruster_cfg.py at 2620547034b1."""

MULTIROTOR_CFG = (
    "class_type", "init_state", "actuators", "thruster_force_direction", "allocation_matrix", "rotor_directions",
    "prim_path", "spawn",
)  # fmt: skip
"""Fields of isaaclab_contrib/assets/multirotor/multirotor_cfg.py at 0bbbbf6a2a9b, and two of its bases."""

INITIAL_STATE_CFG = ("rps", "pos", "rot", "lin_vel", "ang_vel")
"""Fields of its InitialStateCfg and of the bases."""


def written(airframe: Airframe, folder: Path) -> ModuleType:
    (content,) = isaac_lab_files(airframe).values()
    (folder / "isaac_lab_vehicle.py").write_bytes(content)
    return load_file(folder / "isaac_lab_vehicle.py")


def with_fields(name: str, fields: tuple[str, ...]) -> type:
    return dataclasses.make_dataclass(name, [(f, object, dataclasses.field(default=None)) for f in fields])


@pytest.fixture
def isaac_lab(monkeypatch):
    multirotor = with_fields("MultirotorCfg", MULTIROTOR_CFG)
    multirotor.InitialStateCfg = with_fields("InitialStateCfg", INITIAL_STATE_CFG)
    for module, name, cls in (
        ("actuators", "ThrusterCfg", with_fields("ThrusterCfg", THRUSTER_CFG)),
        ("assets", "MultirotorCfg", multirotor),
    ):
        stub = ModuleType(f"isaaclab_contrib.{module}")
        setattr(stub, name, cls)
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
    monkeypatch.setitem(sys.modules, "isaaclab_contrib", ModuleType("isaaclab_contrib"))


@pytest.mark.parametrize("name", ["px4-sih-quad", "crazyflie-2.1", "x8-coaxial", "skewed"])
def test_the_fields_are_those_of_isaac_lab(name, isaac_lab, tmp_path):
    airframe = skewed() if name == "skewed" else load_airframe(name)
    count = len(airframe.rotors)
    cfg = written(airframe, tmp_path).multirotor_cfg(dt=0.004, prim_path="/World/vehicle")
    thrusters = cfg.actuators["thrusters"]
    assert (cfg.prim_path, thrusters.dt) == ("/World/vehicle", 0.004)
    assert np.shape(cfg.allocation_matrix) == (6, count)  # as MultirotorCfg demands
    assert len(cfg.rotor_directions) == len(thrusters.thruster_names_expr) == count
    assert list(cfg.init_state.rps) == thrusters.thruster_names_expr
    assert cfg.rotor_directions == [1 if rotor.direction == "ccw" else -1 for rotor in airframe.rotors]


@pytest.mark.parametrize("name", ["px4-sih-quad", "crazyflie-2.1", "x8-coaxial", "skewed"])
def test_a_hover_carries_the_weight_without_a_moment(name, tmp_path):
    airframe = skewed() if name == "skewed" else load_airframe(name)
    file, weight = written(airframe, tmp_path), vehicle_properties(airframe).body.weight
    thrusts = np.array(list(file.HOVER_THRUSTS.values()))
    low, high = file.THRUSTER["thrust_range"]
    assert low < thrusts.min() <= thrusts.max() < high
    wrench = np.array(file.MULTIROTOR["allocation_matrix"]) @ thrusts
    assert np.linalg.norm(wrench[:3]) == pytest.approx(weight, rel=1e-9)
    np.testing.assert_allclose(wrench[3:], 0.0, atol=1e-9 * weight)
    constant, same = file.THRUSTER["thrust_const_range"]
    assert constant == same
    of_speeds = constant * np.array(list(file.RPS.values())) ** 2
    np.testing.assert_allclose(of_speeds, thrusts, rtol=1e-9)
    if name == "px4-sih-quad":  # it is symmetric
        np.testing.assert_allclose(of_speeds, weight / 4, rtol=1e-9)


def test_a_counter_clockwise_rotor_turns_the_body_clockwise(tmp_path):
    multirotor = written(load_airframe("px4-sih-quad"), tmp_path).MULTIROTOR
    assert np.all(np.sign(multirotor["allocation_matrix"][5]) == -np.array(multirotor["rotor_directions"]))


def test_the_rigid_body_is_that_of_the_airframe(tmp_path):
    body, found = vehicle_properties(skewed()).body, written(skewed(), tmp_path).RIGID_BODY
    assert found["mass"] == pytest.approx(body.mass)
    np.testing.assert_allclose(found["inertia"], body.inertia)
    np.testing.assert_allclose(found["centre_of_mass"], body.centre_of_mass)


def lagged(thruster: dict, inputs: np.ndarray, thrust: np.ndarray, dt: float = DT) -> np.ndarray:
    """The thrusts by the equations of isaaclab_contrib/actuators/thruster.py at 1ab6d6cff63e, with its defaults."""
    constant, found = thruster["thrust_const_range"][0], []
    for target in np.clip(inputs, *thruster["thrust_range"]):
        tau = np.where(target < thrust, thruster["tau_dec_range"][0], thruster["tau_inc_range"][0])
        x = dt / (dt + tau) if thruster["use_discrete_approximation"] else dt / tau
        speed = np.sqrt(thrust / constant)
        gap = np.sqrt(target / constant) - speed
        thrust = constant * (speed + gap * (x + x**2 / 2 + x**3 / 6 + x**4 / 24)) ** 2
        found.append(thrust)
    return np.array(found)


def test_the_thrusts_follow(tmp_path):
    file, rotors = written(FOR_DRONE_MODELS, tmp_path), vehicle_properties(FOR_DRONE_MODELS).rotors
    inputs = rotors.full_thrusts * rotors.thrust_fraction(commands_of(FOR_DRONE_MODELS))
    hover = hover_trim(vehicle_properties(FOR_DRONE_MODELS)).thrust
    expected = simulated(FOR_DRONE_MODELS)[:, -rotors.count :]
    error = np.abs(lagged(file.THRUSTER, inputs, hover) / expected - 1.0).max()
    assert error < 1e-4
    assert np.abs(expected / hover - 1.0).max() > 0.03  # they change


def test_the_approximation_makes_the_lag_right():
    """The numbers of docs/export-airframe.md."""
    thruster = {"thrust_const_range": (1.0, 1.0), "thrust_range": (0.0, 1.0)}
    thruster |= {"tau_inc_range": (0.03, 0.03), "tau_dec_range": (0.03, 0.03)}
    closed = [
        float(
            np.sqrt(lagged({**thruster, "use_discrete_approximation": on}, np.ones(1), np.zeros(()), 0.01)[0])
        )
        for on in (True, False)
    ]
    assert closed == pytest.approx([0.284, 0.396], abs=5e-4)
    assert 1.0 - np.exp(-1.0 / 3.0) == pytest.approx(0.283, abs=5e-4)


def test_a_small_rotor_is_named_in_the_header(tmp_path):
    small = upright(thrust_coefficient=Quantity((2e-8,), "N s^2"))
    text = (isaac_lab_files(small)["isaac_lab_vehicle.py"]).decode()
    assert "raises 7.9e-07 N/rps^2 to 1e-06" in " ".join(text.split())
    assert written(small, tmp_path).THRUSTER["thrust_const_range"][0] < LEAST_CONSTANT
    large = upright(thrust_coefficient=Quantity((2e-5,), "N s^2"))
    assert "thrust_constant_raised" not in {found.code for found in isaac_lab_limitations(large)}


def test_a_lag_that_is_short_for_the_step_is_named():
    def found(lag: float) -> list[str]:
        airframe = with_quantities(skewed(), motor_time_constant=Quantity((lag,), "s"))
        return [limitation_text(f) for f in isaac_lab_limitations(airframe) if f.code == "lag_short_for_step"]

    assert not found(0.02)
    assert "closes 104 % of the gap to a constant input, exact is 91.8 %" in found(0.004)[0]


def test_an_airframe_without_a_thrust_curve_is_refused():
    with pytest.raises(AirframeError, match=r"no \[thrust_curve\]"):
        isaac_lab_files(load_airframe("fully-actuated-hexarotor"))
