"""Slow changes of alpha below 1, where the state does not grow, in the study of Torren 2014.

    figure 4.5       alpha = 0.7 + 0.25 sin(2 pi t / n) with unknown variances V and W, by Liu and West's filter without changes
    figure 4.8 slow  alpha = 0.5 + 0.4 t / n with the setting of Figure 4.8

The thesis gives neither alpha nor its rate in these figures. It finds V and W there, which a growing state does not contain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.estimators.base import Estimate
from rotorid.estimators.run import run_many, stack
from rotorid.studies.lpv.particles import PARAMETERS, Autoregression, ChangeModel, filter_of, simulate
from rotorid.studies.study_files import Curve, Part, Row
from rotorid.workflows.compare.scores import mean_over

SINE, RAMP = "figure 4.5", "figure 4.8 slow"


def slow_changes_part(rows: int, count: int, seeds: Sequence[int]) -> Part:
    """The errors and curves of both parts. rows: of the data. count: of particles."""
    t = np.arange(rows)
    sine = 0.7 + 0.25 * np.sin(2.0 * np.pi * t / rows)
    truth = {name: sine if name == "alpha" else np.full(rows, value) for name, value in PARAMETERS.items()}
    parts = [_part(SINE, "Liu and West", truth, None, count, seeds)]
    ramp = {"alpha": 0.5 + 0.4 * t / rows}
    parts.append(_part(RAMP, "normal, 5 %", ramp, ChangeModel("posterior", 0.05), count, seeds))
    return Part(tuple(r for p in parts for r in p.rows), tuple(c for p in parts for c in p.curves))


def _part(
    part: str,
    method: str,
    truth: dict[str, Float[np.ndarray, " n"]],
    model: ChangeModel | None,
    count: int,
    seeds: Sequence[int],
) -> Part:
    """One filter on data with this alpha; truth: of the unknown parameters."""
    system = Autoregression(tuple(truth), drift=model.drift if model else 0.0)
    data = stack([simulate(truth["alpha"], seed) for seed in seeds])
    estimates: Estimate = run_many(filter_of(system, model, count), data, workers=1)
    rows, curves = [], []
    for k, (name, true) in enumerate(truth.items()):
        value, std = np.asarray(estimates.value[..., k]), np.asarray(estimates.std[..., k])
        half = slice(len(true) // 2, None)
        errors = np.abs(value[:, half] / true[half] - 1.0).mean(axis=1)
        mean = mean_over([float(e) for e in errors])
        covered = float(np.mean(np.abs(value - true)[:, half] < 1.96 * std[:, half]))
        rows += [
            Row(
                part, method, "relative error, mean", mean.value, trajectory=name,
                standard_error=mean.standard_error, flights=mean.flights,
            ),
            Row(part, method, "covered", covered, trajectory=name, flights=mean.flights),
        ]  # fmt: skip
        curves.append(
            Curve(part, method, "", "", np.arange(len(true)) * 1.0, value[0], std[0], true, name, "")
        )
    return Part(tuple(rows), tuple(curves))


def collapse_row(curve: Curve) -> int | None:
    """The first row from which on all particles have one value to rounding; None if they do not."""
    is_collapsed = curve.std <= 1e-12 * np.abs(curve.value)
    last = len(curve.t) - int(np.argmin(is_collapsed[::-1])) if not is_collapsed.all() else 0
    return last if is_collapsed[-1] and math.isfinite(curve.std[-1]) else None
