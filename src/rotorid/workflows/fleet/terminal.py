"""Terminal output of `rotorid fleet`."""

# ruff: noqa: RUF001

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import plus_minus
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.fleet.fleet import Fleet, FleetSummary
    from rotorid.workflows.fleet.history import Vehicle

_MOST = 20  # vehicles and changes that are listed


def show(fleet: Fleet, summary: FleetSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the vehicles, the changes, the errors of failed logs, and the path of the report."""
    from rich.padding import Padding
    from rich.text import Text

    print_verdict(summary.verdict, console)
    usable = [v for v in fleet.vehicles if v.records]
    if usable:
        table = empty_table()
        table.add_column("vehicle", overflow="fold")
        table.add_column("airframe", overflow="fold")
        for head in ("flights", "mass", "changes"):
            table.add_column(head, justify="right", no_wrap=True)
        for v in sorted(usable, key=lambda v: -len(v.changes))[:_MOST]:
            named = Text(v.name), Text(v.airframe or "–")
            table.add_row(*named, str(len(v.records)), _mass(v), str(len(v.changes)))
        console.print(Padding(table, (0, 1)))
        console.print()
    lines = [f"{v.name}: {c.text}" for v in fleet.changed for c in v.changes]
    guessed = {(v.name, v.airframe, v.chosen) for v in usable if v.chosen not in ("given", "map", "")}
    lines += [f"{name}: airframe {airframe} assumed, {why}." for name, airframe, why in sorted(guessed)]
    if fleet.kept:
        lines.append(f"{fleet.kept} logs were analysed before, {fleet.done} in this run.")
    if fleet.others:
        lines.append(f"{fleet.others} other files were skipped.")
    for text in _shortened(lines):
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    for text in _shortened([f"failed: {r['error']}" for r in fleet.failures]):
        console.print(Padding(Text(text, style="yellow"), (0, 2)))
    print_footer((), folder, console)


def _mass(vehicle: Vehicle) -> str:
    mass = vehicle.series.get("mass")
    return "–" if mass is None else plus_minus(mass.median, mass.spread, mass.unit)


def _shortened(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"and {len(lines) - _MOST} more, in the report"]
