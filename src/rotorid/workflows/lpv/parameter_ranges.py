"""Ranges for an LPV model: from a TOML file, and from flights.

    roll = [-0.5, 0.5]                # rad; also pitch and yaw
    roll_rate = [-2.0, 2.0]           # rad/s; also pitch_rate and yaw_rate
    rotor_speed = [100.0, 500.0]      # rad/s, of every rotor; rotor_speed_0 and so on of one
    mass = [0.9, 1.5]                 # kg
    specific_thrust = [7.0, 13.0]     # m/s^2, thrust over mass, for a controller

`flight_variables` interpolates attitude, body rates and rotor speeds of a flight to the times of the body rate, while
airborne. If a log has rotor thrusts or commands, speeds follow from T = b W^2.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

from rotorid.documents import parse_toml, read_text
from rotorid.errors import AirframeError, ExcitationError, SettingError, SignalError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import with_commanded_thrusts
from rotorid.models.quadrotor.quadrotor import ANGLES, RATES, Quadrotor, euler_departure
from rotorid.signals.airborne import airborne_intervals, no_flight_message
from rotorid.signals.sampling import with_reconstructed_commands

SPECIFIC_THRUST: Final = "specific_thrust"
_MAX_PITCH: Final = 1.2  # largest pitch at which roll and yaw are well defined, rad
_TRUE_MASS: Final = "true_mass"


@dataclasses.dataclass(frozen=True)
class FlightVariables:
    """The variables of the model along a flight. t: s. values: by scalar name. mass_range: of a tracked mass with its
    uncertainty, kg; None: the values of the mass, where there are some, are exact."""

    name: str
    t: Float[np.ndarray, " n"]
    values: Mapping[str, Float[np.ndarray, " n"]]
    mass_range: tuple[float, float] | None = None

    def at_mass_limits(self) -> tuple[FlightVariables, ...]:
        """The flight with the least and with the largest tracked mass; nothing where it is exact."""
        return tuple(
            dataclasses.replace(self, values={**self.values, "mass": np.full(len(self.t), limit)})
            for limit in self.mass_range or ()
        )

    def rate_errors(self) -> Float[np.ndarray, "n 3"]:
        """Rates of roll, pitch and yaw minus the body rates by which the model approximates them, rad/s."""
        rates = np.stack([self.values[name] for name in RATES], axis=1)
        roll, pitch = jnp.asarray(self.values["roll"]), jnp.asarray(self.values["pitch"])
        return np.asarray(euler_departure(roll, pitch, jnp.asarray(rates)))


def read_ranges(path: Path, vehicle: Quadrotor) -> dict[str, tuple[float, float]]:
    """Read ranges from a TOML file, by scalar name. Raises SettingError for a file with errors."""
    try:
        table = parse_toml(read_text(path))
    except UnicodeDecodeError:
        raise SettingError(f"{path}: not a text file; ranges are a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path}: not valid TOML: {error}") from None
    speeds = [f"rotor_speed_{j}" for j in range(len(vehicle.levers))]
    names = (*ANGLES, *RATES, "rotor_speed", *speeds, "mass", SPECIFIC_THRUST)
    ranges: dict[str, tuple[float, float]] = {}
    for name, value in table.items():
        if name not in names:
            raise SettingError(f"{path}: unknown range {name!r}; choose from {', '.join(names)}")
        is_pair = isinstance(value, list) and len(value) == 2
        if not is_pair or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
            raise SettingError(f"{path}: {name} must be two numbers, [lower, upper], not {value!r}")
        low, high = map(float, value)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise SettingError(
                f"{path}: {name} from {low:g} to {high:g}; give two finite numbers, the lower first"
            )
        if name in ("mass", SPECIFIC_THRUST) and low <= 0:
            raise SettingError(f"{path}: {name} from {low:g} must be positive")
        if name.startswith("rotor_speed") and low < 0:
            raise SettingError(f"{path}: {name} from {low:g} must be 0 or more")
        if name == "rotor_speed":
            ranges = dict.fromkeys(speeds, (low, high)) | ranges
        else:
            ranges[name] = (low, high)
    if not ranges:
        raise SettingError(f"{path}: no ranges; add ranges such as roll = [-0.5, 0.5]")
    return ranges


def flight_variables(flight: Flight, airframe: Airframe, vehicle: Quadrotor) -> FlightVariables:
    """The variables of a flight while airborne. Raises SignalError for a missing signal, ExcitationError for no
    airborne part."""
    attitude, rate = flight["attitude"], flight["body_rate"]
    rotor_times, speed = _rotor_speeds(flight, airframe, vehicle)
    t = rate.times
    first, last = (f(s[end] for s in (attitude.times, t, rotor_times)) for f, end in ((max, 0), (min, -1)))
    is_used = (t >= first) & (t <= last)
    spans = airborne_intervals(flight)
    is_used &= np.any([(a <= t) & (t <= b) for a, b in spans] or [np.zeros(len(t), bool)], axis=0)
    if is_used.sum() < 2:
        raise ExcitationError(
            no_flight_message(
                flight, "no airborne part of this log has attitude, body rates and a rotor signal"
            )
        )
    # a copy, since SciPy 1.17.0 refuses what is read-only
    angles = Rotation.from_quat(np.array(attitude.values), scalar_first=True).as_euler("ZYX")[:, ::-1]
    angles = np.unwrap(angles, axis=0)
    t = t[is_used]
    values = {name: np.interp(t, attitude.times, a) for name, a in zip(ANGLES, angles.T, strict=True)}
    max_pitch = np.max(np.abs(values["pitch"]))
    if max_pitch > _MAX_PITCH:
        raise SignalError(
            f"{flight.source}: the pitch reaches {math.degrees(max_pitch):.0f} degrees; near 90 degrees roll and yaw are "
            "undefined, and this model is not valid"
        )
    values |= dict(zip(RATES, rate.values[is_used].T, strict=True))
    values |= {f"rotor_speed_{j}": np.interp(t, rotor_times, w) for j, w in enumerate(speed.T)}
    if _TRUE_MASS in flight:
        values["mass"] = np.interp(t, flight[_TRUE_MASS].times, flight[_TRUE_MASS].values[:, 0])
    return FlightVariables(flight.source.name, t, values)


def _rotor_speeds(
    flight: Flight, airframe: Airframe, vehicle: Quadrotor
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n rotors"]]:
    """Times in s and speeds in rad/s of all rotors."""
    b = vehicle.parameter("thrust_coefficient").values[0]
    flight = with_commanded_thrusts(with_reconstructed_commands(flight), airframe)
    if "rotor_speed" in flight:
        signal = flight["rotor_speed"]
        speed = np.abs(signal.values)
    elif "rotor_thrust" in flight:
        signal = flight["rotor_thrust"]
        speed = np.sqrt(np.maximum(signal.values, 0.0) / b)
    elif "rotor_command" in flight:
        curve = airframe.thrust_curve
        if curve is None:
            raise AirframeError(
                f"{airframe.source}: no [thrust_curve], and the log has rotor commands; add one, or log rotor speeds"
            )
        signal = flight["rotor_command"]
        voltage = None
        if curve.voltage_exponent:
            battery = flight["battery_voltage"]
            level = np.interp(signal.times, battery.times, battery.values[:, 0])
            voltage = jnp.asarray(np.tile(level[:, None], (1, signal.values.shape[1])))
        thrust = np.asarray(curve.collective(jnp.asarray(signal.values)[..., None], voltage))
        speed = np.sqrt(np.maximum(thrust, 0.0) / b)
    else:
        names = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: the log has no rotor_speed, rotor_thrust or rotor_command, which the model needs; it has {names}"
        )
    if speed.shape[1] != len(vehicle.levers):
        raise AirframeError(
            f"{airframe.source}: {len(vehicle.levers)} [[rotor]], and the log has {speed.shape[1]} rotors; give one "
            "[[rotor]] for each, in the order of the log"
        )
    return signal.times, speed
