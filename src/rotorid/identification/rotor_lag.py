"""Thrusts of rotors at any time of a flight, as an airframe has them, from the logged commands alone.

    c(t) = s s_i curve(u(t - d)) (V / V_0)^e           asked for: held from one logged command to the next
    T_{k+1} = c_k + (T_k - c_k) exp(-h / tau)          c_k: mean of c over the step h; tau_up where c_k > T_k, else tau_down

on a grid of steps h that is fine beside tau. The mean of T over a step follows from the same equation. The rotors begin in
balance with their first command.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.signal import lfilter

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe

LAG = 0.03
"""Motor time constant where the airframe does not say, s."""

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
    up = max(number_of(airframe, "motor_time_constant", LAG), _SHORTEST)
    return RotorLag(up, max(number_of(airframe, "motor_time_constant_down", up), _SHORTEST))


def number_of(airframe: Airframe, name: str, default: float) -> float:
    """A quantity's value, or what it is where the airframe does not say."""
    found = airframe.get(name)
    return found.number if found else default


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
    return (
        number_of(airframe, "thrust_scale", 1.0)
        * np.array([r.thrust_scale for r in airframe.rotors])
        * thrust
    )


def rotor_thrusts(
    airframe: Airframe, flight: Flight, t: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors"]]:
    """Mean thrust of each rotor over the step that ends at each time of a grid, and thrust at that time, N.

    Raises AirframeError where the airframe has no thrust curve or other rotors than the log; SignalError where the flight lacks
    rotor commands, or the battery voltage that the curve needs.
    """
    commands, curve = flight["rotor_command"], airframe.thrust_curve
    if curve is None:
        raise AirframeError(f"{airframe.source}: no [thrust_curve] for rotor commands; give it in N")
    count = commands.values.shape[1]
    if count != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} rotors, but {flight.source} has {count} rotor commands"
        )
    voltage = None
    if curve.voltage_exponent:
        battery = flight["battery_voltage"]
        latest = np.clip(np.searchsorted(battery.times, commands.times, side="right") - 1, 0, None)
        voltage = battery.values[latest, 0]
    asked = asked_thrusts(airframe, commands.values, voltage)
    h = float(t[1] - t[0])
    edges = np.concatenate([[t[0] - h], t]) - number_of(airframe, "command_delay", 0.0)
    steps = _mean_held(commands.times, asked, edges)
    return rotor_lag(airframe).through(steps, h)


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
