"""Rotors at any places of a body: from their thrusts to force and torque, and control allocation, the inverse.

    gamma_i = c_f |Omega_i| Omega_i                    thrust of a rotor, N
    w = G gamma,    G_i = (a_i,  (r_i - c) x a_i + k_i c_d a_i)                        Alharbat 2025, eqs. 1-3

a_i is the unit axis along which rotor i pulls, r_i where it sits and c the centre of mass, all in the body frame; c_d is
the rotor's torque per newton of thrust (m); k_i is -1 for a rotor that turns counter-clockwise about its axis, which
drags the body the other way, and +1 for one that turns clockwise. For a frame whose geometry is not known well, all arms
may be longer, and all tilt angles larger, than the airframe has them: r_i <- s_r r_i, and a_i from s_t times its angles.

Equation 3 of the article has the forces in the world frame and the torques in the body frame. Here the whole G is in the body
frame, and constant; the caller rotates the force to the world frame.

Control allocation, from the commanded thrust and torque of a controller to the thrusts of the rotors:

    gamma_c = G_4^+ (f_z, tau_x, tau_y, tau_z),        gamma' = (gamma_c - gamma) / tau_m

G_4 are four rows of G; with more than four rotors, gamma_c is the solution of least norm. The motors follow with the
airframe's lag, which is solved exactly for a command held from its time stamp to the next.

Angular momentum of the rotors (Alharbat 2025 leaves it out):

    h = sum_i -k_i a_i J_r |Omega_i| = kappa sum_i -k_i a_i sqrt(gamma_i),        kappa = J_r / sqrt(c_f)

J_r is the inertia of one rotor about its axis. A change of h is a torque -h' on the body: where yaw is commanded, the rotors'
inertia helps before their drag does. Where no rotor speed is known, kappa is, unlike J_r.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe, Rotor
from rotorid.models.airframe.missing import missing_error
from rotorid.models.registry import usable_inputs
from rotorid.models.system import Values
from rotorid.numerics.lag import lag_response, speed_lag_response
from rotorid.signals.series import hold

_STILL: Final = 1e-6  # N, added under a root, whose slope is then finite at 0


def allocation(
    rotors: Sequence[Rotor],
    torque_ratio: Float[Array, ""] | float,
    centre_of_mass: Float[Array, " 3"] | Sequence[float] = (0.0, 0.0, 0.0),
    *,
    arm_scale: Float[Array, ""] | float = 1.0,
    tilt_scale: Float[Array, ""] | float = 1.0,
    xp: Any = jnp,
) -> Float[Array | np.ndarray, "6 rotors"]:
    """Compute the allocation matrix G from rotor thrusts to force and torque, body frame (FLU).

    Args:
        rotors: one or more; positions (m) and axes in the body frame.
        torque_ratio: c_d, torque per newton of thrust, m.
        centre_of_mass: c, in the body frame, m.
        arm_scale: s_r, factor of all positions.
        tilt_scale: s_t, factor of all tilt angles.
        xp: array namespace, `jax.numpy` or, for numbers, `numpy`.
    Returns:
        The matrix, 6 x rotors. A column has the force x, y, z (N/N) and the torque about the centre of mass x, y, z (N m/N)
        of a rotor's thrust.
    Raises:
        AirframeError: there are no rotors.
    Source: Alharbat 2025, eqs. 1-3.
    """
    if not rotors:
        raise AirframeError(
            "no rotors to allocate: add one [[rotor]] a rotor to the airframe, with its position"
        )
    axes = tilted_axes(rotors, tilt_scale, xp)
    r = xp.asarray(arm_scale) * np.array([rotor.position for rotor in rotors]).T
    lever = r - xp.asarray(centre_of_mass, dtype=float)[:, None]
    arms = xp.stack(
        [
            lever[1] * axes[2] - lever[2] * axes[1],
            lever[2] * axes[0] - lever[0] * axes[2],
            lever[0] * axes[1] - lever[1] * axes[0],
        ]
    )
    yaw_signs = np.array([-spin(rotor) for rotor in rotors])
    return xp.concatenate([axes, arms + torque_ratio * (yaw_signs * axes)])


def fixed_allocation(
    rotors: Sequence[Rotor], torque_ratio: float, centre_of_mass: Sequence[float] = (0.0, 0.0, 0.0)
) -> Float[np.ndarray, "6 rotors"]:
    """`allocation` of numbers, which is computed once for each vehicle. The array cannot be written to."""
    return _fixed_allocation(tuple(rotors), float(torque_ratio), tuple(float(v) for v in centre_of_mass))


@functools.lru_cache(maxsize=256)
def _fixed_allocation(
    rotors: tuple[Rotor, ...], torque_ratio: float, centre_of_mass: tuple[float, ...]
) -> Float[np.ndarray, "6 rotors"]:
    G = np.array(allocation(rotors, torque_ratio, centre_of_mass, xp=np))
    G.flags.writeable = False
    return G


def tilted_axes(
    rotors: Sequence[Rotor], scale: Float[Array, ""] | float, xp: Any = jnp
) -> Float[Array | np.ndarray, "3 rotors"]:
    """The axes with all tilt angles multiplied by the scale: the angles by the inverse of `thrust_axis`, then the axes."""
    signs = np.array([math.copysign(1.0, rotor.axis[2]) for rotor in rotors])
    azimuth = np.array([math.atan2(rotor.position[1], rotor.position[0]) for rotor in rotors])
    c, s = np.cos(azimuth), np.sin(azimuth)
    x, y, z = signs * np.array([rotor.axis for rotor in rotors]).T
    about_arm = xp.asarray(scale) * np.arctan2(s * x - c * y, z)
    across_arm = xp.asarray(scale) * np.arcsin(np.clip(c * x + s * y, -1.0, 1.0))
    along = xp.sin(across_arm)
    side = -xp.sin(about_arm) * xp.cos(across_arm)
    up = xp.cos(about_arm) * xp.cos(across_arm)
    return xp.asarray(signs) * xp.stack([c * along - s * side, s * along + c * side, up])


def nominal_rotors(rotors: Sequence[Rotor]) -> tuple[Rotor, ...]:
    """The rotors without their thrust scales, for thrusts that contain these."""
    return tuple(dataclasses.replace(r, thrust_scale=1.0, thrust_scale_std=0.0) for r in rotors)


def angular_momentum_of_rotors(
    thrust: Float[Array, " rotors"], rotors: Sequence[Rotor], p: Values
) -> Float[Array, " 3"]:
    """h in N m s, body frame; 0 where p has no rotor_momentum. thrust: N. p: rotor_momentum (kappa, N^0.5 m s), tilt_scale."""
    if "rotor_momentum" not in p:
        return jnp.zeros(3)
    spins = np.array([float(spin(rotor)) for rotor in rotors])
    root = jnp.sqrt(jnp.maximum(thrust, 0.0) + _STILL)
    return p["rotor_momentum"] * jnp.sum(
        tilted_axes(rotors, p.get("tilt_scale", 1.0)) * (spins * root), axis=1
    )


def spin(rotor: Rotor) -> int:
    """+1 where a rotor turns counter-clockwise about the axis along which it pulls, else -1.

    Its `direction` is as seen from above: a rotor that pulls downwards turns the other way about its axis.
    """
    sign = 1 if rotor.direction == "ccw" else -1
    return -sign if rotor.axis[2] < 0 else sign


def thrust_axis(azimuth: float, about_arm: float, across_arm: float = 0.0) -> tuple[float, float, float]:
    """Unit axis of a rotor on an arm at an azimuth, by its tilt angles: R_z(azimuth) R_x(about_arm) R_y(across_arm) z.

    azimuth: of the arm from body x, counter-clockwise. about_arm, across_arm: psi and beta, Alharbat 2025, section II-A. In
    rad, body frame (FLU).
    """
    x = math.sin(across_arm)
    y = -math.sin(about_arm) * math.cos(across_arm)
    z = math.cos(about_arm) * math.cos(across_arm)
    c, s = math.cos(azimuth), math.sin(azimuth)
    return (c * x - s * y, s * x + c * y, z)


def thrust_of_speed(
    speed: Float[Array, " rotors"], thrust_coefficient: Float[Array, ""] | float
) -> Float[Array, " rotors"]:
    """gamma = c_f |Omega| Omega in N (eq. 1). speed: rad/s, negative where a rotor turns backwards. c_f: N s^2.

    Its slope is 0, and finite, for a rotor that stands still.
    """
    return thrust_coefficient * jnp.abs(speed) * speed


def torque_ratio_of(airframe: Airframe) -> float:
    """c_d of an airframe in m: its torque ratio, or torque coefficient over thrust coefficient.

    Raises AirframeError where it has neither.
    """
    ratio = airframe.get("torque_ratio")
    if ratio is not None:
        return ratio.number
    torque, thrust = airframe.get("torque_coefficient"), airframe.get("thrust_coefficient")
    if torque is None or thrust is None:
        raise missing_error(airframe)
    return torque.number / thrust.number


def inertia_matrix_of(airframe: Airframe) -> Float[np.ndarray, "3 3"]:
    """J in kg m^2, about the centre of mass, body frame, of an airframe with an inertia."""
    x, y, z = airframe.quantities["inertia"].value
    xy, xz, yz = airframe.vector("products_of_inertia")
    return np.array([[x, xy, xz], [xy, y, yz], [xz, yz, z]])


_ROWS: Final = (2, 3, 4, 5)  # f_z and the torque
_LEAST: Final = 1e-6  # of the largest singular value


def rotor_thrusts(flight: Flight, airframe: Airframe) -> Signal | None:
    """Thrust of each rotor in N without lag, by the airframe; None where log or airframe lack it."""
    name = next(iter(usable_inputs(flight, airframe)), None)
    if name is None:
        return None
    signal, scale, curve = flight[name], airframe.number("thrust_scale", 1.0), airframe.thrust_curve
    if name == "rotor_command":
        assert curve is not None
        c = np.clip((signal.values - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
        thrust = scale * np.polynomial.Polynomial(curve.coefficients)(c)
        if curve.voltage_exponent:
            if "battery_voltage" not in flight:
                return None
            battery = flight["battery_voltage"]
            voltage = hold(signal.times, battery.times, battery.values)
            thrust = thrust * (voltage / curve.voltage) ** curve.voltage_exponent
    elif name == "rotor_speed":
        thrust = scale * airframe.number("thrust_coefficient") * signal.values**2
    else:
        thrust = scale * signal.values
    return dataclasses.replace(signal, name="rotor_thrust", values=thrust)


def thrust_lag(flight: Flight, airframe: Airframe, inputs: Sequence[str]) -> float:
    """Time constant in s with which the thrust follows the first of these signals that is usable.

    It is 0 of measured speeds, and of a logged thrust beside them, which is that of the speeds.
    """
    signal = next(iter(usable_inputs(flight, airframe, inputs)), None)
    if signal == "rotor_speed" or (signal == "thrust" and "rotor_speed" in flight):
        return 0.0
    return airframe.number("motor_time_constant", MOTOR_LAG)


def with_commanded_thrusts(flight: Flight, airframe: Airframe, *, lagged: bool = True) -> Flight:
    """A flight with the signal `rotor_thrust` (N), from the commanded `thrust` (N) and `control_torque` (N m, body).

    Args:
        flight: the log; it is returned unchanged where it has no such commands, or a signal of each rotor that the airframe
            converts to thrust.
        airframe: of its vehicle.
        lagged: whether the thrusts follow the commands with the airframe's motor lag.
    Raises:
        AirframeError: where the airframe's rotors cannot give a torque about each axis.
    Source: Alharbat 2025, eqs. 1-3.
    """
    lacks_commands = "thrust" not in flight or "control_torque" not in flight
    if lacks_commands or not airframe.rotors or usable_inputs(flight, airframe):
        return flight
    G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))[list(_ROWS)]
    sizes = np.linalg.svd(G, compute_uv=False)
    if len(sizes) < len(_ROWS) or sizes[-1] < _LEAST * sizes[0]:
        raise AirframeError(
            f"{airframe.source}: its rotors give no torque about each axis; check [[rotor]] positions and directions"
        )
    thrust, torque = flight["thrust"], flight["control_torque"]
    torques = np.stack([np.interp(thrust.times, torque.times, column) for column in torque.values.T], axis=1)
    commanded = np.concatenate([thrust.values, torques], axis=1) @ np.linalg.pinv(G).T
    lag = airframe.get("motor_time_constant")
    values = (
        commanded
        if lag is None or not lagged
        else _lagged_thrusts(thrust.times, commanded, lag.number, airframe.has_speed_lag)
    )
    source = f"{thrust.source}, and {torque.source}, by the rotors of {airframe.source}"
    return flight.with_signals(Signal("rotor_thrust", thrust.times, values, source))


def _lagged_thrusts(times: np.ndarray, commanded: np.ndarray, lag: float, has_speed_lag: bool) -> np.ndarray:
    """Mean thrust over the time for which each row acts, after a first-order lag (s) that starts in steady state."""
    step = np.diff(times, append=times[-1] + (times[-1] - times[-2] if len(times) > 1 else 0.0))
    response = speed_lag_response if has_speed_lag else lag_response
    thrust, means = commanded[0], np.empty_like(commanded)
    for k, (target, h) in enumerate(zip(commanded, step, strict=True)):
        thrust, impulse = response(thrust, target, h, (lag, lag), np)
        means[k] = impulse / h if h > 0 else thrust
    return means
