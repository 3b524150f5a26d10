"""Rotors of an airframe as the commands of a log drive them (see `rotor_chain` for the equations)."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError, SignalError
from rotorid.identification.airframe.priors import prior_value
from rotorid.identification.airframe.rotor_chain import (
    LEAST_LAG,
    RotorChain,
    RotorCommands,
    commanded_thrusts,
    step_thrusts,
)
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.missing import missing_error
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.signals.sampling import command_steps
from rotorid.signals.series import hold


@dataclasses.dataclass(frozen=True)
class RotorModel:
    """Rotors of an airframe as commands drive them.

    Attributes:
        chain: layout of the numbers.
        numbers: of the rotor chain.
        dead_zone: commands at which the thrust curve begins and ends.
        voltage: V at which it holds; NaN where it is unknown.
    """

    chain: RotorChain
    numbers: Float[np.ndarray, " numbers"]
    dead_zone: tuple[float, float] = (0.0, 1.0)
    voltage: float = math.nan

    @property
    def lag(self) -> tuple[float, float]:
        """Time constants of rising and of falling thrust, s."""
        names = ("motor_time_constant", "motor_time_constant_down")
        up, down = (max(float(self.chain.by_name(self.numbers)[n][0]), LEAST_LAG) for n in names)
        return up, down

    def commands(
        self,
        t: Float[np.ndarray, " n"],
        command: Float[np.ndarray, "n rotors"],
        voltage: Float[np.ndarray, " n"] | None = None,
    ) -> RotorCommands:
        """Commands from these times on.

        Args:
            t: s.
            command: of each rotor, 0 to 1.
            voltage: of the battery, V; None: that of the curve.
        """
        zero, full = self.dead_zone
        u = np.clip((command - zero) / (full - zero), 0.0, 1.0)
        if voltage is None or not math.isfinite(self.voltage):
            return RotorCommands(t, u, np.ones(len(t)))
        return RotorCommands(t, u, voltage / self.voltage)

    def commanded_thrust(self, command: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " rotors"]:
        """Thrust of each rotor in steady state at a command, N, at the voltage of the curve."""
        command_steps = self.commands(np.zeros(1), command[None])
        return commanded_thrusts(self.chain.by_name(self.numbers), command_steps.u, command_steps.voltage)[0]

    def follow(
        self, thrust: Float[np.ndarray, " rotors"], commanded: Float[np.ndarray, " rotors"], h: float
    ) -> tuple[Float[np.ndarray, " rotors"], Float[np.ndarray, " rotors"]]:
        """Mean thrust over the next h seconds, and thrust at their end, N."""
        end, impulse = self.chain.response(thrust, commanded, h, self.lag, np)
        return impulse / h, end


def as_logged(airframe: Airframe, signal: str) -> Airframe:
    """An airframe whose thrust curve, or coefficient, is of what a log tells of its rotors: "rotor_command", "rotor_speed", or
    thrusts in N, which are what they are."""
    if signal == "rotor_command":
        return airframe
    curve = None if signal == "rotor_speed" else ThrustCurve((0.0, 1.0))
    return dataclasses.replace(airframe, thrust_curve=curve)


def rotor_model(airframe: Airframe, *, lags: bool = True) -> RotorModel:
    """The rotors of an airframe. lags: whether they lag behind their commands."""
    curve = airframe.thrust_curve
    chain = RotorChain(
        len(prior_value(airframe, "thrust_curve")) - 1, len(airframe.rotors), lags, airframe.has_speed_lag
    )
    numbers = np.zeros(chain.size)
    for name, place in chain.indices.items():
        numbers[place] = prior_value(airframe, name)
    if curve is None:
        return RotorModel(chain, numbers)
    return RotorModel(chain, numbers, (curve.zero, curve.full), curve.voltage)


def rotor_thrusts(
    airframe: Airframe, flight: Flight, t: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
    """Mean thrust of each rotor over the step that ends at each time of a grid, and thrust at that time.

    Args:
        airframe: its rotors and thrust curve.
        flight: its commands.
        t: grid, s.
    Returns:
        Mean thrusts and thrusts, N.
    Raises:
        AirframeError: no thrust curve for commands, no thrust coefficient for speeds, or not the rotors of the log.
        SignalError: no commands, or no battery voltage that the curve needs.
    """
    rotors, commands = _rotor_commands(airframe, flight)
    thrusts, _ = step_thrusts(rotors.chain, rotors.numbers, commands, t, np.full(len(t), t[1] - t[0]))
    return thrusts[:, : rotors.chain.rotors], thrusts[:, rotors.chain.rotors :]


def rotor_command_signal(flight: Flight) -> Signal:
    """The signal of the commands to the rotors: commands, thrusts in N, the collective thrust with torques, or, where none of
    these is logged, the measured speeds.

    Raises:
        SignalError: there is none.
    """
    for name in ("rotor_command", "rotor_thrust"):
        if name in flight:
            return flight[name]
    if "thrust" in flight and "control_torque" in flight:
        return flight["thrust"]
    if "rotor_speed" in flight:
        return flight["rotor_speed"]
    available = ", ".join(sorted(flight.signals)) or "nothing"
    raise SignalError(
        f"{flight.source}: no rotor_command in this log, and no rotor_thrust, thrust with control_torque or rotor_speed in "
        f"place of it; without one nothing can be predicted (it has {available})"
    )


def _rotor_commands(airframe: Airframe, flight: Flight) -> tuple[RotorModel, RotorCommands]:
    """The rotors that a flight's commands drive, and the commands; raises as `rotor_thrusts`."""
    signal = rotor_command_signal(flight)
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
    if signal.name == "rotor_speed":
        if airframe.get("thrust_coefficient") is None:
            raise missing_error(airframe, signal.name, values.shape[1])
        speeds = RotorCommands(signal.times, np.abs(values) * values, np.ones(len(values)))
        return rotor_model(as_logged(airframe, signal.name), lags=False), speeds
    t, values = command_steps(flight, dataclasses.replace(signal, values=values))
    if signal.name != "rotor_command":
        return rotor_model(as_logged(airframe, signal.name)), RotorCommands(t, values, np.ones(len(t)))
    curve = airframe.thrust_curve
    if curve is None:
        raise missing_error(airframe, signal.name, values.shape[1])
    voltage = None
    if curve.voltage_exponent:
        battery = flight["battery_voltage"]
        voltage = hold(t, battery.times, battery.values[:, 0])
    rotors = rotor_model(airframe)
    return rotors, rotors.commands(t, values, voltage)
