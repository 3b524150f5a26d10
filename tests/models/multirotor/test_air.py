"""The wrench of the air against RotorPy's, and its symmetries."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import (
    Airframe,
    Quantity,
    Rotor,
    airframe_toml,
    load_airframe,
    parse_airframe,
)
from rotorid.models.multirotor.air import air_wrench
from rotorid.models.multirotor.properties import vehicle_properties
from rotorid.models.multirotor.rigid import rigid_multirotor, thrust_rate
from rotorid.models.system import parameter_values

BARE = Airframe(
    "any",
    "",
    {"mass": Quantity((0.5,), "kg")},
    tuple(Rotor((x, y, 0.01), turn) for x, y, turn in ((0.1, 0.1, "cw"), (0.1, -0.1, "ccw"))),
)


@pytest.mark.parametrize("vehicle", ["hummingbird", "crazyflie"])
def test_rigid_multirotor_has_the_wrench_of_rotorpy(vehicle):
    """Forces and torques of RotorPy's vehicle at random speeds, rates and rotor speeds."""
    pytest.importorskip("rotorpy", reason="the referee needs rotorpy: pip install 'rotorid[referee]'")
    from importlib import import_module

    from rotorpy.vehicles.multirotor import Multirotor

    q = dict(import_module(f"rotorpy.vehicles.{vehicle}_params").quad_params)
    q["k_flap"] = 0.3 * q["k_d"]  # RotorPy counts it the other way round, and has 0
    q |= {"rotor_pos": {k: np.add(v, (0.0, 0.0, 0.02)) for k, v in q["rotor_pos"].items()}}
    referee = Multirotor(q)
    area = tuple(2.0 * q[f"c_D{axis}"] / 1.225 for axis in "xyz")
    root = math.sqrt(q["k_eta"])
    quantities = {
        "mass": (q["mass"],),
        "inertia": (q["Ixx"], q["Iyy"], q["Izz"]),
        "thrust_coefficient": (q["k_eta"],),
        "torque_ratio": (q["k_m"] / q["k_eta"],),
        "rotor_drag": (q["k_d"] / root,),
        "rotor_inflow": (q["k_z"] / root,),
        "translational_lift": (q["k_h"],),
        "flapping_moment": (-q["k_flap"] / root,),
        "drag_area": area,
    }
    rotors = tuple(
        Rotor(tuple(float(v) for v in p), "cw" if d > 0 else "ccw")
        for p, d in zip(q["rotor_pos"].values(), q["rotor_directions"], strict=True)
    )
    airframe = Airframe("rotorpy", "", {n: Quantity(v, "-") for n, v in quantities.items() if any(v)}, rotors)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        system = rigid_multirotor(airframe, "rotor_speed")
        p = parameter_values(system)
        for _ in range(5):
            R, v, w = Rotation.random(random_state=rng), rng.normal(size=3) * 3.0, rng.normal(size=3)
            speed = rng.uniform(0.3, 1.0, 4) * q["rotor_speed_max"]
            force, torque = referee.compute_body_wrench(w, speed, R.inv().apply(v))
            x = {"attitude": R.as_quat(scalar_first=True), "velocity": v, "body_rate": w}
            x = {name: jnp.asarray(value) for name, value in x.items()}
            thrust = system.known_thrust({"rotor_speed": jnp.asarray(speed)}, p)
            own_force, own_torque = system.known_wrench(x, thrust, p)
            gyroscopic = np.cross(w, np.array(quantities["inertia"]) * w)
            assert np.allclose(R.inv().apply(np.array(own_force)), force, rtol=1e-5, atol=1e-5 * q["mass"])
            assert np.allclose(own_torque + gyroscopic, torque, rtol=1e-5, atol=1e-5 * q["mass"])


def test_one_number_of_drag_is_the_same_along_all_axes():
    p = {"drag": 0.3, "drag_area": 0.02, "rotor_drag": 0.05, "centre_of_mass": (0.0, 0.0, 0.0)}
    three = p | {"drag": (0.3,) * 3, "drag_area": (0.02,) * 3}
    q, v, w = jnp.array([0.5, 0.5, -0.5, 0.5]), jnp.array([1.0, -2.0, 3.0]), jnp.array([0.1, 0.2, 0.3])
    one, by_axis = (
        air_wrench(q, v, w, jnp.ones(2), BARE.rotors, {n: jnp.asarray(x) for n, x in values.items()})
        for values in (p, three)
    )
    assert np.allclose(one[0], by_axis[0])
    assert np.allclose(one[1], by_axis[1])


def test_an_airframe_keeps_what_lags_behind_the_commands():
    airframe = dataclasses.replace(load_airframe("quadrotor-x"), lag_of="speed")
    again = parse_airframe(airframe_toml(airframe), "again.toml")
    assert again.has_speed_lag
    assert rigid_multirotor(load_airframe("px4-sih-quad"), "rotor_command").has_speed_lag is False
    with pytest.raises(AirframeError, match="motor_lag"):
        parse_airframe('motor_lag = "voltage"\n[mass]\nvalue = 1.0\nunit = "kg"\n', "wrong.toml")


def test_a_lag_of_speeds_is_as_fast_as_one_of_thrusts_near_equilibrium():
    thrust, commanded = jnp.array([1.0, 4.0]), jnp.array([1.001, 4.001])
    assert np.allclose(thrust_rate(commanded, thrust), commanded - thrust, rtol=1e-3)
    assert thrust_rate(jnp.array([4.0]), jnp.array([1.0])).item() == pytest.approx(2.0)


def test_an_airframe_keeps_a_drag_by_axis():
    airframe = dataclasses.replace(
        load_airframe("quadrotor-x"),
        quantities={
            **load_airframe("quadrotor-x").quantities,
            "drag": Quantity((0.1, 0.2, 0.0), "N s/m", (0.01, 0.01, 0.02)),
            "rotor_inflow": Quantity((0.1,), "N^0.5 s/m", (0.02,)),
        },
    )
    again = parse_airframe(airframe_toml(airframe), "again.toml")
    assert again.quantities["drag"] == airframe.quantities["drag"]
    drag = vehicle_properties(again).drag
    assert drag.linear.tolist() == [0.1, 0.2, 0.0]
    assert drag.inflow == 0.1
    assert drag.along(np.ones(4)) == pytest.approx(0.4)
    assert drag.across(np.ones(4)) == pytest.approx(0.15)


@pytest.mark.parametrize("value", ["[0.1, -0.1, 0.1]", "[0.0, 0.0, 0.0]", "[0.1, 0.1]"])
def test_a_drag_that_cannot_be_is_refused(value):
    text = f'[mass]\nvalue = 1.0\nunit = "kg"\n[drag]\nvalue = {value}\nunit = "N s/m"\n'
    with pytest.raises(AirframeError, match="drag"):
        parse_airframe(text, "wrong.toml")
