"""What `rotorid learn` shows in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.cli.verdict_page import begin, empty_table, end
from rotorid.results.words import label, percent, title, unit_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.results.learning_summary import LearnSummary


def show(summary: LearnSummary, folder: Path, console: Console) -> None:
    """The verdict, every parameter before and after, what the flights cannot tell, and where model and report are."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.results.learning_summary import ACTS, share_text

    begin(summary.verdict, console, apart=True)
    if summary.parameters:
        console.print(Padding(_parameters(summary), (0, 1)))
        console.print()
    for words in summary.untold:
        console.print(Padding(Text(title(words) + ".", style="dim"), (0, 2)))
    if summary.residual is not None:
        r = summary.residual
        parts = [
            f"{ACTS[block]} {share_text(share)}{'' if block in r.kept else ' (left out)'}"
            for block, share in r.explained.items()
        ]
        text = f"Residual ({r.architecture}, {r.epochs} epochs) explains of the squared error: {', '.join(parts)}"
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    end(summary.notes, folder, console, model=True)


def _parameters(summary: LearnSummary) -> Table:
    from rotorid.report.learning_page import found_text, prior_text, std_text

    table = empty_table()
    table.add_column("parameter")
    for head in ("before", "found", "±"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("told", justify="right", no_wrap=True)
    for name, p in summary.parameters.items():
        told = "at 0" if p.at_bound else percent(max(p.told, 0.0))
        table.add_row(label(name), prior_text(p), found_text(p)[0], std_text(p.std), unit_text(p.unit), told)
    return table
