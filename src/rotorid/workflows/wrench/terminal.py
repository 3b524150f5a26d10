"""The terminal output of `rotorid wrench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.results.text import percent, plus_minus, title, unit_text, value_text
from rotorid.terminal.console import empty_table, print_footer, print_verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rotorid.workflows.wrench.contacts import Contact
    from rotorid.workflows.wrench.summary import WrenchSummary

_MOST = 12  # events in the terminal; the report has all


def show(summary: WrenchSummary, folder: Path, console: Console) -> None:
    """Print the verdict, the mean wrench, the contacts, the health, and the path of the report."""
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.estimators.registry import estimator_label

    print_verdict(summary.verdict, console)
    console.print(Padding(_components(summary), (0, 1)))
    console.print()
    if summary.events:
        console.print(Padding(_events(summary.events[:_MOST]), (0, 1)))
        if len(summary.events) > _MOST:
            remainder_text = f"and {len(summary.events) - _MOST} more, listed in the report"
            console.print(Padding(Text(remainder_text, style="dim"), (0, 2)))
        console.print()
    health = [(k, share) for k, share in summary.observer.health.items() if share > 0 and k != "ok"]
    health_text = ", ".join(f"{percent(share)} {k.replace('_', ' ')}" for k, share in health)
    text = f"{estimator_label(summary.settings.observer)}: healthy {percent(summary.observer.healthy)} of the time"
    text = text[:1].upper() + text[1:]
    console.print(Padding(Text(f"{text} ({health_text})" if health_text else text, style="dim"), (0, 2)))
    console.print(
        Padding(Text("Force in world axes (east, north, up), torque in body axes.", style="dim"), (0, 2))
    )
    print_footer(summary.log.notes, folder, console)


def _components(summary: WrenchSummary) -> Table:
    table = empty_table()
    table.add_column("over the flight")
    for head in ("mean", "minimum", "maximum", "std"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, c in summary.components.items():
        table.add_row(
            title(name),
            plus_minus(c.mean, c.mean_std),
            value_text(c.lowest, c.band),
            value_text(c.highest, c.band),
            value_text(c.band, c.band),
            unit_text(c.unit),
        )
    return table


def _events(events: tuple[Contact, ...]) -> Table:
    from rotorid.workflows.wrench.text import direction_name, nearest_text

    table = empty_table()
    for head in ("contact at", "lasts", "force (N)", "direction", "impulse (N s)", "nearest (cm)"):
        table.add_column(head, justify="right", no_wrap=True)
    for event in events:
        impulse = sum(i * d for i, d in zip(event.impulse.value, event.direction, strict=True))
        table.add_row(
            f"{event.start:.2f} s",
            f"{event.duration:.2f} s",
            plus_minus(event.strength, event.strength_std),
            direction_name(event),
            value_text(impulse, event.strength_std * event.duration),
            nearest_text(event),
        )
    return table
