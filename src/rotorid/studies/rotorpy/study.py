"""The study: `rotorid identify` and `rotorid track` on 60 flights of RotorPy, and 15 of them once more with a payload.

Five vehicles, excited and ordinary flights, three kinds of wind, commands or speeds logged. The flights are run in an order in
which neighbours differ, so that an interrupted study has some of each kind. Statistics over the identified flights, with z the
error over the estimated standard deviation:

    coverage        share of the flights with |z| <= 1.96, with its 95 % interval by Wilson's score
    median error    median of |error / truth|
    largest z       largest |z| among accepted models

They are given for all flights, and for those of each vehicle, excitation, wind and log. For tracks see `tracking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from rotorid.cores import available_cores
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.identify.calibration import wilson
from rotorid.studies.parts import load_or_run_tasks, run_tasks
from rotorid.studies.rotorpy.flights import WINDS, Task
from rotorid.studies.rotorpy.recovery import identify_task
from rotorid.studies.rotorpy.tracking import SIGMAS, track_task
from rotorid.studies.rotorpy.vehicles import VEHICLES, check_rotorpy
from rotorid.studies.study_files import Curve, Part, Row

REQUIRED: Final = (
    "inertia_x", "inertia_y", "inertia_z", "thrust_at_hover", "thrust_slope_at_hover", "motor_time_constant", "drag_across",
    "drag_along", "wind_x", "wind_y",
)  # fmt: skip
"""Quantities whose coverage has a target; others are shown as well."""

TRACK_METHODS: Final = ("known thrust", "identified")

_BATCH = 4  # flights of a part
_STRIDE = 7  # in the order of the flights; no divisor of their number
_INERTIA = ("inertia_x", "inertia_y", "inertia_z")
_QUANTITIES = ("truth", "value", "std")


class Size(NamedTuple):
    """Size of the study: the kinds of its flights."""

    vehicles: tuple[str, ...] = VEHICLES
    excited: tuple[bool, ...] = (True, False)
    winds: tuple[str, ...] = WINDS
    rotors: tuple[str, ...] = ("rotor_command", "rotor_speed")
    duration: float = 40.0


FULL, QUICK = Size(), Size(VEHICLES[:2], (True,), ("still", "gusts"), ("rotor_command",))


class Study(NamedTuple):
    """The results. rows: statistics, and the numbers of each flight. flights: number of identified flights and of tracks."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    flights: tuple[int, int]


def tasks_of(size: Size, seed: int = 0) -> list[Task]:
    """The flights that are identified, in the order of their kinds; each kind has its own seed."""
    tasks = []
    for wind in WINDS:
        for is_excited in (True, False):
            for rotors in ("rotor_command", "rotor_speed"):
                for vehicle in VEHICLES:
                    number = 1000 * seed + len(tasks)
                    tasks.append(Task(vehicle, is_excited, wind, rotors, number, size.duration))
    return [
        t
        for t in tasks
        if t.vehicle in size.vehicles
        and t.is_excited in size.excited
        and t.wind in size.winds
        and t.rotors in size.rotors
    ]


def track_pairs(tasks: Sequence[Task]) -> list[tuple[Task, Task]]:
    """The tracked flights, those with logged commands, every second with payload; each with the flight whose identified
    airframe is used: the excited one of its vehicle in still air, else the first of its vehicle."""
    logged = [t for t in tasks if t.rotors == "rotor_command"]
    pairs = []
    for k, task in enumerate(logged):
        same = [t for t in logged if t.vehicle == task.vehicle]
        source = next((t for t in same if t.is_excited and t.wind == "still"), same[0])
        pairs.append((task._replace(has_payload=k % 2 == 0), source))
    return pairs


def rotorpy_study(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Study:
    """Run the study in a folder; finished parts and simulated flights are read from there.

    Args:
        folder: of the study.
        size: kinds of its flights.
        seed: of all random numbers.
        workers: number of processes. Default: one for each core.
        progress: is called with the number of finished flights.
    Returns:
        The results.
    Raises:
        SettingError: RotorPy is not installed.
        OutputError: the folder cannot be written.
    """
    check_rotorpy()
    make_folder(folder)
    tasks = tasks_of(size, seed)
    count = workers or available_cores()
    rows = _stage(
        folder, "identify", strided(tasks), partial(_identified, folder=folder, workers=count), progress
    )
    pairs = strided(track_pairs(tasks))
    tracks = _stage(folder, "track", pairs, partial(_tracked, folder=folder, workers=count), progress)
    flight_rows = [*(r for part in rows for r in part.rows), *(r for part in tracks for r in part.rows)]
    curves = tuple(c for part in tracks for c in part.curves)
    return Study((*summary(flight_rows), *flight_rows), curves, (len(tasks), len(pairs)))


def strided(items: Sequence[Any]) -> list[Any]:
    """The items in steps of `_STRIDE`, all of them once."""
    step = _STRIDE if math.gcd(_STRIDE, len(items)) == 1 else 1
    return [items[(step * k) % len(items)] for k in range(len(items))]


def _stage(
    folder: Path,
    name: str,
    tasks: Sequence[Any],
    make: Callable[[Sequence[Any], Stage], Part],
    progress: Progress,
) -> list[Part]:
    parts = []
    for first in range(0, len(tasks), _BATCH):
        batch = tasks[first : first + _BATCH]
        settings = {"tasks": [repr(task) for task in batch]}
        position = (name, first, len(tasks))
        parts.append(
            load_or_run_tasks(folder, f"{name}-{first:04d}", batch, settings, make, progress, position)
        )
    return parts


def _identified(tasks: Sequence[Task], stage: Stage, folder: Path, workers: int) -> Part:
    """Rows of each flight: truth, value and std of each quantity; whether it was accepted, why not, and the time."""
    rows: list[Row] = []
    results = run_tasks(partial(identify_task, folder=folder), tasks, workers, stage)
    for task, result in zip(tasks, results, strict=True):
        add = partial(Row, "identify", setting=task.name, flights=1)
        if "error" in result:
            rows.append(add(result["error"], "failed", 1.0))
            continue
        for name, numbers in result["quantities"].items():
            rows += [add(name, q, v) for q, v in zip(_QUANTITIES, numbers, strict=True)]
        rows += [add("all", "accepted", float(result["accepted"])), add("all", "seconds", result["seconds"])]
        rows += [add(reason, "rejected", 1.0) for reason in dict.fromkeys(result["reasons"])]
        rows += [add(code, "warning", 1.0) for code in result["findings"]]
    return Part(tuple(rows))


def _tracked(pairs: Sequence[tuple[Task, Task]], stage: Stage, folder: Path, workers: int) -> Part:
    """Rows of the scores of each track, and its mass as a curve."""
    rows: list[Row] = []
    curves: list[Curve] = []
    results = run_tasks(partial(track_task, folder=folder), pairs, workers, stage)
    for (task, _), result in zip(pairs, results, strict=True):
        for method, scores in result.items():
            if "error" in scores:
                rows.append(
                    Row("track", method, f"failed: {scores['error']}", 1.0, setting=task.name, flights=1)
                )
                continue
            t, value, std, truth = (np.array(column, dtype=float) for column in scores.pop("curve"))
            profile = "payload" if task.has_payload else "constant"
            curves.append(Curve("track", method, task.name, profile, t, value, std, truth))
            rows += [Row("track", method, q, v, setting=task.name, flights=1) for q, v in scores.items()]
    return Part(tuple(rows), tuple(curves))


def groups_of(flight: str) -> tuple[str, ...]:
    """The groups of a flight by its name: "" for all, vehicle, excitation, wind and log."""
    vehicle = next(v for v in VEHICLES if flight.startswith(v))
    return ("", vehicle, *flight.removeprefix(f"{vehicle}-").split("-")[:-1])


def summary(rows: Sequence[Row]) -> list[Row]:
    """Statistics over the flights: part "quantities", "all" and "tracks", with the group as setting."""
    return [*_quantity_statistics(rows), *_model_statistics(rows), *_track_statistics(rows)]


def _quantity_statistics(rows: Sequence[Row]) -> list[Row]:
    flights = _by_flight(r for r in rows if r.part == "identify")
    accepted = {f for f, numbers in flights.items() if numbers.get(("all", "accepted"))}
    names = dict.fromkeys(method for numbers in flights.values() for method, q in numbers if q == "value")
    statistics: list[Row] = []
    for name in [*(n for n in REQUIRED if n in names), *(n for n in names if n not in REQUIRED)]:
        having = [f for f in flights if (name, "value") in flights[f]]
        for group in _groups(having):
            members = [f for f in having if group in groups_of(f)]
            truth, value, std = (np.array([flights[f][name, q] for f in members]) for q in _QUANTITIES)
            with np.errstate(divide="ignore", invalid="ignore"):
                z = np.abs(value - truth) / std
                error = np.abs(value / truth - 1.0)
            z = np.where(np.isfinite(z), z, np.inf)
            inside, n = int(np.sum(z <= SIGMAS)), len(z)
            low, high = wilson(inside, n)
            own = np.array([f in accepted for f in members])
            numbers = {
                "coverage": inside / n,
                "coverage, low": low,
                "coverage, high": high,
                "median error": float(np.median(error)),
                "median z": float(np.median(z)),
                "largest z": float(np.max(z)),
                "largest z, accepted": float(np.max(z[own], initial=0.0)),
                "coverage, accepted": float(np.mean(z[own] <= SIGMAS)) if own.any() else math.nan,
                "accepted": float(np.sum(own)),
            }
            statistics += [
                Row("quantities", name, q, v, setting=group, flights=n) for q, v in numbers.items()
            ]
    return statistics


def _model_statistics(rows: Sequence[Row]) -> list[Row]:
    flights = _by_flight(r for r in rows if r.part == "identify")
    if not flights:
        return []
    statistics: list[Row] = []
    for group in _groups(flights):
        members = [numbers for f, numbers in flights.items() if group in groups_of(f)]
        done = [numbers for numbers in members if ("all", "accepted") in numbers]
        errors = [
            abs(numbers[name, "value"] / numbers[name, "truth"] - 1.0)
            for numbers in done
            for name in _INERTIA
            if (name, "value") in numbers
        ]
        largest = [
            abs(numbers[name, "value"] - numbers[name, "truth"]) / numbers[name, "std"]
            for numbers in done
            for name in REQUIRED
            if numbers["all", "accepted"] and numbers.get((name, "std"), 0.0) > 0.0
        ]
        values = {
            "identified": float(len(done)),
            "accepted": float(sum(numbers["all", "accepted"] for numbers in done)),
            "inertia, median error": float(np.median(errors)) if errors else math.nan,
            "largest z, accepted": max(largest, default=0.0),
            "seconds, median": float(
                np.median([numbers["all", "seconds"] for numbers in done] or [math.nan])
            ),
        }
        statistics += [
            Row("all", "all", q, v, setting=group, flights=len(members)) for q, v in values.items()
        ]
    return statistics


def _track_statistics(rows: Sequence[Row]) -> list[Row]:
    statistics: list[Row] = []
    for method in TRACK_METHODS:
        flights = _by_flight(r for r in rows if r.part == "track" and r.method == method)
        for group in _groups(flights):
            members = [numbers for f, numbers in flights.items() if group in groups_of(f)]

            def column(name: str, members=members, method=method) -> list[float]:
                return [numbers[method, name] for numbers in members if (method, name) in numbers]

            values = {
                "rmspe, median": np.median(column("rmspe") or [math.nan]),
                "inside, mean": np.mean(column("inside") or [math.nan]),
                "ok_wrong, mean": np.mean(column("ok_wrong") or [math.nan]),
                "ok, mean": np.mean(column("ok") or [math.nan]),
                "wind inside, mean": np.mean(
                    [*column("wind_x inside"), *column("wind_y inside")] or [math.nan]
                ),
            }
            statistics += [
                Row("tracks", method, q, float(v), setting=group, flights=len(members))
                for q, v in values.items()
            ]
    return statistics


def _by_flight(rows: Any) -> dict[str, dict[tuple[str, str], float]]:
    """The numbers of each flight by method and quantity."""
    flights: dict[str, dict[tuple[str, str], float]] = {}
    for r in rows:
        flights.setdefault(r.setting, {})[r.method, r.quantity] = r.value
    return flights


def _groups(flights: Any) -> list[str]:
    """All groups of these flights, in order of appearance."""
    return list(dict.fromkeys(group for flight in flights for group in groups_of(flight)))
