"""Closed-loop simulation: NMPC with the model flies vehicles drawn from its covariance along the path of a held-out flight.

The path is the recorded part of 6 s with the most motion, or a circle for flights without position and velocity. A vehicle is
on the path while its distance is at most 0.5 m plus the way of 0.1 s at the largest speed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.open_loop.validation_windows import STEP, ValidationFlight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.validation import ReferenceFlight
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.simulation.nmpc_on_path import LOOK_AHEAD, RATE, FlightPath, fly_path

_LONGEST = 6.0  # s
_SHORTEST = 2.0  # s
_ROOM, _DELAY = 0.5, 0.1  # m, s
_RESERVE = 2.0  # full thrust over weight of a model without a thrust curve
_RADIUS, _PERIOD = 1.0, 6.0  # m, s


def simulate_closed_loop(
    model: Airframe, vehicles: Sequence[Airframe], flights: Sequence[ValidationFlight]
) -> tuple[ReferenceFlight, bool]:
    """Fly vehicles along the path of one of the flights, by NMPC with the model.

    Args:
        model: of the controller.
        vehicles: to be flown.
        flights: the path is taken from one of them.
    Returns:
        The result; whether the path was recorded.
    Raises:
        AirframeError: the model cannot hover.
    """
    recorded = most_dynamic_part(flights)
    path = recorded or _circle()
    voltage = _voltage(flights)
    full_thrust = _RESERVE * model.mass.number * GRAVITY / max(len(model.rotors), 1)
    paths = fly_path(
        _at_voltage(model, voltage, full_thrust),
        [_at_voltage(v, voltage, full_thrust) for v in vehicles],
        path,
    )
    path_position = path.position[: path.controls]
    distances = [math.inf if x is None else np.linalg.norm(x - path_position, axis=1) for x in paths]
    largest = [float(np.max(d)) for d in distances]
    tolerance = _ROOM + _DELAY * float(np.linalg.norm(path.velocity, axis=1).max())
    return (
        ReferenceFlight(
            draws=len(vehicles),
            flown=sum(w <= tolerance for w in largest),
            duration=path.controls / RATE,
            position_rms=max(float(np.sqrt(np.mean(np.square(d)))) for d in distances),
            position_worst=max(largest),
        ),
        recorded is not None,
    )


def most_dynamic_part(flights: Sequence[ValidationFlight]) -> FlightPath | None:
    """The 6 s with the largest mean square speed, and the controller's horizon; shorter where no flight has known positions
    that long, None where that is less than 2 s."""
    best, part = (0, 0.0), None
    for flight in flights:
        if not flight.has_pose:
            continue
        velocity = flight.velocity()
        energy = np.concatenate([[0.0], np.cumsum(np.sum(velocity**2, axis=1))])
        for start, last in zip(flight.starts, flight.last_rows, strict=True):
            rows = min(int(last - start), round((_LONGEST + LOOK_AHEAD) / STEP))
            if rows * STEP < _SHORTEST + LOOK_AHEAD:
                continue
            motion = (rows, float(energy[start + rows] - energy[start]))
            if motion > best:
                best, part = motion, (flight, int(start), rows)
    return None if part is None else _path(*part)


def _path(flight: ValidationFlight, start: int, rows: int) -> FlightPath:
    rows_at = start + np.arange(math.floor(rows * STEP * RATE)) / (RATE * STEP)

    def sampled(values: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "m k"]:
        return np.stack([np.interp(rows_at, np.arange(len(values)), column) for column in values.T], axis=1)

    velocity = sampled(flight.velocity())
    has_position = "position" in flight.signals
    position = sampled(flight.measured("position")) if has_position else np.cumsum(velocity, axis=0) / RATE
    attitude = sampled(flight.measured("attitude"))
    return FlightPath(position, velocity, attitude / np.linalg.norm(attitude, axis=1, keepdims=True))


def _circle() -> FlightPath:
    """A circle of 1 m radius with a period of 6 s, entered from rest at its centre within the first period."""
    t = np.arange(round((_LONGEST + LOOK_AHEAD) * RATE)) / RATE
    radius = _RADIUS * 0.5 * (1.0 - np.cos(np.pi * np.minimum(t / _PERIOD, 1.0)))
    angle = 2.0 * np.pi * t / _PERIOD
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(t)], axis=1)
    level = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    return FlightPath(position, np.gradient(position, t, axis=0), level)


def _voltage(flights: Sequence[ValidationFlight]) -> float | None:
    """The median battery voltage of the flights, V."""
    voltages = [h.flight["battery_voltage"].values[:, 0] for h in flights if "battery_voltage" in h.flight]
    return float(np.median(np.concatenate(voltages))) if voltages else None


def _at_voltage(airframe: Airframe, voltage: float | None, full_thrust: float) -> Airframe:
    """The airframe with a thrust curve for this voltage. full_thrust: thrust of a rotor at full command, N, for a vehicle
    that is commanded in newtons and has no curve."""
    curve = airframe.thrust_curve
    if curve is None:
        return dataclasses.replace(airframe, thrust_curve=ThrustCurve((0.0, full_thrust)))
    if not curve.voltage_exponent:
        return airframe
    factor = 1.0 if voltage is None else (voltage / curve.voltage) ** curve.voltage_exponent
    return dataclasses.replace(
        airframe,
        thrust_curve=ThrustCurve(tuple(factor * c for c in curve.coefficients), curve.zero, curve.full),
    )
