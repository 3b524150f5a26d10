"""The study of seed 000: every method on its five trajectories by five mass profiles, and what it could not do.

flights      5 trajectories x 5 mass profiles x 50 flights, and hard ones               section 5.3
methods      error, delay, honesty and update time of every method                      6.1, Figures 6 to 10
figure 11    what a lemniscate asks of the vehicle
tunings      the best fixed tuning of each of the seed's methods
adaptive     the adaptive estimator against these, and with known jumps
hard         lag, drag, gusts, saturation, late and missing measurements
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
from rotorid.studies.parts import whole
from rotorid.studies.sesame.adaptive import adaptive_part
from rotorid.studies.sesame.elm import elm_part
from rotorid.studies.sesame.hard import hard_part
from rotorid.studies.sesame.methods import DRIFTS, FIXED, control_part, methods_part, tunings_part
from rotorid.studies.study_files import Curve, Part, Row, kept
from rotorid.workflows.compare.batch import FlightInput, prepare_input

FLIGHTS, HARD_FLIGHTS = "flights", "flights-hard"
"""Folders of the data sets, in that of the study."""


class Size(NamedTuple):
    """Flights of each trajectory with each mass profile: of the data set, of those that tunings are tried on, of the hard
    set."""

    flights: int
    tried: int
    hard: int


FULL, QUICK = Size(50, 10, 10), Size(2, 2, 1)


class Study(NamedTuple):
    """All that was found. flights, hard_flights: how many were flown."""

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
    """Make the study in a folder, or go on with it there.

    flights: a data set to use, in place of one that is made; the hard flights take after it. Raises what `generate_dataset`
    and `Dataset` raise.
    """
    make_folder(folder)
    nominal, hard = _fly(folder, size, seed, flights, progress)
    cells = {"/".join(cell): count for cell, count in nominal.cells.items()}
    asked = {"size": size, "seed": seed, "cells": cells, **nominal.settings}
    count, tried, hard_count = len(nominal), _first(nominal, size.tried), len(hard)

    def make(name: str, of: Callable[[Stage], Part], total: int) -> Part:
        return kept(folder, name, asked, lambda: of(Stage(progress, name, total)))

    every = make("methods", lambda stage: methods_part(_ready(nominal, "simulated-quad"), stage), count)
    control = make("figure 11", lambda stage: control_part(nominal, MAXIMUM_THRUST, stage), count)

    @cache
    def some() -> list[FlightInput]:
        return list(_ready(nominal, "simulated-quad", size.tried))

    runs = tried * len(FIXED) * len(DRIFTS)
    tunings = make("tunings", lambda stage: tunings_part(some(), stage), runs)
    adaptive = make("adaptive", lambda stage: adaptive_part(some(), tunings, stage), tried)
    airframe = "simulated-quad-hard"
    difficult = make(
        "hard",
        lambda stage: hard_part(lambda system: list(_ready(hard, airframe, system=system)), stage),
        2 * hard_count,
    )
    elm = make("elm", lambda _: elm_part(nominal, quick=size == QUICK, seed=seed, progress=progress), 0)
    parts = (every, control, tunings, adaptive, difficult, elm)
    all_of_it = whole(parts)
    return Study(
        all_of_it.rows,
        all_of_it.curves,
        count,
        hard_count,
    )


def _fly(
    folder: Path, size: Size, seed: int, flights: Path | None, progress: Progress
) -> tuple[Dataset, Dataset]:
    """The nominal data set, and the hard one with its trajectories, mass profiles and duration."""
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


def _ready(
    dataset: Dataset, airframe: str, most: int | None = None, system: SystemName = "multirotor-bare"
) -> Iterator[FlightInput]:
    """Flights as estimators eat them, the first ones of each cell."""
    vehicle = load_airframe(airframe)
    keys = dataset.keys()
    for key in keys if most is None else [k for k in keys if k.number < most]:
        yield prepare_input(dataset.flight(*key), vehicle, system, cell=(key.trajectory, key.mass_profile))


def _first(dataset: Dataset, most: int) -> int:
    return sum(min(count, most) for count in dataset.cells.values())
