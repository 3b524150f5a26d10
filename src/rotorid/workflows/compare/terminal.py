"""Terminal output of `rotorid compare`."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import decimals, estimator_label, percent, value_text
from rotorid.workflows.compare.scores import LATE, PATIENCE, SETTLED, Comparison, Mean, Merit

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDEST = 120
_MISSING = "The true mass is unknown: errors and delays cannot be computed. Give the mass with --truth CSV."
_NAMED = 5


def show(comparison: Comparison, skipped: Mapping[str, str], folder: Path | None, console: Console) -> None:
    """Print the scores over all flights and for each cell, and the skipped flights."""
    from rich.padding import Padding
    from rich.text import Text

    def say(text: str, style: str = "") -> None:
        console.print(Padding(Text(text, style=style), (0, 2)))

    console.width = min(console.width, _WIDEST)
    console.print()
    several = comparison.flights > 1
    if not comparison.truth:
        say(_MISSING, "yellow")
        console.print()
    rows = _WITH_TRUTH if comparison.truth else _WITHOUT_TRUTH
    title = f"{comparison.flights} flights" if several else "1 flight"
    console.print(Padding(_table(title, comparison.estimators, rows), (0, 1)))
    if len(comparison.cells) > 1:
        console.print()
        console.print(Padding(_cells(comparison), (0, 1)))
    console.print()
    if comparison.truth:
        say(
            f"RMSPE and bias in %: over the whole flight, and from {LATE:g} s on. Delay: median time until the error is below "
            f"10 % of a step of the mass, missed after {PATIENCE:g} s. NEES (1 is consistent), 95 % band, and "
            f"silently off (outside the band with good health): from {SETTLED:g} s on.",
            "dim",
        )
    if several:
        say("±: standard error over the flights.", "dim")
    for name, merit in comparison.estimators.items():
        if comparison.truth and (lost := merit.flights - merit.rmspe.flights):
            say(
                f"{estimator_label(name)}: no finite error in {_flights(lost)}; the means exclude them.",
                "yellow",
            )
    if skipped:
        say(f"{_flights(len(skipped))} skipped:", "yellow")
        for reason in list(skipped.values())[:_NAMED]:
            say(f"  {reason}", "yellow")
        if len(skipped) > _NAMED:
            say(f"  and {len(skipped) - _NAMED} more", "yellow")
    if folder is not None:
        console.print()
        console.print(Padding(Text.assemble("Numbers: ", (str(folder), "bold")), (0, 2)))


def _flights(count: int) -> str:
    return f"{count} flight{'' if count == 1 else 's'}"


def _number(mean: Mean) -> str:
    if mean.flights < 2 or not math.isfinite(mean.standard_error):
        return _plain(mean.value)
    places = min(decimals(mean.standard_error), 2)
    return f"{mean.value:.{places}f} ± {mean.standard_error:.{places}f}".replace("-", "−")


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    leading = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, 2 - leading)}f}".replace("-", "−")


def _delay(merit: Merit) -> str:
    if not merit.steps:
        return "no step"
    return f"{merit.delay:.2f} s" if math.isfinite(merit.delay) else f"> {PATIENCE:g} s"


Row = tuple[str, Callable[[Merit], str]]

_COMMON: tuple[Row, ...] = (
    ("healthy", lambda m: percent(m.healthy.value)),
    ("µs / update", lambda m: _plain(1e6 * m.seconds_per_update)),
)
_WITH_TRUTH: tuple[Row, ...] = (
    ("RMSPE", lambda m: _number(m.rmspe)),
    (f"  from {LATE:g} s", lambda m: _number(m.rmspe_late)),
    ("bias", lambda m: _number(m.bias)),
    ("delay", _delay),
    ("missed", lambda m: f"{m.missed} of {m.steps}" if m.steps else "–"),
    ("NEES", lambda m: _number(m.nees)),
    ("95 % band", lambda m: percent(m.coverage.value)),
    ("silently off", lambda m: percent(m.silent.value)),
    *_COMMON,
)
_WITHOUT_TRUTH: tuple[Row, ...] = (
    ("end mass, kg", lambda m: value_text(m.final.value, m.final_std.value)),
    ("  ± std", lambda m: f"{m.final_std.value:.{decimals(m.final_std.value)}f}"),
    ("% off median", lambda m: _number(m.apart)),
    ("NIS / dim.", lambda m: _number(m.consistency)),
    *_COMMON,
)


def _empty(title: str, names: Mapping[str, Merit]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", collapse_padding=True
    )
    table.add_column(title, no_wrap=True)
    for name in names:
        table.add_column(estimator_label(name), justify="right")
    return table


def _table(title: str, merits: Mapping[str, Merit], rows: tuple[Row, ...]) -> Table:
    table = _empty(title, merits)
    for label, text in rows:
        table.add_row(label, *map(text, merits.values()))
    return table


def _cells(comparison: Comparison) -> Table:
    """Table of the error of each cell; without truth, of the deviation from the median."""
    table = _empty("RMSPE in %" if comparison.truth else "% off median", comparison.estimators)
    for (trajectory, profile), merits in comparison.cells.items():
        numbers = [m.rmspe if comparison.truth else m.apart for m in merits.values()]
        table.add_row(f"{trajectory}, {profile}", *(_plain(n.value) for n in numbers))
    return table
