"""The multirotor of real logs: motor lag, linear drag and wind beside the mass.

    q' = 1/2 q (x) omega                       T' = (T_c - T) / tau
    v' = (R(q) (0, 0, T) - k v + f) / m + g    f = (f_w, f_z),  f_z' = -f_z / tau_z
    a  = ((0, 0, T) + R(q)^T (f - k v)) / m + b    (what the accelerometer measures)

T_c is the thrust that the rotor commands ask for by the airframe's thrust curve, or the commanded thrust itself. Seed 000
(eqs. 44-47) is the case k = 0, tau = 0, f = 0. Drag is isotropic. What is tracked of the wind is its horizontal force
f_w = k w on the vehicle at rest, in which the model is linear and which stays observable when drag and wind cannot be separated
(in a steady hover); the wind itself is w = f_w / k. A steady vertical wind acts just as less mass does. What goes up and down
is a state, the updraught f_z (N), a Gauss-Markov process that stands for gusts and ground effect too: the mass does not
follow them, and its band is as wide as they leave it. The tracked parameters are mass, drag and wind force, or the thrust
scale where the mass is known.

While a rotor is commanded to its limit the thrust curve does not hold: T is then estimated from the acceleration.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.errors import AirframeError, SettingError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
from rotorid.models.multirotor.bare import MASS, MASS_DRIFT, MASS_SPREAD, BareMultirotor
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY, Parameter, System, Values

ThrustInput = Literal["rotor_command", "thrust"]

SATURATED = 0.95
"""Command of a rotor from which on it may be at its limit."""

_POSITIVE = (0.0, math.inf)
_DRAG_DRIFT = 0.005  # of the drag, per square root of s
_DRAG_PER_MASS = 0.3  # 1/s, with a spread as large, where the airframe does not say
_WIND_FORCE_PER_MASS = 1.0  # m/s^2, standard deviation
_WIND_FORCE_DRIFT = 0.1  # m/s^2 per square root of s
_UPDRAUGHT = 0.015  # of the weight, standard deviation
_UPDRAUGHT_TIME = 1.0  # s
_BIAS_STD = 0.2  # m/s^2
_BIAS_DRIFT = 0.002  # m/s^2 per square root of s


@dataclasses.dataclass(frozen=True)
class Multirotor(System):
    """Attitude, velocity and collective thrust, with mass, drag, wind and motor lag.

    thrust_input: where the thrust comes from. rotors: how many. weight: nominal, N; it scales the process noise of the
    thrust. curve: thrust curve of one rotor, for rotor commands.
    """

    parameters: tuple[Parameter, ...]
    thrust_input: ThrustInput
    rotors: int
    weight: float
    curve: ThrustCurve | None = None

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        std = _UPDRAUGHT * self.weight
        return Space.of(
            attitude=Rotation(noise=0.02, std=0.3),
            velocity=Vector(3, "m/s", frame="world", noise=0.05, std=3.0),
            thrust=Scalar(
                "N", frame="body z", initial=self.weight, std=0.5 * self.weight, noise=0.01 * self.weight
            ),
            updraught=Scalar("N", frame="world", std=std, noise=std * math.sqrt(2.0 / _UPDRAUGHT_TIME)),
        )

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        rate = ("body_rate", Vector(3, "rad/s", frame="body"))
        if self.thrust_input == "thrust":
            return Space((("thrust", Scalar("N", frame="body z")), rate))
        command = ("rotor_command", Vector(self.rotors, "1"))
        if self.curve is not None and self.curve.voltage_exponent:
            return Space((command, ("battery_voltage", Scalar("V")), rate))
        return Space((command, rate))

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            attitude=Rotation(noise=0.02),
            velocity=Vector(3, "m/s", frame="world", noise=0.1),
            specific_force=Vector(3, "m/s^2", frame="body", noise=(0.3, 0.3, 0.3)),
        )

    def commanded_thrust(self, u: Values) -> Float[Array, ""]:
        """T_c before the thrust scale, in N."""
        if self.thrust_input == "thrust":
            return u["thrust"]
        assert self.curve is not None
        return self.curve.collective(u["rotor_command"], u.get("battery_voltage"))

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        """False while a rotor is commanded to its limit, where the thrust curve does not hold."""
        return jnp.max(u["rotor_command"]) < SATURATED if self.thrust_input == "rotor_command" else True

    def air_force(self, x: Values, p: Values) -> Float[Array, " 3"]:
        """f_w - k v: force of the air on the vehicle in N, world frame."""
        return jnp.concatenate([p["wind_force"], x["updraught"][None]]) - p["drag"] * x["velocity"]

    def derive(self, x: Values, p: Values) -> Values:
        wind = p["wind_force"] / p["drag"]
        return {"wind_x": wind[0], "wind_y": wind[1]}

    @property
    def derived_units(self) -> Mapping[str, str]:
        return {"wind_x": "m/s", "wind_y": "m/s"}

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        force = rotations.rotate(x["attitude"], _along_z(x["thrust"])) + self.air_force(x, p)
        lag = (p["thrust_scale"] * self.commanded_thrust(u) - x["thrust"]) / p["motor_time_constant"]
        return {
            "attitude": u["body_rate"],
            "velocity": force / p["mass"] - jnp.array([0.0, 0.0, GRAVITY]),
            "thrust": jnp.where(self.holds(u), lag, 0.0),
            "updraught": -x["updraught"] / _UPDRAUGHT_TIME,
        }

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        air_force = rotations.rotate(rotations.inverse(x["attitude"]), self.air_force(x, p))
        return {
            "attitude": x["attitude"],
            "velocity": x["velocity"],
            "specific_force": (_along_z(x["thrust"]) + air_force) / p["mass"] + p["accelerometer_bias"],
        }


def multirotor(
    airframe: Airframe,
    thrust_input: ThrustInput = "rotor_command",
    *,
    rotors: int | None = None,
    known_mass: float | None = None,
) -> Multirotor:
    """Make the multirotor of an airframe with motor lag, linear drag and wind.

    Args:
        airframe: of the vehicle.
        thrust_input: "rotor_command", commands from 0 to 1 with the airframe's thrust curve; or "thrust", in
            N.
        rotors: number of rotors; by default that of the airframe, or 4 where it has none.
        known_mass: kg; fixes the mass, so that the thrust scale is tracked instead.
    Returns:
        The System; it tracks mass or thrust scale, drag, wind force (N, world) and accelerometer bias (m/s^2,
        body).
    Raises:
        AirframeError: rotor commands are the input and the airframe has no thrust curve.
        SettingError: the known mass is not positive.
    Source: seed 000, eqs. 44-47, extended by motor lag, drag and wind.
    """
    count = rotors or len(airframe.rotors) or 4
    if thrust_input == "rotor_command" and airframe.thrust_curve is None:
        raise AirframeError(
            f"{airframe.source}: no [thrust_curve], and this log gives rotor commands; add one, or log the thrust in N"
        )
    if known_mass is not None and known_mass <= 0:
        raise SettingError(f"the known mass {known_mass:g} kg must be positive")
    mass = airframe.mass
    nominal = mass.number if known_mass is None else known_mass
    scale = airframe.get("thrust_scale")
    drag = airframe.get("drag")
    drag_value = drag.number if drag else _DRAG_PER_MASS * nominal
    drag_std = drag.std[0] if drag and drag.std else drag_value
    scale_value = scale.number if scale else 1.0
    parameters = (
        Parameter(
            "mass",
            nominal,
            std=0.0 if known_mass else (mass.std[0] if mass.std else MASS_SPREAD * nominal),
            unit="kg",
            bounds=_POSITIVE,
            drift=MASS_DRIFT * nominal,
        ),
        Parameter(
            "thrust_scale", scale_value, std=0.2 if known_mass else 0.0, bounds=_POSITIVE, drift=MASS_DRIFT
        ),
        Parameter("drag", drag_value, drag_std, "N s/m", _POSITIVE, _DRAG_DRIFT * drag_value, "world", True),
        Parameter(
            "wind_force",
            (0.0, 0.0),
            std=_WIND_FORCE_PER_MASS * nominal,
            unit="N",
            drift=_WIND_FORCE_DRIFT * nominal,
            frame="world",
        ),
        Parameter(
            "accelerometer_bias",
            (0.0, 0.0, 0.0),
            std=_BIAS_STD,
            unit="m/s^2",
            drift=_BIAS_DRIFT,
            frame="body",
        ),
        Parameter("motor_time_constant", airframe.number("motor_time_constant", MOTOR_LAG), unit="s"),
    )
    curve = airframe.thrust_curve if thrust_input == "rotor_command" else None
    return Multirotor(parameters, thrust_input, count, nominal * GRAVITY, curve)


def bare_multirotor(airframe: Airframe) -> BareMultirotor:
    """Make the multirotor of seed 000, driven by thrust (N, body z) and body rate (rad/s, FLU).

    Args:
        airframe: its mass (kg) is the prior of the tracked mass.
    Returns:
        The System.
    Source: seed 000, eqs. 44-47.
    """
    mass = airframe.mass
    std = mass.std[0] if mass.std else MASS_SPREAD * mass.number
    return BareMultirotor(mass=MASS.with_prior(mass.number, std, MASS_DRIFT * mass.number))


def _along_z(thrust: Float[Array, ""]) -> Float[Array, " 3"]:
    zero = jnp.zeros_like(thrust)
    return jnp.stack([zero, zero, thrust])
