"""Ranges for an LPV model: from a TOML file, and from flights.

    roll = [-0.5, 0.5]                # rad; also pitch and yaw
    roll_rate = [-2.0, 2.0]           # rad/s; also pitch_rate and yaw_rate
    rotor_speed = [100.0, 500.0]      # rad/s, of every rotor; rotor_speed_0 and so on of one
    mass = [0.9, 1.5]                 # kg
    specific_thrust = [7.0, 13.0]     # m/s^2, thrust over mass, for a controller

A flight tells attitude, body rates and rotor speeds, each on its own clock; `flown` brings them on that of the body rate, in
the air alone. Where a log has the rotors' thrusts or commands, their speeds follow from T = b W^2.
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

from rotorid.errors import AirframeError, ExcitationError, SettingError, SignalError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.mixing import with_asked_thrusts
from rotorid.models.quadrotor import ANGLES, RATES, Quadrotor, euler_departure
from rotorid.signals.airborne import airborne, not_flown
from rotorid.signals.sampling import with_reconstructed_commands

SPECIFIC: Final = "specific_thrust"
_STEEP: Final = 1.2  # rad of pitch, beyond which roll and yaw are not told apart well
_TRUTH: Final = "true_mass"


@dataclasses.dataclass(frozen=True)
class Flown:
    """What one flight shows of the model's variables, row by row: values by scalar name, t in s."""

    name: str
    t: Float[np.ndarray, " n"]
    values: Mapping[str, Float[np.ndarray, " n"]]

    def departure(self) -> Float[np.ndarray, "n 3"]:
        """Exact rates of roll, pitch and yaw less the body rates that the model takes for them, rad/s."""
        rates = np.stack([self.values[name] for name in RATES], axis=1)
        roll, pitch = jnp.asarray(self.values["roll"]), jnp.asarray(self.values["pitch"])
        return np.asarray(euler_departure(roll, pitch, jnp.asarray(rates)))


def read_ranges(path: Path, vehicle: Quadrotor) -> dict[str, tuple[float, float]]:
    """The ranges of a TOML file by scalar name. Raises SettingError, in one line, where it is wrong."""
    try:
        table = tomllib.loads(path.read_text())
    except UnicodeDecodeError:
        raise SettingError(f"{path}: not a text file; ranges are a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path}: not valid TOML: {error}") from None
    speeds = [f"rotor_speed_{j}" for j in range(len(vehicle.levers))]
    known = (*ANGLES, *RATES, "rotor_speed", *speeds, "mass", SPECIFIC)
    found: dict[str, tuple[float, float]] = {}
    for name, value in table.items():
        if name not in known:
            raise SettingError(f"{path}: unknown range {name!r}; there are {', '.join(known)}")
        good = isinstance(value, list) and len(value) == 2
        if not good or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
            raise SettingError(f"{path}: {name} must be two numbers, [lower, upper], not {value!r}")
        low, high = map(float, value)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise SettingError(
                f"{path}: {name} from {low:g} to {high:g}; give two finite numbers, the lower first"
            )
        if name in ("mass", SPECIFIC) and low <= 0:
            raise SettingError(f"{path}: {name} from {low:g} must be positive")
        if name.startswith("rotor_speed") and low < 0:
            raise SettingError(f"{path}: {name} from {low:g} must be 0 or more")
        if name == "rotor_speed":
            found = dict.fromkeys(speeds, (low, high)) | found
        else:
            found[name] = (low, high)
    if not found:
        raise SettingError(f"{path}: no ranges in it; give roll = [-0.5, 0.5] and the like")
    return found


def flown(flight: Flight, airframe: Airframe, vehicle: Quadrotor) -> Flown:
    """What a flight shows. Raises SignalError or ExcitationError where it lacks a signal, or was never in the air."""
    attitude, rate = flight["attitude"], flight["body_rate"]
    rotor_times, speed = _rotor_speeds(flight, airframe, vehicle)
    t = rate.times
    first, last = (f(s[end] for s in (attitude.times, t, rotor_times)) for f, end in ((max, 0), (min, -1)))
    inside = (t >= first) & (t <= last)
    spans = airborne(flight)
    inside &= np.any([(a <= t) & (t <= b) for a, b in spans] or [np.zeros(len(t), bool)], axis=0)
    if inside.sum() < 2:
        raise ExcitationError(
            not_flown(flight, "no part of this log is in the air with attitude, body rates and rotors known")
        )
    angles = Rotation.from_quat(attitude.values, scalar_first=True).as_euler("ZYX")[:, ::-1]
    angles = np.unwrap(angles, axis=0)
    t = t[inside]
    values = {name: np.interp(t, attitude.times, a) for name, a in zip(ANGLES, angles.T, strict=True)}
    if np.max(np.abs(values["pitch"])) > _STEEP:
        raise SignalError(
            f"{flight.source}: pitches by {math.degrees(np.max(np.abs(values['pitch']))):.0f} degrees; near 90, roll and yaw "
            "are no angles of their own, and this model does not hold"
        )
    values |= dict(zip(RATES, rate.values[inside].T, strict=True))
    values |= {f"rotor_speed_{j}": np.interp(t, rotor_times, w) for j, w in enumerate(speed.T)}
    if _TRUTH in flight:
        values["mass"] = np.interp(t, flight[_TRUTH].times, flight[_TRUTH].values[:, 0])
    return Flown(flight.source.name, t, values)


def _rotor_speeds(
    flight: Flight, airframe: Airframe, vehicle: Quadrotor
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n rotors"]]:
    """Times in s and speeds in rad/s of all rotors."""
    b = vehicle.parameter("thrust_coefficient").values[0]
    flight = with_asked_thrusts(with_reconstructed_commands(flight), airframe)
    if "rotor_speed" in flight:
        found = flight["rotor_speed"]
        times, speed = found.times, np.abs(found.values)
    elif "rotor_thrust" in flight:
        found = flight["rotor_thrust"]
        times, speed = found.times, np.sqrt(np.maximum(found.values, 0.0) / b)
    elif "rotor_command" in flight:
        curve = airframe.thrust_curve
        if curve is None:
            raise AirframeError(
                f"{airframe.source}: no [thrust_curve], and this log gives rotor commands; add one, or log rotor speeds"
            )
        found = flight["rotor_command"]
        voltage = None
        if curve.voltage_exponent:
            battery = flight["battery_voltage"]
            level = np.interp(found.times, battery.times, battery.values[:, 0])
            voltage = jnp.asarray(np.tile(level[:, None], (1, found.values.shape[1])))
        thrust = np.asarray(curve.collective(jnp.asarray(found.values)[..., None], voltage))
        times, speed = found.times, np.sqrt(np.maximum(thrust, 0.0) / b)
    else:
        has = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: no rotor_speed, rotor_thrust or rotor_command in this log, the model's inputs (it has {has})"
        )
    if speed.shape[1] != len(vehicle.levers):
        raise AirframeError(
            f"{airframe.source}: {len(vehicle.levers)} [[rotor]], and the log has {speed.shape[1]}; give one [[rotor]] a "
            "rotor, in the log's order"
        )
    return times, speed
