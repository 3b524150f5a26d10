"""The report of an observed wrench."""

# ruff: noqa: RUF001

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from rotorid.estimators.registry import estimator_label
from rotorid.logs.flight import Flight
from rotorid.report.page import Page, add_header, add_log_section, card, grid, table
from rotorid.results.text import (
    Tone,
    join_words,
    label,
    percent,
    plus_minus,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.track.innovations import consistency_figure, running_consistency
from rotorid.workflows.track.page import describe_log
from rotorid.workflows.wrench.contacts import Contact
from rotorid.workflows.wrench.figures import component_figure, force_figure, place_figure
from rotorid.workflows.wrench.observe import WrenchTrack
from rotorid.workflows.wrench.summary import WrenchSummary
from rotorid.workflows.wrench.text import box_text, direction_name, direction_text, nearest_text

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Wrench usable",
    "caution": "Wrench usable with care",
    "bad": "Wrench not reliable",
}
_DRAWN = 8  # the strongest contacts


def wrench_page(track: WrenchTrack, flight: Flight, summary: WrenchSummary) -> str:
    """The report of the wrench of one flight, as the HTML of a self-contained page."""
    page = Page(f"{flight.source.name}: external wrench")
    _header(page, flight, summary)
    _cards(page, summary)
    _force(page, track, summary)
    _lines_of_action(page, track, summary)
    _components(page, track, summary)
    _trust(page, track, summary)
    _numbers(page, summary)
    add_log_section(page, flight, summary.log.notes)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, flight: Flight, summary: WrenchSummary) -> None:
    about = [
        *describe_log(summary.log, "observed"),
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
                "Strongest contact",
                plus_minus(strongest.strength, strongest.strength_std),
                "N",
                f"{direction_name(strongest)}, {strongest.duration:.2f} s long, at {strongest.start:.1f} s",
            )
        )
    cards.append(card("Contacts and lasting forces", str(len(summary.events)), note="outside the 95 % band"))
    name, steady = max(summary.components.items(), key=lambda item: abs(item[1].mean) / item[1].mean_std)
    cards.append(
        card(
            f"Mean {label(name)}",
            plus_minus(steady.mean, steady.mean_std, signed=True),
            unit_text(steady.unit),
            "the most significant of the six means over the flight",
        )
    )
    cards.append(card("Health OK", percent(summary.observer.healthy).removesuffix(" %"), "%", "of the time"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _force(page: Page, track: WrenchTrack, summary: WrenchSummary) -> None:
    page.section(
        "External force over time",
        "World axes. Shaded: the 95 % band, due to noise and to the uncertainty of the airframe. Red: contacts, numbered as in "
        "the table. Broad pale lines: the known force. Drag to zoom all time axes, double-click to reset.",
    )
    page.add('<div class="stack">', page.panel(force_figure(track.track, summary.events)))
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
            " ".join(
                value_text(v, s, signed=True) for v, s in zip(e.impulse.value, e.impulse.std, strict=True)
            ),
            plus_minus(e.peak.value, e.peak.std),
            " ".join(
                value_text(v, s, signed=True) for v, s in zip(e.torque.value, e.torque.std, strict=True)
            ),
        ]
        for number, e in enumerate(events, 1)
    ]
    kinds = dict.fromkeys(head, "number")
    aside = "mean values without the constant part; direction and impulse: east, north, up; torque: forward, left, up"
    below = "The wrench alone does not distinguish a contact from a gust or a load that is picked up."
    return table(head, rows, kinds, "Contacts", aside, below)


def _lines_of_action(page: Page, track: WrenchTrack, summary: WrenchSummary) -> None:
    if not summary.events:
        return
    page.section(
        "Lines of action",
        "Force and torque determine the line along which a force acts, not the point on it. The contact point is assumed to be "
        "where the line enters a box around the rotors.",
    )
    head = [
        "",
        "nearest point to the centre of mass (cm)",
        "± (cm)",
        "entry into the box (cm)",
        "torque along the force (N m)",
        "why not determined",
    ]
    rows = []
    for number, e in enumerate(summary.events, 1):
        if e.line is None:
            rows.append([str(number), "–", "–", "–", "–", e.line_unknown])
            continue
        std = " ".join(value_text(100.0 * s, 100.0 * s) for s in e.line.nearest_std)
        along = plus_minus(e.line.along, e.line.along_std)
        rows.append([str(number), nearest_text(e), std, box_text(e), along, ""])
    page.add('<div class="stack">')
    centre = next(p.values for p in track.system.parameters if p.name == "centre_of_mass")
    if any(e.line is not None for e in summary.events):
        drawn_contacts = _strongest(summary.events)
        views = [
            page.panel(
                place_figure(view, track.system.rotors, centre, summary.box, drawn_contacts),
                ("Seen from above", "Seen from the right")[view],
                "cross: point nearest to the centre of mass",
            )
            for view in (0, 1)
        ]
        page.add(grid(views, "split"))
    page.add(
        table(
            head,
            rows,
            dict.fromkeys(head[:-1], "number") | {"": "long"},
            "Lines of action",
            "body axes, relative to the centre of mass",
        )
    )
    page.add("</div>")


def _strongest(events: tuple[Contact, ...]) -> list[Contact]:
    """The contacts to be drawn: weak ones without their line, so that the numbers match the table."""
    order = sorted((e.strength for e in events if e.line is not None), reverse=True)
    least = order[min(len(order), _DRAWN) - 1] if order else math.inf
    return [e if e.strength >= least else dataclasses.replace(e, line=None) for e in events]


def _components(page: Page, track: WrenchTrack, summary: WrenchSummary) -> None:
    page.section(
        "All six components",
        "Force in world axes: x east, y north, z up. Torque about the centre of mass in body axes: x forward, y left, z up. "
        "With 95 % bands; at the right of each heading the mean over the flight ± one standard deviation.",
    )
    panels = []
    for name, c in summary.components.items():
        mean = plus_minus(c.mean, c.mean_std, c.unit, signed=True)
        panels.append(page.panel(component_figure(track.track, name, summary.events), title(name), mean))
    page.add(grid(panels))


def _trust(page: Page, track: WrenchTrack, summary: WrenchSummary) -> None:
    force, torque = (math.sqrt(s) for s in summary.observer.scale)
    page.section(
        "Uncertainty",
        f"The scatter of the force is {_times(force)} that of the assumed noise, the scatter of the torque {_times(torque)}; "
        "the band is scaled accordingly. It also includes the uncertainty of the parameters, which does not average out.",
    )
    spread, noise = np.median(track.parameter_errors.std, axis=0), np.median(track.noise_std, axis=0)
    rows = [
        [
            label(name),
            f"{noise[k]:.2g}",
            f"{spread[k]:.2g}",
            label(track.parameter_errors.cause_of(k)),
            unit_text(c.unit),
        ]
        for k, (name, c) in enumerate(summary.components.items())
    ]
    head = ["component", "due to noise", "due to parameters", "main cause", "unit"]
    kinds = {"component": "word", "due to noise": "number", "due to parameters": "number", "unit": "word"}
    running = [running_consistency(track.track)]
    aside = "mean in windows; line: expected for the assumed noise"
    page.add(
        '<div class="stack">',
        table(head, rows, kinds, "Standard deviation", "median over the flight", tight=True),
        page.panel(consistency_figure([track.track], running), "Normalised innovations squared", aside),
        "</div>",
    )


def _times(factor: float) -> str:
    return f"{factor:.2g} times"


def _numbers(page: Page, summary: WrenchSummary) -> None:
    page.section(
        "All estimates",
        "± is one standard deviation. Offset: the constant part, which is subtracted before contacts are detected.",
    )
    has_truth = any(c.rmse is not None for c in summary.components.values())
    head = ["component", "mean", "offset", "minimum", "maximum", "unit"]
    head += ["RMS error", "truth in the 95 % band"] if has_truth else []
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
        if has_truth:
            row += (
                ["–", "–"] if c.rmse is None or c.coverage is None else [f"{c.rmse:.2g}", percent(c.coverage)]
            )
        rows.append(row)
    kinds = dict.fromkeys(head, "number") | {"component": "word", "unit": "word"}
    page.add(table(head, rows, kinds))


def _settings(page: Page, summary: WrenchSummary) -> None:
    page.section("Settings")
    settings = summary.settings
    rows = [
        ["command", f"rotorid {settings.command}"],
        ["observer", estimator_label(settings.observer)],
        ["gain", f"{settings.gain:g} 1/s"],
        ["airframe", settings.airframe],
        ["model", settings.model or "airframe only"],
        ["rotor signal", label(settings.rotor_input)],
        ["uncertain parameters", join_words([label(name) for name in summary.observer.uncertain])],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
        ["log clock at t = 0", f"{summary.log.time_origin:.6f} s"],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
