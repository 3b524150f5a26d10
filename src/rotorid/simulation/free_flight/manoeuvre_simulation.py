"""Simulation of manoeuvres, many at once, and their scaling to the limits of a flight."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Array, Float

from rotorid.control.setpoints import Setpoint, Setpoints
from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Airframe
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.free_flight.flight import flight_structure, make_conditions
from rotorid.simulation.free_flight.manoeuvres import REST, SLOT, Limits, Manoeuvre, stack_setpoints
from rotorid.simulation.free_flight.plant import FlightConditions, FreeFlightTruth, simulate_truths

RATE: Final = 250.0
"""Rows per second of the simulation, Hz."""

MARGIN: Final = 0.9
"""Largest usage of a limit by a manoeuvre: a real vehicle deviates from the simulated one."""

_MAX_ITERATIONS = 6  # of the scaling
_MAX_REDUCED_SIZE = (
    0.6  # relative to a size that exceeds a limit, since the excess is unknown if a rotor saturates
)
_TOLERANCE = 0.05  # relative change of a size
_MAX_GROWTH = 2.0  # of a size in an iteration
_MAX_SIZE = 3.0
_MIN_SIZE = 0.02


def unit_setpoints(manoeuvres: Sequence[Manoeuvre]) -> Setpoint:
    """Set points of manoeuvres of size 1 about the origin, one row every 1 / `RATE` s of a slot. First axis: manoeuvres."""
    times = np.arange(round(SLOT * RATE)) / RATE
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _sample(stack_setpoints([m.setpoints for m in manoeuvres]), times))


def scale_setpoints(unit: Setpoint, manoeuvres: Sequence[Manoeuvre]) -> Setpoint:
    """Multiply set points of manoeuvres of size 1 by the size of each manoeuvre."""
    sizes = np.array([m.size for m in manoeuvres])
    return jax.tree.map(lambda a: a * sizes.reshape(-1, *[1] * (np.ndim(a) - 1)), unit)


def simulate_along(
    airframe: Airframe, wanted: Setpoint, start: tuple[float, float, float]
) -> FreeFlightTruth:
    """Simulate flights along set points, several at once. First axis: flights. start: position, m, world."""
    flights = simulate_truths(flight_structure(airframe, RATE), setpoint_conditions(airframe, wanted, start))
    return stack_flights(flights)


def setpoint_conditions(
    airframe: Airframe, wanted: Setpoint, start: tuple[float, float, float]
) -> list[FlightConditions]:
    """The conditions of flights along set points, without wind. First axis of the set points: flights. start: m, world."""
    count, n = wanted.position.shape[:2]
    one = make_conditions(airframe, Setpoints(start), duration=(n - 1) / RATE, rate=RATE)
    shifted = wanted._replace(position=wanted.position + np.asarray(start))
    return [one._replace(setpoint=select_flights(shifted, i)) for i in range(count)]


def select_flights(flights: Any, i: Any) -> Any:
    """Select flights from arrays whose first axis is flights. i: index, slice or indices."""
    return jax.tree.map(lambda a: a[i], flights)


def add_batch_axis(flight: Any) -> Any:
    """One flight as arrays whose first axis is flights."""
    return jax.tree.map(lambda a: np.asarray(a)[None], flight)


def stack_flights(flights: Sequence[Any]) -> Any:
    """Several flights of one length as arrays whose first axis is flights."""
    return jax.tree.map(lambda *parts: np.stack(parts), *flights)


@jax.jit
def _sample(setpoints: Setpoints, times: Float[Array, " n"]) -> Setpoint:
    return jax.vmap(lambda one: one.at(times))(setpoints)


def limit_usage(
    truth: FreeFlightTruth, limits: Limits, start: tuple[float, float, float]
) -> dict[str, np.ndarray]:
    """Largest usage of each limit by flights, by limit: 1 at the limit. First axis of the truth: flights.

    The usage of the limits of the commands is measured from the command in hover.
    """
    distance = np.abs(truth.position - np.asarray(start)).max(axis=1)
    x, y = truth.attitude[..., 1], truth.attitude[..., 2]
    tilt = np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)).max(axis=1)
    low, high = limits.command
    hover = truth.rotor_command[:, 0].mean(axis=1)
    above = (truth.rotor_command.max(axis=(1, 2)) - hover) / np.maximum(high - hover, 1e-9)
    below = (hover - truth.rotor_command.min(axis=(1, 2))) / np.maximum(hover - low, 1e-9)
    return {
        "speed": np.linalg.norm(truth.velocity, axis=2).max(axis=1) / limits.speed,
        "tilt": tilt / limits.tilt,
        "box": (distance / (0.5 * np.array(limits.box))).max(axis=1),
        "rate": np.abs(truth.body_rate).max(axis=(1, 2)) / limits.rate,
        "command": np.maximum(above, below),
    }


def largest_usage(usage: Mapping[str, np.ndarray]) -> np.ndarray:
    """The largest usage of any limit by each flight; infinite for a flight that goes out of control."""
    worst = np.max(np.stack(list(usage.values())), axis=0)
    return np.where(np.isfinite(worst), worst, np.inf)


def scale_to_limits(
    airframe: Airframe,
    manoeuvres: Sequence[Manoeuvre],
    limits: Limits,
    start: tuple[float, float, float],
    progress: Progress = no_progress,
) -> tuple[tuple[Manoeuvre, ...], Setpoint, FreeFlightTruth]:
    """Scale each manoeuvre to the largest size within the limits.

    Args:
        airframe: of the simulated vehicle.
        manoeuvres: to be scaled. Whole rotations keep their size.
        limits: of the flight.
        start: position, m, world.
        progress: of the passes over all manoeuvres; fewer suffice where the sizes converge.
    Returns:
        The manoeuvres that fit into the limits, their set points, and the simulated flights in their slots.
    Raises:
        SettingError: no manoeuvre fits.
    """
    current, base = list(manoeuvres), unit_setpoints(manoeuvres)
    best: dict[int, tuple[Manoeuvre, FreeFlightTruth]] = {}
    stage = Stage(progress, "Simulating manoeuvres", _MAX_ITERATIONS)
    for _ in range(_MAX_ITERATIONS):
        truth = simulate_along(airframe, pad_with_rest(scale_setpoints(base, current)), start)
        stage.advance()
        usages, before = largest_usage(limit_usage(truth, limits, start)), list(current)
        for i, (manoeuvre, usage) in enumerate(zip(current, usages, strict=True)):
            if usage <= MARGIN and (i not in best or best[i][0].size <= manoeuvre.size):
                best[i] = manoeuvre, select_flights(truth, i)
            factor = 0.97 * MARGIN / usage if math.isfinite(usage) and usage > 0 else 0.5
            factor = min(factor, _MAX_REDUCED_SIZE) if usage > 1.0 else factor
            size = manoeuvre.size * min(max(factor, 1.0 / (2.0 * _MAX_GROWTH)), _MAX_GROWTH)
            if manoeuvre.kind != "turn":
                current[i] = dataclasses.replace(manoeuvre, size=min(max(size, _MIN_SIZE), _MAX_SIZE))
        if all(
            abs(new.size - old.size) < _TOLERANCE * old.size for new, old in zip(current, before, strict=True)
        ):
            break
    if not best:
        raise SettingError("no manoeuvre stays within these limits: allow more space, speed, tilt or rate")
    numbers = sorted(best)
    fitting = tuple(best[i][0] for i in numbers)
    slot = slice(round(REST * RATE), round((REST + SLOT) * RATE))
    flights = jax.tree.map(lambda a: a[:, slot], stack_flights([best[i][1] for i in numbers]))
    return fitting, scale_setpoints(select_flights(base, np.array(numbers)), fitting), flights


def pad_with_rest(wanted: Setpoint) -> Setpoint:
    """Set points of manoeuvres with a rest before and after each. First axis: manoeuvres."""
    rest = round(REST * RATE)

    def pad(a: np.ndarray) -> np.ndarray:
        return np.pad(a, [(0, 0), (rest, rest), *[(0, 0)] * (a.ndim - 2)])

    return jax.tree.map(pad, wanted)


def concatenate_setpoints(wanted: Setpoint, rows: int) -> Setpoint:
    """Set points of a rest, followed by the manoeuvres, followed by a rest. rows: number of all rows."""
    first = round(REST * RATE)

    def concatenate(a: np.ndarray) -> np.ndarray:
        flat = a.reshape(-1, *a.shape[2:])
        padded = np.zeros((rows, *flat.shape[1:]))
        padded[first : first + len(flat)] = flat
        return padded

    return jax.tree.map(concatenate, wanted)
