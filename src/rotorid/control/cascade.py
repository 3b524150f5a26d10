"""Cascaded controller of a multirotor: position, velocity, attitude, body rate, rotor commands.

    v_c = v_r + k_p (p_r - p)                       a_c = a_r + k_v (v_c - v) + i_v,   i_v' = k_i (v_c - v)
    f = m (a_c + g e_z),  R_c e_z along f           w_c = k_R Log(q^-1 (x) q_c) + (0, 0, psi_r')
    tau = J (k_w (w_c - w) + i_w) + w x J w,        i_w' = k_j (w_c - w)
    T = G_4^+ (f_z / R_zz, tau),                    u = thrust curve^-1 (T)

m, J, G_4 (force along z and torque per newton of each rotor) and the thrust curve are those of the airframe given to
the controller, which may differ from the simulated vehicle. The gains follow from the motors: the bandwidth of the
body-rate loop is limited by lag and delay of the thrust, and each outer loop is 2.5 times slower. If a rotor reaches
its limit, the torque has priority over the collective thrust; yaw uses at most 30 % of the thrust range.

References: T. Lee, M. Leok, N. H. McClamroch, Geometric tracking control of a quadrotor UAV on SE(3), CDC 2010; M.
Faessler, D. Falanga, D. Scaramuzza, Thrust mixing, saturation, and body-rate control for accurate aggressive quadrotor
flight, RA-L 2 (2017).
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
from rotorid.models.multirotor.rotors import fixed_allocation, inertia_matrix_of, torque_ratio_of
from rotorid.models.system import GRAVITY

COMMANDS = (0.02, 0.93)
"""Smallest and largest rotor command; commands outside this range count as saturated."""

_ROWS = (2, 3, 4, 5)  # of the allocation matrix: force along z and torque
_SAMPLING_DELAY = 0.006  # s, in addition to lag and delay of the motors
_MAX_RATE_GAIN = 25.0  # 1/s, of the body-rate loop
_MAX_FEEDBACK = 8.0  # m/s^2, acceleration from velocity errors
_YAW_SHARE = 0.3  # largest share of the thrust range that is used for yaw
_MIN_LIFT = 0.2  # relative to the largest; rotors with less lift do not limit the collective thrust
_MIN_TILT_COSINE = 0.5  # cosine of the tilt up to which the thrust compensates it
_MAX_TILT = math.radians(45.0)
_MAX_INTEGRALS = (4.0, 40.0)  # m/s^2 and rad/s^2
_BISECTIONS = 30


class CascadeController(NamedTuple):
    """Model and gains of the controller.

    mass: kg. inertia: kg m^2. mixer: rotor thrusts for collective thrust and torque. curve: coefficients of the thrust
    curve, N. dead_zone: commands of zero and of full thrust. gains: of position and velocity (1/s), integral of the
    velocity error (1/s^2), attitude and body rate (1/s), and integral of the body-rate error (1/s^2).
    """

    mass: Float[Array, ""]
    inertia: Float[Array, "3 3"]
    mixer: Float[Array, "rotors 4"]
    curve: Float[Array, " coefficients"]
    dead_zone: Float[Array, " 2"]
    gains: Float[Array, " 6"]


class Integrals(NamedTuple):
    """Integral terms: acceleration in m/s^2 (world frame), angular acceleration in rad/s^2 (body frame)."""

    acceleration: Float[Array, " 3"]
    angular_acceleration: Float[Array, " 3"]


def initial_integrals() -> Integrals:
    """The integral terms at the start: 0."""
    return Integrals(jnp.zeros(3), jnp.zeros(3))


def cascade_controller(airframe: Airframe) -> CascadeController:
    """The controller of an airframe. Raises AirframeError if the airframe lacks a property that the controller needs."""
    inertia, curve = airframe.get("inertia"), airframe.thrust_curve
    if inertia is None or curve is None or not airframe.rotors:
        needed = {"[inertia]": inertia, "[thrust_curve]": curve, "[[rotor]]": airframe.rotors}
        missing = ", ".join(name for name, value in needed.items() if not value)
        raise AirframeError(f"{airframe.source}: no {missing}, which a controller needs; add it")
    G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe), airframe.vector("centre_of_mass"))
    G_4 = G[list(_ROWS)] * np.array([rotor.thrust_scale for rotor in airframe.rotors])
    singular_values = np.linalg.svd(G_4 / np.abs(G_4).max(axis=1, keepdims=True), compute_uv=False)
    if len(singular_values) < len(_ROWS) or singular_values[-1] < 1e-6 * singular_values[0]:
        raise AirframeError(
            f"{airframe.source}: the rotors do not give a torque about each axis; check [[rotor]] positions and directions"
        )
    lag = sum(q.number for name in ("motor_time_constant", "command_delay") if (q := airframe.get(name)))
    rate = min(_MAX_RATE_GAIN, 0.5 / (lag + _SAMPLING_DELAY))
    gains = (rate / 16.0, rate / 6.4, (rate / 16.0) ** 2, rate / 2.5, rate, (rate / 4.0) ** 2)
    fields = (
        airframe.mass.number,
        inertia_matrix_of(airframe),
        np.linalg.pinv(G_4),
        np.array(curve.coefficients) * airframe.number("thrust_scale", 1.0),
        (curve.zero, curve.full),
        gains,
    )
    with jax.enable_x64(True):
        return CascadeController(*(jnp.asarray(field, float) for field in fields))


def rotor_commands(
    c: CascadeController,
    integrals: Integrals,
    setpoint: Setpoint,
    attitude: Float[Array, " 4"],
    position: Float[Array, " 3"],
    velocity: Float[Array, " 3"],
    body_rate: Float[Array, " 3"],
    thrust_factor: Float[Array, ""],
    dt: Float[Array, ""] | float,
) -> tuple[Integrals, Float[Array, " rotors"]]:
    """One step of the controller.

    Args:
        c: the controller.
        integrals: after the previous step.
        setpoint: the current set point.
        attitude: quaternion, body to world.
        position, velocity: m and m/s, world frame.
        body_rate: rad/s, body frame.
        thrust_factor: factor on the thrust curve at the voltage of the battery.
        dt: time since the previous step, s.
    Returns:
        The integral terms, and the command of each rotor, 0 to 1.
    """
    k_p, k_v, k_i, k_R, k_w, k_j = (c.gains[i] for i in range(6))
    velocity_error = setpoint.velocity + k_p * (setpoint.position - position) - velocity
    integral = jnp.clip(
        integrals.acceleration + dt * k_i * velocity_error, -_MAX_INTEGRALS[0], _MAX_INTEGRALS[0]
    )
    feedback = jnp.clip(k_v * velocity_error, -_MAX_FEEDBACK, _MAX_FEEDBACK)
    acceleration = _limit_tilt(setpoint.acceleration + feedback + integral + jnp.array([0.0, 0.0, GRAVITY]))
    tilt = jnp.concatenate([setpoint.excitation[:2], jnp.zeros(1)])
    q_c = rotations.multiply(_attitude(acceleration, setpoint.yaw), rotations.exp(tilt))
    up = rotations.rotate(attitude, jnp.array([0.0, 0.0, 1.0]))
    collective = c.mass * (
        acceleration[2] / jnp.maximum(up[2], _MIN_TILT_COSINE) + GRAVITY * setpoint.excitation[5]
    )

    attitude_error = rotations.minus(q_c, attitude)
    rate = k_R * attitude_error + jnp.array([0.0, 0.0, 1.0]) * setpoint.yaw_rate + setpoint.excitation[2:5]
    rate_error = rate - body_rate
    angular_integral = jnp.clip(
        integrals.angular_acceleration + dt * k_j * rate_error, -_MAX_INTEGRALS[1], _MAX_INTEGRALS[1]
    )
    torque = _multiply(c.inertia, k_w * rate_error + angular_integral)
    torque = torque + rotations.cross(body_rate, _multiply(c.inertia, body_rate))
    thrust = _allocate(c, jnp.maximum(collective, 0.0), torque, thrust_factor)
    return Integrals(integral, angular_integral), _command(c, thrust / thrust_factor)


def thrust_at(c: CascadeController, command: Float[Array, " n"]) -> Float[Array, " n"]:
    """Thrust of a rotor by the thrust curve of the controller, N."""
    s = jnp.clip((command - c.dead_zone[0]) / (c.dead_zone[1] - c.dead_zone[0]), 0.0, 1.0)
    thrust = jnp.zeros_like(s)
    for i in reversed(range(c.curve.shape[0])):
        thrust = thrust * s + c.curve[i]
    return thrust


def _command(c: CascadeController, thrust: Float[Array, " rotors"]) -> Float[Array, " rotors"]:
    """The command that gives a thrust, by bisection of the monotonic thrust curve."""

    def bisect(_: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (interval[0] + interval[1])
        is_below = thrust_at(c, middle) < thrust
        return jnp.where(is_below, middle, interval[0]), jnp.where(is_below, interval[1], middle)

    limits = jnp.full_like(thrust, COMMANDS[0]), jnp.full_like(thrust, COMMANDS[1])
    low, high = jax.lax.fori_loop(0, _BISECTIONS, bisect, limits)
    return 0.5 * (low + high)


def _allocate(
    c: CascadeController,
    collective: Float[Array, ""],
    torque: Float[Array, " 3"],
    thrust_factor: Float[Array, ""],
) -> Float[Array, " rotors"]:
    """Rotor thrusts within their limits, N. The torque has priority over the collective thrust."""
    least, most = thrust_at(c, jnp.array(COMMANDS)) * thrust_factor
    for_yaw = c.mixer[:, 3] * torque[2]
    for_yaw = for_yaw * jnp.minimum(1.0, _YAW_SHARE * (most - least) / _range_of(for_yaw))
    for_torque = _multiply(c.mixer[:, 1:3], torque[:2]) + for_yaw
    for_torque = for_torque * jnp.minimum(1.0, (most - least) / _range_of(for_torque))
    lift = c.mixer[:, 0]
    has_lift = lift > _MIN_LIFT * jnp.max(lift)
    divisor = jnp.where(has_lift, lift, 1.0)
    low = jnp.max(jnp.where(has_lift, (least - for_torque) / divisor, -jnp.inf))
    high = jnp.min(jnp.where(has_lift, (most - for_torque) / divisor, jnp.inf))
    return jnp.clip(lift * jnp.clip(collective, low, jnp.maximum(low, high)) + for_torque, least, most)


def _range_of(thrust: Float[Array, " rotors"]) -> Float[Array, ""]:
    """Largest minus smallest thrust, at least 1e-12 N."""
    return jnp.maximum(jnp.max(thrust) - jnp.min(thrust), 1e-12)


def _multiply(A: Float[Array, "n m"], v: Float[Array, " m"]) -> Float[Array, " n"]:
    """A v."""
    return jnp.sum(A * v, axis=1)


def _limit_tilt(acceleration: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Limit a specific force (world frame, m/s^2) to an upward direction within the largest tilt."""
    up = jnp.maximum(acceleration[2], 0.2 * GRAVITY)
    horizontal = jnp.sqrt(jnp.sum(acceleration[:2] ** 2) + 1e-12)
    share = jnp.minimum(1.0, up * math.tan(_MAX_TILT) / horizontal)
    return jnp.stack([share * acceleration[0], share * acceleration[1], up])


def _attitude(acceleration: Float[Array, " 3"], yaw: Float[Array, ""]) -> Float[Array, " 4"]:
    """Yaw about the vertical, followed by the smallest rotation that aligns body z with the specific force."""
    z = acceleration / jnp.sqrt(jnp.sum(acceleration * acceleration))
    w = jnp.sqrt(0.5 * (1.0 + z[2]))
    tilt = jnp.stack([w, -0.5 * z[1] / w, 0.5 * z[0] / w, jnp.zeros_like(w)])
    zero = jnp.zeros_like(yaw)
    return rotations.multiply(tilt, jnp.stack([jnp.cos(0.5 * yaw), zero, zero, jnp.sin(0.5 * yaw)]))
