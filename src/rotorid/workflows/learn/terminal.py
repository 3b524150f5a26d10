"""Terminal output of `rotorid learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import label, std_text, unit_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.learn.summary import LearnSummary


def show(summary: LearnSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the parameters, the findings and the folder."""
    from rich.padding import Padding
    from rich.text import Text

    print_verdict(summary.verdict, console, separate_lines=True)
    if summary.parameters:
        console.print(Padding(_parameters(summary), (0, 1)))
        console.print()
    for finding in summary.findings:
        console.print(Padding(Text(finding.text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console, has_model=True)


def _parameters(summary: LearnSummary) -> Table:
    from rotorid.workflows.learn.page import estimate_text, gain_text, prior_text

    table = empty_table()
    table.add_column("parameter")
    for heading in ("prior", "estimate", "std"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("identified", justify="right", no_wrap=True)
    for name, p in summary.parameters.items():
        gain = "at 0" if p.is_at_bound else gain_text(p)
        std = std_text(p.value, p.std)
        table.add_row(label(name), prior_text(p), estimate_text(p), std, unit_text(p.unit), gain)
    return table
