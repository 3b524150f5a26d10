"""What `rotorid plan` shows in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.cli.verdict_page import begin, empty_table, end
from rotorid.results.words import label, percent, unit_text

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.results.plan_summary import PlanSummary


def show(summary: PlanSummary, folder: Path, console: Console) -> None:
    """The verdict, what is told of what is asked for, the manoeuvres, the limits, and where the report is."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.report.plan_page import small, spread

    begin(summary.verdict, console)
    proved = any(row.found_std is not None for row in summary.quantities.values())
    table = empty_table()
    table.add_column("quantity", min_width=10)
    heads = ("after\nplan", "found,\nplan", "found,\nhover") if proved else ("after\nplan", "after\nhover")
    for head in ("value", "std\nbefore", *heads):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, row in summary.quantities.items():
        if row.asked:
            beside = (row.found_std, row.found_hover_std) if proved else (row.hover_std,)
            table.add_row(
                label(name),
                small(row.value, row.std),
                *map(spread, (row.prior_std, row.std, *beside)),
                unit_text(row.unit),
            )
    console.print(Padding(table, (0, 1)))
    console.print()
    lines = [f"{m.start:5.1f} s  {m.name}" for m in summary.manoeuvres]
    lines.append(
        "Taken of the limits: " + ", ".join(f"{label(n)} {percent(v)}" for n, v in summary.used.items()) + "."
    )
    lines.append(
        f"On a real vehicle, count with {summary.allowance:g} times these standard deviations. Files: "
        + ", ".join(f for f in summary.files if f not in ("report.html", "summary.json"))
        + "."
    )
    for text in lines:
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    end(summary.notes, folder, console)
