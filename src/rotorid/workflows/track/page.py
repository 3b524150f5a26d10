"""The report of a tracked flight."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.report.page import Page, add_header, add_log_section, card, grid, table
from rotorid.results.text import (
    Tone,
    duration_text,
    estimator_label,
    join_words,
    label,
    percent,
    plus_minus,
    share_text,
    std_text,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.track.battery.text import battery_rows
from rotorid.workflows.track.figures import (
    BANDS,
    has_change_band,
    main_figure,
    motion_figure,
    path_figure,
    quantity_figure,
    quantity_with_unit,
)
from rotorid.workflows.track.innovations import (
    consistency_figure,
    histogram_figure,
    innovation_figure,
    normalise,
    running_consistency,
)
from rotorid.workflows.track.motion import Motion
from rotorid.workflows.track.summary import (
    EstimatorSummary,
    LogSummary,
    QuantitySummary,
    Summary,
    leading_track,
)
from rotorid.workflows.track.text import unconfirmed_text
from rotorid.workflows.track.track import Track

_TONES: Final[Mapping[Tone, str]] = {
    "good": "Estimate usable",
    "caution": "Estimate usable with care",
    "bad": "Estimate not reliable",
}
_CARDS = ("drag", "wind_x", "wind_y")


def track_page(tracks: Sequence[Track], flight: Flight, motion: Motion, summary: Summary) -> str:
    """The report of the tracks of one flight, as the HTML of a self-contained page."""
    lead = leading_track(tracks)
    estimator_summary = summary.estimators[lead.estimator]
    page = Page(f"{flight.source.name}: {label(lead.main_quantity)}")
    _header(page, flight, summary)
    _cards(page, lead, estimator_summary, summary)
    _main(page, tracks, lead, summary)
    _secondary(page, tracks, summary, lead)
    if lead.nis_dof.any():
        _innovations(page, [t for t in tracks if t.nis_dof.any()], lead, estimator_summary)
    _motion(page, tracks, motion, lead, estimator_summary.quantities[lead.main_quantity])
    _battery(page, summary)
    _numbers(page, summary)
    add_log_section(page, flight, summary.log.notes)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, flight: Flight, summary: Summary) -> None:
    about = [*describe_log(summary.log, "tracked"), f"airframe {summary.settings.airframe}"]
    add_header(page, flight.source.name, about, summary.verdict, _TONES)


def describe_log(log: LogSummary, use: str) -> list[str]:
    """The log of a result, for the header of its page. use: what was done with the flight ("tracked")."""
    return [
        log.vehicle,
        log.format.replace("-", " "),
        f"{duration_text(log.duration)} logged, {percent(log.airborne)} of it {use}",
    ]


def _cards(page: Page, lead: Track, estimator_summary: EstimatorSummary, summary: Summary) -> None:
    names = [lead.main_quantity, *(n for n in _CARDS if n in estimator_summary.quantities)]
    cards = []
    for name in names:
        q = estimator_summary.quantities[name]
        others = [
            f"{estimator_label(e)}\u00a0{plus_minus(s.quantities[name].final, s.quantities[name].final_std)}"
            for e, s in summary.estimators.items()
            if e != lead.estimator and name in s.quantities
        ]
        note = join_words(others) if q.informed else "not identified by this flight"
        if q.informed and q.has_common_std:
            note = "; ".join(
                text for text in (f"± {std_text(q.final, q.change_std)} for changes", note) if text
            )
        cards.append(
            card(
                f"{title(name)} at the end",
                plus_minus(q.final, q.final_std),
                unit_text(q.unit),
                note,
                muted=not q.informed,
            )
        )
    main = estimator_summary.quantities[lead.main_quantity]
    if main.rmspe is not None and main.coverage is not None:
        cards.append(
            card("RMS error", f"{main.rmspe:.1f}", "%", f"truth in the 95 % band: {percent(main.coverage)}")
        )
    cards.append(
        card(
            "Health OK",
            percent(estimator_summary.healthy).removesuffix(" %"),
            "%",
            f"of the time ({estimator_label(lead.estimator)})",
        )
    )
    if math.isfinite(estimator_summary.consistency):
        cards.append(
            card("NIS / dimension", _ratio(estimator_summary.consistency), note="1 for a consistent filter")
        )
    if estimator_summary.explained:
        cards.append(_explained_card(estimator_summary))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _explained_card(estimator_summary: EstimatorSummary) -> str:
    """The VAF of the output that is no state, with those of the others below."""
    explained = dict(estimator_summary.explained)
    name = "specific_force" if "specific_force" in explained else next(iter(explained))
    share = explained.pop(name)
    others = [f"{label(n)} {s.vaf:.1f}\u00a0%" for n, s in explained.items()]
    value = plus_minus(share.vaf, share.vaf_std) if math.isfinite(share.vaf_std) else f"{share.vaf:.1f}"
    return card(f"{title(name)} explained", value, "%", join_words(others))


def _main(page: Page, tracks: Sequence[Track], lead: Track, summary: Summary) -> None:
    page.section(
        f"{title(lead.main_quantity)} over time",
        f"Coloured: the 95 % band{_band_owner(tracks)}{_band_kinds(lead)}. Grey: not in the air, or inputs missing; "
        "take-off, landing, contact and crash have their names. Below: the "
        "health of each estimator, a thin line while it is healthy. Drag to zoom all time axes, double-click to reset.",
    )
    detecting = [e for e in summary.estimators.values() if e.jumps is not None]
    jumps = (detecting[0].jumps or ()) if detecting else ()
    page.add('<div class="stack">', page.panel(main_figure(tracks, jumps)))
    for name, estimator_summary in summary.estimators.items():
        if estimator_summary.jumps is not None:
            page.add(_jump_table(name, lead.main_quantity, estimator_summary))
    page.add("</div>")


def _band_kinds(lead: Track) -> str:
    """Which band is absolute and which is that of changes, where these differ."""
    if not has_change_band(lead.quantities[lead.main_quantity]):
        return ""
    return (
        " of the absolute value, which contains what scales all values together (thrust curve, stated mass); the darker band "
        "inside is that of changes during the flight"
    )


def _band_owner(tracks: Sequence[Track]) -> str:
    """Whose band is drawn, where not all are."""
    return f" of the {estimator_label(tracks[0].estimator)}" if len(tracks) > BANDS else ""


def _jump_table(name: str, quantity: str, estimator_summary: EstimatorSummary) -> str:
    """The jumps of the main quantity, by an estimator with change detection."""
    quantity_text = quantity_with_unit(quantity, estimator_summary.quantities[quantity].unit)
    aside = f"{quantity_text}, {estimator_label(name)} estimator"
    rows = [
        [
            f"{j.time:.1f} s",
            plus_minus(j.before, j.before_std),
            plus_minus(j.after, j.after_std),
            plus_minus(j.size, j.size_std, signed=True),
        ]
        for j in estimator_summary.jumps or ()
    ]
    unconfirmed = estimator_summary.unconfirmed_changes
    unconfirmed_line = f"{unconfirmed_text(unconfirmed, is_addition=bool(rows))}." if unconfirmed else ""
    below = " ".join(text for text in ("" if rows else "No jump was detected.", unconfirmed_line) if text)
    head = ["time", "from", "to", "size"]
    return table(head, rows, dict.fromkeys(head, "number"), "Jumps", aside, below, tight=True)


def _secondary(page: Page, tracks: Sequence[Track], summary: Summary, lead: Track) -> None:
    names = [n for n in lead.quantities if n != lead.main_quantity]
    if not names:
        return
    page.section(
        "Other quantities",
        f"With the 95 % band{_band_owner(tracks)}; at the right of each heading the value at the end ± one standard deviation. "
        "Wind in world axes (x east, y north), accelerometer biases in body axes (x forward, y left, z up).",
    )
    panels = []
    for name in names:
        q = summary.estimators[lead.estimator].quantities[name]
        ended = plus_minus(q.final, q.final_std, q.unit)
        panels.append(page.panel(quantity_figure(tracks, name), title(name), ended, muted=not q.informed))
    page.add(grid(panels))


def _innovations(
    page: Page, tracks: Sequence[Track], lead: Track, estimator_summary: EstimatorSummary
) -> None:
    page.section("Innovations", _consistency_text(estimator_summary.consistency))
    running = [running_consistency(t) for t in tracks]
    heading = "Normalised innovations squared"
    aside = "mean in windows; line: expected value, grey: 95 % band of a consistent filter"
    page.add('<div class="stack">', page.panel(consistency_figure(tracks, running), heading, aside))
    if estimator_summary.explained:
        page.add(_explained_table(estimator_summary, estimator_label(lead.estimator)))
    normalised = [(n, normalise(lead.t, i)) for n, i in lead.innovations.items() if (i.std > 0).any()]
    estimator = estimator_label(lead.estimator)
    page.add(
        grid(
            [
                page.panel(
                    innovation_figure(i), title(n), f"{percent(i.inside_share)} within ±1.96 ({estimator})"
                )
                for n, i in normalised
            ]
        ),
        grid(
            [
                page.panel(histogram_figure(i), title(n), "bars: measured, line: standard normal")
                for n, i in normalised
            ]
        ),
        "</div>",
    )


def _explained_table(estimator_summary: EstimatorSummary, estimator: str) -> str:
    head = ["output", "VAF", "NRMSE"]
    rows = [
        [title(name), share_text(s.vaf, s.vaf_std), f"{s.nrmse:.1f} %"]
        for name, s in estimator_summary.explained.items()
    ]
    below = (
        "Predictions over 1 s from the estimates at their start, on the logged commands and body rates. VAF: share of the "
        "squared change over 1 s that they account for; NRMSE: root mean square of their error over that of the change. In a "
        "steady hover there is little to explain."
    )
    kinds = {"output": "word", "VAF": "number", "NRMSE": "number"}
    return table(head, rows, kinds, "Motion explained by the model", estimator, below, tight=True)


def _consistency_text(ratio: float) -> str:
    quantity_text = "An innovation is a measured value minus its prediction. "
    if not math.isfinite(ratio):
        return quantity_text + "There are none in this flight."
    if ratio > 2.0:
        return quantity_text + (
            "The innovations are larger than the filter expects: a force is not modelled or the assumed noise is too small. "
            "The 95 % bands are too narrow."
        )
    if ratio < 0.5:
        return quantity_text + (
            "The innovations are smaller than the filter expects: the assumed noise is larger than that of this log. "
            "The 95 % bands are conservative."
        )
    return (
        quantity_text + "The innovations are as large as the filter expects, so the 95 % bands are reliable."
    )


def _motion(page: Page, tracks: Sequence[Track], motion: Motion, lead: Track, main: QuantitySummary) -> None:
    page.section(
        "Motion of the vehicle",
        "The motion excites the parameters: speed excites drag and wind, vertical acceleration the thrust scale.",
    )
    panels = [page.panel(motion_figure(c, tracks), title(c.name)) for c in motion.curves]
    path = path_figure(motion, lead, main)
    if path is None:
        page.add(grid(panels), '<p class="caption">The log has no position, so there is no flight path.</p>')
        return
    path_panel = page.panel(path, "Flight path", "equal scale on all axes; drag to rotate")
    page.add(f'<div class="stack">{grid(panels)}{path_panel}</div>')


def _battery(page: Page, summary: Summary) -> None:
    if summary.battery is None:
        return
    page.section("Battery", "At the end of the flight, from voltage and current.")
    page.add(table(["", ""], [list(row) for row in battery_rows(summary.battery)]))


def _numbers(page: Page, summary: Summary) -> None:
    page.section(
        "All estimates",
        "± is one standard deviation of the absolute value; of a change: without what scales all values together. Median, "
        "minimum and maximum are taken after the filter has settled.",
    )
    head = [
        "quantity",
        "estimator",
        "at the end",
        "of a change",
        "median",
        "minimum",
        "maximum",
        "unit",
        "informed",
    ]
    names = dict.fromkeys(
        n for estimator_summary in summary.estimators.values() for n in estimator_summary.quantities
    )
    rows = [
        [
            label(name),
            estimator_label(estimator),
            plus_minus(q.final, q.final_std),
            f"± {std_text(q.final, q.change_std)}",
            plus_minus(q.median, q.median_std),
            value_text(q.lowest, q.median_std),
            value_text(q.highest, q.median_std),
            unit_text(q.unit),
            percent(q.informed_share) + " of the time",
        ]
        for name in names
        for estimator, estimator_summary in summary.estimators.items()
        if (q := estimator_summary.quantities.get(name)) is not None
    ]
    kinds = dict.fromkeys(["at the end", "of a change", "median", "minimum", "maximum"], "number") | {
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
        ["estimators", join_words([estimator_label(e) for e in settings.estimators])],
        ["system", settings.system],
        ["airframe", settings.airframe],
        *([["known mass", f"{settings.known_mass:g} kg"]] if settings.known_mass is not None else []),
        *([["seed", str(settings.seed)]] if settings.seed is not None else []),
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
        ["log clock at t = 0", f"{summary.log.time_origin:.6f} s"],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))


def _ratio(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
