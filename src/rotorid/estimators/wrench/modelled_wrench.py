"""The modelled wrench on a rigid multirotor, integrated over a step (Alharbat 2025, eqs. 7-8 and 13).

    force (world)   R f_a - m g z - k v + m phi_v
    torque (body)   tau_a - omega x (J omega + h) - h' - k_omega omega + J phi_omega

From w and w' at both ends of a step of h seconds, by Hermite's rule, whose error is of fourth order:

    integral = h/2 (w_0 + w_1) + h^2/12 (w_0' - w_1')

so that each end adds one part, and the part of the end can be replaced once the end is measured. For the gyroscopic torque the
rule assumes that the body rate changes linearly, and is exact for it. The rates of thrusts with a lag are corrected by a
factor with which the rule is exact for their impulse, however long the step. The integral of h', h being the rotors' angular
momentum, is the difference of h at both ends.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.multirotor.rigid import (
    RigidMultirotor,
    angular_momentum,
    divided_by_inertia,
    gyroscopic,
    inertia_matrix,
)
from rotorid.models.multirotor.rotors import angular_momentum_of_rotors
from rotorid.models.system import GRAVITY, Values
from rotorid.numerics.lag import hermite_rate_factor


def start_part(
    system: RigidMultirotor, x: Values, u: Values, p: Values, dt: Float[Array, ""]
) -> Float[Array, " 6"]:
    """Part of the start of a step in the integral of force (world, N s) and torque (body, N m s)."""
    wrench, rate = _wrench_and_rate(system, x, u, p, dt)
    return 0.5 * dt * wrench + dt * dt / 12.0 * rate + _rotor_momentum(system, x, u, p)


def end_part(
    system: RigidMultirotor,
    x: Values,
    rate_before: Float[Array, " 3"],
    u: Values,
    p: Values,
    dt: Float[Array, ""],
) -> Float[Array, " 6"]:
    """Part of the end of a step in the integral; rate_before is the body rate at the start, rad/s."""
    wrench, rate = _wrench_and_rate(system, x, u, p, dt)
    gyroscopic_change = gyroscopic(x["body_rate"] - rate_before, p) / 6.0
    gyroscopic_part = jnp.concatenate([jnp.zeros_like(gyroscopic_change), dt * gyroscopic_change])
    return 0.5 * dt * wrench - dt * dt / 12.0 * rate + gyroscopic_part - _rotor_momentum(system, x, u, p)


def _rotor_momentum(system: RigidMultirotor, x: Values, u: Values, p: Values) -> Float[Array, " 6"]:
    """Zeros, and h in N m s."""
    h = angular_momentum_of_rotors(rotor_thrust(system, x, u, p), system.rotors, p)
    return jnp.concatenate([jnp.zeros_like(h), h])


def rotor_thrust(system: RigidMultirotor, x: Values, u: Values, p: Values) -> Float[Array, " rotors"]:
    """Thrust of each rotor now, N."""
    return x["rotor_thrust"] if system.lags else system.known_thrust(u, p)


def force_by_attitude(system: RigidMultirotor, x: Values, u: Values, p: Values) -> Float[Array, "3 3"]:
    """d(R f_a) / d attitude error (body), N/rad: -R [f_a]x."""
    force, _ = system.rotor_wrench(rotor_thrust(system, x, u, p), p)
    return rotation_by_attitude(x["attitude"], force)


def rotation_by_attitude(q: Float[Array, " 4"], v: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """d(R v) / d attitude error (body): -R [v]x."""
    return -rotations.rotate(q, rotations.skew(v).T).T


def torque_by_rate(omega: Float[Array, " 3"], p: Values) -> Float[Array, "3 3"]:
    """d(-omega x J omega - k_omega omega) / d omega, N m s: [J omega]x - [omega]x J - k_omega."""
    gyroscopic_slope = rotations.skew(angular_momentum(omega, p)) - rotations.skew(omega) @ inertia_matrix(p)
    return gyroscopic_slope - jnp.diag(p["angular_drag"])


def inverse_inertia(p: Values) -> Float[Array, "3 3"]:
    """J^-1, 1/(kg m^2)."""
    return jnp.stack([divided_by_inertia(e, p) for e in jnp.eye(3)], axis=1)


def _wrench_and_rate(
    system: RigidMultirotor, x: Values, u: Values, p: Values, dt: Float[Array, ""]
) -> tuple[Float[Array, " 6"], Float[Array, " 6"]]:
    """The known wrench and its rate per second, without the rates of drag, gyroscopic torque and residual. dt: of the step."""
    q, omega, thrust = x["attitude"], x["body_rate"], rotor_thrust(system, x, u, p)
    force, _ = system.rotor_wrench(thrust, p)
    external, torque = system.known_wrench(x, thrust, p)
    force_rate, torque_rate = jnp.zeros(3), jnp.zeros(3)
    if system.lags:
        tau = p["motor_time_constant"]
        lag = (system.known_thrust(u, p) - thrust) / tau * hermite_rate_factor(dt, tau)
        force_rate, torque_rate = system.rotor_wrench(jnp.where(system.holds(u), lag, 0.0), p)
    weight = p["mass"] * jnp.array([0.0, 0.0, GRAVITY])
    force_rate_world = rotations.rotate(q, rotations.cross(omega, force) + force_rate)
    wrench = jnp.concatenate([external - weight, torque])
    return wrench, jnp.concatenate([force_rate_world, torque_rate])
