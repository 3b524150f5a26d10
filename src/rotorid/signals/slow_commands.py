"""Rotor commands that were logged more rarely than given: samples of what a controller gave, so straight between them.

    c_j = u((s_j + s_{j+1}) / 2)    from s_j on, until s_{j+1}: steps of a fine grid, u straight between the log's rows

A command that is held until the next row is late by half a period on average. What is regressed on it is then partly noise,
which makes the thrust curve look flatter than it is; straight between rows, an error of the command is one of the thrust that
follows, which leaves the curve as it is (J. Berkson, Are there two regressions?, JASA 45 (1950)). Rows that are too far apart
are held, and so are those of a log that has every command: they acted until the next one.

A log that leaves commands out has at most half as many rows as its autopilot's loop has turns. How often that turns is among
the parameters of ArduPilot and PX4; a Crazyflie's runs 500 times a second, others at least 250 times. A simulation's log has
all commands.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import interpolate_linear

_LOOPS = ("SCHED_LOOP_RATE", "IMU_GYRO_RATEMAX")  # parameters of ArduPilot and PX4, Hz
_USUAL = {"crazyflie-usd": 500.0, "simulation": 50.0}  # Hz, by format
_LEAST = 250.0  # Hz, of other loops
_ALL = 0.6  # of the loop's rate: of half of it, and of clocks that are not exact

_STEP = 0.005  # s
_STEPS = 10  # between two rows, at most
_GAP = 2.5  # median periods between neighbours, from which on nothing is known between them


def loop_rate(flight: Flight) -> float:
    """How often the controller of a flight gives commands, Hz."""
    rates = [flight.parameters[name] for name in _LOOPS if flight.parameters.get(name, 0.0) > 0.0]
    return rates[0] if rates else _USUAL.get(flight.format, _LEAST)


def command_steps(
    flight: Flight, signal: Signal
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n rotors"]]:
    """From which times on (s) what was asked of the rotors, by the signal of a flight that tells it.

    As logged where the log has every command, else straight between its rows.
    """
    if signal.rate >= _ALL * loop_rate(flight):
        return signal.times, signal.values
    return interpolate_commands(signal.times, signal.values)


def interpolate_commands(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n rotors"]
) -> tuple[Float[np.ndarray, " fine"], Float[np.ndarray, "fine rotors"]]:
    """Stamps in s and commands of the fine grid."""
    period = np.diff(t)
    if len(t) < 3:
        return t, u
    usual = float(np.median(period))
    steps = min(max(math.ceil(usual / _STEP - 1e-6), 1), _STEPS)
    near = period <= _GAP * usual
    share = np.arange(steps) / steps
    start = t[:-1, None] + period[:, None] * share
    middle = interpolate_linear((start + 0.5 * period[:, None] / steps).ravel(), t, u)
    held = np.repeat(u[:-1], steps, axis=0)
    fine = np.where(np.repeat(near, steps)[:, None], middle, held)
    return np.append(start.ravel(), t[-1]), np.concatenate([fine, u[-1:]])
