"""Terminal output of `rotorid lpv`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import label, percent, unit_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.lpv.summary import LpvSummary


def show(summary: LpvSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the bounds, the flights, the certificate, and the folder."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.workflows.lpv.page import number

    print_verdict(summary.verdict, console)
    table = empty_table()
    table.add_column("parameter")
    for head in ("lower", "upper", *(("flight\nlower", "flight\nupper") if summary.flights else ())):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, p in summary.parameters.items():
        along = [number(p.flight_lower), number(p.flight_upper)] if summary.flights else []
        table.add_row(label(name), number(p.lower), number(p.upper), *along, unit_text(p.unit))
    console.print(Padding(table, (0, 1)))
    console.print()
    lines = [f"Relative difference from the nonlinear model: {summary.model.difference:.1g}."]
    lines += [f"{f.name}: {percent(f.inside)} of its rows are inside the bounds." for f in summary.flights]
    if summary.reduction:
        r = summary.reduction
        lines.append(
            f"{r.components} principal components explain {percent(r.share)} of the variance along the flights."
        )
    if summary.control:
        c = summary.control
        lines.append(
            f"Certificate: largest eigenvalue {c.margin:.2g} at {c.pairs} vertices and pairs of vertices; decay rate "
            f"{c.decay:.2g} 1/s; cost at most {c.cost:.2g} times that of the LQR at the centre of the ranges."
        )
    for text in lines:
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    print_footer(summary.notes, folder, console)
