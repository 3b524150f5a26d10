"""Manoeuvres flown in simulation, many at once, and how much of the limits each takes; made as large as the limits allow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Array, Float

from rotorid.control.setpoints import Setpoints, Wanted
from rotorid.errors import SettingError
from rotorid.models.airframe import Airframe
from rotorid.simulation.free_flight import conditions, structure_of
from rotorid.simulation.free_plant import Conditions, Flown, fly_truths
from rotorid.simulation.manoeuvres import SLOT, Limits, Manoeuvre, stacked

RATE: Final = 250.0
"""Rows per second of a rehearsal."""

MARGIN: Final = 0.9
"""Share of each limit that a manoeuvre takes at most: a real vehicle does not fly quite as the simulated one."""

_ROUNDS = 6  # of making larger or smaller
_SATURATED = 0.6  # of its size is tried of a manoeuvre that left its limits: how far, a rotor at its limit does not tell
_GROWS = 2.0  # at most, in a round
_LARGEST = 3.0
_SMALLEST = 0.02


def wanted_of(manoeuvres: Sequence[Manoeuvre]) -> Wanted:
    """Set points of manoeuvres, a first axis of them, every 1 / `RATE` s of their slot; about the place (0, 0, 0)."""
    times = np.arange(round(SLOT * RATE)) / RATE
    with jax.enable_x64(True):
        found = _wanted(stacked([m.sized() for m in manoeuvres]), times)
        return jax.tree.map(np.asarray, found)


def flown_along(airframe: Airframe, wanted: Wanted, start: tuple[float, float, float]) -> Flown:
    """What the airframe flies along set points, several flights at once: arrays with a first axis of them. start: m, world."""
    flights = fly_truths(structure_of(airframe, RATE), under(airframe, wanted, start))
    return together(flights)


def under(airframe: Airframe, wanted: Wanted, start: tuple[float, float, float]) -> list[Conditions]:
    """The conditions of flights along set points with a first axis of them, in still air."""
    count, n = wanted.position.shape[:2]
    one = conditions(airframe, Setpoints(start), duration=(n - 1) / RATE, rate=RATE)
    moved = wanted._replace(position=wanted.position + np.asarray(start))
    return [one._replace(wanted=one_of(moved, i)) for i in range(count)]


def one_of(flights: Any, i: int) -> Any:
    """One of several flights: of arrays with a first axis of them."""
    return jax.tree.map(lambda a: a[i], flights)


def together(flights: Sequence[Any]) -> Any:
    """Several flights of one length, as arrays with a first axis of them."""
    return jax.tree.map(lambda *parts: np.stack(parts), *flights)


@jax.jit
def _wanted(setpoints: Setpoints, times: Float[Array, " n"]) -> Wanted:
    return jax.vmap(lambda one: one.at(times))(setpoints)


def used(truth: Flown, limits: Limits, start: tuple[float, float, float]) -> dict[str, np.ndarray]:
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


def largest(share: Mapping[str, np.ndarray]) -> np.ndarray:
    """The largest share of any limit, of each flight; infinite for one that is lost."""
    worst = np.max(np.stack(list(share.values())), axis=0)
    return np.where(np.isfinite(worst), worst, np.inf)


def fitted_to(
    airframe: Airframe, manoeuvres: Sequence[Manoeuvre], limits: Limits, start: tuple[float, float, float]
) -> tuple[tuple[Manoeuvre, ...], Flown]:
    """The manoeuvres, each as large as the limits allow, and what is flown along them; those that do not fit are left out.

    Raises SettingError where none fits.
    """
    now = list(manoeuvres)
    good: dict[int, tuple[Manoeuvre, Flown]] = {}
    for _ in range(_ROUNDS):
        truth = flown_along(airframe, wanted_of(now), start)
        share = largest(used(truth, limits, start))
        for i, (one, taken) in enumerate(zip(now, share, strict=True)):
            if taken <= MARGIN and (i not in good or good[i][0].size <= one.size):
                good[i] = one, one_of(truth, i)
            aim = 0.97 * MARGIN / taken if math.isfinite(taken) and taken > 0 else 0.5
            aim = min(aim, _SATURATED) if taken > 1.0 else aim
            size = one.size * min(max(aim, 1.0 / (2.0 * _GROWS)), _GROWS)
            now[i] = dataclasses.replace(one, size=min(max(size, _SMALLEST), _LARGEST))
    kept = [good[i] for i in sorted(good)]
    if not kept:
        raise SettingError("no manoeuvre stays within these limits: allow more space, speed, tilt or rate")
    return tuple(one for one, _ in kept), together([flight for _, flight in kept])


def joined(manoeuvres: Sequence[Manoeuvre], rest: float) -> Wanted:
    """Set points of manoeuvres one after the other, after a rest in the air of so many s, without a first axis."""
    parts = wanted_of(manoeuvres)
    still = round(rest * RATE)

    def after(a: np.ndarray) -> np.ndarray:
        flat = a.reshape(-1, *a.shape[2:])
        return np.concatenate([np.zeros((still, *flat.shape[1:])), flat])

    return jax.tree.map(after, parts)
