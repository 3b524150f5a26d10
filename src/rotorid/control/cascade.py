"""The cascade that flies a multirotor along set points: position, velocity, attitude, body rate, rotor commands.

    v_c = v_r + k_p (p_r - p)                       a_c = a_r + k_v (v_c - v) + i_v,   i_v' = k_i (v_c - v)
    f = m (a_c + g e_z),  R_c e_z along f           w_c = k_R Log(q^-1 (x) q_c) + (0, 0, psi_r')
    tau = J (k_w (w_c - w) + i_w) + w x J w,        i_w' = k_j (w_c - w)
    T = G_4^+ (f_z / R_zz, tau),                    u = thrust curve^-1 (T)

m, J, G_4 (force along z and torque per newton of each rotor) and the thrust curve are those of the airframe that the controller
believes in, which need not be the true one. Gains follow from its motors: the loop of the body rate is as fast as lag and
delay of the thrust allow, and each loop around it 2.5 times slower. Where a rotor comes to its limit, the collective thrust
gives way to roll and pitch, and yaw to both.

References: T. Lee, M. Leok, N. H. McClamroch, Geometric tracking control of a quadrotor UAV on SE(3), CDC 2010; M. Faessler,
D. Falanga, D. Scaramuzza, Thrust mixing, saturation, and body-rate control for accurate aggressive quadrotor flight, RA-L 2
(2017).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.control.setpoints import Setpoint
from rotorid.errors import AirframeError
from rotorid.geometry import rotations
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, inertia_matrix_of, torque_ratio_of
from rotorid.models.system import GRAVITY

COMMANDS = (0.02, 0.93)
"""Least and greatest command that it gives, below what counts as saturated."""

_ROWS = (2, 3, 4, 5)  # force along z and the torque
_OVERHEAD = 0.006  # s, that each loop takes besides lag and delay
_FASTEST = 25.0  # 1/s, of the body rate
_BACK = 8.0  # m/s^2, with which it returns to its set points at most
_YAW = 0.3  # share of the range of thrusts that yaw may take
_LIFTS = 0.2  # of the rotor that lifts most: rotors that lift less do not limit the collective
_UPRIGHT = 0.5  # cosine of the tilt up to which the thrust makes up for it
_TILT = math.radians(45.0)  # greatest that it asks for
_INTEGRAL = (4.0, 40.0)  # greatest, m/s^2 and rad/s^2
_BISECTIONS = 30


class CascadeController(NamedTuple):
    """What the controller believes, and its gains: position, velocity (1/s), integral of velocity (1/s^2), attitude, body rate
    (1/s) and its integral (1/s^2). limits: thrust of a rotor at `COMMANDS`, N, where the battery is full."""

    mass: Float[Array, ""]
    inertia: Float[Array, "3 3"]
    mixer: Float[Array, "rotors 4"]
    curve: Float[Array, " coefficients"]
    dead_zone: Float[Array, " 2"]
    gains: Float[Array, " 6"]


class Integrals(NamedTuple):
    """Integrals: acceleration in m/s^2 (world), angular acceleration in rad/s^2 (body)."""

    acceleration: Float[Array, " 3"]
    angular_acceleration: Float[Array, " 3"]


def initial_integrals() -> Integrals:
    """What it remembers at the start."""
    return Integrals(jnp.zeros(3), jnp.zeros(3))


def cascade_controller(airframe: Airframe) -> CascadeController:
    """The controller of an airframe. Raises AirframeError where it lacks what a controller must know."""
    inertia, curve = airframe.get("inertia"), airframe.thrust_curve
    if inertia is None or curve is None or not airframe.rotors:
        given = {"[inertia]": inertia, "[thrust_curve]": curve, "[[rotor]]": airframe.rotors}
        missing = ", ".join(name for name, value in given.items() if not value)
        raise AirframeError(
            f"{airframe.source}: no {missing}, which a controller must know to fly it; add it"
        )
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe), airframe.vector("centre_of_mass")))
    G_4 = G[list(_ROWS)] * np.array([rotor.thrust_scale for rotor in airframe.rotors])
    sizes = np.linalg.svd(G_4 / np.abs(G_4).max(axis=1, keepdims=True), compute_uv=False)
    if len(sizes) < len(_ROWS) or sizes[-1] < 1e-6 * sizes[0]:
        raise AirframeError(
            f"{airframe.source}: its rotors give no torque about each axis; check [[rotor]] positions and directions"
        )
    lag = sum(q.number for name in ("motor_time_constant", "command_delay") if (q := airframe.get(name)))
    rate = min(_FASTEST, 0.5 / (lag + _OVERHEAD))
    gains = (rate / 16.0, rate / 6.4, (rate / 16.0) ** 2, rate / 2.5, rate, (rate / 4.0) ** 2)
    believed = (
        airframe.mass.number,
        inertia_matrix_of(airframe),
        np.linalg.pinv(G_4),
        np.array(curve.coefficients) * airframe.number("thrust_scale", 1.0),
        (curve.zero, curve.full),
        gains,
    )
    with jax.enable_x64(True):
        return CascadeController(*(jnp.asarray(of, float) for of in believed))


def rotor_commands(
    c: CascadeController,
    memory: Integrals,
    wanted: Setpoint,
    attitude: Float[Array, " 4"],
    position: Float[Array, " 3"],
    velocity: Float[Array, " 3"],
    body_rate: Float[Array, " 3"],
    thrust_factor: Float[Array, ""],
    dt: Float[Array, ""] | float,
) -> tuple[Integrals, Float[Array, " rotors"]]:
    """The command of each rotor, 0 to 1. pull: factor on the thrust curve at the battery's voltage. dt: since the last, s."""
    k_p, k_v, k_i, k_R, k_w, k_j = (c.gains[i] for i in range(6))
    off = wanted.velocity + k_p * (wanted.position - position) - velocity
    held = jnp.clip(memory.acceleration + dt * k_i * off, -_INTEGRAL[0], _INTEGRAL[0])
    back = jnp.clip(k_v * off, -_BACK, _BACK)
    asked = _limit_tilt(wanted.acceleration + back + held + jnp.array([0.0, 0.0, GRAVITY]))
    tilt = jnp.concatenate([wanted.excitation[:2], jnp.zeros(1)])
    q_c = rotations.multiply(_attitude(asked, wanted.yaw), rotations.exp(tilt))
    up = rotations.rotate(attitude, jnp.array([0.0, 0.0, 1.0]))
    collective = c.mass * (asked[2] / jnp.maximum(up[2], _UPRIGHT) + GRAVITY * wanted.excitation[5])

    turn = rotations.minus(q_c, attitude)
    rate = k_R * turn + jnp.array([0.0, 0.0, 1.0]) * wanted.yaw_rate + wanted.excitation[2:5]
    wrong = rate - body_rate
    turning = jnp.clip(memory.angular_acceleration + dt * k_j * wrong, -_INTEGRAL[1], _INTEGRAL[1])
    torque = _multiply(c.inertia, k_w * wrong + turning)
    torque = torque + rotations.cross(body_rate, _multiply(c.inertia, body_rate))
    thrust = _allocate(c, jnp.maximum(collective, 0.0), torque, thrust_factor)
    return Integrals(held, turning), _command(c, thrust / thrust_factor)


def thrust_at(c: CascadeController, command: Float[Array, " n"]) -> Float[Array, " n"]:
    """Thrust in N of a rotor that the controller expects of a command."""
    s = jnp.clip((command - c.dead_zone[0]) / (c.dead_zone[1] - c.dead_zone[0]), 0.0, 1.0)
    thrust = jnp.zeros_like(s)
    for i in reversed(range(c.curve.shape[0])):
        thrust = thrust * s + c.curve[i]
    return thrust


def _command(c: CascadeController, thrust: Float[Array, " rotors"]) -> Float[Array, " rotors"]:
    """The command at which the thrust curve, which rises, gives a thrust: by bisection."""

    def halved(_: Array, between: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (between[0] + between[1])
        below = thrust_at(c, middle) < thrust
        return jnp.where(below, middle, between[0]), jnp.where(below, between[1], middle)

    ends = jnp.full_like(thrust, COMMANDS[0]), jnp.full_like(thrust, COMMANDS[1])
    low, high = jax.lax.fori_loop(0, _BISECTIONS, halved, ends)
    return 0.5 * (low + high)


def _allocate(
    c: CascadeController, collective: Float[Array, ""], torque: Float[Array, " 3"], pull: Float[Array, ""]
) -> Float[Array, " rotors"]:
    """Thrusts of the rotors, N: as much of the torque as fits between their limits, yaw last, and the collective that this
    leaves room for."""
    least, most = thrust_at(c, jnp.array(COMMANDS)) * pull
    yawing = c.mixer[:, 3] * torque[2]
    yawing = yawing * jnp.minimum(1.0, _YAW * (most - least) / _span(yawing))
    turning = _multiply(c.mixer[:, 1:3], torque[:2]) + yawing
    turning = turning * jnp.minimum(1.0, (most - least) / _span(turning))
    lift = c.mixer[:, 0]
    lifts = lift > _LIFTS * jnp.max(lift)
    safe = jnp.where(lifts, lift, 1.0)
    low = jnp.max(jnp.where(lifts, (least - turning) / safe, -jnp.inf))
    high = jnp.min(jnp.where(lifts, (most - turning) / safe, jnp.inf))
    return jnp.clip(lift * jnp.clip(collective, low, jnp.maximum(low, high)) + turning, least, most)


def _span(thrust: Float[Array, " rotors"]) -> Float[Array, ""]:
    """From the least to the greatest, and not 0."""
    return jnp.maximum(jnp.max(thrust) - jnp.min(thrust), 1e-12)


def _multiply(A: Float[Array, "n m"], v: Float[Array, " m"]) -> Float[Array, " n"]:
    """A v."""
    return jnp.sum(A * v, axis=1)


def _limit_tilt(force: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """An acceleration without gravity that points up, and no further aside than the tilt allows."""
    up = jnp.maximum(force[2], 0.2 * GRAVITY)
    aside = jnp.sqrt(jnp.sum(force[:2] ** 2) + 1e-12)
    share = jnp.minimum(1.0, up * math.tan(_TILT) / aside)
    return jnp.stack([share * force[0], share * force[1], up])


def _attitude(force: Float[Array, " 3"], yaw: Float[Array, ""]) -> Float[Array, " 4"]:
    """Yaw about the vertical, then the shortest tilt that brings body z along the force."""
    z = force / jnp.sqrt(jnp.sum(force * force))
    w = jnp.sqrt(0.5 * (1.0 + z[2]))
    tilt = jnp.stack([w, -0.5 * z[1] / w, 0.5 * z[0] / w, jnp.zeros_like(w)])
    zero = jnp.zeros_like(yaw)
    return rotations.multiply(tilt, jnp.stack([jnp.cos(0.5 * yaw), zero, zero, jnp.sin(0.5 * yaw)]))
