"""NMPC on the path of a flight held out: the model controls vehicles that are drawn from its covariance.

The path is the liveliest 6 s that were recorded, or, of a flight without positions, a circle. A vehicle is on the path while
it stays within 0.5 m, and 0.1 s at its greatest speed, of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.held_out import STEP, HeldOut
from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import ReferenceFlight
from rotorid.models.system import GRAVITY
from rotorid.models.thrust import ThrustCurve
from rotorid.simulation.nmpc_on_path import BEYOND, RATE, FlightPath, fly_path

_LONGEST = 6.0  # s
_SHORTEST = 2.0  # s
_ROOM, _LATE = 0.5, 0.1  # m, s
_RESERVE = 2.0  # full thrust over weight, where nobody says
_RADIUS, _TURN = 1.0, 6.0  # m, s


def reference_flight(
    model: Airframe, vehicles: Sequence[Airframe], flights: Sequence[HeldOut]
) -> tuple[ReferenceFlight, bool]:
    """How the model's NMPC flies vehicles along the path of one of the flights, and whether that was recorded.

    Raises AirframeError where the model cannot hover.
    """
    recorded = liveliest(flights)
    path = recorded or _circle()
    voltage = _voltage(flights)
    most = _RESERVE * model.mass.number * GRAVITY / max(len(model.rotors), 1)
    flown = fly_path(_at(model, voltage, most), [_at(one, voltage, most) for one in vehicles], path)
    wanted = path.position[: path.controls]
    away = [math.inf if x is None else np.linalg.norm(x - wanted, axis=1) for x in flown]
    worst = [float(np.max(d)) for d in away]
    room = _ROOM + _LATE * float(np.linalg.norm(path.velocity, axis=1).max())
    return (
        ReferenceFlight(
            draws=len(vehicles),
            flown=sum(w <= room for w in worst),
            duration=path.controls / RATE,
            position_rms=max(float(np.sqrt(np.mean(np.square(d)))) for d in away),
            position_worst=max(worst),
        ),
        recorded is not None,
    )


def liveliest(flights: Sequence[HeldOut]) -> FlightPath | None:
    """The 6 s in which a vehicle is fastest, and what the controller looks ahead; fewer where no flight knows its place so
    long, None where that is less than 2 s."""
    best, found = (0, 0.0), None
    for held in flights:
        if not held.placed:
            continue
        velocity = held.velocity()
        energy = np.concatenate([[0.0], np.cumsum(np.sum(velocity**2, axis=1))])
        for start, last in zip(held.starts, held.last, strict=True):
            rows = min(int(last - start), round((_LONGEST + BEYOND) / STEP))
            if rows * STEP < _SHORTEST + BEYOND:
                continue
            lively = (rows, float(energy[start + rows] - energy[start]))
            if lively > best:
                best, found = lively, (held, int(start), rows)
    return None if found is None else _path(*found)


def _path(held: HeldOut, start: int, rows: int) -> FlightPath:
    at = start + np.arange(math.floor(rows * STEP * RATE)) / (RATE * STEP)

    def sampled(values: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "m k"]:
        return np.stack([np.interp(at, np.arange(len(values)), column) for column in values.T], axis=1)

    velocity = sampled(held.velocity())
    known = "position" in held.signals
    position = sampled(held.seen("position")) if known else np.cumsum(velocity, axis=0) / RATE
    attitude = sampled(held.seen("attitude"))
    return FlightPath(position, velocity, attitude / np.linalg.norm(attitude, axis=1, keepdims=True))


def _circle() -> FlightPath:
    """A circle of 1 m in 6 s a turn, entered from rest at its middle within the first turn."""
    t = np.arange(round((_LONGEST + BEYOND) * RATE)) / RATE
    grown = _RADIUS * 0.5 * (1.0 - np.cos(np.pi * np.minimum(t / _TURN, 1.0)))
    angle = 2.0 * np.pi * t / _TURN
    position = np.stack([grown * np.cos(angle), grown * np.sin(angle), np.zeros_like(t)], axis=1)
    level = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    return FlightPath(position, np.gradient(position, t, axis=0), level)


def _voltage(flights: Sequence[HeldOut]) -> float | None:
    """The battery voltage of the flights in the middle, V."""
    found = [h.flight["battery_voltage"].values[:, 0] for h in flights if "battery_voltage" in h.flight]
    return float(np.median(np.concatenate(found))) if found else None


def _at(airframe: Airframe, voltage: float | None, most: float) -> Airframe:
    """The airframe with a thrust curve that holds at this voltage. most: thrust of a rotor (N) at full command of a vehicle
    that is commanded in newtons, and has no curve."""
    curve = airframe.thrust_curve
    if curve is None:
        return dataclasses.replace(airframe, thrust_curve=ThrustCurve((0.0, most)))
    if not curve.voltage_exponent:
        return airframe
    factor = 1.0 if voltage is None else (voltage / curve.voltage) ** curve.voltage_exponent
    return dataclasses.replace(
        airframe,
        thrust_curve=ThrustCurve(tuple(factor * c for c in curve.coefficients), curve.zero, curve.full),
    )
