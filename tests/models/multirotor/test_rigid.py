"""The rigid multirotor against Newton's and Euler's equations written out with numpy, about another point."""

import dataclasses
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError, SignalError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.rigid import angular_momentum, inertia_matrix, rigid_multirotor
from rotorid.models.multirotor.rotors import allocation, spin, thrust_axis, thrust_of_speed, torque_ratio_of
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators
from rotorid.signals.sampling import sample

HEXAROTOR = load_airframe("fully-actuated-hexarotor")
QUADROTOR = load_airframe("quadrotor-x")
G = 9.81


def with_quantities(airframe: Airframe, **values: tuple[float, ...]) -> Airframe:
    extra = {name: Quantity(value, "-") for name, value in values.items()}
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **extra})


LOPSIDED = with_quantities(
    HEXAROTOR,
    products_of_inertia=(0.012, -0.008, 0.005),
    centre_of_mass=(0.03, -0.02, 0.015),
    drag=(0.4,),
)


def draw(seed, system):
    """A random state as the model takes it, and as numpy does."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    x = {"attitude": q, **{n: rng.normal(size=3) * 2.0 for n in ("position", "velocity", "body_rate")}}
    u = {"rotor_thrust": rng.uniform(-1.0, 9.0, len(system.rotors))}
    p = parameter_values(system, force=tuple(rng.normal(size=3)), torque=tuple(rng.normal(size=3)))
    as_jax = lambda values: {k: jnp.asarray(v) for k, v in values.items()}  # noqa: E731
    return as_jax(x), as_jax(u), p, Rotation.from_quat(q, scalar_first=True)


def about_the_origin(airframe, x, gamma, R, f_e, tau_e):
    """Acceleration of the body frame's origin (world, with gravity) and omega', from one 6 x 6 system about that origin."""
    m, c = airframe.mass.number, np.array(airframe.get("centre_of_mass").value)
    a, b, d = airframe.get("products_of_inertia").value
    J = np.diag(airframe.get("inertia").value) + np.array([[0, a, b], [a, 0, d], [b, d, 0]])
    J_o = J + m * (c @ c * np.eye(3) - np.outer(c, c))
    v, w = np.asarray(x["velocity"]), np.asarray(x["body_rate"])
    outer = R.inv().apply(f_e - airframe.get("drag").number * v - [0, 0, m * G])
    force, torque = outer.copy(), np.cross(c, outer) + tau_e
    for rotor, thrust in zip(airframe.rotors, gamma, strict=True):
        pull = thrust * np.array(rotor.axis)
        force += pull
        drags = -1.0 if rotor.direction == "ccw" else 1.0
        torque += np.cross(rotor.position, pull) + drags * airframe.get("torque_ratio").number * pull
    cx = np.cross(c, np.eye(3)).T  # [c]x
    M = np.block([[m * np.eye(3), -m * cx], [m * cx, J_o]])
    rhs = np.concatenate(
        [force - m * np.cross(w, np.cross(w, c)), torque - np.cross(w, J_o @ w)],
    )
    found = np.linalg.solve(M, rhs)
    return R.apply(found[:3]), found[3:]


@pytest.mark.parametrize("seed", range(4))
def test_dynamics_equal_newton_and_euler_about_another_point(seed):
    system = rigid_multirotor(LOPSIDED)
    x, u, p, R = draw(seed, system)
    rate, seen = system.dynamics(x, u, p), system.observe(x, u, p)
    acceleration, turning = about_the_origin(
        LOPSIDED, x, np.asarray(u["rotor_thrust"]), R, np.asarray(p["force"]), np.asarray(p["torque"])
    )
    c, w = np.array(LOPSIDED.quantities["centre_of_mass"].value), np.asarray(x["body_rate"])
    np.testing.assert_allclose(rate["body_rate"], turning, rtol=1e-10, atol=1e-10)
    lever = R.apply(np.cross(turning, c) + np.cross(w, np.cross(w, c)))
    np.testing.assert_allclose(rate["velocity"], acceleration + lever, rtol=1e-10, atol=1e-10)
    specific = R.inv().apply(acceleration + np.array([0.0, 0.0, G]))
    np.testing.assert_allclose(seen["specific_force"], specific, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(seen["position"], x["position"] - R.apply(c), rtol=1e-12)
    np.testing.assert_allclose(seen["velocity"], x["velocity"] - R.apply(np.cross(w, c)), rtol=1e-12)
    np.testing.assert_allclose(rate["position"], x["velocity"])
    np.testing.assert_allclose(rate["attitude"], w)


def test_allocation_equals_the_rotors_one_by_one():
    c = [0.03, -0.02, 0.015]
    down = Rotor((0.1, 0.2, 0.3), "ccw", (0.0, 0.0, -1.0))
    rotors = (*HEXAROTOR.rotors, down)
    found = np.asarray(allocation(rotors, 0.0203, c))
    for column, rotor in zip(found.T, rotors, strict=True):
        a, seen_from_above = np.array(rotor.axis), 1.0 if rotor.direction == "ccw" else -1.0
        np.testing.assert_allclose(column[:3], a, atol=1e-12)
        turning = np.sign(a[2]) * seen_from_above  # about its axis
        expected = np.cross(np.subtract(rotor.position, c), a) - turning * 0.0203 * a
        np.testing.assert_allclose(column[3:], expected, atol=1e-10)
    assert spin(down) == -1
    assert found[5, -1] < 0  # turning counter-clockwise seen from above, it drags the body clockwise


def test_the_hexarotor_of_the_seed_is_fully_actuated():
    for k, rotor in enumerate(HEXAROTOR.rotors):
        tilt = math.radians(20.0 if rotor.direction == "ccw" else -20.0)
        np.testing.assert_allclose(rotor.axis, thrust_axis(k * math.pi / 3, tilt), atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(rotor.position), 0.39, rtol=1e-10)
        np.testing.assert_allclose(np.dot(rotor.axis, rotor.position), 0.0, atol=1e-12)  # about its arm
    G_ = np.asarray(allocation(HEXAROTOR.rotors, torque_ratio_of(HEXAROTOR)))
    assert np.linalg.svd(G_, compute_uv=False).min() > 0.1
    hover = np.linalg.solve(G_, [0, 0, 2.81 * G, 0, 0, 0])
    np.testing.assert_allclose(hover, 2.81 * G / (6 * math.cos(math.radians(20))), rtol=1e-9)


def test_tilt_angles_are_rotations_about_arm_and_across():
    azimuth, psi, beta = 0.7, 0.35, -0.2
    R = Rotation.from_euler("ZXY", [azimuth, psi, beta])
    np.testing.assert_allclose(thrust_axis(azimuth, psi, beta), R.apply([0, 0, 1]), atol=1e-14)


def test_the_untilted_quadrotor_is_the_thrust_and_rate_multirotor():
    system, bare = rigid_multirotor(QUADROTOR), BareMultirotor()
    x, u, p, _ = draw(5, system)
    p = parameter_values(system)
    total = jnp.sum(u["rotor_thrust"])
    rate = system.dynamics(x, u, p)
    expected = bare.dynamics(
        x, {"thrust": total, "body_rate": x["body_rate"]}, parameter_values(bare, mass=1.5)
    )
    for name, value in expected.items():
        np.testing.assert_allclose(rate[name], value, rtol=1e-12)
    (fr, rl, fl, rr), h, k = np.asarray(u["rotor_thrust"]), 0.16, 0.016
    torque = [h * (rl + fl - fr - rr), h * (rl + rr - fr - fl), k * (fl + rr - fr - rl)]
    _, found = system.rotor_wrench(u["rotor_thrust"], p)
    np.testing.assert_allclose(found, torque, atol=1e-12)


def test_the_x8_is_balanced():
    airframe = load_airframe("x8-coaxial")
    assert len(airframe.rotors) == 8
    G_ = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))
    np.testing.assert_allclose(G_.sum(axis=1), [0, 0, 8, 0, 0, 0], atol=1e-12)
    assert np.linalg.matrix_rank(G_) == 4


def energy(x, p):
    kinetic = 0.5 * p["mass"] * x["velocity"] @ x["velocity"]
    turning = 0.5 * x["body_rate"] @ inertia_matrix(p) @ x["body_rate"]
    return kinetic + turning + p["mass"] * G * x["position"][2]


def test_energy_grows_by_the_power_of_the_wrenches():
    airframe = with_quantities(LOPSIDED, drag=(0.0,))
    system = rigid_multirotor(airframe)
    x, u, p, R = draw(6, system)
    rate = system.dynamics(x, u, p)
    moving = {n: rate[n] for n in ("position", "velocity", "body_rate")}
    still = {n: x[n] for n in moving}
    _, power = jax.jvp(lambda s: energy(s, p), (still,), (moving,))
    force, torque = system.rotor_wrench(u["rotor_thrust"], p)
    expected = (R.apply(np.array(force)) + p["force"]) @ x["velocity"] + (torque + p["torque"]) @ x[
        "body_rate"
    ]
    np.testing.assert_allclose(power, expected, rtol=1e-10)


def test_a_tumbling_body_keeps_energy_and_momentum():
    system = rigid_multirotor(with_quantities(LOPSIDED, drag=(0.0,)))
    x, u, _, _ = draw(7, system)
    p, u = parameter_values(system), {"rotor_thrust": jnp.zeros_like(u["rotor_thrust"])}
    space, dt, steps = system.states, 2e-3, 1000

    def rate(z):
        return space.pack_tangent(system.dynamics(space.unpack(z), u, p))

    z = jax.lax.fori_loop(0, steps, lambda _, z: integrators.step(space, rate, z, dt, "rk4"), space.pack(x))
    after = space.unpack(z)
    np.testing.assert_allclose(energy(after, p), energy(x, p), rtol=1e-9)
    fallen = x["velocity"] - jnp.array([0.0, 0.0, G * dt * steps])
    np.testing.assert_allclose(after["velocity"], fallen, rtol=1e-9)

    def in_the_world(x):
        turned = Rotation.from_quat(np.array(x["attitude"]), scalar_first=True)
        return turned.apply(np.array(angular_momentum(x["body_rate"], p)))

    np.testing.assert_allclose(in_the_world(after), in_the_world(x), rtol=1e-8)


def test_thrust_is_the_signed_square_of_the_speed_also_at_rest():
    speed = jnp.asarray([60.0, 0.0, -30.0])
    np.testing.assert_allclose(thrust_of_speed(speed, 1e-3), [3.6, 0.0, -0.9], rtol=1e-12)
    slope = jax.vmap(jax.grad(lambda w: thrust_of_speed(w[None], 1e-3)[0]))(speed)
    np.testing.assert_allclose(slope, [0.12, 0.0, 0.06], rtol=1e-12)
    by_speed, by_thrust = rigid_multirotor(HEXAROTOR, "rotor_speed"), rigid_multirotor(HEXAROTOR)
    x, u, p, _ = draw(8, by_thrust)
    speeds = {"rotor_speed": jnp.sign(u["rotor_thrust"]) * jnp.sqrt(jnp.abs(u["rotor_thrust"]) / 11.75e-4)}
    for a, b in zip(
        by_speed.dynamics(x, speeds, p).values(), by_thrust.dynamics(x, u, p).values(), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_commands_are_followed_with_the_motor_lag():
    system = rigid_multirotor(QUADROTOR, "rotor_command")
    space, p = system.states, parameter_values(system)
    u = {"rotor_command": jnp.asarray([0.5, 0.6, 0.0, 0.7])}
    target = 2.0 * u["rotor_command"] + 8.0 * u["rotor_command"] ** 2
    z = jnp.asarray(space.initial())
    before = space.unpack(z)["rotor_thrust"]

    def rate(z):
        return space.pack_tangent(system.dynamics(space.unpack(z), u, p))

    z = jax.lax.fori_loop(0, 20, lambda _, z: integrators.step(space, rate, z, 2e-3), z)
    expected = target + (before - target) * math.exp(-1.0)  # one time constant of 0.04 s later
    np.testing.assert_allclose(space.unpack(z)["rotor_thrust"], expected, rtol=1e-6)
    full = {"rotor_command": u["rotor_command"].at[0].set(1.0)}
    assert not bool(system.holds(full))
    assert bool(jnp.all(system.dynamics(space.unpack(z), full, p)["rotor_thrust"] == 0.0))


def test_rotors_and_body_keep_their_angular_momentum_without_air():
    kappa, frame = (
        0.02,
        with_quantities(QUADROTOR, drag=(1e-12,), torque_ratio=(1e-12,), rotor_momentum=(0.02,)),
    )
    system = rigid_multirotor(frame, "rotor_command")
    space, p = system.states, parameter_values(system)
    spins = np.array([spin(rotor) for rotor in frame.rotors])
    u = {"rotor_command": jnp.asarray(np.where(spins > 0, 0.8, 0.3))}  # no torque about x and y
    z = jnp.asarray(
        space.pack({**space.unpack(jnp.asarray(space.initial())), "body_rate": jnp.array([2.0, -1.0, 0.5])})
    )

    def momentum(z):
        x = space.unpack(z)
        h = kappa * spins @ np.sqrt(np.asarray(x["rotor_thrust"]))
        body = np.array(frame.get("inertia").value) * np.asarray(x["body_rate"]) + np.array([0.0, 0.0, h])
        return Rotation.from_quat(np.array(x["attitude"]), scalar_first=True).apply(body)

    def rate(z):
        return space.pack_tangent(system.dynamics(space.unpack(z), u, p))

    later = jax.lax.fori_loop(0, 300, lambda _, z: integrators.step(space, rate, z, 1e-3), z)
    assert abs(float(space.unpack(later)["body_rate"][2]) - 0.5) > 0.2  # the reaction torque turns it
    np.testing.assert_allclose(momentum(later), momentum(z), atol=2e-5)


def without(airframe: Airframe, name: str) -> Airframe:
    """An airframe that lacks a quantity."""
    return dataclasses.replace(
        airframe, quantities={n: q for n, q in airframe.quantities.items() if n != name}
    )


@pytest.mark.parametrize(
    ("airframe", "rotor_input", "message"),
    [
        (dataclasses.replace(QUADROTOR, rotors=()), "rotor_thrust", r"entries are missing.*\[\[rotor\]\]"),
        (HEXAROTOR, "rotor_command", r"entries are missing.*\[thrust_curve\]"),
        (
            without(load_airframe("px4-sih-quad"), "torque_ratio"),
            "rotor_thrust",
            r"entries are missing.*\[torque_ratio\]",
        ),
        (load_airframe("px4-sih-quad"), "rotor_speed", r"entries are missing.*\[thrust_coefficient\]"),
    ],
)
def test_errors_name_what_the_airframe_lacks(airframe, rotor_input, message):
    with pytest.raises(AirframeError, match=message):
        rigid_multirotor(airframe, rotor_input)


def test_errors_name_other_invalid_input():
    with pytest.raises(AirframeError, match="no rotors to allocate"):
        allocation((), 0.02)
    only_mass = dataclasses.replace(QUADROTOR, quantities={"mass": QUADROTOR.mass})
    with pytest.raises(AirframeError, match=r"entries are missing.*\[inertia\]"):
        rigid_multirotor(only_mass)
    t = np.arange(50) * 0.01
    flight = Flight({"body_rate": Signal("body_rate", t, np.zeros((50, 3)), "gyro")}, Path("log"), "csv")
    system = rigid_multirotor(QUADROTOR)
    with pytest.raises(SignalError, match="no rotor_thrust in this log"):
        sample(flight, system.inputs, system.outputs)


def test_linear_quadratic_and_rotor_drag():
    airframe = with_quantities(QUADROTOR, drag=(0.3,), rotor_drag=(0.05,), drag_area=(0.02,))
    rotors = tuple(
        dataclasses.replace(r, thrust_scale=s)
        for r, s in zip(airframe.rotors, (1.0, 0.95, 1.0, 1.0), strict=True)
    )
    system = rigid_multirotor(dataclasses.replace(airframe, rotors=rotors))
    p = parameter_values(system)
    turn = Rotation.from_euler("xyz", [0.3, -0.2, 0.5])
    v, gamma = np.array([3.0, -1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    x = {
        "attitude": turn.as_quat(scalar_first=True),
        "position": np.zeros(3),
        "velocity": v,
        "body_rate": np.zeros(3),
    }
    u = {"rotor_thrust": jnp.asarray(gamma)}
    pulled = gamma * [1.0, 0.95, 1.0, 1.0]
    inside = turn.inv().apply(v)
    across = 0.05 * np.sqrt(pulled).sum() * turn.apply(inside * [1.0, 1.0, 0.0])
    force = (
        turn.apply([0.0, 0.0, pulled.sum()]) - 0.3 * v - 0.5 * 1.225 * 0.02 * np.linalg.norm(v) * v - across
    )
    expected = force / airframe.mass.number - [0.0, 0.0, G]
    found = system.dynamics({k: jnp.asarray(a) for k, a in x.items()}, u, p)["velocity"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rotation_is_damped_about_each_body_axis():
    """One number in the file is the same vehicle as three equal ones; three others turn it otherwise, by -k_i omega_i."""
    damped = {
        value: rigid_multirotor(with_quantities(LOPSIDED, angular_drag=value))
        for value in ((0.02,), (0.02, 0.02, 0.02), (0.05, 0.0, 0.01))
    }
    one, equal, other = damped.values()
    assert one == equal
    x, u, p, _ = draw(4, other)
    without = {**p, "angular_drag": jnp.zeros(3)}
    found, free = (np.asarray(other.dynamics(x, u, of)["body_rate"]) for of in (p, without))
    torque = -np.array([0.05, 0.0, 0.01]) * np.asarray(x["body_rate"])
    np.testing.assert_allclose(
        found - free, np.linalg.solve(np.asarray(inertia_matrix(p)), torque), rtol=1e-4
    )
    of_one = np.asarray(one.dynamics(x, u, {**p, "angular_drag": jnp.full(3, 0.02)})["body_rate"])
    assert np.abs(found - of_one).min() > 1e-3


def test_a_rotor_may_slow_down_with_another_lag():
    airframe = with_quantities(
        load_airframe("px4-sih-quad"), motor_time_constant=(0.05,), motor_time_constant_down=(0.1,)
    )
    system = rigid_multirotor(airframe, "rotor_command")
    p = parameter_values(system)
    x = system.states.unpack(jnp.asarray(system.states.initial()))
    u = {"rotor_command": jnp.array([0.1, 0.9, 0.1, 0.9])}
    missing = system.known_thrust(u, p) - x["rotor_thrust"]
    rate = system.dynamics(x, u, p)["rotor_thrust"]
    np.testing.assert_allclose(rate, missing / np.array([0.1, 0.05, 0.1, 0.05]), rtol=1e-6)
