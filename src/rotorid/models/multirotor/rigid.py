"""The multirotor as a rigid body with any rotors, and the external wrench on it (Alharbat 2025, section II-A, eqs. 1-8).

    q' = 1/2 q (x) omega                            p' = v
    m v' = R f_a - m g z - k v + f_e                J omega' = -omega x (J omega + h) - h' + tau_a - k_omega omega + tau_e
    (f_a, tau_a) = G gamma                          gamma' = (gamma_c - gamma) / tau_m

One convention: forces of the equation of motion in the world frame, torques in the body frame, as eq. 5 of the article
has them; G is in the body frame (see `rotors`). p and v are those of the centre of mass, and every torque is about it. Where
the centre of mass is c away from the origin of the body frame, position, velocity and specific force are measured at the
origin, p - R c. k v and k_omega omega are linear drag (k_omega is diagonal), absent from eq. 5 (both 0); drag
of the rotors and of the body (see `air`) is added if the airframe has it. gamma, the thrust in still air, is a scale times the
known thrusts of the rotors, or c_f |Omega| Omega of their speeds, or follows the thrust curve of their commands with the motor
lag, which may differ for a rotor that slows down. A learned residual phi adds m phi_v to the force and J phi_omega to the
torque (eq. 11). h is the angular momentum of the rotors (see `rotors`), if the airframe has it. h' follows from the motor lag;
where thrusts or speeds are known, a step of them is a step of h, which `dynamics` leaves out.

The external wrench (f_e, tau_e) are two parameters that wander. An EKF or UKF over this System is therefore the
Kalman-filter wrench observer of C. D. McKinnon and A. P. Schoellig, Unscented external force and torque estimation for
quadrotors, IROS 2016 (the article's [10]).
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import AirframeError, SettingError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.logs.flight import KINDS
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe, Rotor
from rotorid.models.airframe.missing import missing_error
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS, air_wrench
from rotorid.models.multirotor.bare import MOST_THRUST
from rotorid.models.multirotor.rotors import (
    allocation,
    angular_momentum_of_rotors,
    thrust_of_speed,
    torque_ratio_of,
)
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.multirotor.with_drag import MOST_COMMAND, SATURATED
from rotorid.models.residual import Head, rates, spread, weights_in
from rotorid.models.system import GRAVITY, Parameter, System, Values
from rotorid.numerics.integrators import Solved
from rotorid.numerics.lag import LEAST_THRUST, lag_end_and_mean
from rotorid.numerics.products import product

RotorInput = Literal["rotor_thrust", "rotor_speed", "rotor_command"]

_UNITS = {"rotor_thrust": "N", "rotor_speed": "rad/s", "rotor_command": "1"}
_FORCE_PER_MASS = 3.0  # m/s^2, standard deviation of the external force
_FORCE_DRIFT = 1.0  # m/s^2 per square root of s
_TORQUE_PER_INERTIA = 10.0  # rad/s^2, standard deviation of the external torque
_TORQUE_DRIFT = 3.0  # rad/s^2 per square root of s
_OPTIONAL = {
    "motor_time_constant_down": "s", "drag_area": "m^2", **ROTOR_AERODYNAMICS, "rotor_momentum": "N^0.5 m s",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RigidMultirotor(System):
    """Attitude, position, velocity and body rate under the wrench of the rotors and an external wrench. It is made by
    `rigid_multirotor`.

    parameters: of the vehicle. rotors: position and axis of each rotor. rotor_input: signal that gives the thrusts,
    "rotor_thrust", "rotor_speed" or "rotor_command". weight: nominal weight, N; it scales the process noise of rotors with a
    lag. curve: thrust curve of one rotor, for commands. heads: heads of a learned residual of velocity and body rate, whose
    weights are among the parameters (see `with_residual`). has_speed_lag: whether the rotor speeds follow the commands with
    the motor lag, and not the thrusts.
    """

    parameters: tuple[Parameter, ...]
    rotors: tuple[Rotor, ...]
    rotor_input: RotorInput
    weight: float
    curve: ThrustCurve | None = None
    heads: tuple[Head, ...] = ()
    has_speed_lag: bool = False

    @property
    def lags(self) -> bool:
        """Whether the rotors' thrusts are states, which follow the commands."""
        return self.rotor_input == "rotor_command"

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        blocks = Space.of(
            attitude=Rotation(noise=0.003, std=0.3),
            position=Vector(3, "m", frame="world", noise=0.003, std=10.0),
            velocity=Vector(3, "m/s", frame="world", noise=0.01, std=3.0),
            body_rate=Vector(3, "rad/s", frame="body", noise=0.03, std=1.0),
        ).blocks
        if not self.lags:
            return Space(blocks)
        n, hover = len(self.rotors), self.weight / len(self.rotors)
        thrust = Vector(n, "N", initial=(hover,) * n, std=0.5 * hover, noise=0.02 * hover)
        return Space((*blocks, ("rotor_thrust", thrust)))

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        limits = {"rotor_command": MOST_COMMAND, "rotor_thrust": MOST_THRUST * self.weight}
        limit = limits.get(self.rotor_input, KINDS["rotor_speed"].limit)
        rotors = (self.rotor_input, Vector(len(self.rotors), _UNITS[self.rotor_input], limit=limit))
        if self.lags and self.curve is not None and self.curve.voltage_exponent:
            return Space((rotors, ("battery_voltage", Scalar("V"))))
        return Space((rotors,))

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            attitude=Rotation(noise=0.01),
            position=Vector(3, "m", frame="world", noise=0.02),
            velocity=Vector(3, "m/s", frame="world", noise=0.05),
            body_rate=Vector(3, "rad/s", frame="body", noise=0.02),
            specific_force=Vector(3, "m/s^2", frame="body", noise=0.3),
        )

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        """False while a rotor is commanded to its limit, where the thrust curve does not hold."""
        return jnp.max(u["rotor_command"]) < SATURATED if self.lags else True

    def known_thrust(self, u: Values, p: Values) -> Float[Array, " rotors"]:
        """Thrust of each rotor by the inputs, N; for commands, without the motor lag."""
        scale = p["thrust_scale"]
        if "rotor_scale" in p:
            scale = scale * p["rotor_scale"]
        if self.rotor_input == "rotor_thrust":
            return scale * u["rotor_thrust"]
        if self.rotor_input == "rotor_speed":
            return scale * thrust_of_speed(u["rotor_speed"], p["thrust_coefficient"])
        assert self.curve is not None
        voltage = u.get("battery_voltage")
        if voltage is not None:
            voltage = jnp.broadcast_to(voltage, (len(self.rotors),))
        return scale * self.curve.collective(u["rotor_command"][:, None], voltage)

    def rotor_wrench(
        self, thrust: Float[Array, " rotors"], p: Values
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """Force in N and torque about the centre of mass in N m of the rotors at these thrusts (N), body frame."""
        G = allocation(
            self.rotors,
            p["torque_ratio"],
            p["centre_of_mass"],
            arm_scale=p["arm_scale"],
            tilt_scale=p["tilt_scale"],
        )
        wrench = jnp.sum(G * thrust, axis=1)
        return wrench[:3], wrench[3:]

    def regressors(self, x: Values, u: Values, p: Values) -> Values:
        """States, and the thrust of each rotor in N."""
        return {**x, "rotor_thrust": x["rotor_thrust"] if self.lags else self.known_thrust(u, p)}

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        thrust, acceleration, angular_acceleration = self._accelerations(x, u, p)
        rate = {
            "attitude": x["body_rate"],
            "position": x["velocity"],
            "velocity": acceleration - jnp.array([0.0, 0.0, GRAVITY]),
            "body_rate": angular_acceleration,
        }
        if self.lags:
            rate["rotor_thrust"] = self._thrust_rate(u, p, thrust)
        return rate

    def rotor_momentum_rate(
        self, thrust: Float[Array, " rotors"], rate: Float[Array, " rotors"], p: Values
    ) -> Float[Array, " 3"]:
        """Rate of the rotors' angular momentum h, N m, body frame. thrust: of each rotor, N. rate: of the thrusts, N/s."""
        return jax.jvp(lambda T: angular_momentum_of_rotors(T, self.rotors, p), (thrust,), (rate,))[1]

    def _thrust_rate(self, u: Values, p: Values, thrust: Float[Array, " rotors"]) -> Float[Array, " rotors"]:
        """Rate of the thrusts, N/s."""
        commanded, tau = self.known_thrust(u, p), p["motor_time_constant"]
        if "motor_time_constant_down" in p:
            tau = jnp.where(commanded < thrust, p["motor_time_constant_down"], tau)
        error = thrust_rate(commanded, thrust) if self.has_speed_lag else commanded - thrust
        return jnp.where(self.holds(u), error / tau, 0.0)

    def solve_lags(self, x: Values, u: Values, p: Values, dt: Float[Array, ""] | float) -> Solved:
        """The rotors' thrusts where they are states, which follow the commanded ones."""
        if not self.lags:
            return {}
        up, now = p["motor_time_constant"], x["rotor_thrust"]
        commanded = jnp.where(self.holds(u), self.known_thrust(u, p), now)
        lag = (up, p.get("motor_time_constant_down", up))
        return {"rotor_thrust": lag_end_and_mean(now, commanded, dt, lag, of_speed=self.has_speed_lag)}

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        q, omega, c = x["attitude"], x["body_rate"], p["centre_of_mass"]
        _, acceleration, angular_acceleration = self._accelerations(x, u, p)
        lever = rotations.cross(angular_acceleration, c) + rotations.cross(omega, rotations.cross(omega, c))
        return {
            "attitude": q,
            "position": x["position"] - rotations.rotate(q, c),
            "velocity": x["velocity"] - rotations.rotate(q, rotations.cross(omega, c)),
            "body_rate": omega,
            "specific_force": rotations.rotate(rotations.inverse(q), acceleration) - lever,
        }

    def _accelerations(
        self, x: Values, u: Values, p: Values
    ) -> tuple[Float[Array, " rotors"], Float[Array, " 3"], Float[Array, " 3"]]:
        """Rotor thrusts in N, acceleration without gravity in m/s^2 (world), and omega' in rad/s^2 (body)."""
        thrust = x["rotor_thrust"] if self.lags else self.known_thrust(u, p)
        force, torque = self.known_wrench(x, thrust, p)
        if self.lags:
            torque = torque - self.rotor_momentum_rate(thrust, self._thrust_rate(u, p, thrust), p)
        return thrust, (force + p["force"]) / p["mass"], divided_by_inertia(torque + p["torque"], p)

    def known_wrench(
        self, x: Values, thrust: Float[Array, " rotors"], p: Values
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """The modelled wrench without the weight at these rotor thrusts (N): force in N (world), torque in N m (body).

        It has the rotors' wrench, the drag, the gyroscopic torque `-omega x (J omega + h)` and the learned residual, but not
        the rate of h.
        """
        force, torque = self.rotor_wrench(thrust, p)
        omega = x["body_rate"]
        of_air = air_wrench(x["attitude"], x["velocity"], omega, thrust, self.rotors, p)
        net_force = rotations.rotate(x["attitude"], force) + of_air[0]
        h = angular_momentum_of_rotors(thrust, self.rotors, p)
        gyroscopic_torque = gyroscopic(omega, p) + rotations.cross(omega, h)
        net_torque = torque + of_air[1] - gyroscopic_torque - p["angular_drag"] * omega
        phi = rates(self.heads, weights_in(self.heads, p), {**x, "rotor_thrust": thrust})
        if "velocity" in phi:
            net_force = net_force + p["mass"] * phi["velocity"]
        if "body_rate" in phi:
            net_torque = net_torque + angular_momentum(phi["body_rate"], p)
        return net_force, net_torque

    def residual_covariance(
        self, x: Values, thrust: Float[Array, " rotors"], p: Values
    ) -> tuple[Float[Array, "3 3"], Float[Array, "3 3"], Float[Array, ""]]:
        """Uncertainty of the learned residual at these rotor thrusts (N): covariance of its force (N^2, world) and of its
        torque (N^2 m^2, body); and its extrapolation: 0 inside the training data, 1 at twice the distance of their edge.
        """
        std, beyond = spread(self.heads, weights_in(self.heads, p), {**x, "rotor_thrust": thrust})
        force, torque = p["mass"] * std["velocity"], inertia_matrix(p) * std["body_rate"]
        force_world = rotations.rotate(x["attitude"], jnp.diag(force)).T
        if not any(head.output in head.turned for head in self.heads):
            force_world = jnp.diag(force)
        return product(force_world, force_world.T), product(torque, torque.T), beyond


def thrust_rate(
    commanded: Float[Array, " rotors"], thrust: Float[Array, " rotors"]
) -> Float[Array, " rotors"]:
    """Rate of thrusts times the time constant, N, where the rotor speeds, which go with the roots, lag behind the commands."""
    root, goal = (jnp.sqrt(jnp.maximum(v, LEAST_THRUST)) for v in (thrust, commanded))
    return 2.0 * root * (goal - root)


def angular_momentum(omega: Float[Array, " 3"], p: Values) -> Float[Array, " 3"]:
    """J omega in N m s, body frame. omega: rad/s."""
    return p["inertia"] * omega + _off_diagonal(omega, p["products_of_inertia"])


def gyroscopic(omega: Float[Array, " 3"], p: Values) -> Float[Array, " 3"]:
    """omega x J omega in N m, body frame. omega: rad/s."""
    return rotations.cross(omega, angular_momentum(omega, p))


def divided_by_inertia(torque: Float[Array, " 3"], p: Values) -> Float[Array, " 3"]:
    """J^-1 torque in rad/s^2, body frame, by the adjugate of J. torque: N m."""
    x, y, z = p["inertia"]
    xy, xz, yz = p["products_of_inertia"]
    diagonal = jnp.stack([y * z - yz * yz, x * z - xz * xz, x * y - xy * xy])
    off = jnp.stack([xz * yz - xy * z, xy * yz - xz * y, xy * xz - yz * x])
    determinant = x * diagonal[0] + xy * off[0] + xz * off[1]
    return (diagonal * torque + _off_diagonal(torque, off)) / determinant


def inertia_matrix(p: Values) -> Float[Array, "3 3"]:
    """J in kg m^2, about the centre of mass, body frame."""
    xy, xz, yz = p["products_of_inertia"]
    zero = jnp.zeros_like(xy)
    return jnp.diag(p["inertia"]) + jnp.stack([zero, xy, xz, xy, zero, yz, xz, yz, zero]).reshape(3, 3)


def _off_diagonal(v: Float[Array, " 3"], off: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """Product of the off-diagonal elements (xy, xz, yz) of a symmetric matrix and v."""
    xy, xz, yz = off
    return jnp.stack([xy * v[1] + xz * v[2], xy * v[0] + yz * v[2], xz * v[0] + yz * v[1]])


def rigid_multirotor(
    airframe: Airframe, rotor_input: RotorInput = "rotor_thrust", *, rotors: int | None = None
) -> RigidMultirotor:
    """The rigid multirotor of an airframe, whose external force (N, world) and torque (N m, body) are tracked.

    Args:
        airframe: airframe of the vehicle.
        rotor_input: known quantity of the rotors: "rotor_thrust" (N), "rotor_speed" (rad/s) or "rotor_command" (0 to 1).
        rotors: number of rotors in the log, which is compared with the airframe; None: no comparison.
    Returns:
        The System; its parameters have the airframe's values as prior means.
    Raises:
        SettingError: the rotor input is unknown.
        AirframeError: the airframe has another number of rotors, or lacks what the rotor input needs: rotors, inertia, torque
            ratio, thrust coefficient or thrust curve.
    Source: Alharbat 2025, section II-A, eqs. 1-8.
    """
    if rotor_input not in _UNITS:
        raise SettingError(f"no rotor input {rotor_input!r}; there are {', '.join(_UNITS)}")
    inertia, coefficient = airframe.get("inertia"), airframe.get("thrust_coefficient")
    lacks_thrust = (rotor_input == "rotor_speed" and coefficient is None) or (
        rotor_input == "rotor_command" and airframe.thrust_curve is None
    )
    if not airframe.rotors or inertia is None or lacks_thrust:
        raise missing_error(airframe, rotor_input, rotors or 0)
    if rotors is not None and rotors != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} [[rotor]], and the log has {rotors} columns of {rotor_input}; "
            "give one [[rotor]] a rotor, in the log's order"
        )

    mass = airframe.mass.number
    mean_inertia = float(np.mean(inertia.value))
    zero = (0.0, 0.0, 0.0)
    parameters = (
        Parameter("force", zero, _FORCE_PER_MASS * mass, "N", drift=_FORCE_DRIFT * mass, frame="world"),
        Parameter(
            "torque",
            zero,
            _TORQUE_PER_INERTIA * mean_inertia,
            "N m",
            drift=_TORQUE_DRIFT * mean_inertia,
            frame="body",
        ),
        Parameter("mass", mass, unit="kg", bounds=(0.0, math.inf)),
        Parameter("inertia", inertia.value, unit="kg m^2", frame="body"),
        Parameter("products_of_inertia", airframe.vector("products_of_inertia"), unit="kg m^2", frame="body"),
        Parameter("centre_of_mass", airframe.vector("centre_of_mass"), unit="m", frame="body"),
        Parameter("torque_ratio", torque_ratio_of(airframe), unit="m"),
        Parameter("thrust_coefficient", airframe.number("thrust_coefficient", 0.0), unit="N s^2"),
        Parameter("thrust_scale", airframe.number("thrust_scale", 1.0)),
        Parameter("arm_scale", 1.0),
        Parameter("tilt_scale", 1.0),
        Parameter("drag", airframe.by_axis("drag"), unit="N s/m"),
        Parameter("angular_drag", airframe.vector("angular_drag"), unit="N m s", frame="body"),
        Parameter("motor_time_constant", airframe.number("motor_time_constant", MOTOR_LAG), unit="s"),
        *(
            Parameter(name, airframe.by_axis(name), unit=unit)
            for name, unit in _OPTIONAL.items()
            if airframe.get(name)
        ),
    )
    scales = tuple(rotor.thrust_scale for rotor in airframe.rotors)
    if any(scale != 1.0 for scale in scales):
        parameters = (*parameters, Parameter("rotor_scale", scales))
    curve = airframe.thrust_curve if rotor_input == "rotor_command" else None
    return RigidMultirotor(
        parameters, airframe.rotors, rotor_input, mass * GRAVITY, curve, has_speed_lag=airframe.has_speed_lag
    )
