"""State feedback of the 12-state quadrotor along a trajectory, with a gain schedule or an LQR.

    (U1, tau) = (trim(rho), 0) + K(rho) e,      W = sqrt(inv(G) (U1, tau))

e contains the errors of position, velocity, yaw and yaw rate in the heading frame, those of the tilt and its rates, and
the integrals of position and yaw errors (`models.quadrotor.heading_frame`). The tilt set points follow from the
acceleration of the trajectory, a_forward / pull and -a_left / pull, and the trim thrust is (g + a_z) / lift.

The parameters rho of a schedule, with lift and pulls, follow from the measured state, the tracked mass, the last rotor
speeds and the commanded thrust. An LQR is designed in hover at the mass of the airframe. It uses either constant
values, lift 1/m and pull g, or, with `uses_lift`, lift and pulls of the tracked mass and the measured tilt.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.control.gain_scheduling import GainSchedule, Method, gain_schedule, lqr, weights
from rotorid.models.lpv.model import Lpv
from rotorid.models.quadrotor.heading_frame import (
    TORQUES,
    heading_box,
    heading_lpv,
    rotor_allocation,
    rotor_speeds,
)
from rotorid.models.quadrotor.quadrotor import Quadrotor
from rotorid.models.system import GRAVITY

Numbers = Float[np.ndarray, "*batch"] | float
"""A number for each vehicle, or of one vehicle."""

_ROLL, _PITCH, _YAW = 0, 2, 4  # in the 12 states
_P, _Q, _R = 1, 3, 5
_POSITION, _VELOCITY = slice(6, 12, 2), slice(7, 12, 2)
_TILT = [_ROLL, _PITCH]
_ANGULAR_ACCELERATION: Final = (37.0, 37.0, 7.0)  # rad/s^2, largest acceptable
_MIN_TILT_COSINE: Final = 0.2  # cos(roll) cos(pitch) up to which the trim compensates the tilt


@dataclasses.dataclass(frozen=True)
class TrajectoryPoint:
    """Set point: position (m), velocity (m/s) and acceleration (m/s^2) in the world frame, yaw (rad), yaw rate (rad/s)."""

    position: Float[np.ndarray, "*batch 3"]
    velocity: Float[np.ndarray, "*batch 3"]
    acceleration: Float[np.ndarray, "*batch 3"]
    yaw: Numbers
    yaw_rate: Numbers


@dataclasses.dataclass(frozen=True)
class ControllerState:
    """State of the controller: integrals of the errors of position (m s, world frame) and yaw (rad s), rotor speeds
    (rad/s)."""

    position: Float[np.ndarray, "*batch 3"]
    yaw: Numbers
    speeds: Float[np.ndarray, "*batch rotors"]


class HeadingController:
    """State feedback along a trajectory, of one quadrotor or of several in parallel (leading axes).

    vehicle: the quadrotor that the controller is designed for. control: a gain schedule, or a constant gain K. uses_lift:
    whether the vertical and the horizontal acceleration by the thrust follow from the tracked mass and the tilt, and not from
    the hover of the vehicle; by default True for a schedule and False for a gain. rotor_speed: lower and upper limit, rad/s.
    specific_thrust: lower and upper limit of the thrust over the mass, m/s^2.
    """

    def __init__(
        self,
        vehicle: Quadrotor,
        control: GainSchedule | Float[np.ndarray, "m n"],
        *,
        uses_lift: bool | None = None,
        rotor_speed: tuple[float, float] = (0.0, math.inf),
        specific_thrust: tuple[float, float] = (0.0, math.inf),
    ) -> None:
        is_scheduled = isinstance(control, GainSchedule)
        self.control, self.rotor_speed, self.specific_thrust = control, rotor_speed, specific_thrust
        self.uses_lift = is_scheduled if uses_lift is None else uses_lift
        self.mass = vehicle.parameter("mass").values[0]
        self.model: Lpv = control.model if is_scheduled else heading_lpv(vehicle)
        self._spin = vehicle.parameter("rotor_inertia").values[0] * np.array(vehicle.spins)
        self._allocation = rotor_allocation(vehicle)
        self._inverse = np.linalg.pinv(self._allocation)
        self._pulls = [self.model.names.index(name) for name in ("pull_pitch", "pull_roll")]

    def command(
        self,
        x: Float[np.ndarray, "*batch 12"],
        setpoint: TrajectoryPoint,
        state: ControllerState,
        dt: float,
        mass: Numbers,
    ) -> tuple[Float[np.ndarray, "*batch rotors"], ControllerState]:
        """One step of the controller.

        Args:
            x: measured state.
            setpoint: point of the trajectory.
            state: state of the controller after the previous step.
            dt: length of the step, s.
            mass: tracked mass, kg.
        Returns:
            Rotor speeds (rad/s), and the next state of the controller.
        """
        e, acceleration = self._errors(x, setpoint, state)
        assumed_mass = mass if self.uses_lift else np.full_like(mass, self.mass)
        tilt_cosine = np.maximum(np.cos(x[..., _ROLL]) * np.cos(x[..., _PITCH]), _MIN_TILT_COSINE)
        trim = assumed_mass * (GRAVITY + acceleration[..., 2]) / (tilt_cosine if self.uses_lift else 1.0)
        rho = self._rho(x, trim, mass, state)
        unlimited = trim + np.sum(self._gain(rho)[..., 0, :] * e, axis=-1)
        least, most = (assumed_mass * limit for limit in self.specific_thrust)
        thrust = np.minimum(np.maximum(unlimited, least), most)
        rho[..., self._pulls] *= (thrust / trim)[..., None]
        pulls = rho[..., self._pulls] if self.uses_lift else np.full((*thrust.shape, 2), GRAVITY)
        e[..., _TILT] += np.stack([acceleration[..., 1], -acceleration[..., 0]], axis=-1) / pulls[..., ::-1]
        torque = (self._gain(rho)[..., 1:, :] @ e[..., None])[..., 0]
        wrench = np.concatenate([thrust[..., None], torque], axis=-1)
        speeds = rotor_speeds(self._inverse, wrench, self.rotor_speed)
        position_error = x[..., _POSITION] - setpoint.position
        position_error[..., 2] *= thrust == unlimited  # the integral is held while the thrust is at its limit
        yaw = state.yaw + dt * _wrap_angle(x[..., _YAW] - setpoint.yaw)
        return speeds, ControllerState(state.position + dt * position_error, yaw, speeds)

    def rho(
        self, x: Float[np.ndarray, "*batch 12"], mass: Numbers, state: ControllerState
    ) -> Float[np.ndarray, "*batch k"]:
        """Parameters rho of the model at the state x and the rotor speeds of a controller state. mass: tracked mass, kg."""
        return self._rho(x, state.speeds**2 @ self._allocation[0], mass, state)

    def _gain(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "... m n"]:
        return self.control.gain(rho) if isinstance(self.control, GainSchedule) else self.control

    def _rho(
        self,
        x: Float[np.ndarray, "*batch 12"],
        thrust: Numbers,
        mass: Numbers,
        state: ControllerState,
    ) -> Float[np.ndarray, "*batch k"]:
        values = {"mass": mass, "thrust": thrust, "rotor_momentum": state.speeds @ self._spin}
        values |= {
            "roll": x[..., _ROLL],
            "pitch": x[..., _PITCH],
            "roll_rate": x[..., _P],
            "yaw_rate": x[..., _R],
        }
        return self.model.scheduling(**values)

    def _errors(
        self, x: Float[np.ndarray, "*batch 12"], setpoint: TrajectoryPoint, state: ControllerState
    ) -> tuple[Float[np.ndarray, "*batch 16"], Float[np.ndarray, "*batch 3"]]:
        """e in the order of the states of the model, without the tilt set points; and the acceleration of the
        trajectory (m/s^2, heading frame)."""
        c, s = np.cos(x[..., _YAW]), np.sin(x[..., _YAW])

        def to_heading(v: Float[np.ndarray, "*batch 3"]) -> Float[np.ndarray, "*batch 3"]:
            return np.stack(
                [c * v[..., 0] + s * v[..., 1], c * v[..., 1] - s * v[..., 0], v[..., 2]], axis=-1
            )

        e = np.empty((*x.shape[:-1], 16))
        e[..., :6] = x[..., :6]
        e[..., _YAW] = _wrap_angle(x[..., _YAW] - setpoint.yaw)
        e[..., _R] -= setpoint.yaw_rate
        e[..., _POSITION] = to_heading(x[..., _POSITION] - setpoint.position)
        e[..., _VELOCITY] = to_heading(x[..., _VELOCITY] - setpoint.velocity)
        e[..., 12:15], e[..., 15] = to_heading(state.position), state.yaw
        return e, to_heading(setpoint.acceleration)


def acceptable_values(vehicle: Quadrotor) -> dict[str, float]:
    """The largest acceptable value of each state and input of `heading_lpv`, for `weights`; the inputs scale with
    weight and inertia of the vehicle. Angles in rad, rates in rad/s, m, m/s, m s, N, N m."""
    weight = vehicle.parameter("mass").values[0] * GRAVITY
    inertia = vehicle.parameter("inertia").values
    translation = {"position": 0.4, "velocity": 1.0, "integral": 0.5}
    return {
        **dict.fromkeys(("roll", "pitch"), 0.4),
        "yaw": 0.5,
        **dict.fromkeys(("roll_rate", "pitch_rate"), 3.0),
        "yaw_rate": 2.0,
        **{f"{kind}_{axis}": size for kind, size in translation.items() for axis in ("forward", "left", "z")},
        "integral_yaw": 0.5,
        "thrust": 0.5 * weight,
        **{name: a * i for name, a, i in zip(TORQUES, _ANGULAR_ACCELERATION, inertia, strict=True)},
    }


def heading_schedule(
    vehicle: Quadrotor,
    ranges: Mapping[str, tuple[float, float]],
    specific_thrust: tuple[float, float],
    *,
    acceptable: Mapping[str, float] | None = None,
    method: Method = "cost",
    decay: float = 0.0,
    damping: float | None = None,
    max_rate: float | None = None,
) -> GainSchedule:
    """Design a gain schedule for a quadrotor over ranges of its parameters, for `HeadingController`.

    Args:
        vehicle: the quadrotor.
        ranges: lower and upper limit of roll, pitch (rad), yaw_rate (rad/s), mass (kg) and, if the model has
            them, roll_rate (rad/s) and rotor_momentum (N m s), see `heading_box`. `tracked_range` gives the
            range of a tracked mass.
        specific_thrust: range of thrust over mass, m/s^2.
        acceptable: largest acceptable values of states and inputs by name; they replace those of
            `acceptable_values`.
        method: "cost" or "local", see `gain_schedule`.
        decay: least decay rate, 1/s.
        damping: least damping ratio of the poles at each vertex.
        max_rate: largest decay rate of the poles at each vertex, 1/s.
    Returns:
        The controller with its certificate.
    Raises:
        SettingError: an invalid range or setting, or no such controller exists.
    """
    model = heading_lpv(vehicle)
    box = heading_box(model, ranges, specific_thrust)
    sizes = {**acceptable_values(vehicle), **(acceptable or {})}
    Q, R = weights(model.states, sizes), weights(model.inputs, sizes)
    return gain_schedule(model, box, Q, R, method=method, decay=decay, damping=damping, max_rate=max_rate)


def hover_lqr(vehicle: Quadrotor, acceptable: Mapping[str, float] | None = None) -> Float[np.ndarray, "m n"]:
    """The gain of the LQR in hover at the mass of the airframe, for the states and inputs of `heading_lpv`. acceptable: see
    `heading_schedule`."""
    model = heading_lpv(vehicle)
    sizes = {**acceptable_values(vehicle), **(acceptable or {})}
    Q, R = weights(model.states, sizes), weights(model.inputs, sizes)
    mass = vehicle.parameter("mass").values[0]
    rho = model.scheduling(
        np.zeros(len(model.states)), np.array([mass * GRAVITY, 0.0, 0.0, 0.0]), mass=mass, rotor_momentum=0.0
    )
    A, B, _ = model.at(rho)
    return lqr(A, B, Q, R)[0]


def _wrap_angle(angle: Numbers) -> Numbers:
    """The angle in (-pi, pi]."""
    return math.pi - (math.pi - angle) % (2.0 * math.pi)
