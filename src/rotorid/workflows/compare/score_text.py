"""The scores of a comparison as text: rows of a table for the terminal and the report, and the result in one sentence."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from rotorid.results.text import Verdict, decimals, estimator_label, percent, value_text
from rotorid.workflows.compare.scores import LATE_START, STEP_TIMEOUT, AverageScore, Comparison, Mean

_GOOD_COVERAGE: Final = 0.9  # of the 95 % band


def score_rows(comparison: Comparison) -> list[list[str]]:
    """A row for each score: its name with unit, and its value by estimator."""
    averages = comparison.estimators.values()
    rows = _WITH_TRUTH if comparison.has_truth else _WITHOUT_TRUTH
    return [[name, *map(text, averages)] for name, text in rows]


def cell_heading(comparison: Comparison) -> str:
    """What `cell_rows` has, with its unit."""
    return "RMSPE, %" if comparison.has_truth else "deviation, %"


def cell_rows(comparison: Comparison) -> list[list[str]]:
    """A row for each cell: its name, and by estimator the error of the mass; without truth its deviation from the median."""
    return [
        [f"{trajectory}, {profile}", *(_number_text(_error(average).value) for average in averages.values())]
        for (trajectory, profile), averages in comparison.cells.items()
    ]


def comparison_verdict(comparison: Comparison) -> Verdict:
    """The errors of the estimators, the smallest first; without truth how far the estimators are apart."""
    errors = {name: _error(average) for name, average in comparison.estimators.items()}
    ordered = sorted((n for n in errors if math.isfinite(errors[n].value)), key=lambda n: errors[n].value)
    if not ordered:
        return Verdict("bad", "No estimator has a finite score.")
    if not comparison.has_truth:
        worst = _number_text(errors[ordered[-1]].value)
        headline = f"The estimates of the mass are within {worst} % of their median."
        return Verdict("caution", headline, ("The true mass is unknown: agreement does not prove accuracy.",))
    listed = ", ".join(f"{estimator_label(name)} {_mean_text(errors[name])} %" for name in ordered)
    covered = comparison.estimators[ordered[0]].metrics.coverage.value
    return Verdict(
        "good" if covered >= _GOOD_COVERAGE else "caution",
        f"RMSPE of the mass: {listed}.",
        (
            f"The 95 % band of {estimator_label(ordered[0])} contains the true mass for {percent(covered)} of the time.",
        ),
    )


def _error(average: AverageScore) -> Mean:
    metrics = average.metrics
    return metrics.rmspe if metrics.rmspe.flights else metrics.median_deviation


def _mean_text(mean: Mean) -> str:
    if mean.flights < 2 or not math.isfinite(mean.standard_error):
        return _number_text(mean.value)
    places = min(decimals(mean.standard_error), 2)
    return f"{mean.value:.{places}f} ± {mean.standard_error:.{places}f}".replace("-", "−")


def _number_text(value: float) -> str:
    """A number with three significant digits."""
    if not math.isfinite(value):
        return "–"
    leading = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, 2 - leading)}f}".replace("-", "−")


def _delay_text(average: AverageScore) -> str:
    if not average.steps:
        return "no step"
    return f"{average.delay:.2f} s" if math.isfinite(average.delay) else f"> {STEP_TIMEOUT:g} s"


Row = tuple[str, Callable[[AverageScore], str]]
"""Heading of a row, and the text of its cells."""

_COMMON_ROWS: tuple[Row, ...] = (
    ("healthy", lambda a: percent(a.metrics.healthy.value)),
    ("µs / update", lambda a: _number_text(1e6 * a.seconds_per_update)),
)
_WITH_TRUTH: tuple[Row, ...] = (
    ("RMSPE, %", lambda a: _mean_text(a.metrics.rmspe)),
    (f"  from {LATE_START:g} s", lambda a: _mean_text(a.metrics.rmspe_late)),
    ("bias, %", lambda a: _mean_text(a.metrics.bias)),
    ("delay", _delay_text),
    ("overshoot, %", lambda a: _number_text(a.overshoot)),
    ("missed steps", lambda a: f"{a.missed} of {a.steps}" if a.steps else "–"),
    ("NEES", lambda a: _mean_text(a.metrics.nees)),
    ("95 % band", lambda a: percent(a.metrics.coverage.value)),
    ("undetected", lambda a: percent(a.metrics.undetected_errors.value)),
    *_COMMON_ROWS,
)
_WITHOUT_TRUTH: tuple[Row, ...] = (
    ("mass, kg", lambda a: value_text(a.metrics.final.value, a.metrics.final_std.value)),
    ("  ± std", lambda a: f"{a.metrics.final_std.value:.{decimals(a.metrics.final_std.value)}f}"),
    ("deviation, %", lambda a: _mean_text(a.metrics.median_deviation)),
    ("NIS / dim.", lambda a: _mean_text(a.metrics.consistency)),
    *_COMMON_ROWS,
)
