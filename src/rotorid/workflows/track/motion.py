"""The motion of a vehicle over a flight, for the report: thrust, horizontal speed, climb rate and path."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust import with_commanded_thrust

HORIZONTAL_SPEED = "horizontal speed"


@dataclasses.dataclass(frozen=True)
class Curve:
    """A number over time. t: s. value: in unit. name: as a heading."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    unit: str
    name: str


@dataclasses.dataclass(frozen=True)
class Motion:
    """curves: thrust, horizontal speed (m/s) and climb rate (m/s, positive up), those that were logged.

    path_t: s; path: position in m, world frame, at those times, None where it was not logged.
    """

    curves: tuple[Curve, ...]
    path_t: Float[np.ndarray, " p"] | None = None
    path: Float[np.ndarray, "p 3"] | None = None

    @property
    def fast_speed(self) -> float | None:
        """95th percentile of the horizontal speed, m/s; None where no velocity was logged."""
        speed = next((c.value for c in self.curves if c.name == HORIZONTAL_SPEED), None)
        return None if speed is None else float(np.percentile(speed, 95))


def flight_motion(flight: Flight, airframe: Airframe, start: float, end: float) -> Motion:
    """The motion of a vehicle between two times.

    Args:
        flight: prepared, see `PreparedFlight.flight`.
        airframe: its thrust curve converts rotor commands to thrust.
        start, end: s.
    """
    curves = []
    if (thrust := _thrust(flight, airframe, start, end)) is not None:
        curves.append(thrust)
    velocity = _rows_between(flight.signals.get("velocity"), start, end)
    if velocity is not None:
        t, v = velocity
        curves.append(Curve(t, np.hypot(v[:, 0], v[:, 1]), "m/s", HORIZONTAL_SPEED))
        curves.append(Curve(t, v[:, 2], "m/s", "climb rate"))
    position = _rows_between(flight.signals.get("position"), start, end)
    if position is None:
        return Motion(tuple(curves))
    return Motion(tuple(curves), *position)


def _thrust(flight: Flight, airframe: Airframe, start: float, end: float) -> Curve | None:
    """Commanded collective thrust in N; the mean rotor command where the airframe has no curve to convert it."""
    try:
        converted = with_commanded_thrust(flight, airframe)
        thrust = _rows_between(converted["thrust"], start, end)
    except RotoridError:
        thrust = None
    if thrust is not None:
        return Curve(thrust[0], thrust[1][:, 0], "N", "commanded thrust")
    command = _rows_between(flight.signals.get("rotor_command"), start, end)
    if command is None:
        return None
    return Curve(command[0], 100.0 * command[1].mean(axis=1), "%", "mean rotor command")


def _rows_between(signal: Signal | None, start: float, end: float) -> tuple[np.ndarray, np.ndarray] | None:
    if signal is None:
        return None
    rows = (signal.times >= start) & (signal.times <= end)
    return (signal.times[rows], signal.values[rows]) if rows.sum() > 1 else None
