"""The report of an observed wrench: the verdict first, then what it rests on."""

# ruff: noqa: RUF001

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from rotorid.logs.flight import Flight
from rotorid.report.headed import add_header
from rotorid.report.html import Page, card, grid, table
from rotorid.report.innovation_figures import consistency_figure
from rotorid.report.log_section import what_was_read
from rotorid.report.wrench_figures import component_figure, force_figure, place_figure
from rotorid.results.contacts import Contact
from rotorid.results.verdict import Tone
from rotorid.results.whiteness import running_consistency
from rotorid.results.words import joined, label, percent, plus_minus, seconds, title, unit_text, value_text
from rotorid.results.wrench import WrenchTrack
from rotorid.results.wrench_summary import LABELS, WrenchSummary
from rotorid.results.wrench_words import box_text, direction_text, nearest_text, way

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Wrench can be used",
    "caution": "Wrench to be used with care",
    "bad": "Wrench not to be relied on",
}
_DRAWN = 8  # pushes on the vehicle, the strongest


def wrench_page(found: WrenchTrack, flight: Flight, summary: WrenchSummary) -> str:
    """The report of the wrench of one flight, as the HTML of a self-contained page."""
    page = Page(f"{flight.source.name}: external wrench")
    _header(page, flight, summary)
    _cards(page, summary)
    _force(page, found, summary)
    _pushes(page, found, summary)
    _components(page, found, summary)
    _trust(page, found, summary)
    _numbers(page, summary)
    what_was_read(page, flight, summary.notes)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, flight: Flight, summary: WrenchSummary) -> None:
    about = [
        flight.vehicle,
        flight.format.replace("-", " "),
        f"{seconds(summary.duration)} logged, {percent(summary.airborne)} of it observed",
        f"airframe {summary.settings.airframe}",
        summary.settings.model,
    ]
    add_header(page, flight.source.name, about, summary.verdict, _TONES)


def _cards(page: Page, summary: WrenchSummary) -> None:
    cards = []
    if summary.events:
        strongest = max(summary.events, key=lambda e: e.strength)
        cards.append(
            card(
                "Strongest push",
                plus_minus(strongest.strength, strongest.strength_std),
                "N",
                f"to {way(strongest)}, for {strongest.duration:.2f} s at {strongest.start:.1f} s",
            )
        )
    cards.append(card("Pushes", str(len(summary.events)), note="that stand out from the band"))
    name, steady = max(summary.components.items(), key=lambda item: abs(item[1].mean) / item[1].mean_std)
    cards.append(
        card(
            f"Mean {label(name)}",
            plus_minus(steady.mean, steady.mean_std, signed=True),
            unit_text(steady.unit),
            "over the flight; of all six the furthest from zero, in its band",
        )
    )
    cards.append(card("Healthy", percent(summary.healthy).removesuffix(" %"), "%", "of the time"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _force(page: Page, found: WrenchTrack, summary: WrenchSummary) -> None:
    page.section(
        "External force over time",
        "World axes. Shaded: the 95 % band, of noise and of what the airframe is unsure of; red: pushes, numbered as below. "
        "Broad and pale: the known force. Drag to zoom all charts of time, double-click to see all again.",
    )
    page.add('<div class="stack">', page.panel(force_figure(found.track, summary.events)))
    if summary.events:
        page.add(_events(summary.events))
    page.add("</div>")


def _events(events: tuple[Contact, ...]) -> str:
    head = ["", "from", "to", "force (N)", "direction", "impulse (N s)", "peak (N)", "torque (N m)"]
    rows = [
        [
            str(number),
            f"{e.start:.2f} s",
            f"{e.end:.2f} s",
            plus_minus(e.strength, e.strength_std),
            direction_text(e),
            " ".join(value_text(v, s, signed=True) for v, s in zip(e.impulse, e.impulse_std, strict=True)),
            plus_minus(e.peak, e.peak_std),
            " ".join(value_text(v, s, signed=True) for v, s in zip(e.torque, e.torque_std, strict=True)),
        ]
        for number, e in enumerate(events, 1)
    ]
    kinds = dict.fromkeys(head, "number")
    aside = "means, less what is steady; direction and impulse: east, north, up; torque: forward, left, up"
    below = "A contact, a gust or a load that is picked up: the wrench alone does not tell which."
    return table(head, rows, kinds, "Pushes", aside, below)


def _pushes(page: Page, found: WrenchTrack, summary: WrenchSummary) -> None:
    if not summary.events:
        return
    page.section(
        "Where they act",
        "A force at one point has its torque at right angles to it, which gives the line that it acts along, not the point. "
        "Assumed for the point: that the line enters the vehicle at a box around the rotors.",
    )
    head = [
        "",
        "nearest to the centre of mass (cm)",
        "± (cm)",
        "enters the box at (cm)",
        "torque along it (N m)",
        "",
    ]
    rows = []
    for number, e in enumerate(summary.events, 1):
        if e.line is None:
            rows.append([str(number), "–", "–", "–", "–", f"not told: {e.line_unknown}"])
            continue
        std = " ".join(value_text(100.0 * s, 100.0 * s) for s in e.line.nearest_std)
        along = plus_minus(e.line.along, e.line.along_std)
        rows.append([str(number), nearest_text(e), std, box_text(e), along, ""])
    page.add('<div class="stack">')
    centre = next(p.values for p in found.system.parameters if p.name == "centre_of_mass")
    if any(e.line is not None for e in summary.events):
        shown = _strongest(summary.events)
        views = [
            page.panel(
                place_figure(view, found.system.rotors, centre, summary.box, shown),
                ("Seen from above", "Seen from the right")[view],
                "cross: nearest to the centre of mass",
            )
            for view in (0, 1)
        ]
        page.add(grid(views, "split"))
    page.add(
        table(head, rows, dict.fromkeys(head[:-1], "number") | {"": "long"}, "Lines of action", "body axes")
    )
    page.add("</div>")


def _strongest(events: tuple[Contact, ...]) -> list[Contact]:
    """The pushes to be drawn: weak ones without their line, so that numbers stay those of the table."""
    order = sorted((e.strength for e in events if e.line is not None), reverse=True)
    least = order[min(len(order), _DRAWN) - 1] if order else math.inf
    return [e if e.strength >= least else dataclasses.replace(e, line=None) for e in events]


def _components(page: Page, found: WrenchTrack, summary: WrenchSummary) -> None:
    page.section(
        "All six components",
        "Force in world axes: x east, y north, z up. Torque about the centre of mass in body axes: x forward, y left, z up. "
        "Each with its 95 % band, and its mean over the flight ± one standard deviation.",
    )
    panels = []
    for name, c in summary.components.items():
        mean = plus_minus(c.mean, c.mean_std, c.unit, signed=True)
        panels.append(page.panel(component_figure(found.track, name, summary.events), title(name), mean))
    page.add(grid(panels))


def _trust(page: Page, found: WrenchTrack, summary: WrenchSummary) -> None:
    force, torque = (math.sqrt(s) for s in summary.scale)
    page.section(
        "How wide the band is",
        f"In this flight the force scatters {_times(force)} as far as the assumed noise makes it, the torque {_times(torque)}; "
        "the band is scaled by that. To it comes what the parameters leave open, which does not average out.",
    )
    spread, noise = np.median(found.spread.std, axis=0), np.median(found.noise_std, axis=0)
    rows = [
        [
            label(name),
            f"{noise[k]:.2g}",
            f"{spread[k]:.2g}",
            label(found.spread.cause_of(k)),
            unit_text(c.unit),
        ]
        for k, (name, c) in enumerate(summary.components.items())
    ]
    head = ["component", "by noise", "by parameters", "most of it by", "unit"]
    kinds = {"component": "word", "by noise": "number", "by parameters": "number", "unit": "word"}
    running = [running_consistency(found.track)]
    aside = "mean in windows; line: expected of the assumed noise"
    page.add(
        '<div class="stack">',
        table(head, rows, kinds, "One standard deviation at one time", "medians", tight=True),
        page.panel(consistency_figure([found.track], running), "Normalised innovations squared", aside),
        "</div>",
    )


def _times(factor: float) -> str:
    return f"{factor:.2g} times"


def _numbers(page: Page, summary: WrenchSummary) -> None:
    page.section(
        "All numbers",
        "± is one standard deviation. Offset: what is steady, and taken off before pushes are sought.",
    )
    known = any(c.error is not None for c in summary.components.values())
    head = ["component", "mean", "offset", "lowest", "highest", "unit"]
    head += ["RMS error", "band holds the known"] if known else []
    rows = []
    for name, c in summary.components.items():
        row = [
            label(name),
            plus_minus(c.mean, c.mean_std, signed=True),
            plus_minus(c.offset.value, c.offset.std, signed=True),
            value_text(c.lowest, c.band),
            value_text(c.highest, c.band),
            unit_text(c.unit),
        ]
        if known:
            row += (
                ["–", "–"]
                if c.error is None or c.coverage is None
                else [f"{c.error:.2g}", percent(c.coverage)]
            )
        rows.append(row)
    kinds = dict.fromkeys(head, "number") | {"component": "word", "unit": "word"}
    page.add(table(head, rows, kinds))


def _settings(page: Page, summary: WrenchSummary) -> None:
    page.section("Settings")
    settings = summary.settings
    rows = [
        ["command", f"rotorid {settings.command}"],
        ["observer", LABELS[settings.observer]],
        ["gain", f"{settings.gain:g} 1/s"],
        ["airframe", settings.airframe],
        ["model", settings.model or "physics of the airframe"],
        ["rotors known by", label(settings.rotor_input)],
        ["uncertain", joined([label(name) for name in summary.uncertain])],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
        ["log clock at t = 0", f"{summary.time_origin:.6f} s"],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
