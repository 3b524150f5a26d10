"""The terminal output of `rotorid track`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import (
    estimator_label,
    join_words,
    label,
    percent,
    plus_minus,
    title,
    unit_text,
)
from rotorid.terminal.console import empty_table, print_footer, print_verdict
from rotorid.workflows.track.battery.text import battery_rows
from rotorid.workflows.track.text import NOT_IDENTIFIED, bands_text, explained_text, unconfirmed_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.track.summary import EstimatorSummary, Summary


def show(summary: Summary, folder: Path, console: Console) -> None:
    """Print the verdict, the values at the end of the flight, the health, the explained shares, and the path of the report."""
    from rich.padding import Padding
    from rich.text import Text

    print_verdict(summary.verdict, console)
    for table in _tables(summary, console):
        console.print(Padding(table, (0, 1)))
        console.print()
    _show_jumps(summary, console)
    by_health: dict[str, list[str]] = {}
    for name, estimator_summary in summary.estimators.items():
        by_health.setdefault(_health(estimator_summary), []).append(estimator_label(name))
    for text, names in by_health.items():
        console.print(Padding(Text(f"{join_words(names)}: {text}", style="dim"), (0, 2)))
    name, lead = next(iter(summary.estimators.items()), ("", None))
    if lead is not None:
        main, q = next(iter(lead.quantities.items()))
        if q.has_common_std:
            text = bands_text(main, q.final, q.final_std, q.change_std, q.unit)
            console.print(Padding(Text(text), (0, 2)))
        if lead.explained:
            text = f"{estimator_label(name)}: {explained_text(lead.explained)}"
            console.print(Padding(Text(text, style="dim"), (0, 2)))
    if summary.battery is not None:
        text = "; ".join(f"{name} {value}" for name, value in battery_rows(summary.battery))
        console.print(Padding(Text(f"Battery: {text}"), (0, 2)))
    if any(not q.informed for e in summary.estimators.values() for q in e.quantities.values()):
        console.print(Padding(Text(NOT_IDENTIFIED, style="dim"), (0, 2)))
    print_footer(summary.log.notes, folder, console)


def _health(estimator_summary: EstimatorSummary) -> str:
    health = [(k, share) for k, share in estimator_summary.health.items() if share > 0 and k != "ok"]
    health_text = ", ".join(f"{percent(share)} {k.replace('_', ' ')}" for k, share in health)
    text = f"healthy {percent(estimator_summary.healthy)} of the time"
    return f"{text} ({health_text})" if health_text else text


def _show_jumps(summary: Summary, console: Console) -> None:
    """Print the jumps of the main quantity, for each estimator with change detection."""
    from rich.padding import Padding
    from rich.text import Text

    for name, estimator_summary in summary.estimators.items():
        if estimator_summary.jumps is None:
            continue
        main, quantity = next(iter(estimator_summary.quantities.items()))
        if estimator_summary.jumps:
            console.print(Padding(_jump_table(main, quantity.unit, estimator_summary), (0, 1)))
        else:
            text = f"{estimator_label(name)}: no jump of the {label(main)} detected"
            console.print(Padding(Text(text), (0, 2)))
        if estimator_summary.unconfirmed_changes:
            text = unconfirmed_text(
                estimator_summary.unconfirmed_changes, is_addition=bool(estimator_summary.jumps)
            )
            console.print(Padding(Text(text, style="dim"), (0, 2)))
        console.print()


def _jump_table(main: str, unit: str, estimator_summary: EstimatorSummary) -> Table:
    table = empty_table()
    for head in (f"jump of the {label(main)} at", "from", "to", "size"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for jump in estimator_summary.jumps or ():
        table.add_row(
            f"{jump.time:.1f} s",
            plus_minus(jump.before, jump.before_std),
            plus_minus(jump.after, jump.after_std),
            plus_minus(jump.size, jump.size_std, signed=True),
            unit_text(unit),
        )
    return table


def _tables(summary: Summary, console: Console) -> list[Table]:
    """The values at the end, in as few tables as fit into the width."""
    from rich.measure import Measurement

    names = list(summary.estimators)
    for count in range(1, len(names) + 1):
        size = math.ceil(len(names) / count)
        tables = [_table(summary, names[i : i + size]) for i in range(0, len(names), size)]
        widest = max(Measurement.get(console, console.options, t).maximum for t in tables)
        if widest + 2 <= console.width:
            return tables
    return [_table(summary, [name]) for name in names]


def _table(summary: Summary, names: Sequence[str]) -> Table:
    table = empty_table()
    table.add_column("at the end")
    for name in names:
        table.add_column(estimator_label(name), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    estimators = [summary.estimators[name] for name in names]
    for name in dict.fromkeys(q for estimator_summary in estimators for q in estimator_summary.quantities):
        estimator_summary = [e.quantities.get(name) for e in estimators]
        known = next(q for q in estimator_summary if q is not None)
        informed = any(q is not None and q.informed for q in estimator_summary)
        table.add_row(
            title(name),
            *("" if q is None else plus_minus(q.final, q.final_std) for q in estimator_summary),
            unit_text(known.unit),
            "" if informed else "not identified",
            style=None if informed else "dim",
        )
    return table
