"""Terminal output of `rotorid learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import label, percent, title, unit_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.learn.summary import LearnSummary


def show(summary: LearnSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the parameters, the unidentifiable directions, the residual, and the folder."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.workflows.learn.text import EFFECTS, explained_text

    print_verdict(summary.verdict, console, separate_lines=True)
    if summary.parameters:
        console.print(Padding(_parameters(summary), (0, 1)))
        console.print()
    for sentence in summary.unidentifiable_directions:
        console.print(Padding(Text(title(sentence) + ".", style="dim"), (0, 2)))
    if summary.residual is not None:
        r = summary.residual
        parts = [
            f"{EFFECTS[block]} {explained_text(share)}{'' if block in r.kept else ' (omitted)'}"
            for block, share in r.explained.items()
        ]
        text = f"Share of the squared error explained by the residual ({r.architecture}, {r.epochs} epochs): {', '.join(parts)}"
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console, has_model=True)


def _parameters(summary: LearnSummary) -> Table:
    from rotorid.workflows.learn.page import estimate_text, prior_text, std_text

    table = empty_table()
    table.add_column("parameter")
    for head in ("prior", "estimate", "std"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("identified", justify="right", no_wrap=True)
    for name, p in summary.parameters.items():
        gain = "at 0" if p.is_at_bound else percent(max(p.information_gain, 0.0))
        table.add_row(
            label(name), prior_text(p), estimate_text(p)[0], std_text(p.std), unit_text(p.unit), gain
        )
    return table
