"""The study of SESAME D2.2: every method on its five trajectories with five mass profiles, and further results.

flights      5 trajectories x 5 mass profiles x 50 flights, and hard flights            section 5.3
methods      error, delay, coverage and update time of every method                     6.1, Figures 6 to 10
figure 11    control inputs of the trajectories
tunings      the best fixed tuning of each of the report's methods
adaptive     the adaptive estimator compared with these, and with known jumps
hard         motor lag, drag, gusts, saturation, delayed and missing measurements
elm          ELM, regularised ELM and OS-ELM                                            6.2, Tables 1 to 3, Figures 12 to 16
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.registry import SystemName
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.dataset import Dataset
from rotorid.simulation.datasets.generation import generate_dataset, make_folder
from rotorid.simulation.flight import MAXIMUM_THRUST
from rotorid.studies.parts import join_parts
from rotorid.studies.sesame.adaptive import adaptive_part
from rotorid.studies.sesame.elm import elm_part
from rotorid.studies.sesame.hard import hard_part
from rotorid.studies.sesame.methods import DRIFTS, FIXED, control_part, methods_part, tunings_part
from rotorid.studies.study_files import Curve, Part, Row, load_or_make_part
from rotorid.workflows.compare.batch import FlightInput, prepare_input

FLIGHTS, HARD_FLIGHTS = "flights", "flights-hard"
"""Folders of the data sets, in the folder of the study."""


class Size(NamedTuple):
    """Numbers of flights of each cell (a trajectory with a mass profile): of the data set, of its part for the comparison of
    tunings, and of the hard data set."""

    flights: int
    tuning: int
    hard: int


FULL, QUICK = Size(50, 10, 10), Size(2, 2, 1)


class Study(NamedTuple):
    """The results. flights, hard_flights: numbers of flights."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    flights: int
    hard_flights: int


def sesame(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    flights: Path | None = None,
    progress: Progress = no_progress,
) -> Study:
    """Run the study in a folder; finished parts are read from there.

    Args:
        folder: of the study.
        size: numbers of flights.
        seed: of all random numbers.
        flights: folder of an existing data set, instead of simulating one. The hard flights have its trajectories, mass
            profiles and duration.
        progress: is called with each stage and its number of finished flights or runs.

    Returns:
        The results.

    Raises:
        OutputError: if the folder cannot be written.
        LogError, SettingError: if the data set cannot be used.
    """
    make_folder(folder)
    nominal, hard = _datasets(folder, size, seed, flights, progress)
    cells = {"/".join(cell): count for cell, count in nominal.cells.items()}
    settings = {"size": size, "seed": seed, "cells": cells, **nominal.settings}
    count, tuning_count, hard_count = len(nominal), _count_first(nominal, size.tuning), len(hard)

    def make(name: str, function: Callable[[Stage], Part], total: int) -> Part:
        return load_or_make_part(folder, name, settings, lambda: function(Stage(progress, name, total)))

    methods = make("methods", lambda stage: methods_part(_inputs(nominal, "simulated-quad"), stage), count)
    control = make("figure 11", lambda stage: control_part(nominal, MAXIMUM_THRUST, stage), count)

    @cache
    def tuning_flights() -> list[FlightInput]:
        return list(_inputs(nominal, "simulated-quad", size.tuning))

    runs = tuning_count * len(FIXED) * len(DRIFTS)
    tunings = make("tunings", lambda stage: tunings_part(tuning_flights(), stage), runs)
    adaptive = make("adaptive", lambda stage: adaptive_part(tuning_flights(), tunings, stage), tuning_count)
    airframe = "simulated-quad-hard"
    hard_results = make(
        "hard",
        lambda stage: hard_part(lambda system: list(_inputs(hard, airframe, system=system)), stage),
        2 * hard_count,
    )
    elm = make("elm", lambda _: elm_part(nominal, quick=size == QUICK, seed=seed, progress=progress), 0)
    results = join_parts((methods, control, tunings, adaptive, hard_results, elm))
    return Study(results.rows, results.curves, count, hard_count)


def _datasets(
    folder: Path, size: Size, seed: int, flights: Path | None, progress: Progress
) -> tuple[Dataset, Dataset]:
    """The nominal data set, and a hard data set with its trajectories, mass profiles and duration."""
    if flights is None:
        nominal = generate_dataset(
            folder / FLIGHTS, flights=size.flights, seed=seed, progress=progress
        ).dataset
    else:
        nominal = Dataset(flights)
    hard = generate_dataset(
        folder / HARD_FLIGHTS,
        flights=size.hard,
        seed=seed,
        preset="hard",
        duration=nominal.settings["duration"],
        trajectories=tuple(dict.fromkeys(t for t, _ in nominal.cells)),
        mass_profiles=tuple(dict.fromkeys(p for _, p in nominal.cells)),
        progress=progress,
    )
    return nominal, hard.dataset


def _inputs(
    dataset: Dataset, airframe: str, limit: int | None = None, system: SystemName = "multirotor-bare"
) -> Iterator[FlightInput]:
    """Inputs of the estimators from flights of a data set. limit: number of flights of each cell; None: all."""
    vehicle = load_airframe(airframe)
    keys = dataset.keys()
    for key in keys if limit is None else [k for k in keys if k.number < limit]:
        yield prepare_input(dataset.flight(*key), vehicle, system, cell=(key.trajectory, key.mass_profile))


def _count_first(dataset: Dataset, limit: int) -> int:
    """Number of flights in a data set with at most `limit` flights of each cell."""
    return sum(min(count, limit) for count in dataset.cells.values())
