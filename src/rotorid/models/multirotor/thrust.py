"""Thrust curves: from rotor commands to newtons."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.registry import MODEL_INPUTS, check_rotor_inputs, usable_inputs
from rotorid.signals.series import smooth

if TYPE_CHECKING:
    from rotorid.models.airframe.airframe import Airframe

_GRID = 1001  # commands at which a curve is inverted


@dataclasses.dataclass(frozen=True)
class ThrustCurve:
    """Thrust of one rotor in N over its normalised command u, at battery voltage V.

    c = clip((u - zero) / (full - zero), 0, 1),   thrust = (sum_i coefficients[i] c^i) (V / voltage)^voltage_exponent.
    coefficients: in N, from the constant on. zero, full: the dead zone. voltage: V at which the coefficients hold, NaN where it
    is unknown; curves of unknown voltage can be equal.
    std: of the coefficients, N; empty where unknown. voltage_exponent_std: of the exponent, 0 where unknown.
    """

    coefficients: tuple[float, ...]
    zero: float = 0.0
    full: float = 1.0
    voltage: float = math.nan
    voltage_exponent: float = 0.0
    source: str = ""
    std: tuple[float, ...] = ()
    voltage_exponent_std: float = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThrustCurve) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    @property
    def _fields(self) -> tuple[object, ...]:
        return tuple(None if value != value else value for value in vars(self).values())

    def collective(
        self,
        command: Float[Array | np.ndarray, "*n rotors"],
        voltage: Float[Array | np.ndarray, "*n"] | None = None,
    ) -> Float[Array | np.ndarray, "*n"]:
        """Thrust of all rotors together in N, of numpy or JAX arrays."""
        c = ((command - self.zero) / (self.full - self.zero)).clip(0.0, 1.0)
        thrust = 0.0 * c
        for coefficient in reversed(self.coefficients):
            thrust = thrust * c + coefficient
        total = thrust.sum(axis=-1)
        if self.voltage_exponent and voltage is not None:
            total = total * (voltage / self.voltage) ** self.voltage_exponent
        return total


def with_commanded_thrust(flight: Flight, airframe: Airframe) -> Flight:
    """A flight with the collective thrust in N, from what it has of each rotor; unchanged if it has a thrust.

    Args:
        flight: the log.
        airframe: of its vehicle; commands need its thrust curve, speeds its thrust coefficient.
    Raises:
        AirframeError: the airframe lacks what the logged signal needs.
        SignalError: the flight has no signal of its rotors, or no battery voltage that the curve needs.
    """
    if "thrust" in flight:
        return flight
    check_rotor_inputs(flight, ("thrust", *MODEL_INPUTS), "the system multirotor-bare")
    usable = usable_inputs(flight, airframe)
    if not usable:
        raise unconvertible(airframe, next(name for name in MODEL_INPUTS if name in flight))
    rotors, curve = flight[usable[0]], airframe.thrust_curve
    if rotors.name == "rotor_thrust":
        thrust, by = rotors.values.sum(axis=1), "summed"
    elif rotors.name == "rotor_speed":
        thrust = airframe.number("thrust_coefficient") * np.sum(rotors.values**2, axis=1)
        by = f"by the thrust coefficient of {airframe.source}"
    else:
        assert curve is not None
        voltage = None
        if curve.voltage_exponent:
            battery = flight["battery_voltage"]
            index = np.clip(np.searchsorted(battery.times, rotors.times, side="right") - 1, 0, None)
            voltage = battery.values[index, 0]
        thrust = np.asarray(curve.collective(rotors.values, voltage), dtype=float)
        by = f"by the thrust curve of {airframe.source}"
    return flight.with_signals(Signal("thrust", rotors.times, thrust[:, None], f"{rotors.source}, {by}"))


def unconvertible(airframe: Airframe, rotor_input: str) -> AirframeError:
    """The error of an airframe that lacks what converts rotor commands, or speeds, to thrust."""
    entry, signal = (
        ("thrust_curve", "rotor commands")
        if rotor_input == "rotor_command"
        else ("thrust_coefficient", "rotor speeds")
    )
    return AirframeError(
        f"{airframe.source}: no [{entry}], and this log gives {signal}; add one, or log the thrust in N"
    )


def averaged_commands(signal: Signal, curve: ThrustCurve | None, width: int) -> Signal:
    """Commands whose thrusts are the moving averages of the thrusts of the logged ones.

    Args:
        signal: commands of the rotors, or thrusts.
        curve: from commands to thrusts; None: the signal has thrusts.
        width: of the average, rows.
    """
    if curve is None:
        return dataclasses.replace(signal, values=smooth(signal.values, width))
    c = np.linspace(0.0, 1.0, _GRID)
    thrust = np.maximum.accumulate(np.polynomial.polynomial.polyval(c, curve.coefficients))
    logged = np.clip((signal.values - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
    mean = smooth(np.interp(logged, c, thrust), width)
    return dataclasses.replace(
        signal, values=curve.zero + (curve.full - curve.zero) * np.interp(mean, thrust, c)
    )
