"""Thrusts of rotors at any time of a flight, as an airframe has them, from the logged commands alone.

    c(t) = s s_i curve(u(t - d)) (V / V_0)^e           asked for: held from one logged command to the next
    T_{k+1} = c_k + (T_k - c_k) exp(-h / tau)          c_k: mean of c over the step h; tau_up where c_k > T_k, else tau_down

on a grid of steps h that is fine beside tau. The mean of T over a step follows from the same equation. The rotors begin in
balance with their first command.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from jaxtyping import Float
from scipy.signal import lfilter

from rotorid.errors import AirframeError, SignalError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import MOTOR_LAG, Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.signals.series import hold

_SHORTEST = 1e-4  # s


@dataclasses.dataclass(frozen=True)
class RotorLag:
    """How rotors follow what is asked of them. up, down: time constants in s, where they speed up and where they slow down."""

    up: float
    down: float

    def follow(
        self, thrust: Float[np.ndarray, "*n"], asked: Float[np.ndarray, "*n"], h: float
    ) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"]]:
        """Mean thrust over the next h seconds, and thrust at their end, N."""
        tau = np.where(asked > thrust, self.up, self.down)
        fall = np.exp(-h / tau)
        return asked + (thrust - asked) * (tau / h) * (1.0 - fall), asked + (thrust - asked) * fall

    def through(
        self, asked: Float[np.ndarray, "n rotors"], h: float
    ) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
        """The same, step after step, from balance with the first."""
        if self.up == self.down:
            fall = np.exp(-h / self.up)
            before, _ = lfilter([0.0, 1.0 - fall], [1.0, -fall], asked, axis=0, zi=asked[:1])
            return self.follow(before, asked, h)
        mean, now, thrust = np.empty_like(asked), np.empty_like(asked), asked[0]
        for k, c in enumerate(asked):
            mean[k], now[k] = self.follow(thrust, c, h)
            thrust = now[k]
        return mean, now


def rotor_lag(airframe: Airframe) -> RotorLag:
    """Of an airframe's motors."""
    up = max(airframe.number("motor_time_constant", MOTOR_LAG), _SHORTEST)
    return RotorLag(up, max(airframe.number("motor_time_constant_down", up), _SHORTEST))


def asked_thrusts(
    airframe: Airframe, command: Float[np.ndarray, "n rotors"], voltage: Float[np.ndarray, " n"] | None = None
) -> Float[np.ndarray, "n rotors"]:
    """What commands ask of each rotor once it has followed, N. voltage: V; None where the curve holds as it is."""
    curve = airframe.thrust_curve
    assert curve is not None
    c = np.clip((command - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
    thrust = np.polynomial.polynomial.polyval(c, curve.coefficients)
    if voltage is not None and curve.voltage_exponent:
        thrust = thrust * ((voltage / curve.voltage) ** curve.voltage_exponent)[:, None]
    return airframe.number("thrust_scale", 1.0) * np.array([r.thrust_scale for r in airframe.rotors]) * thrust


def rotor_thrusts(
    airframe: Airframe, flight: Flight, t: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
    """Mean thrust of each rotor over the step that ends at each time of a grid, and thrust at that time, N.

    Raises what `asked_of` does.
    """
    times, asked = asked_of(airframe, flight)
    h = float(t[1] - t[0])
    edges = np.concatenate([[t[0] - h], t]) - airframe.number("command_delay", 0.0)
    return rotor_lag(airframe).through(_mean_held(times, asked, edges), h)


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


def asked_of(
    airframe: Airframe, flight: Flight
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n rotors"]]:
    """From which times on (s) what is asked of each rotor, N, as the airframe has it.

    Raises AirframeError where the airframe has no thrust curve for commands, or other rotors than the log; SignalError where
    the flight lacks commands, or the battery voltage that the curve needs.
    """
    commands, curve = commands_of(flight), airframe.thrust_curve
    if commands.name == "thrust":
        torque = hold(commands.times, flight["control_torque"].times, flight["control_torque"].values)
        centre = airframe.get("centre_of_mass")
        with jax.enable_x64(True):
            G = allocation(
                airframe.rotors, torque_ratio_of(airframe), centre.value if centre else (0.0, 0.0, 0.0)
            )
        wanted = np.concatenate([commands.values, torque], axis=1)
        return commands.times, _scales(airframe) * (wanted @ np.linalg.pinv(np.asarray(G)[2:]).T)
    count = commands.values.shape[1]
    if count != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} rotors, but {flight.source} has {count} rotor commands"
        )
    if commands.name == "rotor_thrust":
        return commands.times, _scales(airframe) * commands.values
    if curve is None:
        raise AirframeError(f"{airframe.source}: no [thrust_curve] for rotor commands; give it in N")
    voltage = None
    if curve.voltage_exponent:
        battery = flight["battery_voltage"]
        voltage = hold(commands.times, battery.times, battery.values[:, 0])
    return commands.times, asked_thrusts(airframe, commands.values, voltage)


def _scales(airframe: Airframe) -> Float[np.ndarray, " rotors"]:
    return airframe.number("thrust_scale", 1.0) * np.array([r.thrust_scale for r in airframe.rotors])


def _mean_held(
    times: Float[np.ndarray, " m"], values: Float[np.ndarray, "m rotors"], edges: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, "steps rotors"]:
    """Means between edges of what is held from each time to the next, and like the first before it."""
    whole = np.concatenate(
        [np.zeros((1, values.shape[1])), np.cumsum(np.diff(times)[:, None] * values[:-1], axis=0)]
    )
    k = np.clip(np.searchsorted(times, edges, side="right") - 1, 0, len(times) - 1)
    integral = whole[k] + (edges - times[k])[:, None] * values[k]
    return np.diff(integral, axis=0) / np.diff(edges)[:, None]
