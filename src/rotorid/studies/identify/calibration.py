"""The calibration of `rotorid identify`: the coverage of its 95 % bands over many synthetic flights.

For each quantity, with z the error over the standard deviation that was said:

    coverage    share of flights with |z| <= 1.96, and its 95 % interval by Wilson's score
    mean of z   a bias, in standard deviations; std of z: 1 where the standard deviations are right
    told        share of the prior's standard deviation that a flight removes, median

and over all quantities of a flight the NEES, which is chi-square distributed where the whole covariance is right.

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
from scipy.stats import chi2, norm

from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.executors import available_cores
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.identify.flights import FREE, Task, make
from rotorid.studies.parts import by_processes, kept_tasks
from rotorid.studies.study_files import Curve, Part, Row

SIGMAS = 1.96
WANTED = (0.90, 0.98)
"""Coverage that the 95 % bands should have."""

_BATCH = 10  # flights a part, kept as they are done
_FOUND = ("truth", "value", "std", "prior std", "told")


class Size(NamedTuple):
    """flights: how many. duration: of each, s."""

    flights: int
    duration: float = 30.0


FULL, QUICK = Size(200), Size(12)


class Study(NamedTuple):
    """All that was found: every flight's numbers, and what they come to. failed: how many could not be identified."""

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
    """Make the study in a folder, or go on with it there. workers: processes; default: one for each core."""
    make_folder(folder)
    tasks = [Task(k, 1000 * seed + k, size.duration) for k in range(size.flights)]
    rows: list[Row] = []
    for first in range(0, len(tasks), _BATCH):
        some = tasks[first : first + _BATCH]
        asked = {"tasks": [list(t) for t in some], "free": FREE}
        among = ("flights", first, len(tasks))
        made = partial(_part, workers=workers or available_cores())
        rows += kept_tasks(folder, f"flights-{first:04d}", some, asked, made, progress, among).rows
    failed = sum(r.quantity == "failed" for r in rows)
    added, curves = summary(rows)
    return Study((*added, *rows), curves, len(tasks), failed)


def _part(tasks: Sequence[Task], stage: Stage, workers: int) -> Part:
    """Rows of each flight: of every quantity `_FOUND`, its NEES with how many quantities it has, and its seconds."""
    rows: list[Row] = []
    for task, of in zip(tasks, by_processes(make, tasks, workers, stage), strict=True):
        setting = f"flight={task.number}"
        if "error" in of:
            rows.append(Row("flights", of["error"], "failed", 1.0, setting=setting, flights=1))
            continue
        for name, numbers in of["quantities"].items():
            for quantity, value in zip(_FOUND, numbers, strict=True):
                rows.append(Row("flights", name, quantity, value, setting=setting, flights=1))
        rows += [
            Row("flights", "all", quantity, value, setting=setting, flights=1)
            for quantity, value in (
                ("nees", of["nees"]),
                ("dof", float(len(of["quantities"]))),
                ("seconds", of["seconds"]),
            )
        ]
    return Part(tuple(rows))


def summary(rows: Sequence[Row]) -> tuple[list[Row], tuple[Curve, ...]]:
    """What the flights come to: rows of the part "quantities" by quantity, rows of "all", and the quantiles of every z."""
    of = [r for r in rows if r.part == "flights"]
    found: list[Row] = []
    curves: list[Curve] = []
    for name in dict.fromkeys(r.method for r in of if r.quantity == "value"):
        truth, value, std, before, gain = (
            np.array([r.value for r in of if r.method == name and r.quantity == q]) for q in _FOUND
        )
        z, n = (value - truth) / std, len(truth)
        inside = int(np.sum(np.abs(z) <= SIGMAS))
        low, high = wilson(inside, n)
        numbers = {
            "coverage": inside / n,
            "coverage, low": low,
            "coverage, high": high,
            "mean of z": float(np.mean(z)),
            "std of z": float(np.std(z)),
            "rms error": float(np.sqrt(np.mean((value - truth) ** 2))),
            "std, median": float(np.median(std)),
            "prior std": float(np.median(before)),
            "information gain, median": float(np.median(gain)),
        }
        found += [Row("quantities", name, q, v, flights=n) for q, v in numbers.items()]
        curves.append(_quantiles(name, z))
    return found + _together(of), tuple(curves)


def _together(of: Sequence[Row]) -> list[Row]:
    nees, dof, seconds = (
        np.array([r.value for r in of if r.method == "all" and r.quantity == q])
        for q in ("nees", "dof", "seconds")
    )
    if not len(nees):
        return []
    inside = nees <= chi2.ppf(0.95, dof)
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
    """z in order over the quantiles of a standard normal."""
    n, none = len(z), np.full(len(z), math.nan)
    expected = norm.ppf((np.arange(n) + 0.5) / n)
    return Curve("z", name, "", "", expected, np.sort(z), none, expected, "z", "")


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `hits` of `n` were seen."""
    share, z2 = hits / n, SIGMAS**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = SIGMAS * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return middle - half, middle + half
