"""Terminal output of `rotorid compare`."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rotorid.findings import Finding, Severity
from rotorid.results.text import decimals, estimator_label, percent, value_text
from rotorid.workflows.compare.scores import LATE_START, STEP_TIMEOUT, AverageScore, Comparison, Mean
from rotorid.workflows.compare.text import flights_text, to_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MAX_WIDTH: Final = 120


def show(comparison: Comparison, findings: Sequence[Finding], folder: Path | None, console: Console) -> None:
    """Print the average scores over all flights and for each cell, and the findings. folder: of the files, if any."""
    from rich.padding import Padding
    from rich.text import Text

    console.width = min(console.width, _MAX_WIDTH)
    console.print()
    rows = _ROWS_WITH_TRUTH if comparison.has_truth else _ROWS_WITHOUT_TRUTH
    table = _score_table(flights_text(comparison.flights), comparison.estimators, rows)
    console.print(Padding(table, (0, 1)))
    if len(comparison.cells) > 1:
        console.print()
        console.print(Padding(_cell_table(comparison), (0, 1)))
    console.print()
    for finding in findings:
        style = "yellow" if finding.severity >= Severity.WARNING else "dim"
        console.print(Padding(Text(to_text(finding), style=style), (0, 2)))
    if folder is not None:
        console.print()
        console.print(Padding(Text.assemble("Scores: ", (str(folder), "bold")), (0, 2)))


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
_ROWS_WITH_TRUTH: tuple[Row, ...] = (
    ("RMSPE, %", lambda a: _mean_text(a.metrics.rmspe)),
    (f"  from {LATE_START:g} s", lambda a: _mean_text(a.metrics.rmspe_late)),
    ("bias, %", lambda a: _mean_text(a.metrics.bias)),
    ("delay", _delay_text),
    ("missed steps", lambda a: f"{a.missed} of {a.steps}" if a.steps else "–"),
    ("NEES", lambda a: _mean_text(a.metrics.nees)),
    ("95 % band", lambda a: percent(a.metrics.coverage.value)),
    ("undetected", lambda a: percent(a.metrics.undetected_errors.value)),
    *_COMMON_ROWS,
)
_ROWS_WITHOUT_TRUTH: tuple[Row, ...] = (
    ("mass, kg", lambda a: value_text(a.metrics.final.value, a.metrics.final_std.value)),
    ("  ± std", lambda a: f"{a.metrics.final_std.value:.{decimals(a.metrics.final_std.value)}f}"),
    ("deviation, %", lambda a: _mean_text(a.metrics.median_deviation)),
    ("NIS / dim.", lambda a: _mean_text(a.metrics.consistency)),
    *_COMMON_ROWS,
)


def _empty_table(title: str, names: Mapping[str, AverageScore]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", collapse_padding=True
    )
    table.add_column(title, no_wrap=True)
    for name in names:
        table.add_column(estimator_label(name), justify="right")
    return table


def _score_table(title: str, averages: Mapping[str, AverageScore], rows: tuple[Row, ...]) -> Table:
    table = _empty_table(title, averages)
    for heading, text in rows:
        table.add_row(heading, *map(text, averages.values()))
    return table


def _cell_table(comparison: Comparison) -> Table:
    """Table of the error of each cell; without truth, of the deviation from the median."""
    table = _empty_table("RMSPE, %" if comparison.has_truth else "deviation, %", comparison.estimators)
    for (trajectory, profile), averages in comparison.cells.items():
        means = [
            a.metrics.rmspe if comparison.has_truth else a.metrics.median_deviation for a in averages.values()
        ]
        table.add_row(f"{trajectory}, {profile}", *(_number_text(mean.value) for mean in means))
    return table
