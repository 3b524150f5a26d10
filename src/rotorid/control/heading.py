"""Flying the 12-state quadrotor with a gain schedule, or with one LQR: from errors to rotor speeds.

    (U1, tau) = (trim(rho), 0) + K(rho) e,      W = sqrt(inv(G) (U1, tau))

e holds the errors of position, velocity, yaw and yaw rate in the frame that turns with the heading, those of the tilt and its
rates, and the integrals of position and yaw errors (`models.quadrotor_heading`). Wanted is the tilt that gives the wanted
acceleration, a_forward / pull and -a_left / pull, and the thrust that does, (g + a_z) / lift.

The schedule takes rho, with lift and pulls in it, from the measured state, the tracked mass, the rotors' last speeds, and the
thrust that it is about to command. The LQR is designed in hover at the airframe's mass; its gain, its lift 1/m and its pull
g never change. Between them stands an LQR that knows lift and pulls, with the gain of hover.
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
"""One number for each vehicle, or that of one vehicle."""

_ROLL, _PITCH, _YAW = 0, 2, 4  # in the 12 states
_P, _Q, _R = 1, 3, 5
_POSITION, _VELOCITY = slice(6, 12, 2), slice(7, 12, 2)
_TILT = [_ROLL, _PITCH]
_TURNING: Final = (37.0, 37.0, 7.0)  # rad/s^2
_LEAST_LEVEL: Final = 0.2  # cos cos below which the trim grows no more


@dataclasses.dataclass(frozen=True)
class TrajectoryPoint:
    """What vehicles are to do now: position (m), velocity (m/s) and acceleration (m/s^2) in the world, yaw (rad) and its
    rate (rad/s)."""

    position: Float[np.ndarray, "*batch 3"]
    velocity: Float[np.ndarray, "*batch 3"]
    acceleration: Float[np.ndarray, "*batch 3"]
    yaw: Numbers
    yaw_rate: Numbers


@dataclasses.dataclass(frozen=True)
class ControllerState:
    """What a controller keeps between two calls: integrals of the errors of position (m s, world) and yaw (rad s), and the
    speeds (rad/s) of the rotors."""

    position: Float[np.ndarray, "*batch 3"]
    yaw: Numbers
    speeds: Float[np.ndarray, "*batch rotors"]


class HeadingController:
    """State feedback around a trajectory, of one quadrotor or of many at once (leading axes).

    vehicle: what it is designed for. control: a schedule, or a fixed gain K of the model's states. knows_lift: whether lift and
    pulls are taken from the tracked mass and the tilt, or from the hover of the vehicle; default: with a schedule. rotor_speed:
    limits in rad/s. specific_thrust: limits of U1 over the mass, m/s^2.
    """

    def __init__(
        self,
        vehicle: Quadrotor,
        control: GainSchedule | Float[np.ndarray, "m n"],
        *,
        knows_lift: bool | None = None,
        rotor_speed: tuple[float, float] = (0.0, math.inf),
        specific_thrust: tuple[float, float] = (0.0, math.inf),
    ) -> None:
        scheduled = isinstance(control, GainSchedule)
        self.control, self.rotor_speed, self.specific_thrust = control, rotor_speed, specific_thrust
        self.knows_lift = scheduled if knows_lift is None else knows_lift
        self.mass = vehicle.parameter("mass").values[0]
        self.model: Lpv = control.model if scheduled else heading_lpv(vehicle)
        self._spin = vehicle.parameter("rotor_inertia").values[0] * np.array(vehicle.spins)
        self._allocation = rotor_allocation(vehicle)
        self._inverse = np.linalg.pinv(self._allocation)
        self._pulls = [self.model.names.index(name) for name in ("pull_pitch", "pull_roll")]

    def command(
        self,
        x: Float[np.ndarray, "*batch 12"],
        wanted: TrajectoryPoint,
        memory: ControllerState,
        dt: float,
        mass: Numbers,
    ) -> tuple[Float[np.ndarray, "*batch rotors"], ControllerState]:
        """Rotor speeds in rad/s for the next dt s, and the memory after them. mass: as it is tracked, kg."""
        e, ahead = self._errors(x, wanted, memory)
        carried = mass if self.knows_lift else np.full_like(mass, self.mass)
        level = np.maximum(np.cos(x[..., _ROLL]) * np.cos(x[..., _PITCH]), _LEAST_LEVEL)
        trim = carried * (GRAVITY + ahead[..., 2]) / (level if self.knows_lift else 1.0)
        rho = self._rho(x, trim, mass, memory)
        asked = trim + np.sum(self._gain(rho)[..., 0, :] * e, axis=-1)
        least, most = (carried * limit for limit in self.specific_thrust)
        thrust = np.minimum(np.maximum(asked, least), most)
        rho[..., self._pulls] *= (thrust / trim)[..., None]
        pulls = rho[..., self._pulls] if self.knows_lift else np.full((*thrust.shape, 2), GRAVITY)
        e[..., _TILT] += np.stack([ahead[..., 1], -ahead[..., 0]], axis=-1) / pulls[..., ::-1]
        torque = (self._gain(rho)[..., 1:, :] @ e[..., None])[..., 0]
        wrench = np.concatenate([thrust[..., None], torque], axis=-1)
        speeds = rotor_speeds(self._inverse, wrench, self.rotor_speed)
        off = x[..., _POSITION] - wanted.position
        off[..., 2] *= thrust == asked  # at its limit, the thrust's integral waits
        yaw = memory.yaw + dt * _wrap_angle(x[..., _YAW] - wanted.yaw)
        return speeds, ControllerState(memory.position + dt * off, yaw, speeds)

    def rho(
        self, x: Float[np.ndarray, "*batch 12"], mass: Numbers, memory: ControllerState
    ) -> Float[np.ndarray, "*batch k"]:
        """The model's parameters at a state and the rotor speeds of a memory. mass: kg."""
        return self._rho(x, memory.speeds**2 @ self._allocation[0], mass, memory)

    def _gain(self, rho: Float[np.ndarray, "*batch k"]) -> Float[np.ndarray, "... m n"]:
        return self.control.gain(rho) if isinstance(self.control, GainSchedule) else self.control

    def _rho(
        self,
        x: Float[np.ndarray, "*batch 12"],
        thrust: Numbers,
        mass: Numbers,
        memory: ControllerState,
    ) -> Float[np.ndarray, "*batch k"]:
        values = {"mass": mass, "thrust": thrust, "rotor_momentum": memory.speeds @ self._spin}
        values |= {
            "roll": x[..., _ROLL],
            "pitch": x[..., _PITCH],
            "roll_rate": x[..., _P],
            "yaw_rate": x[..., _R],
        }
        return self.model.scheduling(**values)

    def _errors(
        self, x: Float[np.ndarray, "*batch 12"], wanted: TrajectoryPoint, memory: ControllerState
    ) -> tuple[Float[np.ndarray, "*batch 16"], Float[np.ndarray, "*batch 3"]]:
        """e in the order of the model's states, but for the wanted tilt; and the wanted acceleration (m/s^2, heading)."""
        c, s = np.cos(x[..., _YAW]), np.sin(x[..., _YAW])

        def turned(v: Float[np.ndarray, "*batch 3"]) -> Float[np.ndarray, "*batch 3"]:
            return np.stack(
                [c * v[..., 0] + s * v[..., 1], c * v[..., 1] - s * v[..., 0], v[..., 2]], axis=-1
            )

        e = np.empty((*x.shape[:-1], 16))
        e[..., :6] = x[..., :6]
        e[..., _YAW] = _wrap_angle(x[..., _YAW] - wanted.yaw)
        e[..., _R] -= wanted.yaw_rate
        e[..., _POSITION] = turned(x[..., _POSITION] - wanted.position)
        e[..., _VELOCITY] = turned(x[..., _VELOCITY] - wanted.velocity)
        e[..., 12:15], e[..., 15] = turned(memory.position), memory.yaw
        return e, turned(wanted.acceleration)


def acceptable_values(vehicle: Quadrotor) -> dict[str, float]:
    """The largest acceptable value of each state and input of `heading_lpv`, for `weights`: what suits a vehicle with these
    inertias. Angles in rad, rates in rad/s, m, m/s, m s, N, N m."""
    weight = vehicle.parameter("mass").values[0] * GRAVITY
    inertia = vehicle.parameter("inertia").values
    ways = {"position": 0.4, "velocity": 1.0, "integral": 0.5}
    return {
        **dict.fromkeys(("roll", "pitch"), 0.4),
        "yaw": 0.5,
        **dict.fromkeys(("roll_rate", "pitch_rate"), 3.0),
        "yaw_rate": 2.0,
        **{f"{kind}_{axis}": size for kind, size in ways.items() for axis in ("forward", "left", "z")},
        "integral_yaw": 0.5,
        "thrust": 0.5 * weight,
        **{name: turn * i for name, turn, i in zip(TORQUES, _TURNING, inertia, strict=True)},
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
    fastest: float | None = None,
) -> GainSchedule:
    """Design a gain schedule for a quadrotor over ranges of its parameters, for `HeadingController`.

    Args:
        vehicle: the quadrotor.
        ranges: least and greatest value of roll, pitch (rad), yaw_rate (rad/s), mass (kg) and, where the
            model has them, roll_rate (rad/s) and rotor_momentum (N m s), see `heading_box`. The range of the
            mass may come from its track (`tracked_range`).
        specific_thrust: range of thrust over mass, m/s^2.
        acceptable: largest acceptable values of states and inputs by name, which replace those of
            `acceptable_values`.
        method: "cost" or "local", see `gain_schedule`.
        decay: least decay rate, 1/s.
        damping: least damping ratio of the poles at each vertex.
        fastest: largest rate of the poles at each vertex, 1/s.
    Returns:
        The controller with its certificate.
    Raises:
        SettingError: an invalid range or setting, or no such controller exists.
    """
    model = heading_lpv(vehicle)
    box = heading_box(model, ranges, specific_thrust)
    sizes = {**acceptable_values(vehicle), **(acceptable or {})}
    Q, R = weights(model.states, sizes), weights(model.inputs, sizes)
    return gain_schedule(model, box, Q, R, method=method, decay=decay, damping=damping, fastest=fastest)


def hover_lqr(vehicle: Quadrotor, acceptable: Mapping[str, float] | None = None) -> Float[np.ndarray, "m n"]:
    """The gain of the LQR in hover at the airframe's mass, over the states and inputs of `heading_lpv`. acceptable: as of
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
    """The same direction within (-pi, pi]."""
    return math.pi - (math.pi - angle) % (2.0 * math.pi)
