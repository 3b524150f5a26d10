"""The page of a fitted dynamic linear model: the verdict, the column with its bands, the states, the parameters."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, band, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, notes_list, table
from rotorid.results.text import label, number_text, rounded_text, std_text, unit_text, value_text
from rotorid.workflows.fit_dlm.fit import FILTERED, SIGNAL, SMOOTHED, DlmResult, DlmSettings
from rotorid.workflows.fit_dlm.summary import DlmParameter, DlmSummary
from rotorid.workflows.track.figures import SIGMAS, quantity_with_unit
from rotorid.workflows.track.track import Quantity

_COLOURS = {SMOOTHED: "@ekf", FILTERED: "@ukf"}


def dlm_page(result: DlmResult, summary: DlmSummary) -> str:
    """The report as a self-contained HTML page."""
    page = Page(f"{summary.settings.column}: dynamic linear model")
    _header(page, summary)
    _cards(page, summary)
    _signal(page, result)
    _states(page, result)
    _innovations(page, result, summary)
    _parameters(page, summary)
    _settings(page, summary)
    return page.as_html()


def estimate_text(p: DlmParameter) -> str:
    """The estimate of a parameter."""
    return value_text(p.value, p.std) if math.isfinite(p.std) and p.std > 0.0 else number_text(p.value)


def std_cell(p: DlmParameter) -> str:
    """The standard deviation of a parameter, or why there is none."""
    if p.is_at_bound:
        return "at bound"
    return std_text(p.value, p.std) if p.is_identifiable else "unidentifiable"


def _header(page: Page, summary: DlmSummary) -> None:
    missing = summary.statistics.rows - summary.statistics.measured
    about = [
        f"{summary.statistics.rows} rows",
        f"{missing} missing" if missing else "none missing",
        terms_text(summary),
    ]
    add_header(page, summary.settings.column, about, summary.verdict, MODEL_TONES)


def quantity_text(name: str, settings: DlmSettings) -> str:
    """Name of a state: "level", "coefficient of x"."""
    return f"coefficient of {name}" if name in settings.regress else label(name)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def terms_text(summary: DlmSummary) -> str:
    """Description of the model: "trend of order 2, season of 12 rows"."""
    s = summary.settings
    parts = [f"trend of order {s.trend}" if s.trend else "constant"]
    parts += [f"season of {s.seasonal} rows"] if s.seasonal else []
    parts += [f"regression on {', '.join(s.regress)}"] if s.regress else []
    parts += [f"ARMA({s.arma[0]}, {s.arma[1]})"] if s.arma is not None else []
    return ", ".join(parts)


def _cards(page: Page, summary: DlmSummary) -> None:
    cards = [
        card(
            "Log-likelihood",
            f"{summary.statistics.log_likelihood:.2f}".replace("-", "−"),
            note="at its maximum",
        )
    ]
    cards.append(
        card(
            "AIC",
            f"{summary.statistics.aic:.1f}",
            note=f"BIC {summary.statistics.bic:.1f}; smaller is better",
        )
    )
    for name, state in summary.states.items():
        if name != SIGNAL and len(cards) < 4:
            value = value_text(state.final, state.final_std)
            cards.append(
                card(
                    _capitalised(quantity_text(name, summary.settings)),
                    value,
                    unit_text(state.unit),
                    f"± {std_text(state.final, state.final_std)}, at the last row",
                )
            )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _signal(page: Page, result: DlmResult) -> None:
    page.section(
        "The column",
        "Points: measurements. Smoothed: estimate from all rows, with its 95 % band. Filtered: estimate from the rows so far. "
        "Both exclude measurement noise.",
    )
    figure = layout(quantity_with_unit(result.settings.column, result.unit), x_title="time", legend=True)
    if result.settings.forecast:
        first = float(result.t[-result.settings.forecast - 1])
        figure["shapes"] = [
            {"type": "line", "xref": "x", "yref": "paper", "x0": first, "x1": first, "y0": 0, "y1": 1}
            | {"line": {"color": "@ink:0.4", "width": 1, "dash": "2px,2px"}}
        ]
    traces = [_points(result), *_curves(result, SIGNAL, legend=True)]
    page.add(page.panel(Figure(tuple(traces), figure, height=360, has_time_axis=False)))


def _points(result: DlmResult) -> dict:
    measured = np.isfinite(result.y)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": encode_array(result.t[measured]),
        "y": encode_array(result.y[measured]),
        "marker": {"size": 4, "color": "@ink:0.45"},
        "hovertemplate": "%{y:.4g}",
    }


def _curves(result: DlmResult, name: str, *, legend: bool = False) -> list[dict]:
    traces = []
    for track in sorted(result.tracks, key=lambda t: t.estimator != SMOOTHED):
        q: Quantity = track.quantities[name]
        value = np.where(q.informed, q.value, np.nan)
        own = _COLOURS[track.estimator]
        if track.estimator == SMOOTHED:
            edge = SIGMAS * q.std
            traces.append(band(track.t, value - edge, value + edge, f"{own}:0.18", max_gap=math.inf))
        width = 2.0 if track.estimator == SMOOTHED else 1.1
        dash = "solid" if track.estimator == SMOOTHED else "4px,3px"
        traces.append(
            line(
                track.t,
                value,
                track.estimator,
                own,
                max_gap=math.inf,
                width=width,
                dash=dash,
                std=q.std,
                showlegend=legend,
            )
        )
    return traces


def _states(page: Page, result: DlmResult) -> None:
    names = [n for n in result.tracks[0].quantities if n != SIGNAL]
    if len(names) < 2 and not result.settings.arma:
        return
    page.section(
        "Terms",
        "Smoothed estimate with its 95 % band, and filtered estimate. Poorly determined parts are omitted.",
    )
    panels = []
    for name in names:
        q = result.tracks[0].quantities[name]
        figure = layout(unit_text(q.unit), x_title="time")
        panels.append(
            page.panel(
                Figure(tuple(_curves(result, name)), figure, height=210, has_time_axis=False),
                _capitalised(quantity_text(name, result.settings)),
            )
        )
    page.add(grid(panels))


def _innovations(page: Page, result: DlmResult, summary: DlmSummary) -> None:
    white = (
        f" Ljung-Box test: p = {summary.statistics.whiteness:.2g}."
        if math.isfinite(summary.statistics.whiteness)
        else ""
    )
    page.section(
        "Innovations",
        "Measurement minus prediction, over the predicted standard deviation. For a correct model they are independent, and "
        f"95 % lie within ±1.96.{white}",
    )
    measured = np.isfinite(result.standardised)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": encode_array(result.t[measured]),
        "y": encode_array(result.standardised[measured]),
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
    page.add(page.panel(Figure((trace,), figure, height=210, has_time_axis=False)))


def _parameters(page: Page, summary: DlmSummary) -> None:
    page.section(
        "Parameters",
        "Maximum-likelihood estimates with standard deviations (from the exact Hessian) and 95 % intervals.",
    )
    head = ["parameter", "value", "std", "95 % lower", "95 % upper", "unit"]
    rows = [
        [label(n), estimate_text(p), std_cell(p), _edge(p.lower, p), _edge(p.upper, p), unit_text(p.unit)]
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
        page.add(table(head, rows, dict.fromkeys(head, "number"), "All local maxima that the searches found"))


def _edge(value: float, p: DlmParameter) -> str:
    return rounded_text(value, 3) if p.is_identifiable else "–"


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
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
