"""Terminal output of `rotorid inspect`. Each result has an icon and a word, so that it is readable without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rotorid.findings import Finding, Severity
from rotorid.signals.inspection.checks.clock import signal_gaps
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.identifiability import Identifiability, Verdict
from rotorid.signals.inspection.inspection import Inspection
from rotorid.workflows.inspect.dynamics import GROUPS, rows
from rotorid.workflows.inspect.summary import rotor_signals_text
from rotorid.workflows.inspect.text import (
    check_name,
    finding_text,
    quantity_text,
    reason_text,
    recommendation_texts,
    remedy_text,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_SEVERITY: Final = {
    Severity.ERROR: ("✗", "x", "bold red"),
    Severity.WARNING: ("!", "!", "yellow"),
    Severity.NOTE: ("·", "-", "cyan"),
    Severity.OK: ("✓", "+", "green"),
}
_VERDICT: Final = {
    Verdict.YES: ("✓", "+", "green"),
    Verdict.WEAK: ("~", "~", "yellow"),
    Verdict.NO: ("✗", "x", "red"),
}
_WIDEST: Final = 118


def show(inspection: Inspection, console: Console) -> None:
    """Print an inspection."""
    if console.width > _WIDEST:
        console.width = _WIDEST
    _print_head(inspection, console)
    _print_signals(inspection, console)
    _print_findings(inspection.findings, console)
    _print_identifiability(inspection.identifiability, console)
    _print_dynamics(inspection.dynamics, console)


def _print_head(inspection: Inspection, console: Console) -> None:
    from rich.markup import escape

    flight = inspection.flight
    console.print(f"[bold]{escape(flight.source.name)}[/]")
    properties = [flight.vehicle, flight.format, f"{flight.duration:.1f} s"]
    console.print(" · ".join(escape(text) for text in properties if text))
    if inspection.flying:
        spans = ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in inspection.flying)
        console.print(f"Airborne for {100 * inspection.airborne_share:.0f} % of the log: {spans}")
    else:
        console.print("No flight: the vehicle stayed on the ground")


def _print_signals(inspection: Inspection, console: Console) -> None:
    from rich.markup import escape

    _print_title("Signals", console)
    wide = console.width >= 90
    table = _table()
    for name, justify in (
        ("signal", "left"),
        ("Hz", "right"),
        ("samples", "right"),
        ("from", "right"),
        ("to s", "right"),
    ):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("gaps", justify="right", no_wrap=True)
    if wide:
        table.add_column("read from", style="dim", overflow="fold")
    for signal in inspection.flight.signals.values():
        gaps = signal_gaps(signal) if signal.rate > 3.0 else []
        is_list = len(signal.columns) > 1 and signal.kind.suffixes is None
        row = [
            signal.name + (f" x {len(signal.columns)}" if is_list else ""),
            f"{signal.rate:.0f}" if signal.rate >= 1.0 else "events",
            str(len(signal.times)),
            f"{signal.times[0]:.1f}" if len(signal.times) else "",
            f"{signal.times[-1]:.1f}" if len(signal.times) else "",
            str(len(gaps)) if gaps else "-",
        ]
        table.add_row(*row, *([escape(signal.source)] if wide else []))
    console.print(table)
    if text := rotor_signals_text(inspection.flight):
        console.print(f"Rotor signals used by {escape(text)}")


def _print_findings(findings: list[Finding], console: Console) -> None:
    from rich.markup import escape

    _print_title("Checks", console)
    table = _table(header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        icon, style = _icon(_SEVERITY[finding.severity], console)
        text = f"[bold]{check_name(finding)}[/]: {escape(finding_text(finding))}"
        if remedy := remedy_text(finding):
            text += f"\n[dim]-> {escape(remedy)}[/]"
        word = "" if finding.severity is Severity.OK else f" {finding.severity.word}"
        table.add_row(f"[{style}]{icon}{word}[/]", text)
    console.print(table)


def _print_identifiability(results: list[Identifiability], console: Console) -> None:
    from rich.markup import escape

    _print_title("Identifiable from this log", console)
    narrow = console.width < 80
    table = _table(header=False)
    table.add_column(no_wrap=True)
    if not narrow:
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    recommended: dict[str, list[str]] = {}  # names of quantities by recommendation
    for result in results:
        icon, style = _icon(_VERDICT[result.verdict], console)
        name, reason = quantity_text(result.quantity), escape(reason_text(result))
        table.add_row(
            f"[{style}]{icon} {result.verdict.value}[/]",
            *([f"{name}: {reason}"] if narrow else [name, reason]),
        )
        for recommendation in recommendation_texts(result):
            recommended.setdefault(recommendation, []).append(name.partition(",")[0])
    console.print(table)
    if not recommended:
        return
    _print_title("Recommendations for the next flight", console)
    table = _table(header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for recommendation, names in recommended.items():
        table.add_row("-", f"{escape(recommendation)} [dim]({', '.join(dict.fromkeys(names))})[/]")
    console.print(table)


def _print_dynamics(estimates: list[Estimate], console: Console) -> None:
    from rich.markup import escape

    narrow = console.width < 80
    for group in GROUPS.values():
        members = [row for row in rows(estimates) if row.group == group]
        if not members:
            continue
        _print_title(group, console)
        table = _table(header=False)
        table.add_column(no_wrap=True)
        if not narrow:
            table.add_column(max_width=34, overflow="fold")
        table.add_column(overflow="fold")
        for row in members:
            icon, style = _icon(_VERDICT[Verdict.YES if row.is_identified else Verdict.NO], console)
            text = escape(row.text)
            table.add_row(f"[{style}]{icon}[/]", *([f"{row.name}: {text}"] if narrow else [row.name, text]))
        console.print(table)


def _icon(icons: tuple[str, str, str], console: Console) -> tuple[str, str]:
    unicode_icon, ascii_icon, style = icons
    return (unicode_icon if "utf" in console.encoding.lower() else ascii_icon), style


def _print_title(text: str, console: Console) -> None:
    console.print()
    console.print(f"[bold]{text}[/]")


def _table(header: bool = True) -> Table:
    from rich.table import Table

    return Table(box=None, show_header=header, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
