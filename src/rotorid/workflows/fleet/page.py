"""The report of a fleet: changes, vehicles with their histories, and failed logs."""

# ruff: noqa: RUF001

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.report.charts import Figure, Trace, encode_array, layout
from rotorid.report.page import Page, add_header, card, grid, table
from rotorid.results.text import Tone, join_words, label, plus_minus, title, unit_text
from rotorid.workflows.fleet.fleet import Fleet, FleetSummary
from rotorid.workflows.fleet.history import Change, Series, Vehicle

_TONES: Final[Mapping[Tone, str]] = {
    "good": "No action needed", "caution": "Inspection needed", "bad": "No result",
}  # fmt: skip
_DRAWN: Final = 24
"""Largest number of plotted histories; vehicles with changes come first."""

_LISTED: Final = 200
_FEW: Final = 8  # flights, up to which the axis has a tick for each
_SHORT: Final = 28
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
    about = [f"{fleet.flights} logs", f"{len([v for v in fleet.vehicles if v.records])} vehicles"]
    add_header(page, "rotorid fleet", about, summary.verdict, _TONES)
    _cards(page, fleet)
    _changes(page, fleet)
    _vehicles(page, fleet)
    _histories(page, fleet)
    _doubts(page, summary)
    _failures(page, fleet)
    _settings(page, summary)
    return page.as_html()


def _cards(page: Page, fleet: Fleet) -> None:
    failed = len(fleet.failures)
    changes = sum(len(v.changes) for v in fleet.vehicles)
    cards = [
        card("Flights", str(fleet.flights - failed), note="analysed"),
        card("Vehicles", str(sum(bool(v.records) for v in fleet.vehicles))),
        card("Changes", str(changes), note=f"in {len(fleet.changed)} of them"),
        card("Failed logs", str(failed), note="listed at the end" if failed else ""),
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _changes(page: Page, fleet: Fleet) -> None:
    page.section(
        "Changes",
        "Changes between flights of one vehicle beyond the usual variation; at most one false alarm per hundred vehicles. A "
        "weak rotor, a load and a shifted battery each have their own effect on the mean commands.",
    )
    head = ["vehicle", "flight", "95 % range", "time", "parameter", "size", "σ", "alternatives"]
    rows = [
        [
            _short(v.name),
            str(c.number) if c.kind == "step" else "all",
            f"{c.earliest} to {c.latest}" if c.kind == "step" else "a drift",
            _date(c.utc),
            label(c.parameter),
            _size(c),
            f"{c.z:.0f}",
            join_words([label(o) for o in c.others]) if c.others else "–",
        ]
        for v in fleet.changed
        for c in v.changes
    ]
    kinds = dict.fromkeys(["flight", "95 % range", "size", "σ"], "number") | {
        "parameter": "word",
        "time": "word",
    }
    below = "" if rows else "No change in any history of 5 flights or more."
    page.add(table(head, rows[:_LISTED], kinds, below=below or _more(len(rows), "changes.parquet")))


def _vehicles(page: Page, fleet: Fleet) -> None:
    page.section("Vehicles", "Median over the flights ± robust standard deviation between flights.")
    head = ["vehicle", "airframe", "chosen", "flights", "failed", "mass", "drag", "changes"]
    rows = [
        [
            _short(v.name),
            v.airframe or "–",
            v.chosen or "–",
            str(len(v.records)),
            str(len(v.failed)),
            _typical(v.series.get("mass")),
            _typical(v.series.get("drag")),
            str(len(v.changes)),
        ]
        for v in sorted(fleet.vehicles, key=lambda v: -len(v.changes))
    ]
    kinds = dict.fromkeys(["flights", "failed", "mass", "drag", "changes"], "number") | {"chosen": "long"}
    page.add(table(head, rows[:_LISTED], kinds, below=_more(len(rows), "flights.parquet")))


def _histories(page: Page, fleet: Fleet) -> None:
    able = [v for v in fleet.vehicles if len(v.records) > 1]
    drawn = sorted(able, key=lambda v: (-len(v.changes), -len(v.records)))[:_DRAWN]
    for vehicle in drawn:
        count = f"{len(vehicle.records)} flights, {f'airframe {vehicle.airframe}' if vehicle.airframe else 'no airframe'}."
        page.section(_short(vehicle.name), " ".join([count, *(c.text for c in vehicle.changes)]))
        panels = []
        for heading, names in _PANELS:
            shown = {n: vehicle.series[n] for n in names if n in vehicle.series}
            if shown:
                own_changes = [c for c in vehicle.changes if c.parameter in shown]
                panels.append(page.panel(_history(shown, vehicle, own_changes), title(heading), _unit(shown)))
        page.add(grid(panels, "pairs"))
    if len(able) > len(drawn):
        page.add(f'<p class="caption">{len(able) - len(drawn)} more vehicles are in flights.parquet.</p>')


def _history(shown: Mapping[str, Series], vehicle: Vehicle, own_changes: Sequence[Change]) -> Figure:
    """Plot of estimates with standard deviations over the flights; a line at each change, thick for these parameters."""
    traces: list[Trace] = []
    for k, (name, series) in enumerate(shown.items()):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(name),
                "x": encode_array(series.number),
                "y": encode_array(series.value),
                "error_y": {"type": "data", "array": encode_array(series.std), "thickness": 1, "width": 0},
                "marker": {"color": _COLOURS[k % len(_COLOURS)], "size": 5},
                "hovertemplate": "%{y:.4g} ± %{error_y.array:.2g}",
            }
        )
    drawn = layout("", x_title="flight", legend=len(shown) > 1)
    drawn["xaxis"] |= {"range": [0.5, len(vehicle.records) + 0.5], "tickformat": "d"}
    drawn["xaxis"] |= {"nticks": 8} if len(vehicle.records) > _FEW else {"dtick": 1}
    drawn["shapes"] = [
        {
            "type": "line", "xref": "x", "yref": "paper", "x0": c.number - 0.5, "x1": c.number - 0.5, "y0": 0, "y1": 1,
            "line": {"color": "@bad" if c in own_changes else "@soft", "width": 2 if c in own_changes else 1, "dash": "dot"},
        }
        for c in vehicle.changes
        if c.kind == "step"
    ]  # fmt: skip
    return Figure(tuple(traces), drawn, height=230, has_time_axis=False)


def _doubts(page: Page, summary: FleetSummary) -> None:
    rows = [[flight, text] for flight, texts in summary.verdicts.items() for text in texts]
    if rows:
        page.section("Limitations of flights")
        below = _more(len(rows), "flights.parquet")
        page.add(table(["flight", "verdict"], rows[:_LISTED], {"verdict": "long"}, below=below))


def _failures(page: Page, fleet: Fleet) -> None:
    if not fleet.failures:
        return
    page.section("Failed logs")
    rows = [[r["flight"], r["error"].removeprefix(f"{r['flight']}: ")] for r in fleet.failures[:_LISTED]]
    page.add(
        table(["log", "error"], rows, {"error": "long"}, below=_more(len(fleet.failures), "flights.parquet"))
    )


def _settings(page: Page, summary: FleetSummary) -> None:
    page.section("Settings")
    rows = [
        ["command", "rotorid fleet"],
        *[[label(name), str(value)] for name, value in summary.settings.items() if value is not None],
        *[[name, value] for name, value in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))


def _more(count: int, where: str) -> str:
    return f"{count - _LISTED} more are in {where}." if count > _LISTED else ""


def _short(name: str) -> str:
    return name if len(name) <= _SHORT else f"{name[:8]}…{name[-_SHORT + 9 :]}"


def _date(utc: float) -> str:
    if not math.isfinite(utc):
        return "–"
    return datetime.datetime.fromtimestamp(utc, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _size(change: Change) -> str:
    if math.isfinite(change.share) and change.size:
        return plus_minus(
            100.0 * change.share, abs(100.0 * change.std * change.share / change.size), "%", signed=True
        )
    return plus_minus(change.size, change.std, change.unit, signed=True)


def _typical(series: Series | None) -> str:
    return "–" if series is None else plus_minus(series.median, series.spread, series.unit)


def _unit(shown: Mapping[str, Series]) -> str:
    return unit_text(next(iter(shown.values())).unit)
