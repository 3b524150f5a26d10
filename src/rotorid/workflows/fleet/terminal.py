"""Terminal output of `rotorid fleet`."""

# ruff: noqa: RUF001

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rotorid.results.text import plus_minus
from rotorid.terminal.console import empty_table, print_footer, print_verdict
from rotorid.workflows.fleet.text import AIRFRAME_SOURCES, change_text, count_text

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.fleet.fleet import Fleet, FleetSummary
    from rotorid.workflows.fleet.history import VehicleHistory

_MAX_LINES: Final = 20  # vehicles, changes and failures that are listed


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
        for v in sorted(usable, key=lambda v: -len(v.changes))[:_MAX_LINES]:
            names = Text(v.name), Text(v.airframe or "–")
            table.add_row(*names, str(len(v.records)), _mass_text(v), str(len(v.changes)))
        console.print(Padding(table, (0, 1)))
        console.print()
    lines = [f"{v.name}: {change_text(c)}" for v in fleet.changed_vehicles for c in v.changes]
    assumptions = {
        (v.name, v.airframe, AIRFRAME_SOURCES[v.airframe_source])
        for v in usable
        if v.airframe_source not in ("given", "map", "")
    }
    lines += [
        f"{name}: airframe {airframe} assumed: {reason}." for name, airframe, reason in sorted(assumptions)
    ]
    if fleet.unchanged_logs:
        verb = "was" if fleet.unchanged_logs == 1 else "were"
        before = count_text(fleet.unchanged_logs, "log")
        lines.append(f"{before} {verb} analysed before, {fleet.new_logs} in this run.")
    if fleet.other_files:
        verb = "was" if fleet.other_files == 1 else "were"
        lines.append(f"{count_text(fleet.other_files, 'other file')} {verb} skipped.")
    for text in _shorten([line for line in lines if line not in summary.verdict.details]):
        console.print(Padding(Text(text, style="dim"), (0, 2)))
    for text in _shorten([f"Failed: {r['error']}" for r in fleet.failures]):
        console.print(Padding(Text(text, style="yellow"), (0, 2)))
    print_footer((), folder, console)


def _mass_text(vehicle: VehicleHistory) -> str:
    mass = vehicle.series.get("mass")
    return "–" if mass is None else plus_minus(mass.median, mass.spread, mass.unit)


def _shorten(lines: list[str]) -> list[str]:
    if len(lines) <= _MAX_LINES:
        return lines
    return [*lines[:_MAX_LINES], f"and {len(lines) - _MAX_LINES} more, in the report"]
