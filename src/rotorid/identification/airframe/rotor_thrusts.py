"""The rotors of an airframe, and their thrusts at any time of a flight, from its logged commands alone (see `rotor_drive`)."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError, SignalError
from rotorid.identification.flown_priors import value_of
from rotorid.identification.rotor_drive import LEAST_LAG, Chain, Commands, asked_thrusts, thrusts
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.models.thrust import ThrustCurve
from rotorid.numerics.lag import followed
from rotorid.signals.series import hold
from rotorid.signals.slow_commands import given


@dataclasses.dataclass(frozen=True)
class Rotors:
    """Rotors as commands move them. numbers: of the chain. dead_zone: commands at which the curve begins and ends. voltage: V
    at which it holds; nan where it is not known."""

    chain: Chain
    numbers: Float[np.ndarray, " numbers"]
    dead_zone: tuple[float, float] = (0.0, 1.0)
    voltage: float = math.nan

    @property
    def lag(self) -> tuple[float, float]:
        """Time constants in s, where they speed up and where they slow down."""
        names = ("motor_time_constant", "motor_time_constant_down")
        up, down = (max(float(self.chain.named(self.numbers)[n][0]), LEAST_LAG) for n in names)
        return up, down

    def commands(
        self,
        t: Float[np.ndarray, " n"],
        command: Float[np.ndarray, "n rotors"],
        voltage: Float[np.ndarray, " n"] | None = None,
    ) -> Commands:
        """Commands from these times on, s. voltage: V; None where the curve holds as it is."""
        zero, full = self.dead_zone
        u = np.clip((command - zero) / (full - zero), 0.0, 1.0)
        if voltage is None or not math.isfinite(self.voltage):
            return Commands(t, u, np.ones(len(t)))
        return Commands(t, u, voltage / self.voltage)

    def asked(self, command: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " rotors"]:
        """What a command asks of each rotor once it has followed, N, at the voltage of the curve."""
        given = self.commands(np.zeros(1), command[None])
        return asked_thrusts(self.chain.named(self.numbers), given.u, given.voltage)[0]

    def follow(
        self, thrust: Float[np.ndarray, " rotors"], asked: Float[np.ndarray, " rotors"], h: float
    ) -> tuple[Float[np.ndarray, " rotors"], Float[np.ndarray, " rotors"]]:
        """Mean thrust over the next h seconds, and thrust at their end, N."""
        end, whole = followed(thrust, asked, h, self.lag, np)
        return whole / h, end


def as_logged(airframe: Airframe, signal: str) -> Airframe:
    """An airframe whose thrust curve, or coefficient, is of what a log tells of its rotors: "rotor_command", "rotor_speed", or
    thrusts in N, which are what they are."""
    if signal == "rotor_command":
        return airframe
    curve = None if signal == "rotor_speed" else ThrustCurve((0.0, 1.0))
    return dataclasses.replace(airframe, thrust_curve=curve)


def rotors_of(airframe: Airframe, *, lags: bool = True) -> Rotors:
    """The rotors of an airframe. lags: whether they lag behind."""
    curve = airframe.thrust_curve
    chain = Chain(len(value_of(airframe, "thrust_curve")) - 1, len(airframe.rotors), lags)
    numbers = np.zeros(chain.size)
    for name, place in chain.places.items():
        numbers[place] = value_of(airframe, name)
    if curve is None:
        return Rotors(chain, numbers)
    return Rotors(chain, numbers, (curve.zero, curve.full), curve.voltage)


def rotor_thrusts(
    airframe: Airframe, flight: Flight, t: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
    """Mean thrust of each rotor over the step that ends at each time of a grid, and thrust at that time, N.

    Raises AirframeError where the airframe has no thrust curve for commands, or other rotors than the log; SignalError where
    the flight lacks commands, or the battery voltage that the curve needs.
    """
    rotors, commands = _asked(airframe, flight)
    found, _ = thrusts(rotors.chain, rotors.numbers, commands, t, np.full(len(t), t[1] - t[0]))
    return found[:, : rotors.chain.rotors], found[:, rotors.chain.rotors :]


def commands_of(flight: Flight) -> Signal:
    """The signal that says what is asked of the rotors: commands, thrusts in N, or the collective thrust beside torques.

    Raises SignalError where there is none.
    """
    for name in ("rotor_command", "rotor_thrust"):
        if name in flight:
            return flight[name]
    if "thrust" in flight and "control_torque" in flight:
        return flight["thrust"]
    has = ", ".join(sorted(flight.signals)) or "nothing"
    raise SignalError(
        f"{flight.source}: no rotor_command in this log, and no rotor_thrust or thrust with control_torque in place of it; "
        f"without one nothing can be predicted (it has {has})"
    )


def _asked(airframe: Airframe, flight: Flight) -> tuple[Rotors, Commands]:
    """The rotors that a flight's commands move, and these; raises what `rotor_thrusts` does."""
    signal = commands_of(flight)
    values = signal.values
    if signal.name == "thrust":
        torque = hold(signal.times, flight["control_torque"].times, flight["control_torque"].values)
        with jax.enable_x64(True):
            G = allocation(airframe.rotors, torque_ratio_of(airframe), airframe.vector("centre_of_mass"))
        values = np.concatenate([values, torque], axis=1) @ np.linalg.pinv(np.asarray(G)[2:]).T
    elif values.shape[1] != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} rotors, but {flight.source} has {values.shape[1]} rotor commands"
        )
    t, values = given(flight, dataclasses.replace(signal, values=values))
    if signal.name != "rotor_command":
        return rotors_of(as_logged(airframe, signal.name)), Commands(t, values, np.ones(len(t)))
    curve = airframe.thrust_curve
    if curve is None:
        raise AirframeError(f"{airframe.source}: no [thrust_curve] for rotor commands; give it in N")
    voltage = None
    if curve.voltage_exponent:
        battery = flight["battery_voltage"]
        voltage = hold(t, battery.times, battery.values[:, 0])
    rotors = rotors_of(airframe)
    return rotors, rotors.commands(t, values, voltage)
