"""The torque balance of a flight, averaged over short stretches, for checks that need no fit.

    J (w_{k+1} - w_k) / W + w x J w = G_tau (mean T) + b

w_k and T are means over a stretch of W seconds. The difference of two means of w is the torque averaged with a triangle over
two stretches, and the thrusts are averaged alike. No signal is differentiated from row to row, so the noise stays small.
Measured rotor speeds, where the log has no commands, give thrusts without a lag.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.airframe.priors import prior_value
from rotorid.identification.airframe.rotor_thrusts import as_logged, rotor_command_signal, rotor_thrusts
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.thrust import unconvertible
from rotorid.signals.series import Intervals, interpolate_linear

STRETCH: Final = 0.08
"""W, s, at least; commands that are logged slowly have two rows in it."""

_NO_LAG: Final = 1e-4  # s


@dataclasses.dataclass(frozen=True)
class TorqueBalance:
    """Torque balance of a flight, n rows, each averaged over what lies within `STRETCH` of its middle.

    t: middle of each row, s. torque: on a body with the airframe's inertia, N m, body frame. thrust: of each rotor by the
    airframe's curve, N. rate: angular velocity, rad/s, body frame.
    """

    t: Float[np.ndarray, " n"]
    torque: Float[np.ndarray, "n 3"]
    thrust: Float[np.ndarray, "n rotors"]
    rate: Float[np.ndarray, "n 3"]


def torque_balance_rows(flight: Flight, airframe: Airframe, parts: Intervals) -> TorqueBalance:
    """Average the torque balance of a flight over short stretches.

    Args:
        flight: with body rates, and commands, thrusts or speeds of each rotor.
        airframe: its inertia and thrust curve are used.
        parts: of the flight, start and end in s.
    Returns:
        The rows, none where the parts are too short.
    Raises:
        AirframeError, SignalError: as `rotor_thrusts`.
    """
    rate, signal = flight["body_rate"], rotor_command_signal(flight)
    if signal.name == "rotor_speed":
        airframe = _of_speeds(airframe)
    h = 1.0 / min(rate.rate, max(signal.rate, 1.0), 250.0)
    size = max(round(STRETCH / h), 2)
    J = np.array(prior_value(airframe, "inertia"))
    flight_rows = []
    for start, end in parts:
        n = int((end - start) / h)
        t = start + h * (1.0 + np.arange(n))
        count = n // size
        if count < 3:
            continue
        w = interpolate_linear(t, rate.times, rate.values)
        mean, _ = rotor_thrusts(airframe, flight, t)
        impulse = np.cumsum(h * mean, axis=0)  # N s up to each time, whose differences are as those of w
        gyroscopic_impulse, angle = np.cumsum(h * np.cross(w, J * w), axis=0), np.cumsum(h * w, axis=0)
        middle, w, impulse, gyroscopic_impulse, angle = (
            v[: count * size].reshape(count, size, -1).mean(axis=1)
            for v in (t[:, None], w, impulse, gyroscopic_impulse, angle)
        )
        step = size * h
        flight_rows.append(
            np.concatenate(
                [
                    0.5 * (middle[1:] + middle[:-1]),
                    (J * np.diff(w, axis=0) + np.diff(gyroscopic_impulse, axis=0)) / step,
                    np.diff(impulse, axis=0) / step,
                    np.diff(angle, axis=0) / step,
                ],
                axis=1,
            )
        )
    rows = np.concatenate(flight_rows) if flight_rows else np.zeros((0, 7 + len(airframe.rotors)))
    return TorqueBalance(rows[:, 0], rows[:, 1:4], rows[:, 4:-3], rows[:, -3:])


def _of_speeds(airframe: Airframe) -> Airframe:
    """The airframe that converts measured rotor speeds to thrusts. Raises AirframeError where it has no thrust coefficient."""
    if airframe.get("thrust_coefficient") is None:
        raise unconvertible(airframe, "rotor_speed")
    lags = ("motor_time_constant", "motor_time_constant_down", "command_delay")
    quantities = {name: q for name, q in airframe.quantities.items() if name not in lags}
    quantities["motor_time_constant"] = Quantity((_NO_LAG,), "s")
    return dataclasses.replace(as_logged(airframe, "rotor_speed"), quantities=quantities)
