"""The study of seed 002: standard identification, likelihood, particles, and the control that it names as its next step.

standard      third-order example, its time-varying version, and the quadrotor, which defeats them    chapter 2
likelihood    the first test of maximum likelihood, its varying form, and the length of data          4.1, Figures 4.1 and 4.2
constant      Liu and West's filter on constant parameters                                            4.2, Figures 4.3 and 4.4
still         with changepoints, on a constant parameter                                              Figure 4.7
changes       parameters that drift and jump, by every setting of the seed and by ours                Figures 4.5 to 4.12
priors        priors of changed parameters, their spread and probability                              its future work, 5.2
control       gain-scheduled LPV control of the quadrotor against an LQR                              its future work, 5.2
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
from rotorid.studies.lpv import standard as lpv_standard
from rotorid.studies.lpv.standard_hover import quadrotor_rows
from rotorid.studies.parts import whole
from rotorid.studies.study_files import Curve, Part, Row, kept


class Size(NamedTuple):
    """rows: of the third-order example, of each size. seeds: draws of the standard methods' data, of the likelihood's, of the
    particles', of the priors'; 0: that part is left out. lengths, inputs: of the quadrotor's data, and whether its rotor speeds
    are measured. particles: how many. steps: rows of constant parameters. courses, payloads: of the control."""

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
    """All that was found."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]


def lpv(
    folder: Path,
    *,
    size: Size = FULL,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Study:
    """Make the study in a folder, or go on with it there."""
    make_folder(folder)
    standard, likelihood, draws, priors = (range(seed, seed + n) for n in size.seeds)
    makes: dict[str, Callable[[], Part]] = {
        "third order": lambda: Part(lpv_standard.third_order_rows(size.rows, len(standard))),
        "time-varying": lambda: Part(lpv_standard.varying_rows(size.rows[-1], len(standard))),
        "quadrotor": lambda: Part(quadrotor_rows(seeds=max(1, len(standard) // 6))),
        "first test": lambda: _first_test(likelihood),
        "length of data": lambda: _lengths(size, likelihood),
        "constant": lambda: lpv_particles.constant_part(size.steps, size.particles, draws),
        "still": lambda: lpv_particles.still_part(size.steps, size.particles, draws),
        "changes": lambda: lpv_particles.changing_part(size.particles, draws),
        "priors": lambda: lpv_particles.priors_part(size.particles // 2, priors) if priors else Part(()),
        "control": lambda: _control(size, seed),
    }
    parts = []
    for name, make in makes.items():
        progress(name, 0, 1)
        parts.append(kept(folder, name.replace(" ", "-"), {"size": size, "seed": seed}, make))
        progress(name, 1, 1)
    every = whole(parts)
    return Study(every.rows, every.curves)


def _first_test(seeds: range) -> Part:
    """Estimates of the first test, and of x1 that changes."""
    rows: list[Row] = []
    first = lpv_likelihood.mle_of_the_seed(seeds)
    for name, true in lpv_likelihood.TRUE.items():
        rows += _estimates(
            "first test", "maximum likelihood", name, true, first, lpv_likelihood.SEEDS_OWN[name]
        )
    changing = lpv_likelihood.varying(seeds)
    for name, true in lpv_likelihood.VARYING.items():
        rows += _estimates("varying x1", "x1c + x1t t", name, true, [v.varying for v in changing])
    rows += _estimates(
        "varying x1", "constant x1", "x1", lpv_likelihood.VARYING["x1c"] + 0.5 * lpv_likelihood.SECONDS * 0.1,
        [v.constant for v in changing],
    )  # fmt: skip
    gains = np.array([v.gain for v in changing])
    rows.append(_row("varying x1", "x1c + x1t t", "gain of log-likelihood", gains, "x1t"))
    return Part(tuple(rows))


def _estimates(
    part: str, method: str, name: str, true: float, fits: list[Any], published: float = math.nan
) -> list[Row]:
    values, std = (np.array([getattr(fit, of)[name] for fit in fits]) for of in ("values", "std"))
    inside = np.abs(values - true) < 1.96 * std
    return [
        _row(part, method, "value", values, name, published=published),
        _row(part, method, "true", np.array([true]), name),
        _row(part, method, "its own std", std, name),
        _row(part, method, "scatter", np.array([values.std(ddof=1)]), name),
        _row(part, method, "covered", inside.astype(float), name),
    ]


def _lengths(size: Size, seeds: range) -> Part:
    rows: list[Row] = []
    for unknown in (1, 2):
        for inputs in size.inputs:
            for found in lpv_likelihood.data_length(size.lengths, seeds, unknown, inputs):
                what = f"figure 4.{unknown}", f"inputs {inputs}"
                setting = f"rows={found.rows}"
                add = {"relative error, median": found.median, "relative error, greatest": found.greatest}
                add |= {
                    "its own std, median": float(np.median(found.predicted)),
                    "failed": float(found.failed),
                }
                rows += [Row(*what, q, v, setting=setting, flights=len(seeds)) for q, v in add.items()]
    return Part(tuple(rows))


def _control(size: Size, seed: int) -> Part:
    rows: list[Row] = []
    for flown in lpv_control.compare(size.courses, size.payloads, seed=seed):
        what = "control", flown.controller
        cell = flown.course, flown.payload
        rows += [
            Row(*what, quantity, value if math.isfinite(value) else math.nan, unit, *cell)
            for quantity, value, unit in (
                ("rms error", flown.rms, "m"),
                ("largest error", flown.largest, "m"),
                ("rms error of height", flown.rms_height, "m"),
                ("outside of the box", flown.outside, ""),
                ("lost", float(flown.lost), ""),
            )
        ]
    return Part(tuple(rows))


def _row(
    part: str,
    method: str,
    quantity: str,
    values: np.ndarray,
    name: str,
    unit: str = "",
    published: float = math.nan,
) -> Row:
    """Mean and its standard error."""
    n = len(values)
    error = float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    return Row(part, method, quantity, float(values.mean()), unit, name, "", "", error, n, published)
