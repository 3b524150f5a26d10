"""Calibration of `rotorid identify`: the coverage of its 95 % bands over many simulated flights.

For each quantity, with z the error divided by the estimated standard deviation:

    coverage            share of the flights with |z| <= 1.96, with its 95 % interval by Wilson's score
    mean of z           bias in standard deviations, with its standard error
    std of z            1 for consistent standard deviations
    information gain    relative reduction of the prior standard deviation, median over the flights

The NEES over all quantities of a flight is chi-square distributed if the covariance is consistent.

Reference: E. B. Wilson, Probable inference, the law of succession, and statistical inference, J. Am. Stat. Assoc. 22 (1927).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.special import chdtri, ndtri

from rotorid.cores import available_cores
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.identify.flights import FREE, Task, identify_task
from rotorid.studies.parts import load_or_run_tasks, run_tasks
from rotorid.studies.study_files import Curve, Part, Row

SIGMAS = 1.96
TARGET_COVERAGE = (0.90, 0.98)
"""Target range of the coverage of the 95 % bands."""

_BATCH = 10  # flights of a part
_QUANTITIES = ("truth", "value", "std", "prior std", "information gain")


class Size(NamedTuple):
    """Size of the study. flights: their number. duration: of a flight, s."""

    flights: int
    duration: float = 30.0


FULL, QUICK = Size(200), Size(12)


class Study(NamedTuple):
    """The results. rows: statistics, and the numbers of each flight. flights: their number. failed: number of flights whose
    identification failed."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    flights: int
    failed: int


def identify_calibration(
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
        progress: is called with the number of finished flights.

    Returns:
        The results.

    Raises:
        OutputError: if the folder cannot be written.
    """
    make_folder(folder)
    tasks = [Task(k, 1000 * seed + k, size.duration) for k in range(size.flights)]
    rows: list[Row] = []
    for first in range(0, len(tasks), _BATCH):
        batch = tasks[first : first + _BATCH]
        settings = {"tasks": [list(t) for t in batch], "free": FREE}
        position = ("flights", first, len(tasks))
        make = partial(_part, workers=workers or available_cores())
        rows += load_or_run_tasks(
            folder, f"flights-{first:04d}", batch, settings, make, progress, position
        ).rows
    failed = sum(r.quantity == "failed" for r in rows)
    statistics, curves = summary(rows)
    return Study((*statistics, *rows), curves, len(tasks), failed)


def _part(tasks: Sequence[Task], stage: Stage, workers: int) -> Part:
    """Rows of each flight: `_QUANTITIES` of each parameter, the NEES with its degrees of freedom, and the computation time."""
    rows: list[Row] = []
    for task, result in zip(tasks, run_tasks(identify_task, tasks, workers, stage), strict=True):
        setting = f"flight={task.number}"
        if "error" in result:
            rows.append(Row("flights", result["error"], "failed", 1.0, setting=setting, flights=1))
            continue
        for name, numbers in result["quantities"].items():
            for quantity, value in zip(_QUANTITIES, numbers, strict=True):
                rows.append(Row("flights", name, quantity, value, setting=setting, flights=1))
        rows += [
            Row("flights", "all", quantity, value, setting=setting, flights=1)
            for quantity, value in (
                ("nees", result["nees"]),
                ("dof", float(len(result["quantities"]))),
                ("seconds", result["seconds"]),
            )
        ]
    return Part(tuple(rows))


def summary(rows: Sequence[Row]) -> tuple[list[Row], tuple[Curve, ...]]:
    """Statistics over the flights: rows of the part "quantities" for each quantity, rows of the part "all" for all together,
    and the quantiles of z as curves."""
    flight_rows = [r for r in rows if r.part == "flights"]
    statistics: list[Row] = []
    curves: list[Curve] = []
    for name in dict.fromkeys(r.method for r in flight_rows if r.quantity == "value"):
        truth, value, std, prior_std, gain = (
            np.array([r.value for r in flight_rows if r.method == name and r.quantity == q])
            for q in _QUANTITIES
        )
        z, n = (value - truth) / std, len(truth)
        inside = int(np.sum(np.abs(z) <= SIGMAS))
        low, high = wilson(inside, n)
        numbers = {
            "coverage": inside / n,
            "coverage, low": low,
            "coverage, high": high,
            "mean of z": float(np.mean(z)),
            "standard error of z": float(np.std(z) / math.sqrt(n)),
            "std of z": float(np.std(z)),
            "rms error": float(np.sqrt(np.mean((value - truth) ** 2))),
            "std, median": float(np.median(std)),
            "prior std": float(np.median(prior_std)),
            "information gain, median": float(np.median(gain)),
        }
        statistics += [Row("quantities", name, q, v, flights=n) for q, v in numbers.items()]
        curves.append(_quantiles(name, z))
    return statistics + _joint_statistics(flight_rows), tuple(curves)


def _joint_statistics(rows: Sequence[Row]) -> list[Row]:
    """Statistics of the NEES, and the computation time."""
    nees, dof, seconds = (
        np.array([r.value for r in rows if r.method == "all" and r.quantity == q])
        for q in ("nees", "dof", "seconds")
    )
    if not len(nees):
        return []
    inside = nees <= chdtri(dof, 0.05)
    low, high = wilson(int(np.sum(inside)), len(nees))
    numbers = {
        "nees over dof": float(np.mean(nees / dof)),
        "coverage": float(np.mean(inside)),
        "coverage, low": low,
        "coverage, high": high,
        "seconds, median": float(np.median(seconds)),
    }
    return [Row("all", "all", q, v, flights=len(nees)) for q, v in numbers.items()]


def _quantiles(name: str, z: Float64[np.ndarray, " n"]) -> Curve:
    """Sorted values of z over the quantiles of a standard normal distribution."""
    n, missing = len(z), np.full(len(z), math.nan)
    expected = ndtri((np.arange(n) + 0.5) / n)
    return Curve("z", name, "", "", expected, np.sort(z), missing, expected, "z", "")


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share, from `hits` of `n`."""
    share, z2 = hits / n, SIGMAS**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = SIGMAS * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return centre - half, centre + half
