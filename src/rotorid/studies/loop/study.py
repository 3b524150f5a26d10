"""Closed-loop control with the mass estimated in flight, compared with the nominal mass, in simulation.

part        flights                                                       mass sources
step        a mass step of 30 %, up or down, on five trajectories         all
cells       5 trajectories x 5 mass profiles                              all
hard        the same cells with unmodelled motor lag, drag and wind       all
failures    the same cells with nine failures of the estimator            adaptive, without and with the gate
model       the steps with motor lag, drag and wind                       the whole model, see `whole_model`
team        a second vehicle in the same wind                             the whole model, see `whole_model`

The mass of the controller is the nominal mass, the true mass, or the estimate of the EKF or of the adaptive estimator, without
or with the gate. The controller, the path, the noise of the sensors and the true mass are the same for all sources. Each flight
is compared with the flight with the nominal mass.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rotorid.cores import available_cores
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.closed_loop import GATE
from rotorid.simulation.datasets.generation import Key, flight_seed, make_folder
from rotorid.simulation.failures import FAILURES
from rotorid.simulation.profiles import MASS_PROFILES
from rotorid.simulation.trajectories import TRAJECTORIES
from rotorid.studies.loop.flights import HARD, MASS_SOURCES, STEPS, Task, flights_part
from rotorid.studies.loop.whole_model import MODEL, TEAM, ModelTask, model_part, model_tasks, team_tasks
from rotorid.studies.parts import join_parts, load_or_run_tasks
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.scores import Mean, mean_over

FAILURE_SOURCES = ("adaptive", "adaptive, gated")
"""Mass sources in the flights with a failing estimator."""


class Size(NamedTuple):
    """Size of the study. flights: of each cell with each mass source. failures: each in the first flight of each cell.
    duration: of a flight, s."""

    trajectories: tuple[str, ...]
    profiles: tuple[str, ...]
    flights: int
    failures: tuple[str, ...]
    duration: float = 20.0


_RELATIVE = {"rms error": "of nominal", "path error": "path error of nominal"}

FULL = Size(TRAJECTORIES, MASS_PROFILES, 2, tuple(FAILURES))
QUICK = Size(
    ("random", "lemniscate"), ("step", "sine"), 1, ("frozen", "thrust high", "mirrored", "no output"), 12.0
)


class Study(NamedTuple):
    """The results. rows: means, and the numbers of each flight. flights: number of flights."""

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
    """Run the study in a folder; finished parts are read from there.

    Args:
        folder: of the study.
        size: number and duration of the flights.
        seed: of all random numbers.
        workers: number of processes. Default: one for each core.
        progress: is called with each part and its number of finished flights.

    Returns:
        The results.

    Raises:
        OutputError: if the folder cannot be written.
    """
    make_folder(folder)
    plan = plan_parts(size, seed)

    def make(tasks: Sequence[Task | ModelTask], stage: Stage) -> Part:
        return part_of_tasks(tasks, workers or available_cores(), stage)

    parts = [
        load_or_run_tasks(folder, name, tasks, _settings(tasks), make, progress)
        for name, tasks in plan.items()
    ]
    flights = join_parts(parts)
    return Study((*summary(flights.rows), *flights.rows), flights.curves, sum(map(len, plan.values())))


def part_of_tasks(tasks: Sequence[Task | ModelTask], workers: int, stage: Stage) -> Part:
    """The results of the tasks of one part. workers: number of processes."""
    mass_tasks = [task for task in tasks if isinstance(task, Task)]
    if mass_tasks:
        return flights_part(mass_tasks, workers, stage)
    return model_part([task for task in tasks if isinstance(task, ModelTask)], workers, stage)


def plan_parts(size: Size, seed: int) -> dict[str, list[Task | ModelTask]]:
    """The tasks of each part."""
    plan: dict[str, list[Task | ModelTask]] = {
        "step": [*step_tasks(size, seed)],
        "cells": [*cell_tasks(size, seed)],
        HARD: [*hard_tasks(size, seed)],
        MODEL: [*model_tasks(size.trajectories, size.flights, size.duration, seed)],
        TEAM: [*team_tasks(size.trajectories, size.flights, seed)],
    }
    for name in size.failures:
        plan[f"failure {name}"] = [*failure_tasks(size, seed, name)]
    return plan


def _settings(tasks: Sequence[Task | ModelTask]) -> dict[str, Any]:
    return {"tasks": [list(task) for task in tasks], "gate": dataclasses.asdict(GATE)}


def step_tasks(size: Size, seed: int) -> list[Task]:
    """Each trajectory with each step and each mass source."""
    keys = [(t, m, flight_seed(seed, Key(t, "step", 0))) for t in size.trajectories for m in STEPS]
    return [
        Task("step", t, m, 0, task_seed, source, "", size.duration, t == size.trajectories[0])
        for (t, m, task_seed), source in product(keys, MASS_SOURCES)
    ]


def cell_tasks(size: Size, seed: int) -> list[Task]:
    """All flights of each cell with each mass source."""
    return [
        Task(
            "cells", t, m, n, flight_seed(seed, Key(t, m, n)), source, "", size.duration, _has_curves(size, t, n)
        )
        for t, m, n, source in product(size.trajectories, size.profiles, range(size.flights), MASS_SOURCES)
    ]  # fmt: skip


def hard_tasks(size: Size, seed: int) -> list[Task]:
    """The first flight of each cell with each mass source, with the wind, drag and motors of the hard preset."""
    return [
        Task(HARD, t, m, 0, flight_seed(seed, Key(t, m, 0)), source, "", size.duration)
        for t, m, source in product(size.trajectories, size.profiles, MASS_SOURCES)
    ]


def failure_tasks(size: Size, seed: int, failure: str) -> list[Task]:
    """The first flight of each cell with a failure of the estimator, without and with the gate."""
    return [
        Task(
            "failures", t, m, 0, flight_seed(seed, Key(t, m, 0)), source, failure, size.duration,
            _has_curves(size, t, 0) and m == size.profiles[-1],
        )
        for t, m, source in product(size.trajectories, size.profiles, FAILURE_SOURCES)
    ]  # fmt: skip


def _has_curves(size: Size, trajectory: str, number: int) -> bool:
    return trajectory == size.trajectories[0] and number == 0


def summary(rows: Sequence[Row]) -> list[Row]:
    """Means over the flights of each cell and over all flights.

    The quantities are those of the flights, "of nominal" and "path error of nominal": the RMS error and the path error
    divided by that of the same flight with the nominal mass or model, and "lost": the number of lost flights. The setting of
    a row is the failure, "" for none.
    """
    nominal_errors = {
        (r.quantity, r.part, r.trajectory, r.mass_profile, r.setting): r.value
        for r in rows
        if r.method == "nominal" and r.quantity in _RELATIVE
    }
    means: list[Row] = []
    for (part, source, failure), flight_rows in _grouped(
        rows, lambda r: (r.part, r.method, _failure(r))
    ).items():
        ratios = []
        for row in flight_rows:
            if row.quantity in _RELATIVE:
                flight = row.setting.removeprefix(f"{failure}, ") if failure else row.setting
                nominal_part = "cells" if part == "failures" else part
                key = row.quantity, nominal_part, row.trajectory, row.mass_profile, flight
                ratio = row.value / nominal_errors[key]
                ratios.append(
                    dataclasses.replace(row, quantity=_RELATIVE[row.quantity], unit="1", value=ratio)
                )
        cells = _grouped([*flight_rows, *ratios], lambda r: (r.trajectory, r.mass_profile))
        groups: dict[Any, list[Row]] = {("", ""): [*flight_rows, *ratios], **cells}
        for cell, cell_rows in groups.items():
            for quantity, quantity_rows in _grouped(cell_rows, lambda r: r.quantity).items():
                values = [r.value for r in quantity_rows]
                mean = mean_over(values)
                if quantity == "lost":
                    mean = Mean(sum(values), math.nan, len(values))
                unit = quantity_rows[0].unit
                means.append(mean_row(part, source, quantity, unit, mean, cell, failure))
    return means


def _failure(row: Row) -> str:
    """The failure in the setting of the row of a flight; "" for none."""
    return row.setting.rpartition("flight=")[0].removesuffix(", ")


def _grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
