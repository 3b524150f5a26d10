"""The report of a fitted dynamic linear model: the verdict, the column with its bands, the states, the parameters."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, band, layout, line, numbers
from rotorid.report.figures import SIGMAS, named
from rotorid.report.headed import MODEL_TONES, add_header
from rotorid.report.html import Page, card, grid, notes_list, table
from rotorid.report.learning_page import significant, std_text
from rotorid.results.dlm import FILTERED, SIGNAL, SMOOTHED, DlmFound, DlmSettings
from rotorid.results.dlm_summary import DlmParameter, DlmSummary
from rotorid.results.track import Quantity
from rotorid.results.words import label, title, unit_text

_COLOURS = {SMOOTHED: "@ekf", FILTERED: "@ukf"}


def dlm_page(found: DlmFound, summary: DlmSummary) -> str:
    """The report, as the HTML of a self-contained page."""
    page = Page(f"{summary.settings.column}: dynamic linear model")
    _header(page, summary)
    _cards(page, summary)
    _signal(page, found)
    _states(page, found)
    _innovations(page, found, summary)
    _parameters(page, summary)
    _settings(page, summary)
    return page.as_html()


def value_text(p: DlmParameter) -> str:
    """What was found of a parameter."""
    return significant(p.value, p.std if math.isfinite(p.std) else 0.0)


def spread_text(p: DlmParameter) -> str:
    """Its standard deviation, or why there is none."""
    if p.at_bound:
        return "at its bound"
    return std_text(p.std) if p.told else "not told"


def _header(page: Page, summary: DlmSummary) -> None:
    missing = summary.rows - summary.measured
    about = [f"{summary.rows} rows", f"{missing} missing" if missing else "none missing", terms_text(summary)]
    add_header(page, summary.settings.column, about, summary.verdict, MODEL_TONES)


def quantity_text(name: str, settings: DlmSettings) -> str:
    """A state in words: "level", "coefficient of x"."""
    return f"coefficient of {name}" if name in settings.regress else label(name)


def terms_text(summary: DlmSummary) -> str:
    """The model in words: "trend of order 2, season of 12 rows"."""
    s = summary.settings
    parts = [f"trend of order {s.trend}" if s.trend else "constant"]
    parts += [f"season of {s.seasonal} rows"] if s.seasonal else []
    parts += [f"regression on {', '.join(s.regress)}"] if s.regress else []
    parts += [f"ARMA({s.arma[0]}, {s.arma[1]})"] if s.arma is not None else []
    return ", ".join(parts)


def _cards(page: Page, summary: DlmSummary) -> None:
    cards = [card("Log-likelihood", f"{summary.log_likelihood:.2f}".replace("-", "−"), note="at its maximum")]
    cards.append(
        card("AIC", f"{summary.aic:.1f}", note=f"BIC {summary.bic:.1f}; the least is the best model")
    )
    for name, state in summary.states.items():
        if name != SIGNAL and len(cards) < 4:
            value = significant(state.final, state.final_std)
            cards.append(
                card(title(name), value, unit_text(state.unit), f"± {std_text(state.final_std)} at the end")
            )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _signal(page: Page, found: DlmFound) -> None:
    page.section(
        "The column",
        "Points are measured. Smoothed: given all rows, with its 95 % band; filtered: given those before and at each row. Both "
        "without the noise of the measurements.",
    )
    figure = layout(named(found.settings.column, found.unit), x_title="time", legend=True)
    if found.settings.forecast:
        first = float(found.t[-found.settings.forecast - 1])
        figure["shapes"] = [
            {"type": "line", "xref": "x", "yref": "paper", "x0": first, "x1": first, "y0": 0, "y1": 1}
            | {"line": {"color": "@ink:0.4", "width": 1, "dash": "2px,2px"}}
        ]
    traces = [_points(found), *_curves(found, SIGNAL, legend=True)]
    page.add(page.panel(Figure(tuple(traces), figure, height=360, timed=False)))


def _points(found: DlmFound) -> dict:
    seen = np.isfinite(found.y)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": numbers(found.t[seen]),
        "y": numbers(found.y[seen]),
        "marker": {"size": 4, "color": "@ink:0.45"},
        "hovertemplate": "%{y:.4g}",
    }


def _curves(found: DlmFound, name: str, *, legend: bool = False) -> list[dict]:
    traces = []
    for track in sorted(found.tracks, key=lambda t: t.estimator != SMOOTHED):
        q: Quantity = track.quantities[name]
        value = np.where(q.informed, q.value, np.nan)
        own = _COLOURS[track.estimator]
        if track.estimator == SMOOTHED:
            edge = SIGMAS * q.std
            traces.append(band(track.t, value - edge, value + edge, f"{own}:0.18", longest=math.inf))
        width = 2.0 if track.estimator == SMOOTHED else 1.1
        dash = "solid" if track.estimator == SMOOTHED else "4px,3px"
        traces.append(
            line(
                track.t,
                value,
                track.estimator,
                own,
                longest=math.inf,
                width=width,
                dash=dash,
                std=q.std,
                showlegend=legend,
            )
        )
    return traces


def _states(page: Page, found: DlmFound) -> None:
    names = [n for n in found.tracks[0].quantities if n != SIGNAL]
    if len(names) < 2 and not found.settings.arma:
        return
    page.section(
        "The terms",
        "Smoothed with its 95 % band, and filtered; where the data have said little, nothing is drawn.",
    )
    panels = []
    for name in names:
        q = found.tracks[0].quantities[name]
        figure = layout(unit_text(q.unit), x_title="time")
        panels.append(
            page.panel(Figure(tuple(_curves(found, name)), figure, height=210, timed=False), title(name))
        )
    page.add(grid(panels))


def _innovations(page: Page, found: DlmFound, summary: DlmSummary) -> None:
    white = f" Ljung and Box: p = {summary.whiteness:.2g}." if math.isfinite(summary.whiteness) else ""
    page.section(
        "Innovations",
        "Each measurement less its prediction, over the predicted standard deviation: of a right model they are independent, "
        f"and 95 % lie within ±1.96.{white}",
    )
    seen = np.isfinite(found.standardised)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(found.t[seen]),
        "y": numbers(found.standardised[seen]),
        "marker": {"size": 4, "color": "@ekf"},
        "hovertemplate": "%{y:.2f}",
        "showlegend": False,
    }
    figure = layout("standard deviations", x_title="time")
    figure["shapes"] = [
        {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": edge, "y1": edge}
        | {"line": {"color": "@ink:0.35", "width": 1, "dash": "2px,2px"}}
        for edge in (-SIGMAS, SIGMAS)
    ]
    page.add(page.panel(Figure((trace,), figure, height=210, timed=False)))


def _parameters(page: Page, summary: DlmSummary) -> None:
    page.section(
        "Parameters",
        "By maximum likelihood, ± one standard deviation (from the exact Hessian), and the 95 % interval.",
    )
    head = ["parameter", "value", "±", "95 % from", "to", "unit"]
    rows = [
        [label(n), value_text(p), spread_text(p), _edge(p.lower, p), _edge(p.upper, p), unit_text(p.unit)]
        for n, p in summary.parameters.items()
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word"}))
    if len(summary.maxima) > 1:
        head = ["maximum", "log-likelihood", "starts", *(label(n) for n in summary.parameters)]
        rows = [
            [
                str(k + 1),
                f"{m.log_likelihood:.2f}".replace("-", "−"),
                str(m.starts),
                *(f"{v:.4g}" for v in m.values.values()),
            ]
            for k, m in enumerate(summary.maxima)
        ]
        page.add(table(head, rows, dict.fromkeys(head, "number"), "All maxima that the searches found"))


def _edge(value: float, p: DlmParameter) -> str:
    return significant(value, 0.0) if math.isfinite(value) and p.told else "–"


def _settings(page: Page, summary: DlmSummary) -> None:
    page.section("Settings")
    if summary.notes:
        page.add(notes_list(summary.notes))
    s = summary.settings
    rows = [
        ["command", "rotorid fit-dlm"],
        ["column", s.column],
        ["model", terms_text(summary)],
        ["starts", str(s.starts)],
        ["seed", str(s.seed)],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
