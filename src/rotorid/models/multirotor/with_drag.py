"""The multirotor of real logs: motor lag, drag, translational lift and wind beside the mass.

    q' = 1/2 q (x) omega                               T' = (T_c - T) / tau
    v' = s / m (R(q) (0, 0, T_f) + f) + g              d  = f_w - k v,    d_z = z . d,    d_p = d - d_z z
    a  = s / m ((0, 0, T_f) + R(q)^T f) + b            f  = d_p + (r d_z + l |d_p|^2 / W) z + (0, 0, f_z + f_g)
    T_f = T + c (T - T_s),    T_s' = (T - T_s) / tau_s

a is what the accelerometer measures. T_c is the thrust that the rotor commands or speeds give by the airframe's numbers, or the
commanded thrust itself; s is its scale. SESAME D2.2 (eqs. 44-47) is the case k = 0, tau = 0, f = 0. k is the drag across the
rotor axis z, r k that along it: thrust falls as a rotor climbs (inflow), by 0.7 to 2 times the drag across it. l is the lift
factor: by translational lift rotors pull more in wind, as the square of the drag across their axis, over the weight W. The
model is linear in r and l, which exist without knowing drag and wind apart. (With a translational lift k_h per rotor,
N s^2/m^2, l = sum k_h W / k^2.)

What is tracked of the wind is its horizontal force f_w = k w on the vehicle at rest, which stays observable when drag and wind
cannot be separated (in a steady hover); the wind itself is w = f_w / k. A steady vertical wind acts just as less mass does.
What goes up and down is a state, the updraught f_z, a Gauss-Markov process that stands for gusts and ground effect too: the
mass does not follow them, and its band is as wide as they leave it. Brief gusts are a second such state, f_g, with the standard
deviation and the correlation time that a flight shows (see `flight_noise`); nearly zero without them.

In brief gusts, what the thrust does within a quarter of a second is the autopilot's answer to them, and its correlation with
them looks like another response to the thrust (L. Ljung, System Identification, 2nd ed., section 13.4), which mass, scale and
drag would explain. The excess c of its effect, nearly zero otherwise, is then a state: mass and drag follow from the rest.

Flight tells s / m, and no more. Forces are relative to s, so that the direction that no measurement sees, that of s and m
together, is the same at every point: a filter would else gain information about it. A mass that was weighed before take-off
gives s in the first seconds; later changes are those of the mass, and its band contains that of s. Where the mass is not known
better than the thrust, s is fixed. Reported drag and wind force are s k and s f_w.

While a rotor is commanded to its limit the thrust curve does not hold: T is then estimated from the acceleration.

References: M. Faessler, A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, RA-L 3
(2018); J. Svacha, J. Paulos, G. Loianno, V. Kumar, IMU-based inertia estimation for a quadrotor using Newton-Euler dynamics,
RA-L 5 (2020); G. Huang, A. Mourikis, S. Roumeliotis, Observability-based rules for consistent EKF SLAM, IJRR 29 (2010).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
from rotorid.models.airframe.mass import mass_std
from rotorid.models.multirotor.bare import MASS, MASS_DRIFT, MOST_RATE, MOST_THRUST, BareMultirotor
from rotorid.models.multirotor.thrust import ThrustCurve, unconvertible
from rotorid.models.multirotor.thrust_uncertainty import is_weighed, thrust_relative_std
from rotorid.models.system import GRAVITY, Parameter, System, Values
from rotorid.numerics.integrators import Solved
from rotorid.numerics.lag import cascade_end_and_mean, lag_end_and_mean
from rotorid.signals.series import white_noise

ThrustInput = Literal["rotor_command", "thrust", "rotor_thrust", "rotor_speed"]

SATURATED = 0.95
"""Command of a rotor from which on it may be at its limit."""

_POSITIVE = (0.0, math.inf)
_DRAG_DRIFT = 0.005  # of the drag, per square root of s
_DRAG_PER_MASS = 0.3  # 1/s, with a spread as large, where the airframe does not say
_WIND_FORCE_PER_MASS = 1.0  # m/s^2, standard deviation
_WIND_FORCE_DRIFT = 0.25  # m/s^2 per square root of s
MOST_COMMAND = 10.0
"""Largest possible rotor command, of 0 to 1."""

_UPDRAUGHT = 0.015  # of the weight, standard deviation
_UPDRAUGHT_TIME = 1.0  # s
_GUST, _GUST_TIME = 1e-4, 0.1  # of the weight, and s, without gusts
_STEADY_TIME = 0.25  # s
_EXCESS, EXCESS_TIME = 1e-3, 10.0  # without gusts, and s
_ONSET = 10.0  # s after the start in which a weighed mass hardly changes
# Axial drag ratio: 0.74 to 2.0 for rotors of known drag, 1 for a body that is alike on all sides. A wider prior takes up a
# payload that is put on in a climb.
_RATIO = (1.1, 0.35)  # mean and standard deviation
# 0 without, 1.3 for a small quadrotor. The noise of measured speeds makes the response to the thrust look smaller, which a
# lift that is too large explains just as well: with measured speeds its prior is tighter.
_LIFT, _LIFT_OF_SPEEDS = (0.3, 0.5), (0.3, 0.2)  # mean and standard deviation
_LAG_STD = 0.7  # of the lag: about a factor of 2
_LEAST_LAG = 0.6  # of the period of the commands; the integrator is stable from 0.5 on
_LARGEST_LAG = 4.0  # of the prior's
_SPEED_LAG = 0.004  # s, of measured rotor speeds: as short as can be integrated
_BIAS_STD = 0.2  # m/s^2
_BIAS_DRIFT = 0.002  # m/s^2 per square root of s


@dataclasses.dataclass(frozen=True)
class Multirotor(System):
    """Attitude, velocity and collective thrust, with mass, drag, wind and motor lag. It is made by `multirotor`.

    parameters: of the vehicle. thrust_input: signal that gives the thrust, "rotor_command", "thrust", "rotor_thrust" or
    "rotor_speed". rotors: number of rotors. weight: nominal weight, N; it scales the process noise of the thrust. curve:
    thrust curve of one rotor, for rotor commands. coefficient: thrust coefficient, N s^2, for rotor speeds.
    """

    parameters: tuple[Parameter, ...]
    thrust_input: ThrustInput
    rotors: int
    weight: float
    curve: ThrustCurve | None = None
    coefficient: float = 0.0

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        std, gust = _UPDRAUGHT * self.weight, _GUST * self.weight
        return Space.of(
            attitude=Rotation(noise=0.02, std=0.3),
            velocity=Vector(3, "m/s", frame="world", noise=0.05, std=3.0),
            thrust=Scalar(
                "N", frame="body z", initial=self.weight, std=0.5 * self.weight, noise=0.01 * self.weight
            ),
            updraught=Scalar("N", frame="world", std=std, noise=std * math.sqrt(2.0 / _UPDRAUGHT_TIME)),
            gust=Scalar("N", frame="world", std=gust, noise=gust * math.sqrt(2.0 / _GUST_TIME)),
            steady_thrust=Scalar(
                "N", frame="body z", initial=self.weight, std=0.5 * self.weight, noise=0.01 * self.weight
            ),
            fast_thrust_excess=Scalar(std=_EXCESS, noise=_EXCESS * math.sqrt(2.0 / EXCESS_TIME)),
        )

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        rate, most = (
            ("body_rate", Vector(3, "rad/s", frame="body", limit=MOST_RATE)),
            MOST_THRUST * self.weight,
        )
        if self.thrust_input == "thrust":
            return Space((("thrust", Scalar("N", frame="body z", limit=most)), rate))
        if self.thrust_input == "rotor_thrust":
            return Space((("rotor_thrust", Vector(self.rotors, "N", limit=most)), rate))
        if self.thrust_input == "rotor_speed":
            fastest = math.sqrt(most / self.coefficient)
            return Space((("rotor_speed", Vector(self.rotors, "rad/s", limit=fastest)), rate))
        command = ("rotor_command", Vector(self.rotors, "1", limit=MOST_COMMAND))
        if self.curve is not None and self.curve.voltage_exponent:
            return Space((command, ("battery_voltage", Scalar("V")), rate))
        return Space((command, rate))

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            attitude=Rotation(noise=0.02),
            velocity=Vector(3, "m/s", frame="world", noise=0.1),
            specific_force=Vector(3, "m/s^2", frame="body", noise=(0.3, 0.3, 0.3)),
        )

    def commanded_thrust(self, u: Mapping[str, Any]) -> Float[Array | np.ndarray, "*n"]:
        """Commanded thrust T_c before the thrust scale, N; the inputs may be rows of numpy arrays."""
        if self.thrust_input == "thrust":
            return u["thrust"]
        if self.thrust_input == "rotor_thrust":
            return u["rotor_thrust"].sum(axis=-1)
        if self.thrust_input == "rotor_speed":
            return self.coefficient * (u["rotor_speed"] ** 2).sum(axis=-1)
        assert self.curve is not None
        return self.curve.collective(u["rotor_command"], u.get("battery_voltage"))

    def holds(self, u: Values) -> Bool[Array, ""] | bool:
        """False while a rotor is commanded to its limit, where the thrust curve does not hold."""
        return jnp.max(u["rotor_command"]) < SATURATED if self.thrust_input == "rotor_command" else True

    def input_noise(self, u: Float[np.ndarray, "n inputs"]) -> dict[str, float]:
        """Process noise of the thrust due to the white noise of measured rotor speeds, N per square root of s.

        White noise of the standard deviation sigma in T_c has the effect of a process noise of `sigma (2 / tau)^(1/2)` on the
        thrust after the lag tau, if the rows are further apart than tau. Commands have no noise: they act as they are logged.

        u: rows of the inputs.
        """
        if self.thrust_input != "rotor_speed":
            return {}
        speeds = u[:, self.inputs.stored["rotor_speed"]]
        sigma = float(white_noise(self.coefficient * np.sum(speeds**2, axis=1, keepdims=True))[0])
        lag = self.parameter("motor_time_constant").values[0]
        return {"thrust": max(sigma * math.sqrt(2.0 / lag), self.states["thrust"].noise_vector[0])}

    def commanded_force(
        self, t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n inputs"], y: Float[np.ndarray, "n stored"]
    ) -> Float[np.ndarray, "n 3"]:
        """Specific force by the commanded thrust after its lag, m/s^2, body frame. Its mean along z is that of the measured
        one.

        t: times of the rows, s. u: rows of inputs. y: rows of outputs, with measured specific forces.
        """
        thrust = np.asarray(self.commanded_thrust(self.inputs.unpack(u)))
        step = float(np.median(np.diff(t)))
        share = -math.expm1(-step / self.parameter("motor_time_constant").values[0])
        thrust = np.array([*itertools.accumulate(thrust.tolist(), lambda y, u: y + share * (u - y))])
        force = y[:, self.outputs.stored["specific_force"]][:, 2]
        result = np.zeros((len(t), 3))
        result[:, 2] = thrust * np.mean(force) / max(float(np.mean(thrust)), 1e-9 * self.weight)
        return result

    def air_force(self, x: Values, p: Values) -> Float[Array, " 3"]:
        """Force f of the air on the vehicle, N, world frame."""
        zero = jnp.zeros_like(x["thrust"])
        drag = jnp.concatenate([p["wind_force"], zero[None]]) - p["drag"] * x["velocity"]
        z = rotations.rotate(x["attitude"], jnp.stack([zero, zero, zero + 1.0]))
        along = z @ drag
        across = drag - along * z
        lift = p["lift_factor"] / self.weight * (across @ across)
        vertical = jnp.stack([zero, zero, x["updraught"] + x["gust"]])
        return across + (p["axial_drag_ratio"] * along + lift) * z + vertical

    def derive(self, x: Values, p: Values) -> Values:
        wind, scale = p["wind_force"] / p["drag"], p["thrust_scale"]
        return {
            "drag": scale * p["drag"],
            "wind_force_x": scale * p["wind_force"][0],
            "wind_force_y": scale * p["wind_force"][1],
            "wind_x": wind[0],
            "wind_y": wind[1],
        }

    @property
    def derived_units(self) -> Mapping[str, str]:
        return {"drag": "N s/m", "wind_force_x": "N", "wind_force_y": "N", "wind_x": "m/s", "wind_y": "m/s"}

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        force = rotations.rotate(x["attitude"], _along_z(_felt_thrust(x))) + self.air_force(x, p)
        lag = (self.commanded_thrust(u) - x["thrust"]) / p["motor_time_constant"]
        return {
            "attitude": u["body_rate"],
            "velocity": p["thrust_scale"] / p["mass"] * force - jnp.array([0.0, 0.0, GRAVITY]),
            "thrust": jnp.where(self.holds(u), lag, 0.0),
            "updraught": -x["updraught"] / _UPDRAUGHT_TIME,
            "gust": -x["gust"] / p["gust_time"],
            "steady_thrust": (x["thrust"] - x["steady_thrust"]) / _STEADY_TIME,
            "fast_thrust_excess": -x["fast_thrust_excess"] / EXCESS_TIME,
        }

    def solve_lags(self, x: Values, u: Values, p: Values, dt: Float[Array, ""] | float) -> Solved:
        """The thrust, its steady part, which follows the thrust, and the gust, which decays."""
        lag, memory = p["motor_time_constant"], p["gust_time"]
        thrust = jnp.where(self.holds(u), self.commanded_thrust(u), x["thrust"])
        return {
            "thrust": lag_end_and_mean(x["thrust"], thrust, dt, (lag, lag)),
            "steady_thrust": cascade_end_and_mean(
                x["steady_thrust"], x["thrust"], thrust, dt, (lag, _STEADY_TIME)
            ),
            "gust": lag_end_and_mean(x["gust"], jnp.zeros_like(x["gust"]), dt, (memory, memory)),
        }

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        air_force = rotations.rotate(rotations.inverse(x["attitude"]), self.air_force(x, p))
        return {
            "attitude": x["attitude"],
            "velocity": x["velocity"],
            "specific_force": p["thrust_scale"] / p["mass"] * (_along_z(_felt_thrust(x)) + air_force)
            + p["accelerometer_bias"],
        }


def multirotor(
    airframe: Airframe,
    thrust_input: ThrustInput = "rotor_command",
    *,
    rotors: int | None = None,
    known_mass: float | None = None,
    command_period: float | None = None,
    has_velocity: bool = True,
) -> Multirotor:
    """Make the multirotor of an airframe with motor lag, drag, translational lift and wind.

    Args:
        airframe: airframe of the vehicle.
        thrust_input: "rotor_command", commands from 0 to 1 with the airframe's thrust curve; "thrust", in N; "rotor_thrust",
            of each rotor in N; or "rotor_speed", in rad/s, with the airframe's thrust coefficient.
        rotors: number of rotors; by default that of the airframe, or 4 where it has none.
        known_mass: mass, kg, that is held fixed, so that the thrust scale is tracked in its place; None: the mass is tracked.
        command_period: time between the logged commands, s; None if unknown. The motor time constant is tracked where the
            commands are logged at least as fast as that.
        has_velocity: whether the velocity is measured; without it, drag along the rotor axis and lift are not tracked.
    Returns:
        The System; it tracks mass or thrust scale (both, if the mass is better known than the thrust), drag, wind force (N,
        world) and accelerometer bias (m/s^2, body), and with velocity the axial drag ratio and the lift factor.
    Raises:
        AirframeError: rotor commands are the input and the airframe has no thrust curve; or speeds, and it has no thrust
            coefficient.
        SettingError: the known mass is not positive.
    Source: SESAME D2.2, eqs. 44-47, extended by motor lag, drag, translational lift and wind.
    """
    count = rotors or len(airframe.rotors) or 4
    if (thrust_input == "rotor_command" and airframe.thrust_curve is None) or (
        thrust_input == "rotor_speed" and airframe.get("thrust_coefficient") is None
    ):
        raise unconvertible(airframe, thrust_input)
    if known_mass is not None and known_mass <= 0:
        raise SettingError(f"the known mass {known_mass:g} kg must be positive")
    nominal = airframe.mass.number if known_mass is None else known_mass
    parameters = (
        *_mass_and_scale(airframe, nominal, is_known=known_mass is not None),
        *_air(airframe, nominal, has_velocity, _LIFT_OF_SPEEDS if thrust_input == "rotor_speed" else _LIFT),
        Parameter(
            "accelerometer_bias",
            (0.0, 0.0, 0.0),
            std=_BIAS_STD,
            unit="m/s^2",
            drift=_BIAS_DRIFT,
            frame="body",
        ),
        _motor_time_constant(airframe, thrust_input, command_period if has_velocity else None),
        Parameter("gust_time", _GUST_TIME, unit="s"),
    )
    curve = airframe.thrust_curve if thrust_input == "rotor_command" else None
    coefficient = airframe.number("thrust_coefficient") if thrust_input == "rotor_speed" else 0.0
    return Multirotor(parameters, thrust_input, count, nominal * GRAVITY, curve, coefficient)


def _mass_and_scale(airframe: Airframe, nominal: float, *, is_known: bool) -> tuple[Parameter, Parameter]:
    """Mass and thrust scale. nominal: kg. is_known: whether the mass is fixed."""
    scale = airframe.number("thrust_scale", 1.0)
    weighed = not is_known and is_weighed(airframe)
    std = 0.0 if is_known else mass_std(airframe)
    scale_std = 0.2 if is_known else scale * thrust_relative_std(airframe) if weighed else 0.0
    return (
        Parameter(
            "mass",
            nominal,
            std=std,
            unit="kg",
            bounds=_POSITIVE,
            drift=MASS_DRIFT * nominal,
            onset=_ONSET if weighed else 0.0,
        ),
        Parameter("thrust_scale", scale, scale_std, bounds=_POSITIVE, drift=0.0 if weighed else MASS_DRIFT),
    )


def _air(
    airframe: Airframe, nominal: float, has_velocity: bool, lift: tuple[float, float]
) -> tuple[Parameter, ...]:
    """Drag, axial drag ratio, lift factor and wind force. lift: prior of the lift factor, where the airframe has none."""
    root = math.sqrt(
        (len(airframe.rotors) or 4) * nominal * GRAVITY
    )  # of the rotors' thrusts in hover, summed
    (body, body_std), (axial, axial_std) = _number(airframe, "drag", 0), _number(airframe, "drag", 2)
    rotor, rotor_std = _number(airframe, "rotor_drag")
    inflow, inflow_std = _number(airframe, "rotor_inflow")
    gain, gain_std = _number(airframe, "translational_lift")
    value = body + root * rotor or _DRAG_PER_MASS * nominal
    std = math.hypot(body_std, root * rotor_std) or value
    ratio = _RATIO
    if inflow:
        ratio = ((axial + root * inflow) / value, math.hypot(axial_std, root * inflow_std) / value)
    if gain:
        per_gain = (len(airframe.rotors) or 4) * nominal * GRAVITY / value**2
        lift = (per_gain * gain, per_gain * gain_std)
    if not has_velocity:
        ratio, lift = (1.0, 0.0), (0.0, 0.0)
    return (
        Parameter("drag", value, std, "N s/m", _POSITIVE, _DRAG_DRIFT * value, "body x, y", True),
        Parameter("axial_drag_ratio", *ratio, "1", _POSITIVE, _DRAG_DRIFT, "body z", True),
        Parameter("lift_factor", *lift, "1", _POSITIVE, _DRAG_DRIFT, "body z", True),
        Parameter(
            "wind_force",
            (0.0, 0.0),
            std=_WIND_FORCE_PER_MASS * nominal,
            unit="N",
            drift=_WIND_FORCE_DRIFT * nominal,
            frame="world",
        ),
    )


def _number(airframe: Airframe, name: str, axis: int = 0) -> tuple[float, float]:
    """A quantity (of an axis, where it has several) and its standard deviation, by default half of it; zeros without it."""
    quantity = airframe.get(name)
    if quantity is None:
        return 0.0, 0.0
    value = quantity.value[min(axis, len(quantity.value) - 1)]
    if quantity.std is None:
        return value, value if name == "drag" else 0.5 * value
    return value, quantity.std[min(axis, len(quantity.std) - 1)]


def _motor_time_constant(
    airframe: Airframe, thrust_input: ThrustInput, command_period: float | None
) -> Parameter:
    """The lag between command and thrust; measured speeds have next to none."""
    if thrust_input == "rotor_speed":
        lag = max(_SPEED_LAG, _LEAST_LAG * command_period) if command_period else MOTOR_LAG
        return Parameter("motor_time_constant", lag, unit="s")
    quantity = airframe.get("motor_time_constant")
    value = quantity.number if quantity else MOTOR_LAG
    if command_period is None or command_period > value:
        return Parameter("motor_time_constant", value, unit="s")
    std = quantity.std[0] if quantity and quantity.std else _LAG_STD * value
    return Parameter(
        "motor_time_constant", value, std, "s", (_LEAST_LAG * command_period, _LARGEST_LAG * value)
    )


def bare_multirotor(airframe: Airframe) -> BareMultirotor:
    """Make the multirotor of SESAME D2.2, driven by thrust (N, body z) and body rate (rad/s, FLU).

    Args:
        airframe: its mass (kg) is the prior of the tracked mass; its thrust scale multiplies the thrust.
    Returns:
        The System.
    Source: SESAME D2.2, eqs. 44-47.
    """
    mass = airframe.mass.number
    prior = MASS.with_prior(mass, mass_std(airframe), MASS_DRIFT * mass)
    return BareMultirotor(prior, airframe.number("thrust_scale", 1.0))


def _felt_thrust(x: Values) -> Float[Array, ""]:
    """T_f."""
    return x["thrust"] + x["fast_thrust_excess"] * (x["thrust"] - x["steady_thrust"])


def _along_z(thrust: Float[Array, ""]) -> Float[Array, " 3"]:
    zero = jnp.zeros_like(thrust)
    return jnp.stack([zero, zero, thrust])
