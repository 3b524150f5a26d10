"""The closed loop: control with the mass estimated in flight, compared with the nominal mass, in simulation.

step        the nominal mass, then 30 % more or less at once, on five trajectories        by every pilot
cells       5 trajectories x 5 mass profiles                                              by every pilot
hard        the same cells with unmodelled motor lag, drag and wind                    by every pilot
failures    the same cells with an estimator that fails, in nine ways                     with and without the gate

A pilot is where the controller has its mass from: the nominal one, the true one, EKF or adaptive estimator, the last two
through a gate or not. The controller, the path, the sensors' noise and the mass are the same for all of them, so each flight
is compared with its own nominal one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.closed_loop import GATE
from rotorid.simulation.datasets.executors import available_cores
from rotorid.simulation.datasets.generation import Key, flight_seed, make_folder
from rotorid.simulation.failures import FAILURES
from rotorid.simulation.profiles import MASS_PROFILES
from rotorid.simulation.trajectories import TRAJECTORIES
from rotorid.studies.loop.flights import HARD, PILOTS, QUANTITIES, STEPS, Task, flown
from rotorid.studies.parts import kept_tasks, whole
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.scores import Mean, mean_over

FAILING = ("adaptive", "adaptive, gated")
"""Pilots whose estimator is made to fail."""


class Size(NamedTuple):
    """flights: of each cell by each pilot. failures: with which the first flight of each cell is flown. duration: s."""

    trajectories: tuple[str, ...]
    profiles: tuple[str, ...]
    flights: int
    failures: tuple[str, ...]
    duration: float = 20.0


FULL = Size(TRAJECTORIES, MASS_PROFILES, 2, tuple(FAILURES))
QUICK = Size(
    ("random", "lemniscate"), ("step", "sine"), 1, ("frozen", "thrust high", "mirrored", "no output"), 12.0
)


class Study(NamedTuple):
    """All that was found: every flight's numbers, and what they come to. flights: how many were flown."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    flights: int


def loop(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Study:
    """Make the study in a folder, or go on with it there. workers: processes; default: one for each core."""
    make_folder(folder)
    plan = plan_of(size, seed)

    def made(tasks: Sequence[Task], stage: Stage) -> Part:
        return flown(tasks, workers or available_cores(), stage)

    parts = [kept_tasks(folder, name, tasks, _asked(tasks), made, progress) for name, tasks in plan.items()]
    every = whole(parts)
    return Study((*summary(every.rows), *every.rows), every.curves, sum(map(len, plan.values())))


def plan_of(size: Size, seed: int) -> dict[str, list[Task]]:
    """The flights of every part."""
    plan = {"step": step_tasks(size, seed), "cells": cell_tasks(size, seed)}
    plan["hard"] = hard_tasks(size, seed)
    return plan | {f"failure {name}": failure_tasks(size, seed, name) for name in size.failures}


def _asked(tasks: Sequence[Task]) -> dict[str, Any]:
    return {"tasks": [list(task) for task in tasks], "gate": dataclasses.asdict(GATE)}


def step_tasks(size: Size, seed: int) -> list[Task]:
    """Each trajectory with each step, by every pilot."""
    keys = [(t, m, flight_seed(seed, Key(t, "step", 0))) for t in size.trajectories for m in STEPS]
    return [
        Task("step", t, m, 0, own, pilot, "", size.duration, t == size.trajectories[0])
        for (t, m, own), pilot in product(keys, PILOTS)
    ]


def cell_tasks(size: Size, seed: int) -> list[Task]:
    """Every cell by every pilot."""
    return [
        Task(
            "cells", t, m, n, flight_seed(seed, Key(t, m, n)), pilot, "", size.duration, _pictured(size, t, n)
        )
        for t, m, n, pilot in product(size.trajectories, size.profiles, range(size.flights), PILOTS)
    ]


def hard_tasks(size: Size, seed: int) -> list[Task]:
    """The first flight of every cell by every pilot, with the air and the motors of the hard preset."""
    return [
        Task(HARD, t, m, 0, flight_seed(seed, Key(t, m, 0)), pilot, "", size.duration)
        for t, m, pilot in product(size.trajectories, size.profiles, PILOTS)
    ]


def failure_tasks(size: Size, seed: int, failure: str) -> list[Task]:
    """Every cell with that failure, with and without the gate."""
    return [
        Task(
            "failures", t, m, 0, flight_seed(seed, Key(t, m, 0)), pilot, failure, size.duration,
            _pictured(size, t, 0) and m == size.profiles[-1],
        )
        for t, m, pilot in product(size.trajectories, size.profiles, FAILING)
    ]  # fmt: skip


def _pictured(size: Size, trajectory: str, number: int) -> bool:
    return trajectory == size.trajectories[0] and number == 0


def summary(rows: Sequence[Row]) -> list[Row]:
    """Means over flights, of each cell and of all; and errors as shares of those of the flights with the nominal mass.

    setting: the failure, "" for none. Quantities are those of the flights, "of nominal", and "lost", a sum.
    """
    nominal = {
        (r.part, r.trajectory, r.mass_profile, r.setting): r.value
        for r in rows
        if r.method == "nominal" and r.quantity == "rms error"
    }
    found: list[Row] = []
    for (part, pilot, setting), of in _grouped(rows, lambda r: (r.part, r.method, _failure(r))).items():
        shares = []
        for row in of:
            if row.quantity == "rms error":
                flight = row.setting.removeprefix(f"{setting}, ") if setting else row.setting
                home = "cells" if part == "failures" else part
                alike = nominal[home, row.trajectory, row.mass_profile, flight]
                shares.append(dataclasses.replace(row, quantity="of nominal", value=row.value / alike))
        cells = _grouped([*of, *shares], lambda r: (r.trajectory, r.mass_profile))
        every: dict[Any, list[Row]] = {("", ""): [*of, *shares], **cells}
        for (trajectory, mass), some in every.items():
            for quantity, these in _grouped(some, lambda r: r.quantity).items():
                values = [r.value for r in these]
                mean = mean_over(values)
                if quantity == "lost":
                    mean = Mean(sum(values), math.nan, len(values))
                unit = QUANTITIES.get(quantity, "1")
                found.append(mean_row(part, pilot, quantity, unit, mean, (trajectory, mass), setting))
    return found


def _failure(row: Row) -> str:
    return row.setting.rpartition("flight=")[0].removesuffix(", ")


def _grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
