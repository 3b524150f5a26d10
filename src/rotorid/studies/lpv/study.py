"""The study of Torren 2014: standard identification, likelihood, particle filters, and LPV control.

standard      third-order example, constant and time-varying, and the quadrotor                 chapter 2
likelihood    first test of maximum likelihood, its varying form, and the amount of data        4.1, Figures 4.1 and 4.2
constant      filter of Liu and West with constant parameters                                   4.2, Figures 4.3 and 4.4
unchanged     with changepoints, for a constant parameter                                       Figure 4.7
changes       drifting and jumping parameters, with all settings of the thesis and ours           Figures 4.5 to 4.12
stationary    jumps of a parameter of a stationary process, beside a Rao-Blackwellised reference
priors        priors of changed parameters, their width and probability                         future work, 5.2
control       gain-scheduled LPV control of the quadrotor compared with an LQR                  future work, 5.2
in flight     LPV control by what the filter identifies in flight, beside LQR, fixed LPV and NMPC   future work, 5.2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rotorid.progress import Progress, no_progress
from rotorid.simulation.datasets.generation import make_folder
from rotorid.studies.lpv import control as lpv_control
from rotorid.studies.lpv import likelihood as lpv_likelihood
from rotorid.studies.lpv import particles as lpv_particles
from rotorid.studies.lpv import pilots as lpv_pilots
from rotorid.studies.lpv import slow_changes as lpv_slow_changes
from rotorid.studies.lpv import standard as lpv_standard
from rotorid.studies.lpv import stationary as lpv_stationary
from rotorid.studies.lpv.standard_hover import quadrotor_rows
from rotorid.studies.parts import join_parts
from rotorid.studies.study_files import Curve, Part, Row, load_or_make_part, mean_of_all, mean_row


class Size(NamedTuple):
    """Size of the study.

    rows: sizes of the data of the third-order example. seeds: number of data sets for standard methods, likelihood,
    particles and priors; 0: without that part. lengths: numbers of rows of the quadrotor. inputs: whether its rotor
    speeds are "measured" or "hidden". particles: number. steps: rows with constant parameters. courses, payloads: of
    the control.
    """

    rows: tuple[int, ...]
    seeds: tuple[int, int, int, int]
    lengths: tuple[int, ...]
    inputs: tuple[str, ...]
    particles: int
    steps: int
    courses: tuple[lpv_control.Course, ...]
    payloads: tuple[str, ...]


FULL = Size(
    (2000, 40000), (20, 20, 20, 5), (50, 100, 200, 400, 800, 1600), ("hidden", "measured"), 5000, 500,
    lpv_control.COURSES, lpv_control.PAYLOADS,
)  # fmt: skip
QUICK = Size((2000,), (3, 3, 2, 0), (50, 200, 800), ("measured",), 1000, 200, ("helix",), ("none", "taken"))


class Study(NamedTuple):
    """The results."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]


def lpv(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Study:
    """Run the study in a folder; finished parts are read from there."""
    make_folder(folder)
    standard, likelihood, draws, priors = (range(seed, seed + n) for n in size.seeds)
    functions: dict[str, Callable[[], Part]] = {
        "third order": lambda: Part(lpv_standard.third_order_rows(size.rows, len(standard))),
        "time-varying": lambda: Part(lpv_standard.varying_rows(size.rows[-1], len(standard))),
        "quadrotor": lambda: Part(quadrotor_rows(seeds=max(1, len(standard) // 6))),
        "first test": lambda: _first_test(likelihood),
        "length of data": lambda: _lengths(size, likelihood),
        "constant": lambda: lpv_particles.constant_part(size.steps, size.particles, draws),
        "slow changes": lambda: lpv_slow_changes.slow_changes_part(2 * size.steps, size.particles, draws),
        "unchanged": lambda: lpv_particles.unchanged_part(size.steps, size.particles, draws),
        "changes": lambda: lpv_particles.changing_part(size.particles, draws),
        "stationary": lambda: lpv_stationary.stationary_part(size.steps, size.particles, draws),
        "priors": lambda: lpv_particles.priors_part(size.particles // 2, priors) if priors else Part(()),
        "control": lambda: _control(size, seed),
        "in flight": lambda: lpv_pilots.in_flight_part(
            size.particles // 2, size.courses, range(seed, seed + max(1, len(draws) // 4))
        ),
    }
    parts = []
    for name, make in functions.items():
        progress(name, 0, 1)
        parts.append(load_or_make_part(folder, name.replace(" ", "-"), {"size": size, "seed": seed}, make))
        progress(name, 1, 1)
    results = join_parts(parts)
    return Study(results.rows, results.curves)


def _first_test(seeds: range) -> Part:
    """Estimates of the first test, and of its form with a varying x1."""
    rows: list[Row] = []
    first = lpv_likelihood.first_test(seeds)
    for name, true in lpv_likelihood.TRUE.items():
        rows += _estimates(
            "first test", "maximum likelihood", name, true, first, lpv_likelihood.PUBLISHED[name]
        )
    changing = lpv_likelihood.varying_test(seeds)
    for name, true in lpv_likelihood.VARYING.items():
        rows += _estimates("varying x1", "x1c + x1t t", name, true, [v.varying for v in changing])
    rows += _estimates(
        "varying x1", "constant x1", "x1", lpv_likelihood.VARYING["x1c"] + 0.5 * lpv_likelihood.SECONDS * 0.1,
        [v.constant for v in changing],
    )  # fmt: skip
    gain = mean_of_all([v.gain for v in changing])
    rows.append(mean_row("varying x1", "x1c + x1t t", "gain of log-likelihood", "", gain, ("x1t", "")))
    return Part(tuple(rows))


def _estimates(
    part: str, method: str, name: str, true: float, fits: list[Any], published: float = math.nan
) -> list[Row]:
    values, std = (np.array([getattr(fit, field)[name] for fit in fits]) for field in ("values", "std"))
    is_covered = np.abs(values - true) < 1.96 * std
    numbers = {
        "value": values,
        "true": np.array([true]),
        "estimated std": std,
        "std over data sets": np.array([values.std(ddof=1)]),
        "covered": is_covered.astype(float),
    }
    return [
        mean_row(
            part, method, quantity, "", mean_of_all(of_fits.tolist()), (name, ""),
            published=published if quantity == "value" else math.nan,
        )
        for quantity, of_fits in numbers.items()
    ]  # fmt: skip


def _lengths(size: Size, seeds: range) -> Part:
    rows: list[Row] = []
    for unknown in (1, 2):
        for inputs in size.inputs:
            for fits in lpv_likelihood.data_length(size.lengths, seeds, unknown, inputs):
                numbers = {
                    "relative error, median": fits.median,
                    "relative error, largest": fits.largest,
                    "estimated std, median": float(np.median(fits.predicted)),
                    "failed": float(fits.failed),
                }
                rows += [
                    Row(
                        f"figure 4.{unknown}", f"inputs {inputs}", quantity, value,
                        setting=f"rows={fits.rows}", flights=len(seeds),
                    )
                    for quantity, value in numbers.items()
                ]  # fmt: skip
    return Part(tuple(rows))


def _control(size: Size, seed: int) -> Part:
    rows: list[Row] = []
    for flight in lpv_control.compare(size.courses, size.payloads, seed=seed):
        numbers = (
            ("rms error", flight.rms, "m"),
            ("largest error", flight.max_error, "m"),
            ("rms error of height", flight.rms_height, "m"),
            ("outside the box", flight.outside, ""),
            ("crashed", float(flight.is_crashed), ""),
        )
        rows += [
            Row(
                "control", flight.controller, quantity, value if math.isfinite(value) else math.nan, unit,
                flight.course, flight.payload,
            )
            for quantity, value, unit in numbers
        ]  # fmt: skip
    return Part(tuple(rows))
