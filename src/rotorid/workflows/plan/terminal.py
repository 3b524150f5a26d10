"""Terminal output of `rotorid plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import label, number_text, percent, unit_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.plan.summary import PlanSummary


def show(summary: PlanSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the targets, the manoeuvres, the use of the limits, and the folder."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.workflows.plan.text import std_cell

    print_verdict(summary.verdict, console)
    has_estimates = any(row.estimate_std is not None for row in summary.quantities.values())
    table = empty_table()
    table.add_column("quantity", min_width=10)
    heads = ("std\nplan", "std\nhover")
    if has_estimates:
        heads = ("std\nplan", "estimated\nplan", "estimated\nhover")
    for head in ("value", "prior\nstd", *heads):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, row in summary.quantities.items():
        if row.is_target:
            stds = (row.estimate_std, row.hover_estimate_std) if has_estimates else (row.hover_std,)
            table.add_row(
                label(name),
                number_text(row.value),
                *map(std_cell, (row.prior_std, row.std, *stds)),
                unit_text(row.unit),
            )
    console.print(Padding(table, (0, 1)))
    console.print()
    lines = [f"{m.start:5.1f} s  {m.name}" for m in summary.manoeuvres]
    lines.append(
        "Largest use of the limits: "
        + ", ".join(f"{label(n)} {percent(v)}" for n, v in summary.design.limit_usage.items())
        + "."
    )
    lines.append(
        f"On a real vehicle, expect {summary.allowance:g} times these standard deviations. Files: "
        + ", ".join(f for f in summary.files if f not in ("report.html", "summary.json"))
        + "."
    )
    for text in lines:
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console)
