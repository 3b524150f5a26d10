"""What `rotorid lpv` shows in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.cli.verdict_page import begin, empty_table, end
from rotorid.results.words import label, percent, unit_text

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.results.lpv_summary import LpvSummary


def show(summary: LpvSummary, folder: Path, console: Console) -> None:
    """The verdict, the bounds, the flights, the certificate, and where the report is."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.report.lpv_page import number

    begin(summary.verdict, console)
    table = empty_table()
    table.add_column("parameter")
    for head in ("lower", "upper", *(("flown from", "to") if summary.flights else ())):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, p in summary.parameters.items():
        seen = [number(p.flown_lower), number(p.flown_upper)] if summary.flights else []
        table.add_row(label(name), number(p.lower), number(p.upper), *seen, unit_text(p.unit))
    console.print(Padding(table, (0, 1)))
    console.print()
    lines = [f"Difference from the nonlinear model: {summary.difference:.1g} of its rates."]
    lines += [f"{f.name}: {percent(f.inside)} of its rows within the bounds." for f in summary.flights]
    if summary.reduction:
        r = summary.reduction
        lines.append(
            f"{r.components} principal components hold {percent(r.share)} of the variance along the flights."
        )
    if summary.control:
        c = summary.control
        lines.append(
            f"Certificate: largest eigenvalue {c.margin:.2g} at {c.pairs} vertices and pairs; decay {c.decay:.2g}/s; "
            f"cost at most {c.cost:.2g} times that of the LQR in the middle."
        )
    for text in lines:
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    end(summary.notes, folder, console)
