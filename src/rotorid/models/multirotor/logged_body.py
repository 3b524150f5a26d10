"""The rigid body of a multirotor with known rotor thrusts, as a log of free flight measures it.

    q' = 1/2 q (x) omega                m v' = R (sum_i a_i T_i + m f) - m g z + f_air(v - w)
    J (omega' - e) = -omega x (J omega + h(T)) - h' + tau(T) + tau_air(v - w) - k_omega omega

    measured: body rate         omega + b_omega
              specific force    R^T (v' + g z) - omega' x c - omega x (omega x c) + omega' x s + omega x (omega x s) + b_a
              velocity          v - d_v v' + d_v^2/2 (R omega) x (v' + g z)      delay d_v, constant thrust within it
              attitude          q (x) exp(-d_q omega)                            delay d_q

Symbols as in `rigid_multirotor`, k_omega is diagonal; s is the position of the accelerometer, b are biases, w is the wind. T is
twice among the inputs: the mean over a step, which acts on the body, and the value at its end, at the time of measurement.
Quantities that are constant within a segment of a flight (mass, wind, biases) are inputs too.

Without logged attitude and velocity the body rate is the only state, and the specific force is that of the rotors. Where the
rotor commands were logged too rarely to give the torques, the measured body rate is an input. The angular momentum h of the
rotors is that of `rotors`. Since h' follows from steps of T, the state is omega + J^-1 h, whose rate has no h'. e is the
angular acceleration by unmodelled torques, such as unequal motors and gusts, and f the specific force of unmodelled forces,
body frame. Both are random walks that no output measures directly.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.models.airframe.airframe import Rotor
from rotorid.models.multirotor.air import air_wrench, rotor_air_wrench
from rotorid.models.multirotor.rigid import divided_by_inertia, gyroscopic
from rotorid.models.multirotor.rotors import allocation, angular_momentum_of_rotors
from rotorid.models.system import GRAVITY, Parameter, System, Values

LOCAL = ("mass", "wind", "gyroscope_bias", "accelerometer_bias")
"""Inputs that are constant within a segment of a flight and are estimated with the parameters."""

_WIDTHS = {"mass": 1, "wind": 2, "gyroscope_bias": 3, "accelerometer_bias": 3}
_UNITS = {"mass": "kg", "wind": "m/s", "gyroscope_bias": "rad/s", "accelerometer_bias": "m/s^2"}


def local_parameter(name: str, value: tuple[float, ...]) -> Parameter:
    """The values of a local input in all segments, one after the other, as a parameter."""
    bounds = (0.0, float("inf")) if name == "mass" else (-float("inf"), float("inf"))
    return Parameter(name, value, unit=_UNITS[name], bounds=bounds)


def local_width(name: str) -> int:
    """How many numbers a local input has."""
    return _WIDTHS[name]


@dataclasses.dataclass(frozen=True)
class LoggedBody(System):
    """The System of the module's equations; the airframe fit estimates its parameters.

    Attributes:
        parameters: those of the vehicle, in SI units.
        rotors: geometry of the airframe.
        has_pose: whether attitude and velocity are states.
        torques_observable: whether the body rate is a state; else it is an input. At least one of the two is true.
        has_unmodelled_torque: whether e is a state; it needs the body rate as a state.
        has_unmodelled_force: whether f is a state.
        has_axis_drag: whether the quadratic drag of each body axis is that of its own velocity (see `air`).
    """

    parameters: tuple[Parameter, ...]
    rotors: tuple[Rotor, ...]
    has_pose: bool
    torques_observable: bool
    has_unmodelled_torque: bool = False
    has_unmodelled_force: bool = False
    has_axis_drag: bool = False

    @property
    def hidden(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        torque = ("unmodelled_torque",) if self.has_unmodelled_torque else ()
        return (*torque, "unmodelled_force") if self.has_unmodelled_force else torque

    @property
    def structure(self) -> LoggedBody:
        parameters = tuple(
            Parameter(p.name, (0.0,) * len(p.values) if isinstance(p.value, tuple) else 0.0)
            for p in self.parameters
        )
        return dataclasses.replace(self, parameters=parameters)

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        blocks = ()
        if self.has_pose:
            blocks = (
                ("attitude", Rotation(noise=0.003, std=0.3)),
                ("velocity", Vector(3, "m/s", frame="world", noise=0.01, std=3.0)),
            )
        if self.torques_observable:
            blocks = (*blocks, ("body_rate", Vector(3, "rad/s", frame="body", noise=0.03, std=1.0)))
        if self.has_unmodelled_torque:
            blocks = (*blocks, ("unmodelled_torque", Vector(3, "rad/s^2", frame="body", noise=1.0, std=10.0)))
        if self.has_unmodelled_force:
            blocks = (*blocks, ("unmodelled_force", Vector(3, "m/s^2", frame="body", noise=0.3, std=1.0)))
        return Space(blocks)

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        n = len(self.rotors)
        parts = (
            (name, Scalar(_UNITS[name]) if _WIDTHS[name] == 1 else Vector(_WIDTHS[name], _UNITS[name]))
            for name in LOCAL
        )
        thrusts = (("mean_thrust", Vector(n, "N")), ("rotor_thrust", Vector(n, "N")))
        rate = () if self.torques_observable else (("body_rate", Vector(3, "rad/s", frame="body")),)
        return Space((*thrusts, *parts, *rate))

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        blocks = ()
        if self.has_pose:
            blocks = (
                ("attitude", Rotation(noise=0.01)),
                ("velocity", Vector(3, "m/s", frame="world", noise=0.05)),
            )
        if self.torques_observable:
            blocks = (*blocks, ("body_rate", Vector(3, "rad/s", frame="body", noise=0.02)))
        return Space((*blocks, ("specific_force", Vector(3, "m/s^2", frame="body", noise=0.3))))

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        omega = self._body_rate(x, u, u["mean_thrust"], p)
        acceleration, angular_acceleration = self._accelerations(x, u, omega, u["mean_thrust"], p)
        rate = {}
        if self.has_pose:
            gravity = jnp.array([0.0, 0.0, GRAVITY])
            rate = {"attitude": omega, "velocity": acceleration - gravity}
        if self.torques_observable:
            rate["body_rate"] = angular_acceleration
        if self.has_unmodelled_torque:
            rate["unmodelled_torque"] = jnp.zeros(3)
        if self.has_unmodelled_force:
            rate["unmodelled_force"] = jnp.zeros(3)
        return rate

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        omega = self._body_rate(x, u, u["rotor_thrust"], p)
        acceleration, angular_acceleration = self._accelerations(x, u, omega, u["rotor_thrust"], p)
        force, outputs = acceleration, {}
        if self.has_pose:
            force = rotations.rotate(rotations.inverse(x["attitude"]), acceleration)
            net_acceleration = acceleration - jnp.array([0.0, 0.0, GRAVITY])
            delay = p["velocity_delay"]
            jerk = rotations.rotate(x["attitude"], rotations.cross(omega, force))
            outputs = {
                "attitude": rotations.plus(x["attitude"], -p["attitude_delay"] * omega),
                "velocity": x["velocity"] - delay * (net_acceleration - 0.5 * delay * jerk),
            }
        if self.torques_observable:
            lever = p["imu_position"] - p["centre_of_mass"]
            force = force + rotations.cross(angular_acceleration, lever)
            force = force + rotations.cross(omega, rotations.cross(omega, lever))
            outputs["body_rate"] = omega + u["gyroscope_bias"]
        return {**outputs, "specific_force": force + u["accelerometer_bias"]}

    def _body_rate(
        self, x: Values, u: Values, thrust: Float[Array, " rotors"], p: Values
    ) -> Float[Array, " 3"]:
        if not self.torques_observable:
            return u["body_rate"] - u["gyroscope_bias"]
        return x["body_rate"] - divided_by_inertia(angular_momentum_of_rotors(thrust, self.rotors, p), p)

    def _accelerations(
        self, x: Values, u: Values, omega: Float[Array, " 3"], thrust: Float[Array, " rotors"], p: Values
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """Acceleration without gravity, m/s^2: world frame, or body frame without pose; and omega' in rad/s^2, body frame."""
        wrench = jnp.sum(self._allocation(p) * thrust, axis=1)
        force, torque = wrench[:3], wrench[3:]
        if self.has_unmodelled_force:
            force = force + u["mass"] * x["unmodelled_force"]
        if self.has_pose:
            velocity = x["velocity"] - jnp.concatenate([u["wind"], jnp.zeros(1)])
            of_air = air_wrench(
                x["attitude"], velocity, omega, thrust, self.rotors, p, is_by_axis=self.has_axis_drag
            )
            force = rotations.rotate(x["attitude"], force)
        else:
            of_air = rotor_air_wrench(jnp.zeros(3), omega, thrust, self.rotors, p)
        momentum = angular_momentum_of_rotors(thrust, self.rotors, p)
        torque = torque + of_air[1] - gyroscopic(omega, p) - rotations.cross(omega, momentum)
        torque = torque - p["angular_drag"] * omega
        angular_acceleration = divided_by_inertia(torque, p)
        if self.has_unmodelled_torque:
            angular_acceleration = angular_acceleration + x["unmodelled_torque"]
        return (force + of_air[0]) / u["mass"], angular_acceleration

    def _allocation(self, p: Values) -> Float[Array, "6 rotors"]:
        return jnp.asarray(allocation(self.rotors, p["torque_ratio"], p["centre_of_mass"]))
