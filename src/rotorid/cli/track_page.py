"""What `rotorid track` shows in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.words import estimator_label, percent, plus_minus, title, unit_text

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.results.summary import Summary

_WIDEST = 100
_TONES = {"good": "green", "caution": "yellow", "bad": "red"}


def show(summary: Summary, folder: Path, console: Console) -> None:
    """The verdict, the numbers at the end of the flight, the health, and where the report is."""
    from rich.padding import Padding
    from rich.text import Text

    console.width = min(console.width, _WIDEST)
    verdict = summary.verdict
    console.print()
    console.print(Padding(Text(verdict.headline, style=f"bold {_TONES[verdict.tone]}"), (0, 2)))
    if verdict.details:
        console.print(Padding(Text(" ".join(verdict.details)), (0, 2)))
    console.print()
    console.print(Padding(_table(summary), (0, 1)))
    console.print()
    for name, found in summary.estimators.items():
        health = [(k, share) for k, share in found.health.items() if share > 0 and k != "ok"]
        rest = ", ".join(f"{percent(share)} {k.replace('_', ' ')}" for k, share in health)
        text = f"{estimator_label(name)}: healthy {percent(found.healthy)} of the time"
        console.print(Padding(Text(f"{text} ({rest})" if rest else text, style="dim"), (0, 2)))
    if any(not q.informed for e in summary.estimators.values() for q in e.quantities.values()):
        text = "not told: the flight did not move enough, or the log has too little, to tell it"
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    for note in summary.notes:
        console.print(Padding(Text(f"Note: {note}", style="dim"), (0, 2)))
    console.print()
    console.print(Padding(Text.assemble("Report: ", (str(folder / "report.html"), "bold")), (0, 2)))


def _table(summary: Summary):
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    table.add_column("at the end")
    for name in summary.estimators:
        table.add_column(estimator_label(name), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    quantities = dict.fromkeys(q for found in summary.estimators.values() for q in found.quantities)
    for name in quantities:
        found = [e.quantities.get(name) for e in summary.estimators.values()]
        known = next(q for q in found if q is not None)
        informed = any(q is not None and q.informed for q in found)
        table.add_row(
            title(name),
            *("" if q is None else plus_minus(q.final, q.final_std) for q in found),
            unit_text(known.unit),
            "" if informed else "not told",
            style=None if informed else "dim",
        )
    return table
