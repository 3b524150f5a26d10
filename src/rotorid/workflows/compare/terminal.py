"""Terminal output of `rotorid compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rotorid.findings import Finding, Severity
from rotorid.results.text import estimator_label
from rotorid.workflows.compare.score_text import cell_heading, cell_rows, score_rows
from rotorid.workflows.compare.scores import Comparison
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
    tables = [_table(flights_text(comparison.flights), comparison, score_rows(comparison))]
    if len(comparison.cells) > 1:
        tables.append(_table(cell_heading(comparison), comparison, cell_rows(comparison)))
    for table in tables:
        console.print(Padding(table, (0, 1)))
        console.print()
    for finding in findings:
        style = "yellow" if finding.severity >= Severity.WARNING else "dim"
        console.print(Padding(Text(to_text(finding), style=style), (0, 2)))
    if folder is not None:
        console.print()
        console.print(Padding(Text.assemble("Scores: ", (str(folder), "bold")), (0, 2)))


def _table(title: str, comparison: Comparison, rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", collapse_padding=True
    )
    table.add_column(title, no_wrap=True)
    for name in comparison.estimators:
        table.add_column(estimator_label(name), justify="right")
    for row in rows:
        table.add_row(*row)
    return table
