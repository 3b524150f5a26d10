"""The multirotors against the equations written out with a rotation library."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError, SettingError, SignalError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Quantity, load_airframe, parse_airframe
from rotorid.models.joint import Joint, slope, to_coordinate, to_value
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.thrust import ThrustCurve, with_commanded_thrust
from rotorid.models.multirotor.with_drag import bare_multirotor, multirotor
from rotorid.models.system import Parameter, parameter_values

RNG = np.random.default_rng(0)
G = np.array([0.0, 0.0, -9.81])


def a_state(system):
    q = RNG.normal(size=4)
    x = {"attitude": jnp.asarray(q / np.linalg.norm(q)), "velocity": jnp.asarray(RNG.normal(size=3))}
    if "position" in system.states:
        x["position"] = jnp.asarray(RNG.normal(size=3))
    if "thrust" in system.states:
        x |= {"thrust": jnp.asarray(8.0), "updraught": jnp.asarray(0.3), "gust": jnp.asarray(0.1)}
        x |= {"steady_thrust": jnp.asarray(7.0), "fast_thrust_excess": jnp.asarray(-0.2)}
    return x, Rotation.from_quat(q, scalar_first=True)


def test_bare_equals_equation_47():
    system = BareMultirotor()
    x, R = a_state(system)
    u = {"thrust": jnp.asarray(12.0), "body_rate": jnp.asarray([0.1, -0.2, 0.3])}
    rate = system.dynamics(x, u, parameter_values(system, mass=1.7))
    np.testing.assert_allclose(rate["velocity"], R.apply([0.0, 0.0, 12.0]) / 1.7 + G, rtol=1e-12)
    np.testing.assert_allclose(rate["position"], x["velocity"])
    np.testing.assert_allclose(rate["attitude"], u["body_rate"])


def test_drag_wind_lag_and_bias():
    system = multirotor(load_airframe("px4-sih-quad"))
    x, R = a_state(system)
    u = {"rotor_command": jnp.asarray([0.5, 0.6, 0.4, 0.55]), "body_rate": jnp.zeros(3)}
    bias = (0.1, -0.1, 0.05)
    p = parameter_values(
        system,
        mass=1.2,
        drag=0.6,
        axial_drag_ratio=1.5,
        lift_factor=0.4,
        wind_force=(0.9, -0.3),
        accelerometer_bias=bias,
    )
    rate, seen, derived = system.dynamics(x, u, p), system.observe(x, u, p), system.derive(x, p)
    drag, z = np.array([0.9, -0.3, 0.0]) - 0.6 * np.asarray(x["velocity"]), R.apply([0.0, 0.0, 1.0])
    across = drag - (drag @ z) * z
    lift = 0.4 * (across @ across) / system.weight
    air = across + (1.5 * (drag @ z) + lift) * z + [0.0, 0.0, 0.4]
    np.testing.assert_allclose(rate["velocity"], (R.apply([0.0, 0.0, 7.8]) + air) / 1.2 + G, rtol=1e-12)
    np.testing.assert_allclose(rate["thrust"], (5.0 * 2.05 - 8.0) / 0.05, rtol=1e-12)
    np.testing.assert_allclose(rate["updraught"], -0.3)
    np.testing.assert_allclose(rate["gust"], -0.1 / p["gust_time"])
    np.testing.assert_allclose(rate["steady_thrust"], (8.0 - 7.0) / 0.25)
    np.testing.assert_allclose(rate["fast_thrust_excess"], 0.2 / 10.0)
    specific = (np.array([0.0, 0.0, 7.8]) + R.inv().apply(air)) / 1.2 + bias
    np.testing.assert_allclose(seen["specific_force"], specific, rtol=1e-12)
    np.testing.assert_allclose([derived["wind_x"], derived["wind_y"]], [1.5, -0.5], rtol=1e-12)
    assert tuple(derived) == tuple(system.derived_units)


def test_the_thrust_curve_does_not_hold_at_a_rotors_limit():
    system = multirotor(load_airframe("px4-sih-quad"))
    x, _ = a_state(system)
    p = parameter_values(system)
    for command, holds in ((0.94, True), (0.96, False)):
        u = {"rotor_command": jnp.asarray([0.5, 0.6, command, 0.55]), "body_rate": jnp.zeros(3)}
        assert bool(system.holds(u)) is holds
        assert (float(system.dynamics(x, u, p)["thrust"]) != 0.0) is holds
    assert multirotor(load_airframe("crazyflie-crazyswarm2"), "thrust").holds({"thrust": jnp.asarray(1e3)})


def test_a_known_mass_frees_the_thrust_scale():
    system = multirotor(load_airframe("crazyflie-crazyswarm2"), "thrust", known_mass=0.032)
    assert not system.parameter("mass").tracked
    assert system.parameter("mass").value == 0.032
    assert Joint(system).quantities[0] == "thrust_scale"
    with pytest.raises(SettingError, match="must be positive"):
        multirotor(load_airframe("crazyflie-crazyswarm2"), "thrust", known_mass=-1.0)
    with pytest.raises(AirframeError, match="no \\[thrust_curve\\]"):
        multirotor(load_airframe("crazyflie-crazyswarm2"), "rotor_command")


def test_white_noise_of_measured_speeds_is_noise_of_the_thrust():
    """sigma (2 / tau)^(1/2) of the thrust, which a first-order lag turns into white noise of sigma again."""
    airframe = load_airframe("crazyflie-2.1")
    coefficient = Quantity((2e-8,), "N s^2")
    airframe = dataclasses.replace(
        airframe, quantities={**airframe.quantities, "thrust_coefficient": coefficient}
    )
    system, t = multirotor(airframe, "rotor_speed"), np.arange(0.0, 20.0, 0.004)
    speed = 1800.0 + 100.0 * np.sin(2.0 * t)[:, None] * np.ones(4)
    noisy = speed + 30.0 * np.random.default_rng(0).standard_normal(speed.shape)
    rows = np.pad(noisy, ((0, 0), (0, system.inputs.dim - 4)))
    lag = system.parameter("motor_time_constant").values[0]
    sigma = 2.0 * 2e-8 * 1800.0 * 30.0 * 2.0  # of four rotors
    assert system.input_noise(rows)["thrust"] == pytest.approx(sigma * np.sqrt(2.0 / lag), rel=0.05)
    quiet = np.pad(speed, ((0, 0), (0, system.inputs.dim - 4)))
    assert system.input_noise(quiet)["thrust"] == system.states["thrust"].noise_vector[0]
    assert multirotor(airframe, "rotor_command").input_noise(rows) == {}


def test_thrust_curve_with_dead_zone_and_voltage():
    curve = ThrustCurve((0.0, 6.6007, 12.2584), zero=0.15, full=0.95, voltage=12.6, voltage_exponent=2.0)
    command = jnp.asarray([[0.0, 0.55, 0.95, 1.0]])
    c = np.array([0.0, 0.5, 1.0, 1.0])
    thrust = (6.6007 * c + 12.2584 * c**2).sum() * (11.0 / 12.6) ** 2
    np.testing.assert_allclose(curve.collective(command, jnp.asarray([11.0])), [thrust], rtol=1e-12)


def test_commanded_thrust_of_a_flight():
    t = np.arange(5) * 0.1
    rotors = Signal("rotor_command", t, np.full((5, 4), 0.5), "motors")
    flight = Flight({"rotor_command": rotors}, source=Path("log"), format="simulation")
    airframe = dataclasses.replace(load_airframe("quadrotor-x"), thrust_curve=ThrustCurve((0.0, 5.0)))
    thrust = with_commanded_thrust(flight, airframe)["thrust"]
    np.testing.assert_allclose(thrust.values, 10.0)
    none = dataclasses.replace(airframe, thrust_curve=None, quantities={"mass": airframe.mass})
    assert with_commanded_thrust(flight.with_signals(thrust), none)["thrust"] is thrust
    with pytest.raises(AirframeError, match="no \\[thrust_curve\\], and this log gives rotor commands"):
        with_commanded_thrust(flight, none)

    thrusts = Signal("rotor_thrust", t, np.tile([1.0, 2.0, 3.0, 4.0], (5, 1)), "thrusts")
    only = dataclasses.replace(flight, signals={"rotor_thrust": thrusts})
    np.testing.assert_allclose(with_commanded_thrust(only, none)["thrust"].values, 10.0)

    speeds = Signal("rotor_speed", t, np.full((5, 4), 500.0), "speeds")
    only = dataclasses.replace(flight, signals={"rotor_speed": speeds})
    coefficient = Quantity((1e-5,), "N s^2")
    known = dataclasses.replace(none, quantities={**none.quantities, "thrust_coefficient": coefficient})
    np.testing.assert_allclose(with_commanded_thrust(only, known)["thrust"].values, 10.0)
    with pytest.raises(AirframeError, match="no \\[thrust_coefficient\\], and this log gives rotor speeds"):
        with_commanded_thrust(only, none)
    with pytest.raises(
        SignalError, match="none of thrust, rotor_command, rotor_thrust, rotor_speed in this log"
    ):
        with_commanded_thrust(dataclasses.replace(flight, signals={}), known)


def test_the_bare_multirotor_has_the_thrust_scale():
    airframe = load_airframe("simulated-quad")
    scale = Quantity((1.1,), "1")
    scaled = dataclasses.replace(airframe, quantities={**airframe.quantities, "thrust_scale": scale})
    x = {"attitude": jnp.array([1.0, 0.0, 0.0, 0.0]), "velocity": jnp.zeros(3), "position": jnp.zeros(3)}
    u = {"thrust": jnp.asarray(10.0), "body_rate": jnp.zeros(3)}
    rates = [
        bare_multirotor(a).dynamics(x, u, {"mass": jnp.asarray(2.0)})["velocity"][2]
        for a in (airframe, scaled)
    ]
    np.testing.assert_allclose(rates, [5.0 + G[2], 5.5 + G[2]], rtol=1e-6)


@pytest.mark.parametrize(
    "p",
    [
        Parameter("free", 1.5, std=1.0),
        Parameter("positive", 1.5, std=1.0, bounds=(0.0, np.inf)),
        Parameter("soft", 1.5, std=1.0, bounds=(0.0, np.inf), soft=True),
        Parameter("negative", -1.5, std=1.0, bounds=(-np.inf, 0.0)),
        Parameter("between", 1.5, std=1.0, bounds=(1.0, 3.0)),
    ],
    ids=lambda p: p.name,
)
def test_coordinates_round_trip_and_slopes(p):
    value = float(p.values[0])
    coordinate = jnp.asarray(to_coordinate(p, value))
    np.testing.assert_allclose(to_value(p, coordinate), value, rtol=1e-12)
    np.testing.assert_allclose(
        jax.grad(lambda c: to_value(p, c))(coordinate), slope(p, jnp.asarray(value)), rtol=1e-9
    )
    assert all(p.bounds[0] < float(to_value(p, jnp.asarray(c))) < p.bounds[1] for c in (-3.0, 3.0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": -1.0, "std": 1.0, "bounds": (0.0, np.inf)}, "not inside its bounds"),
        ({"value": 1.0, "std": -1.0}, "must be 0 or more"),
        ({"value": float("nan")}, "must be finite"),
        ({"value": 1.0, "soft": True}, "needs a lower bound"),
    ],
)
def test_an_invalid_parameter_raises(wrong, message):
    with pytest.raises(SettingError, match=message):
        Parameter("p", **wrong)


def drawn(joint: Joint):
    """A point whose first four numbers are a unit quaternion."""
    z = np.random.default_rng(0).normal(size=joint.space.size)
    z[:4] = 0.8, 0.2, -0.4, 0.4
    return jnp.asarray(z)


def test_transition_is_the_derivative_of_the_step():
    joint = Joint(multirotor(parse_airframe('[mass]\nvalue=1.0\nstd=0.3\nunit="kg"', "x"), "thrust"), "rk4")
    z = drawn(joint)
    u, values, dt = jnp.asarray([9.0, 0.5, -0.3, 0.2]), jnp.asarray(joint.values()), 0.01

    @jax.jit
    def error(dt):
        after, F = joint.transition(z, u, values, dt)

        def moved(d):
            return joint.space.minus(joint.step(joint.space.plus(z, d), u, values, dt), after)

        return F - jax.jacfwd(moved)(jnp.zeros(joint.space.dim))

    whole = np.abs(error(dt)).max()
    assert whole < 5e-3
    assert np.abs(error(dt / 2)).max() < 0.3 * whole


def test_sensitivity_is_the_derivative_of_the_outputs():
    joint = Joint(multirotor(load_airframe("px4-sih-quad"), "thrust"))
    z = drawn(joint)
    u, values = jnp.asarray([9.0, 0.5, -0.3, 0.2]), jnp.asarray(joint.values())
    outputs = joint.system.outputs
    expected, H = jax.jit(joint.sensitivity)(z, u, values)
    seen = jax.jit(
        jax.jacfwd(lambda d: outputs.minus(joint.observe(joint.space.plus(z, d), u, values), expected))
    )
    exact = seen(jnp.zeros(joint.space.dim))
    np.testing.assert_allclose(H, exact, atol=1e-10)
