"""The report of an inspected log: the verdict, its signals over time, the checks and what can be identified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rotorid.findings import Severity
from rotorid.logs.flight import Signal
from rotorid.report.charts import Figure, axis_colour, layout, line, shaded_interval
from rotorid.report.page import Page, add_header, add_log_section, table
from rotorid.results.text import Tone, title, unit_text
from rotorid.signals.inspection.inspection import Inspection
from rotorid.workflows.inspect.dynamics import rows
from rotorid.workflows.inspect.text import (
    check_name,
    finding_text,
    quantity_text,
    reason_text,
    recommendation_texts,
    remedy_text,
)
from rotorid.workflows.inspect.verdict import inspection_verdict

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Log can be used",
    "caution": "Log to be used with care",
    "bad": "Log not to be used",
}
_POINTS: Final = 1500  # of a curve
_COLOURS: Final = (
    "@axis-x",
    "@axis-y",
    "@axis-z",
    "@recovering",
    "@bad",
    "@other0",
    "@other1",
    "@out-of-range",
)
_FIRST: Final = ("position", "velocity", "attitude", "body_rate", "specific_force", "thrust")


def inspection_page(inspection: Inspection) -> str:
    """The report of one log, as the HTML of a self-contained page."""
    flight = inspection.flight
    page = Page(f"{flight.source.name}: inspection")
    about = [
        flight.vehicle,
        flight.format,
        f"{flight.duration:.1f} s",
        f"airborne {100 * inspection.airborne_share:.0f} %" if inspection.flying else "not airborne",
    ]
    add_header(page, flight.source.name, about, inspection_verdict(inspection), _TONES)
    _flight(page, inspection)
    _checks(page, inspection)
    _identifiability(page, inspection)
    _dynamics(page, inspection)
    add_log_section(page, flight, flight.notes)
    return page.as_html()


def _flight(page: Page, inspection: Inspection) -> None:
    flight = inspection.flight
    page.section("Flight", "All signals of the log; the shaded parts are on the ground.")
    names = [name for name in _FIRST if name in flight]
    names += [name for name in flight.signals if name not in names]
    panels = [
        page.panel(_figure(flight[name], inspection), title(name), unit_text(flight[name].kind.unit))
        for name in names
        if flight[name].rate >= 1.0
    ]
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _figure(signal: Signal, inspection: Inspection) -> Figure:
    """A curve for each component of a signal."""
    gap = max(1.0, 3.0 / max(signal.rate, 1e-9))
    columns = signal.columns
    short = [name.removeprefix(f"{signal.name}_") for name in columns]
    traces = tuple(
        line(
            signal.times,
            values,
            name if len(columns) > 1 else signal.name,
            axis_colour(k) if k < 3 else _COLOURS[k % len(_COLOURS)],
            points=_POINTS,
            max_gap=gap,
            width=1.2,
        )
        for k, (name, values) in enumerate(zip(short, signal.values.T, strict=True))
    )
    figure = layout("", legend=len(columns) > 1)
    figure["xaxis"] |= {"range": [0.0, inspection.flight.duration]}
    figure["yaxis"] |= {"nticks": 5}
    figure["shapes"] = [shaded_interval(a, b) for a, b in _on_ground(inspection)]
    return Figure(traces, figure, height=210)


def _on_ground(inspection: Inspection) -> list[tuple[float, float]]:
    edges = [0.0, *(t for interval in inspection.flying for t in interval), inspection.flight.duration]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]


def _checks(page: Page, inspection: Inspection) -> None:
    page.section("Checks", "Signals are compared with each other.")
    table_rows = [
        [
            "passed" if f.severity is Severity.OK else f.severity.word,
            check_name(f),
            finding_text(f),
            remedy_text(f),
        ]
        for f in inspection.findings
    ]
    kinds = {"result": "word", "check": "word", "remedy": "long"}
    page.add(table(["result", "check", "finding", "remedy"], table_rows, kinds))


def _dynamics(page: Page, inspection: Inspection) -> None:
    if not inspection.dynamics:
        return
    page.section(
        "Noise, gain, lag and rate loop",
        "From gyro and motor commands; neither position nor mass is needed. Commands are normalised to 0 to 1.",
    )
    table_rows = [[row.group.lower(), row.name, row.text] for row in rows(inspection.dynamics)]
    page.add(table(["group", "quantity", "value"], table_rows, {"group": "word", "value": "long"}))


def _identifiability(page: Page, inspection: Inspection) -> None:
    page.section("Identifiable from this log")
    table_rows = [
        [r.verdict.value, quantity_text(r.quantity), reason_text(r), "; ".join(recommendation_texts(r))]
        for r in inspection.identifiability
    ]
    kinds = {"verdict": "word", "recommendation": "long"}
    page.add(table(["verdict", "quantity", "reason", "recommendation"], table_rows, kinds))
