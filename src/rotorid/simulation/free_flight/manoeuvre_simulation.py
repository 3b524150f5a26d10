"""Manoeuvres flown in simulation, many at once, and how much of the limits each takes; made as large as the limits allow."""

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
from rotorid.simulation.free_flight.flight import flight_structure, make_conditions
from rotorid.simulation.free_flight.manoeuvres import REST, SLOT, Limits, Manoeuvre, stack_setpoints
from rotorid.simulation.free_flight.plant import FlightConditions, FreeFlightTruth, simulate_truths

RATE: Final = 250.0
"""Rows per second of a rehearsal."""

MARGIN: Final = 0.9
"""Share of each limit that a manoeuvre takes at most: a real vehicle does not fly quite as the simulated one."""

_ROUNDS = 6  # of making larger or smaller
_SATURATED = 0.6  # of its size is tried of a manoeuvre that left its limits: how far, a rotor at its limit does not tell
_SETTLED = 0.05  # of a size, below which a change does not matter
_GROWS = 2.0  # at most, in a round
_LARGEST = 3.0
_SMALLEST = 0.02


def unit_setpoints(manoeuvres: Sequence[Manoeuvre]) -> Setpoint:
    """Set points of manoeuvres at size 1, a first axis of them, every 1 / `RATE` s of their slot; about the place (0, 0, 0)."""
    times = np.arange(round(SLOT * RATE)) / RATE
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _wanted(stack_setpoints([m.setpoints for m in manoeuvres]), times))


def scale_setpoints(unit: Setpoint, manoeuvres: Sequence[Manoeuvre]) -> Setpoint:
    """Set points of manoeuvres at size 1, multiplied by the size of each manoeuvre."""
    sizes = np.array([m.size for m in manoeuvres])
    return jax.tree.map(lambda a: a * sizes.reshape(-1, *[1] * (np.ndim(a) - 1)), unit)


def simulate_along(
    airframe: Airframe, wanted: Setpoint, start: tuple[float, float, float]
) -> FreeFlightTruth:
    """What the airframe flies along set points, several flights at once: arrays with a first axis of them. start: m, world."""
    flights = simulate_truths(flight_structure(airframe, RATE), setpoint_conditions(airframe, wanted, start))
    return stack_flights(flights)


def setpoint_conditions(
    airframe: Airframe, wanted: Setpoint, start: tuple[float, float, float]
) -> list[FlightConditions]:
    """The conditions of flights along set points with a first axis of them, in still air."""
    count, n = wanted.position.shape[:2]
    one = make_conditions(airframe, Setpoints(start), duration=(n - 1) / RATE, rate=RATE)
    moved = wanted._replace(position=wanted.position + np.asarray(start))
    return [one._replace(wanted=select_flights(moved, i)) for i in range(count)]


def select_flights(flights: Any, i: Any) -> Any:
    """One of several flights, or some: of arrays with a first axis of them."""
    return jax.tree.map(lambda a: a[i], flights)


def add_batch_axis(flight: Any) -> Any:
    """One flight, as arrays with a first axis of flights."""
    return jax.tree.map(lambda a: np.asarray(a)[None], flight)


def stack_flights(flights: Sequence[Any]) -> Any:
    """Several flights of one length, as arrays with a first axis of them."""
    return jax.tree.map(lambda *parts: np.stack(parts), *flights)


@jax.jit
def _wanted(setpoints: Setpoints, times: Float[Array, " n"]) -> Setpoint:
    return jax.vmap(lambda one: one.at(times))(setpoints)


def limit_usage(
    truth: FreeFlightTruth, limits: Limits, start: tuple[float, float, float]
) -> dict[str, np.ndarray]:
    """Largest share of each limit that flights take, by its name: 1 at the limit. truth: with a first axis of flights.

    Of commands: how far from the hover's towards the limit.
    """
    away = np.abs(truth.position - np.asarray(start)).max(axis=1)
    x, y = truth.attitude[..., 1], truth.attitude[..., 2]
    tilt = np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)).max(axis=1)
    low, high = limits.command
    hover = truth.rotor_command[:, 0].mean(axis=1)
    most = (truth.rotor_command.max(axis=(1, 2)) - hover) / np.maximum(high - hover, 1e-9)
    least = (hover - truth.rotor_command.min(axis=(1, 2))) / np.maximum(hover - low, 1e-9)
    return {
        "speed": np.linalg.norm(truth.velocity, axis=2).max(axis=1) / limits.speed,
        "tilt": tilt / limits.tilt,
        "box": (away / (0.5 * np.array(limits.box))).max(axis=1),
        "rate": np.abs(truth.body_rate).max(axis=(1, 2)) / limits.rate,
        "command": np.maximum(most, least),
    }


def largest_usage(share: Mapping[str, np.ndarray]) -> np.ndarray:
    """The largest share of any limit, of each flight; infinite for one that is lost."""
    worst = np.max(np.stack(list(share.values())), axis=0)
    return np.where(np.isfinite(worst), worst, np.inf)


def scale_to_limits(
    airframe: Airframe, manoeuvres: Sequence[Manoeuvre], limits: Limits, start: tuple[float, float, float]
) -> tuple[tuple[Manoeuvre, ...], Setpoint, FreeFlightTruth]:
    """The manoeuvres, each as large as the limits allow; their set points, and what is flown along them in their slots.

    Those that do not fit are left out. Raises SettingError where none fits.
    """
    now, base = list(manoeuvres), unit_setpoints(manoeuvres)
    good: dict[int, tuple[Manoeuvre, FreeFlightTruth]] = {}
    for _ in range(_ROUNDS):
        truth = simulate_along(airframe, pad_with_rest(scale_setpoints(base, now)), start)
        share, before = largest_usage(limit_usage(truth, limits, start)), list(now)
        for i, (one, taken) in enumerate(zip(now, share, strict=True)):
            if taken <= MARGIN and (i not in good or good[i][0].size <= one.size):
                good[i] = one, select_flights(truth, i)
            aim = 0.97 * MARGIN / taken if math.isfinite(taken) and taken > 0 else 0.5
            aim = min(aim, _SATURATED) if taken > 1.0 else aim
            size = one.size * min(max(aim, 1.0 / (2.0 * _GROWS)), _GROWS)
            if one.kind != "turn":
                now[i] = dataclasses.replace(one, size=min(max(size, _SMALLEST), _LARGEST))
        if all(abs(new.size - old.size) < _SETTLED * old.size for new, old in zip(now, before, strict=True)):
            break
    if not good:
        raise SettingError("no manoeuvre stays within these limits: allow more space, speed, tilt or rate")
    fit = sorted(good)
    kept = tuple(good[i][0] for i in fit)
    slots = slice(round(REST * RATE), round((REST + SLOT) * RATE))
    flights = jax.tree.map(lambda a: a[:, slots], stack_flights([good[i][1] for i in fit]))
    return kept, scale_setpoints(select_flights(base, np.array(fit)), kept), flights


def pad_with_rest(wanted: Setpoint) -> Setpoint:
    """Set points of manoeuvres, a first axis of them, each with a rest before and after."""
    still = round(REST * RATE)

    def between(a: np.ndarray) -> np.ndarray:
        return np.pad(a, [(0, 0), (still, still), *[(0, 0)] * (a.ndim - 2)])

    return jax.tree.map(between, wanted)


def concatenate_setpoints(wanted: Setpoint, rows: int) -> Setpoint:
    """Set points of manoeuvres one after the other, after a rest; then rest until there are so many rows."""
    first = round(REST * RATE)

    def after(a: np.ndarray) -> np.ndarray:
        flat = a.reshape(-1, *a.shape[2:])
        found = np.zeros((rows, *flat.shape[1:]))
        found[first : first + len(flat)] = flat
        return found

    return jax.tree.map(after, wanted)
