"""The report of a tracked flight: the verdict first, then what it rests on."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.report.figures import BANDS, curve_figure, main_figure, named, path_figure, quantity_figure
from rotorid.report.headed import add_header
from rotorid.report.html import Page, card, grid, table
from rotorid.report.innovation_figures import consistency_figure, histogram_figure, innovation_figure
from rotorid.report.log_section import what_was_read
from rotorid.results.motion import Motion
from rotorid.results.summary import EstimatorSummary, QuantitySummary, Summary
from rotorid.results.track import Track
from rotorid.results.verdict import Tone, leading
from rotorid.results.whiteness import normalised, running_consistency
from rotorid.results.words import (
    estimator_label,
    joined,
    label,
    percent,
    plus_minus,
    seconds,
    title,
    unconfirmed,
    unit_text,
    value_text,
)

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Estimate can be used",
    "caution": "Estimate to be used with care",
    "bad": "Estimate not to be relied on",
}
_CARDS = ("drag", "wind_x", "wind_y")


def track_page(tracks: Sequence[Track], flight: Flight, motion: Motion, summary: Summary) -> str:
    """The report of the tracks of one flight, as the HTML of a self-contained page."""
    lead = leading(tracks)
    found = summary.estimators[lead.estimator]
    page = Page(f"{flight.source.name}: {label(lead.main)}")
    _header(page, flight, summary)
    _cards(page, lead, found, summary)
    _main(page, tracks, lead, summary)
    _secondary(page, tracks, summary, lead)
    _innovations(page, tracks, lead, found)
    _motion(page, tracks, motion, lead, found.quantities[lead.main])
    _numbers(page, summary)
    what_was_read(page, flight, summary.notes)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, flight: Flight, summary: Summary) -> None:
    about = [
        flight.vehicle,
        flight.format.replace("-", " "),
        f"{seconds(summary.duration)} logged, {percent(summary.airborne)} of it tracked",
        f"airframe {summary.settings.airframe}",
    ]
    add_header(page, flight.source.name, about, summary.verdict, _TONES)


def _cards(page: Page, lead: Track, found: EstimatorSummary, summary: Summary) -> None:
    names = [lead.main, *(n for n in _CARDS if n in found.quantities)]
    cards = []
    for name in names:
        q = found.quantities[name]
        others = [
            f"{estimator_label(e)}\u00a0{plus_minus(s.quantities[name].final, s.quantities[name].final_std)}"
            for e, s in summary.estimators.items()
            if e != lead.estimator and name in s.quantities
        ]
        note = joined(others) if q.informed else "not told by this flight"
        cards.append(
            card(
                f"{title(name)} at the end",
                plus_minus(q.final, q.final_std),
                unit_text(q.unit),
                note,
                told=q.informed,
            )
        )
    main = found.quantities[lead.main]
    if main.error is not None and main.coverage is not None:
        cards.append(
            card(
                "Error against the known", f"{main.error:.1f}", "%", f"band holds it {percent(main.coverage)}"
            )
        )
    cards.append(
        card(
            "Healthy",
            percent(found.healthy).removesuffix(" %"),
            "%",
            f"of the time ({estimator_label(lead.estimator)})",
        )
    )
    cards.append(card("NIS / dimension", _ratio(found.consistency), note="1 of a consistent filter"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _main(page: Page, tracks: Sequence[Track], lead: Track, summary: Summary) -> None:
    page.section(
        f"{title(lead.main)} over time",
        f"Shaded in colour: the 95 % band{_whose(tracks)}. Grey: not in the air, or inputs unknown. Below: the health of "
        "each estimator, thin while all is well. Drag to zoom all charts of time, double-click to see all again.",
    )
    looking = [e for e in summary.estimators.values() if e.changes is not None]
    jumps = (looking[0].changes or ()) if looking else ()
    page.add('<div class="stack">', page.panel(main_figure(tracks, jumps)))
    for name, found in summary.estimators.items():
        if found.changes is not None:
            page.add(_changes(name, lead.main, found))
    page.add("</div>")


def _whose(tracks: Sequence[Track]) -> str:
    """Whose band is drawn, where not everyone's is."""
    return f" of the {estimator_label(tracks[0].estimator)}" if len(tracks) > BANDS else ""


def _changes(name: str, quantity: str, found: EstimatorSummary) -> str:
    """When the main quantity jumped, as an estimator that looks for it found."""
    what = named(quantity, found.quantities[quantity].unit)
    aside = f"jumps of the {what}, by the {estimator_label(name)} estimator"
    rows = [
        [
            f"{j.time:.1f} s",
            plus_minus(j.before, j.before_std),
            plus_minus(j.after, j.after_std),
            plus_minus(j.size, j.size_std, signed=True),
        ]
        for j in found.changes or ()
    ]
    more = found.unconfirmed_changes
    rest = f"{unconfirmed(more, more=bool(rows))}." if more else ""
    below = " ".join(text for text in ("" if rows else "None found.", rest) if text)
    head = ["at", "from", "to", "by"]
    return table(head, rows, dict.fromkeys(head, "number"), "When it changed", aside, below, tight=True)


def _secondary(page: Page, tracks: Sequence[Track], summary: Summary, lead: Track) -> None:
    names = [n for n in lead.quantities if n != lead.main]
    if not names:
        return
    page.section(
        "What else was tracked",
        f"Each with the 95 % band{_whose(tracks)}, and its value at the end ± one standard deviation. World axes: x east, "
        "y north; "
        "body axes: x forward, y left, z up.",
    )
    panels = []
    for name in names:
        q = summary.estimators[lead.estimator].quantities[name]
        ended = plus_minus(q.final, q.final_std, q.unit)
        panels.append(page.panel(quantity_figure(tracks, name), title(name), ended, told=q.informed))
    page.add(grid(panels))


def _innovations(page: Page, tracks: Sequence[Track], lead: Track, found: EstimatorSummary) -> None:
    page.section("Does the model explain the measurements?", _in_words(found.consistency))
    running = [running_consistency(t) for t in tracks]
    heading = "Normalised innovations squared"
    aside = "mean in windows; line: expected, band: 95 % of a consistent filter"
    page.add('<div class="stack">', page.panel(consistency_figure(tracks, running), heading, aside))
    seen = [(n, normalised(lead.t, i)) for n, i in lead.innovations.items() if (i.std > 0).any()]
    estimator = estimator_label(lead.estimator)
    page.add(
        grid(
            [
                page.panel(innovation_figure(i), title(n), f"{percent(i.inside)} within ±1.96 ({estimator})")
                for n, i in seen
            ]
        ),
        grid([page.panel(histogram_figure(i), title(n), "bars: measured, line: expected") for n, i in seen]),
        "</div>",
    )


def _in_words(ratio: float) -> str:
    what = "An innovation is what was measured less what was predicted. "
    if not math.isfinite(ratio):
        return what + "None was measured."
    if ratio > 2.0:
        return what + (
            "Here they are larger than the filter expects: the model lacks something, or the noise is "
            "assumed too small, and the bands are too narrow."
        )
    if ratio < 0.5:
        return what + (
            "Here they are smaller than the filter expects: it assumes more noise than this log shows, so "
            "its bands err on the wide side."
        )
    return what + "Here they are about as large as the filter expects, so its bands can be taken as they are."


def _motion(page: Page, tracks: Sequence[Track], motion: Motion, lead: Track, main: QuantitySummary) -> None:
    page.section(
        "What the vehicle did",
        "A parameter shows only while something moves it: drag shows in speed, thrust in climbs.",
    )
    panels = [page.panel(curve_figure(c, tracks), title(c.what)) for c in motion.curves]
    path = path_figure(motion, lead, main)
    if path is None:
        page.add(grid(panels), '<p class="caption">The log has no position, so the path cannot be drawn.</p>')
        return
    way = page.panel(path, "The flight", "one scale on all axes; drag to turn")
    page.add(f'<div class="stack">{grid(panels)}{way}</div>')


def _numbers(page: Page, summary: Summary) -> None:
    page.section(
        "All numbers",
        "± is one standard deviation. Median, lowest and highest: once the filter has settled.",
    )
    head = ["quantity", "estimator", "at the end", "median", "lowest", "highest", "unit", "informed"]
    names = dict.fromkeys(n for found in summary.estimators.values() for n in found.quantities)
    rows = [
        [
            label(name),
            estimator_label(estimator),
            plus_minus(q.final, q.final_std),
            plus_minus(q.median, q.median_std),
            value_text(q.lowest, q.median_std),
            value_text(q.highest, q.median_std),
            unit_text(q.unit),
            percent(q.informed_share) + " of the time",
        ]
        for name in names
        for estimator, found in summary.estimators.items()
        if (q := found.quantities.get(name)) is not None
    ]
    kinds = dict.fromkeys(["at the end", "median", "lowest", "highest"], "number") | {
        "quantity": "word",
        "unit": "word",
        "informed": "word",
    }
    page.add(table(head, rows, kinds))


def _settings(page: Page, summary: Summary) -> None:
    page.section("Settings")
    settings = summary.settings
    rows = [
        ["command", f"rotorid {settings.command}"],
        ["estimators", joined([estimator_label(e) for e in settings.estimators])],
        ["system", settings.system],
        ["airframe", settings.airframe],
        *([["known mass", f"{settings.known_mass:g} kg"]] if settings.known_mass is not None else []),
        *([["seed", str(settings.seed)]] if settings.seed is not None else []),
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
        ["log clock at t = 0", f"{summary.time_origin:.6f} s"],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))


def _ratio(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
