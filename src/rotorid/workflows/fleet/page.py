"""The report of a fleet: changes, vehicles with their histories, and failed logs."""

# ruff: noqa: RUF001

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.identification.trends.change_detection import MIN_FLIGHTS
from rotorid.report.charts import Figure, Trace, encode_array, layout
from rotorid.report.page import Page, add_header, card, grid, table
from rotorid.results.text import Tone, join_words, label, plus_minus, title, unit_text
from rotorid.workflows.fleet.fleet import Fleet, FleetSummary
from rotorid.workflows.fleet.history import Change, Series, VehicleHistory
from rotorid.workflows.fleet.text import AIRFRAME_SOURCES, change_size_text, change_text, count_text

_TONES: Final[Mapping[Tone, str]] = {
    "good": "No action needed", "caution": "Inspection needed", "bad": "No result",
}  # fmt: skip
_MAX_PLOTS: Final = 24
"""Largest number of plotted histories; vehicles with changes come first."""

_MAX_ROWS: Final = 200
_MAX_TICKS: Final = 8  # flights, up to which the axis has a tick for each
_MARKER_OFFSET: Final = 0.06  # flights, between the markers of two parameters at one flight
_MAX_NAME: Final = 28
_COLOURS: Final = ("@ekf", "@ukf", "@msckf", "@swls", "@other1", "@adaptive", "@other0", "@axis-y")
_PANELS: Final = (
    ("mass", ("mass",)),
    ("thrust scale", ("thrust_scale",)),
    ("rotor thrust scales, at constant mass and centre of mass", tuple(f"rotor_scale_{i}" for i in range(8))),
    ("centre of mass, at constant rotor thrust scales", ("centre_of_mass_x", "centre_of_mass_y")),
    ("yaw trim", ("yaw_trim",)),
    ("drag", ("drag",)),
    ("mean command of the rotors", tuple(f"rotor_command_{i}" for i in range(8))),
    ("vibration", ("vibration",)),
    ("battery voltage", ("battery_voltage",)),
)


def fleet_page(fleet: Fleet, summary: FleetSummary) -> str:
    """The report of a fleet, as the HTML of a self-contained page."""
    page = Page("Fleet")
    vehicles = sum(bool(v.records) for v in fleet.vehicles)
    counts = [count_text(fleet.log_count, "log"), count_text(vehicles, "vehicle")]
    add_header(page, "rotorid fleet", counts, summary.verdict, _TONES)
    _cards(page, fleet)
    _changes(page, fleet)
    _vehicles(page, fleet)
    _histories(page, fleet)
    _limitations(page, summary)
    _failures(page, fleet)
    _settings(page, summary)
    return page.as_html()


def _cards(page: Page, fleet: Fleet) -> None:
    failed = len(fleet.failures)
    changes = sum(len(v.changes) for v in fleet.vehicles)
    cards = [
        card("Flights", str(fleet.log_count - failed), note="analysed"),
        card("Vehicles", str(sum(bool(v.records) for v in fleet.vehicles))),
        card("Changes", str(changes), note=f"in {count_text(len(fleet.changed_vehicles), 'vehicle')}"),
        card("Failed logs", str(failed), note="listed at the end" if failed else ""),
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _changes(page: Page, fleet: Fleet) -> None:
    page.section(
        "Changes",
        "Changes between flights of one vehicle that exceed the usual variation between flights. The false-alarm rate is one "
        "per hundred vehicles without a change.",
    )
    head = [
        "vehicle",
        "flight",
        "95 % range",
        "time",
        "parameter",
        "size",
        "size / std",
        "alternative causes",
    ]
    rows = [
        [
            _short(v.name),
            str(c.number) if c.kind == "step" else "all",
            " to ".join(map(str, c.number_range)) if c.kind == "step" else "drift",
            _date(c.utc),
            label(c.parameter),
            change_size_text(c, signed=True),
            f"{c.z:.0f}",
            join_words([label(name) for name in c.alternatives]) if c.alternatives else "–",
        ]
        for v in fleet.changed_vehicles
        for c in v.changes
    ]
    kinds = dict.fromkeys(["flight", "95 % range", "size", "size / std"], "number") | {
        "parameter": "word",
        "time": "word",
    }
    below = "" if rows else f"No change in any history of {MIN_FLIGHTS} flights or more."
    page.add(table(head, rows[:_MAX_ROWS], kinds, below=below or _more(len(rows), "changes.parquet")))


def _vehicles(page: Page, fleet: Fleet) -> None:
    page.section("Vehicles", "Median over the flights ± robust standard deviation between flights.")
    head = ["vehicle", "airframe", "airframe source", "flights", "failed", "mass", "drag", "changes"]
    rows = [
        [
            _short(v.name),
            v.airframe or "–",
            AIRFRAME_SOURCES[v.airframe_source],
            str(len(v.records)),
            str(len(v.failures)),
            _median_text(v.series.get("mass")),
            _median_text(v.series.get("drag")),
            str(len(v.changes)),
        ]
        for v in sorted(fleet.vehicles, key=lambda v: -len(v.changes))
    ]
    kinds = dict.fromkeys(["flights", "failed", "mass", "drag", "changes"], "number") | {
        "airframe source": "long"
    }
    page.add(table(head, rows[:_MAX_ROWS], kinds, below=_more(len(rows), "flights.parquet")))


def _histories(page: Page, fleet: Fleet) -> None:
    candidates = [v for v in fleet.vehicles if len(v.records) > 1]
    selection = sorted(candidates, key=lambda v: (-len(v.changes), -len(v.records)))[:_MAX_PLOTS]
    for vehicle in selection:
        count = f"{len(vehicle.records)} flights, {f'airframe {vehicle.airframe}' if vehicle.airframe else 'no airframe'}."
        page.section(_short(vehicle.name), " ".join([count, *map(change_text, vehicle.changes)]))
        panels = []
        for heading, names in _PANELS:
            series = {n: vehicle.series[n] for n in names if n in vehicle.series}
            if series:
                changes = [c for c in vehicle.changes if c.parameter in series]
                panels.append(page.panel(_history(series, vehicle, changes), title(heading), _unit(series)))
        page.add(grid(panels, "pairs"))
    if len(candidates) > len(selection):
        page.add(
            f'<p class="caption">{len(candidates) - len(selection)} more vehicles are in flights.parquet.</p>'
        )


def _history(series: Mapping[str, Series], vehicle: VehicleHistory, changes: Sequence[Change]) -> Figure:
    """Plot of parameters with standard deviations over the flights, with a line at each step; those of `changes` are thick."""
    traces: list[Trace] = []
    for k, (name, parameter) in enumerate(series.items()):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(name),
                "x": encode_array(parameter.number + _MARKER_OFFSET * (k - 0.5 * (len(series) - 1))),
                "y": encode_array(parameter.value),
                "error_y": {"type": "data", "array": encode_array(parameter.std), "thickness": 1, "width": 0},
                "marker": {"color": _COLOURS[k % len(_COLOURS)], "size": 5},
                "hovertemplate": "%{y:.4g} ± %{error_y.array:.2g}",
            }
        )
    axes = layout("", x_title="flight", legend=len(series) > 1)
    axes["xaxis"] |= {"range": [0.5, len(vehicle.records) + 0.5], "tickformat": "d"}
    axes["xaxis"] |= {"nticks": 8} if len(vehicle.records) > _MAX_TICKS else {"dtick": 1}
    axes["shapes"] = [
        {
            "type": "line", "xref": "x", "yref": "paper", "x0": c.number - 0.5, "x1": c.number - 0.5, "y0": 0, "y1": 1,
            "line": {"color": "@bad" if c in changes else "@soft", "width": 2 if c in changes else 1, "dash": "dot"},
        }
        for c in vehicle.changes
        if c.kind == "step"
    ]  # fmt: skip
    return Figure(tuple(traces), axes, height=230, has_time_axis=False)


def _limitations(page: Page, summary: FleetSummary) -> None:
    rows = [[flight, f["text"]] for flight, findings in summary.findings.items() for f in findings]
    if rows:
        page.section("Limitations of the estimates")
        below = _more(len(rows), "summary.json")
        page.add(table(["flight", "finding"], rows[:_MAX_ROWS], {"finding": "long"}, below=below))


def _failures(page: Page, fleet: Fleet) -> None:
    if not fleet.failures:
        return
    page.section("Failed logs")
    rows = [[r["flight"], r["error"].removeprefix(f"{r['flight']}: ")] for r in fleet.failures[:_MAX_ROWS]]
    page.add(
        table(["log", "error"], rows, {"error": "long"}, below=_more(len(fleet.failures), "flights.parquet"))
    )


def _settings(page: Page, summary: FleetSummary) -> None:
    page.section("Settings")
    rows = [
        ["command", "rotorid fleet"],
        *[
            [label(name), _setting_text(value)]
            for name, value in summary.settings.items()
            if value is not None
        ],
        *[[name, value] for name, value in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _more(count: int, where: str) -> str:
    return f"{count - _MAX_ROWS} more are in {where}." if count > _MAX_ROWS else ""


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[:8]}…{name[-_MAX_NAME + 9 :]}"


def _date(utc: float) -> str:
    if not math.isfinite(utc):
        return "–"
    return datetime.datetime.fromtimestamp(utc, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _median_text(series: Series | None) -> str:
    return "–" if series is None else plus_minus(series.median, series.spread, series.unit)


def _unit(series: Mapping[str, Series]) -> str:
    return unit_text(next(iter(series.values())).unit)
