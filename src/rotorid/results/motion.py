"""What the vehicle did while it was tracked: where it was, how fast it went, how hard its rotors pulled."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.errors import RotoridError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import Airframe
from rotorid.models.thrust import with_commanded_thrust
from rotorid.signals.sampling import with_reconstructed_commands


@dataclasses.dataclass(frozen=True)
class Curve:
    """A number over time. t: s. value: in unit. what: in words."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    unit: str
    what: str


@dataclasses.dataclass(frozen=True)
class Motion:
    """curves: what excites the model, by name, as far as logged: thrust, speed (horizontal), climb (m/s, up).

    path_t: s; path: position in m, world frame, at those times, None where it was not logged.
    """

    curves: tuple[Curve, ...]
    path_t: Float[np.ndarray, " p"] | None = None
    path: Float[np.ndarray, "p 3"] | None = None

    @property
    def fastest(self) -> float | None:
        """95th percentile of the horizontal speed, m/s, None where no velocity was logged."""
        speed = next((c.value for c in self.curves if c.what == "horizontal speed"), None)
        return None if speed is None else float(np.percentile(speed, 95))


def motion(flight: Flight, airframe: Airframe, start: float, end: float) -> Motion:
    """What the vehicle did between two times, s."""
    curves = []
    if (pull := _pull(flight, airframe, start, end)) is not None:
        curves.append(pull)
    velocity = _cut(flight.signals.get("velocity"), start, end)
    if velocity is not None:
        t, v = velocity
        curves.append(Curve(t, np.hypot(v[:, 0], v[:, 1]), "m/s", "horizontal speed"))
        curves.append(Curve(t, v[:, 2], "m/s", "climb rate"))
    position = _cut(flight.signals.get("position"), start, end)
    if position is None:
        return Motion(tuple(curves))
    return Motion(tuple(curves), *position)


def _pull(flight: Flight, airframe: Airframe, start: float, end: float) -> Curve | None:
    """Commanded collective thrust in N, or the mean rotor command where there is no curve to turn it into
    newtons.
    """
    flight = with_reconstructed_commands(flight)
    try:
        thrust = _cut(
            with_commanded_thrust(flight, airframe.thrust_curve, airframe.source)["thrust"], start, end
        )
    except RotoridError:
        thrust = None
    if thrust is not None:
        return Curve(thrust[0], thrust[1][:, 0], "N", "commanded thrust")
    command = _cut(flight.signals.get("rotor_command"), start, end)
    if command is None:
        return None
    return Curve(command[0], 100.0 * command[1].mean(axis=1), "%", "mean rotor command")


def _cut(signal: Signal | None, start: float, end: float) -> tuple[np.ndarray, np.ndarray] | None:
    if signal is None:
        return None
    rows = (signal.times >= start) & (signal.times <= end)
    return (signal.times[rows], signal.values[rows]) if rows.sum() > 1 else None
