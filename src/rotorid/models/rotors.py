"""Rotors anywhere on a body: from their thrusts to one force and one torque (seed 001, eqs. 1-3).

    gamma_i = c_f |Omega_i| Omega_i                    thrust of a rotor, N
    w = G gamma,    G_i = (a_i,  (r_i - c) x a_i + k_i c_d a_i)

a_i is the unit axis along which rotor i pulls, r_i where it sits and c the centre of mass, all in the body frame; c_d is
the rotor's torque per newton of thrust (m); k_i is -1 for a rotor that turns counter-clockwise about its axis, which
drags the body the other way, and +1 for one that turns clockwise.

Equation 3 of the seed has the forces in the world frame and the torques in the body frame. Here G is in the body frame as
a whole, and constant; whoever needs the force in the world rotates it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import AirframeError
from rotorid.models.airframe import Airframe, Rotor


def allocation(
    rotors: Sequence[Rotor],
    torque_ratio: Float[Array, ""] | float,
    centre_of_mass: Float[Array, " 3"] | Sequence[float] = (0.0, 0.0, 0.0),
) -> Float[Array, "6 rotors"]:
    """G: force (x, y, z) and torque about the centre of mass (x, y, z) per newton of each rotor's thrust, body frame (FLU).

    torque_ratio: c_d, m. centre_of_mass: in the body frame, m. Raises AirframeError where there are no rotors.
    """
    if not rotors:
        raise AirframeError(
            "no rotors to allocate: add one [[rotor]] a rotor to the airframe, with its position"
        )
    axes = np.array([r.axis for r in rotors]).T
    turning = np.array([-spin(r) for r in rotors])
    levers = np.cross([r.position for r in rotors], axes.T).T
    c = jnp.asarray(centre_of_mass, dtype=float)
    shifted = jnp.stack(
        [
            c[1] * axes[2] - c[2] * axes[1],
            c[2] * axes[0] - c[0] * axes[2],
            c[0] * axes[1] - c[1] * axes[0],
        ]
    )
    return jnp.concatenate([jnp.asarray(axes), levers - shifted + torque_ratio * (turning * axes)])


def spin(rotor: Rotor) -> int:
    """+1 where a rotor turns counter-clockwise about the axis along which it pulls, else -1.

    Its `direction` is as seen from above: a rotor that pulls downwards turns the other way about its axis.
    """
    seen_from_above = 1 if rotor.direction == "ccw" else -1
    return -seen_from_above if rotor.axis[2] < 0 else seen_from_above


def thrust_axis(azimuth: float, about_arm: float, across_arm: float = 0.0) -> tuple[float, float, float]:
    """Unit axis of a rotor on an arm at an azimuth, by its tilt angles: R_z(azimuth) R_x(about_arm) R_y(across_arm) z.

    azimuth: of the arm from body x, counter-clockwise. about_arm, across_arm: psi and beta of seed 001, section II-A. All in
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
        raise AirframeError(
            f"{airframe.source}: no [torque_ratio], which the torque of the rotors follows from; give it in m"
        )
    return torque.number / thrust.number
