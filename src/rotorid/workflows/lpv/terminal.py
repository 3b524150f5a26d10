"""Terminal output of `rotorid lpv`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import label, number_text, unit_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.lpv.summary import LpvSummary


def show(summary: LpvSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the bounds, the findings and the folder."""
    from rich.padding import Padding
    from rich.text import Text

    print_verdict(summary.verdict, console)
    table = empty_table()
    table.add_column("parameter")
    for heading in ("lower", "upper", *(("flight\nlower", "flight\nupper") if summary.flights else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, p in summary.scheduling.parameters.items():
        bounds = [p.lower, p.upper, *((p.flight_lower, p.flight_upper) if summary.flights else ())]
        table.add_row(label(name), *map(number_text, bounds), unit_text(p.unit))
    console.print(Padding(table, (0, 1)))
    console.print()
    for finding in summary.findings:
        console.print(Padding(Text(finding.text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console)
