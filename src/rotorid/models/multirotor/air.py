"""Wrench of the air on a multirotor: force in N, torque about the centre of mass in N m.

    v_i = v + omega x (r_i - c)        v_n = a_i . v_i        v_p = v_i - a_i v_n
    f_i = (-k_z sqrt(T_i) v_n + k_h |v_p|^2) a_i - k_d sqrt(T_i) v_p
    f = sum_i f_i - k v - 1/2 rho A |v| v            tau = sum_i (r_i - c) x f_i - k_f sqrt(T_i) a_i x v_i

v is the velocity of the centre of mass through the air and omega the body rate, both in the body frame; r_i is the position of
rotor i, a_i its axis, and T_i its thrust in still air at the same rotor speed. A rotor loses thrust as it climbs (inflow, k_z)
and gains thrust as it moves across its axis (translational lift, k_h). The force in its plane (k_d) adds up blade flapping,
induced drag and the momentum of the air that is taken along; the flapping moment (k_f) turns the vehicle up against the wind.
It grows with the rotor speed, and so with the root of T_i, and so does the inflow. Since each rotor moves with the body, these
forces damp rotation. k is a linear drag, and A a drag area (drag coefficient times area): one number for all axes, or one for
each body axis. A body with plane sides has rather a quadratic drag of each axis j by itself, -1/2 rho A_j |v_j| v_j.

References: P. Martin, E. Salaun, The true role of accelerometer feedback in quadrotor control, ICRA 2010; J. Svacha,
K. Mohta, V. Kumar, Improving quadrotor trajectory tracking by compensating for aerodynamic effects, ICUAS 2017; J.-M. Kai,
G. Allibert, M.-D. Hua, T. Hamel, Nonlinear feedback control of quadrotors exploiting first-order drag effects, IFAC 2017;
M. Faessler, A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, RA-L 3 (2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.airframe.airframe import Rotor
from rotorid.models.multirotor.rotors import tilted_axes
from rotorid.models.system import Values

AIR_DENSITY = 1.225
"""rho of the standard atmosphere at sea level, kg/m^3."""

ROTOR_AERODYNAMICS = {
    "rotor_drag": "N^0.5 s/m",
    "rotor_inflow": "N^0.5 s/m",
    "translational_lift": "N s^2/m^2",
    "flapping_moment": "N^0.5 s",
}
"""Parameters of the air at a rotor and their units: k_d, k_z, k_h, k_f."""

_STILL = 1e-6  # m/s, N: added in quadrature under a root, whose slope is then finite at 0


def air_wrench(
    attitude: Float[Array, " 4"],
    velocity: Float[Array, " 3"],
    body_rate: Float[Array, " 3"],
    thrust: Float[Array, " rotors"],
    rotors: Sequence[Rotor],
    p: Values,
    *,
    is_by_axis: bool = False,
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Force f in N, world frame, and torque in N m, body frame.

    Args:
        attitude: body to world.
        velocity: of the centre of mass through the air, m/s, world.
        body_rate: rad/s, body frame.
        thrust: T_i of each rotor, N.
        rotors: their positions (m) and axes.
        p: drag and, where the model has them, drag_area and the parameters of `ROTOR_AERODYNAMICS`, with centre_of_mass.
        is_by_axis: whether the quadratic drag of each axis is that of its own velocity, and not of the total one.
    """
    v = rotations.rotate(rotations.inverse(attitude), velocity)
    force = -p["drag"] * v
    if "drag_area" in p:
        square = v**2 if is_by_axis else jnp.sum(v**2)
        speed = jnp.sqrt(square + _STILL**2)
        force = force - 0.5 * AIR_DENSITY * p["drag_area"] * speed * v
    rotor_force, torque = rotor_air_wrench(v, body_rate, thrust, rotors, p)
    return rotations.rotate(attitude, force + rotor_force), torque


def rotor_air_wrench(
    velocity: Float[Array, " 3"],
    body_rate: Float[Array, " 3"],
    thrust: Float[Array, " rotors"],
    rotors: Sequence[Rotor],
    p: Values,
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """sum_i f_i in N and its torque in N m, body frame. velocity: in the body frame; all else as of `air_wrench`."""
    if not any(name in p for name in ROTOR_AERODYNAMICS):
        return jnp.zeros(3), jnp.zeros(3)
    drag, inflow, lift, flapping = (p.get(name, 0.0) for name in ROTOR_AERODYNAMICS)
    a = jnp.asarray(tilted_axes(rotors, p.get("tilt_scale", 1.0)))
    r = jnp.asarray(p.get("arm_scale", 1.0)) * np.array([rotor.position for rotor in rotors]).T
    r = jnp.asarray(r - p["centre_of_mass"][:, None])
    v = velocity[:, None] + _cross(jnp.broadcast_to(body_rate[:, None], r.shape), r)
    v_n = jnp.sum(a * v, axis=0)
    v_p = v - a * v_n
    root = jnp.sqrt(jnp.maximum(thrust, 0.0) + _STILL)
    force = (lift * jnp.sum(v_p**2, axis=0) - inflow * root * v_n) * a - drag * root * v_p
    torque = _cross(r, force) - flapping * root * _cross(a, v)
    return jnp.sum(force, axis=1), jnp.sum(torque, axis=1)


def _cross(a: Float[Array, "3 n"], b: Float[Array, "3 n"]) -> Float[Array, "3 n"]:
    """The cross product of each column."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
