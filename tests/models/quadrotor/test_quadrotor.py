"""The 12-state quadrotor against Newton, Euler and rotation matrices, and against the rigid multirotor."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Quantity, Rotor, load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.quadrotor.quadrotor import ANGLES, PLUS, RATES, euler_departure, hover_speed, quadrotor
from rotorid.models.system import parameter_values

AIRFRAME = load_airframe(PLUS)
B, D, J_TP, ARM, MASS = 54.2e-6, 1.1e-6, 104e-6, 0.24, 1.0
INERTIA = np.array([8.1e-3, 8.1e-3, 14.2e-3])
G = 9.81


def with_quantities(airframe, **values):
    extra = {name: Quantity(value, "-") for name, value in values.items()}
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **extra})


LOPSIDED = with_quantities(
    AIRFRAME,
    inertia=(6e-3, 9e-3, 15e-3),
    drag=(0.3,),
    angular_drag=(0.02, 0.03, 0.01),
    centre_of_mass=(0.01, -0.02, 0.0),
)


def draw(seed, system):
    rng = np.random.default_rng(seed)
    x = {name: rng.normal() * (0.5 if b.unit.startswith("rad") else 2.0) for name, b in system.states.blocks}
    u = {"rotor_speed": rng.uniform(100.0, 500.0, len(system.levers))}
    return {k: jnp.asarray(v) for k, v in x.items()}, {k: jnp.asarray(v) for k, v in u.items()}


def rotation(angles):
    return Rotation.from_euler("ZYX", np.asarray(angles)[::-1])


@pytest.mark.parametrize("seed", range(4))
def test_accelerations_equal_newton_and_euler(seed):
    system = quadrotor()
    x, u = draw(seed, system)
    rate = system.dynamics(x, u, parameter_values(system))
    speed = np.asarray(u["rotor_speed"])
    # front and rear turn counter-clockwise, right and left clockwise
    places = ARM * np.array([[1, 0, 0], [0, -1, 0], [-1, 0, 0], [0, 1, 0]])
    up, turns = np.array([0.0, 0.0, 1.0]), np.array([1, -1, 1, -1])
    torque, momentum, thrust = np.zeros(3), np.zeros(3), np.zeros(3)
    for place, turn, w in zip(places, turns, speed, strict=True):
        pull = B * w**2 * up
        thrust += pull
        torque += np.cross(place, pull) - turn * D * w**2 * up
        momentum += J_TP * turn * w * up
    omega = np.array([x[name] for name in RATES])
    turning = (torque - np.cross(omega, INERTIA * omega + momentum)) / INERTIA
    np.testing.assert_allclose([rate[n] for n in RATES], turning, rtol=1e-12)
    acceleration = rotation([x[n] for n in ANGLES]).apply(thrust) / MASS - G * up
    np.testing.assert_allclose([rate[f"velocity_{a}"] for a in "xyz"], acceleration, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([rate[f"position_{a}"] for a in "xyz"], [x[f"velocity_{a}"] for a in "xyz"])
    np.testing.assert_allclose([rate[n] for n in ANGLES], omega)


@pytest.mark.parametrize("name", [PLUS, "quadrotor-x", "x8-coaxial", "lopsided"])
def test_accelerations_equal_those_of_the_rigid_multirotor(name):
    airframe = LOPSIDED if name == "lopsided" else load_airframe(name)
    system, rigid = quadrotor(airframe), rigid_multirotor(airframe, "rotor_speed")
    x, u = draw(7, system)
    p = parameter_values(system)
    rate = system.dynamics(x, u, p)
    omega = jnp.array([x[n] for n in RATES])
    *_, h = system.wrench(u["rotor_speed"], p)
    gyroscopic = -np.cross(omega, [0.0, 0.0, float(h)])
    q = rotation([x[n] for n in ANGLES]).as_quat(scalar_first=True)
    state = {"attitude": jnp.asarray(q), "position": jnp.zeros(3), "body_rate": omega}
    state["velocity"] = jnp.array([x[f"velocity_{a}"] for a in "xyz"])
    theirs = rigid.dynamics(state, u, parameter_values(rigid, torque=tuple(gyroscopic)))
    np.testing.assert_allclose([rate[n] for n in RATES], theirs["body_rate"], rtol=1e-10)
    np.testing.assert_allclose([rate[f"velocity_{a}"] for a in "xyz"], theirs["velocity"], rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_exact_angle_rates_agree_with_the_rotation_matrix(seed):
    system = quadrotor(exact=True)
    x, u = draw(seed, system)
    rate = system.dynamics(x, u, parameter_values(system))
    angles, slope = (np.array([v[n] for n in ANGLES]) for v in (x, rate))
    step = 1e-6
    ahead, behind = (rotation(angles + s * step * slope).as_matrix() for s in (1, -1))
    R = rotation(angles).as_matrix()
    found = R.T @ (ahead - behind) / (2 * step)  # R' = R [omega]x
    p, q, r = (x[n] for n in RATES)
    np.testing.assert_allclose(found, [[0, -r, q], [r, 0, -p], [-q, p, 0]], atol=1e-8)
    seed_rate = quadrotor().dynamics(x, u, parameter_values(system))
    off = euler_departure(x["roll"], x["pitch"], jnp.array([p, q, r]))
    np.testing.assert_allclose(off, [rate[n] - seed_rate[n] for n in ANGLES], atol=1e-12)
    assert all(rate[n] == seed_rate[n] for n in rate if n not in ANGLES)


def test_the_departure_is_yaw_rate_times_tilt_to_first_order():
    rng = np.random.default_rng(0)
    tilt, rates = 1e-3 * rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    found = euler_departure(jnp.asarray(tilt[:, 0]), jnp.asarray(tilt[:, 1]), jnp.asarray(rates))
    first = np.stack([tilt[:, 1] * rates[:, 2], -tilt[:, 0] * rates[:, 2], tilt[:, 0] * rates[:, 1]], axis=1)
    np.testing.assert_allclose(found, first, atol=1e-5)


def test_hover_is_an_equilibrium():
    for exact in (False, True):
        system = quadrotor(exact=exact)
        x = system.states.unpack(jnp.zeros(12))
        u = {"rotor_speed": jnp.full(4, hover_speed(system))}
        rate = system.states.pack_tangent(system.dynamics(x, u, parameter_values(system)))
        np.testing.assert_allclose(rate, 0.0, atol=1e-12)
    assert hover_speed(quadrotor()) == pytest.approx(212.7, abs=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rotors": ()}, "needs four or more"),
        ({"rotors": (*AIRFRAME.rotors[:3], Rotor((0.0, 0.2, 0.0), "cw", (0.0, 0.6, 0.8)))}, "3 is tilted"),
        ({"drop": "inertia"}, r"no \[inertia\]"),
        ({"drop": "thrust_coefficient"}, r"no \[thrust_coefficient\]"),
        ({"drop": "torque_coefficient"}, r"entries are missing.*\[torque_ratio\]"),
    ],
)
def test_an_incomplete_airframe_raises(change, message):
    kept = {k: v for k, v in AIRFRAME.quantities.items() if k != change.get("drop")}
    wrong = dataclasses.replace(AIRFRAME, quantities=kept, rotors=change.get("rotors", AIRFRAME.rotors))
    with pytest.raises(AirframeError, match=message):
        quadrotor(wrong)
    with pytest.raises(AirframeError, match="principal axes"):
        quadrotor(with_quantities(AIRFRAME, products_of_inertia=(1e-4, 0.0, 0.0)))
