"""The report of a fly-back: verdict, prediction errors over the horizon, response gains, coverage, with their figures.

`add_fly_back` adds the same sections to the page of another command.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.validation import FlyBack, Gain, SignalErrors
from rotorid.report.charts import Figure, Trace, encode_array, layout
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, legend, notes_list, table
from rotorid.results.text import percent, plus_minus, share_text, title, unit_text, value_text
from rotorid.workflows.fly_back.acceptance import is_certain
from rotorid.workflows.fly_back.explained import ExplainedMotion, explained_motion
from rotorid.workflows.fly_back.model_comparison import ModelComparison
from rotorid.workflows.fly_back.text import fly_back_verdict, response_name

PREDICTORS: Final = (("model", "@ekf"), ("prior", "@ukf"), ("constant velocity", "@other0"))
"""Names and colours of the predictions that are compared."""

_SIGNALS: Final = ("@axis-x", "@axis-y", "@axis-z", "@swls", "@other1")
_TOLERANCE: Final = "@good:0.14"
_APART: Final = 1.03  # factor between the horizons of signals, so that their bands do not overlap
_WIDEST: Final = 10.0  # times the error: limit of a band that is infinite with one block


def fly_back_page(
    model: Airframe, record: FlyBack, settings: Mapping[str, str], comparison: ModelComparison | None = None
) -> str:
    """Make the report.

    Args:
        model: the airframe that was validated.
        record: its record.
        settings: of the command, by name.
        comparison: of the model with another one.
    Returns:
        The HTML of a self-contained page.
    """
    page = Page(f"{model.name}: validation")
    add_header(
        page,
        model.name,
        [f"validated on {', '.join(record.flights)}", f"{record.windows} predictions"],
        fly_back_verdict(record),
        MODEL_TONES,
    )
    page.add(f'<div class="cards">{"".join(_cards(record))}</div>')
    add_fly_back(page, record)
    if comparison is not None:
        _add_comparison(page, comparison)
    page.section("Settings")
    page.add(
        table(
            ["setting", "value"], [[k, v] for k, v in settings.items()], {"setting": "word", "value": "long"}
        )
    )
    return page.as_html()


def add_fly_back(page: Page, record: FlyBack) -> None:
    """Add the sections of a record to a page."""
    page.section(
        "Validation",
        f"Open-loop predictions of {', '.join(record.flights)} from the logged rotor commands or speeds, {record.windows} "
        "starts. Root mean square error over the horizon with its standard deviation; constant velocity holds the initial "
        "values.",
    )
    page.add(notes_list(record.reasons))
    page.add(legend([(record.prior if name == "prior" else name, colour) for name, colour in PREDICTORS]))
    panels = [
        page.panel(errors_figure(record, s), title(s.name), _unassessed(record, s)) for s in record.signals
    ]
    page.add(grid(panels, "split"))
    if explained := explained_motion(record):
        page.add(_explained_table(explained))
    page.section(
        "Response gains and coverage",
        "Left: measured response to the rotors over the model's, with two standard deviations; shaded: the tolerance. Right: "
        "share of the errors inside the model's 95 % bands; shaded: the accepted range.",
    )
    page.add(
        grid(
            [
                page.panel(gains_figure(record.gains), "Response gains", "1: correct model"),
                page.panel(coverage_figure(record), "Coverage", "shaded: accepted range"),
            ],
            "split",
        )
    )
    _numbers(page, record)


def _explained_table(explained: Mapping[str, ExplainedMotion]) -> str:
    head = ["signal", "horizon", "VAF", "NRMSE"]
    rows = [
        [title(name), f"{e.horizon:g} s", share_text(e.vaf, e.vaf_std), f"{e.nrmse:.1f} %"]
        for name, e in explained.items()
    ]
    below = (
        "VAF: share of the squared motion beyond constant velocity that the model predicts on the held-out flights; NRMSE: "
        "root mean square error over that of constant velocity."
    )
    kinds = dict.fromkeys(head, "number") | {"signal": "word"}
    return table(head, rows, kinds, "Motion explained by the model", "", below, tight=True)


def _add_comparison(page: Page, comparison: ModelComparison) -> None:
    page.section(
        f"Comparison with {comparison.other}",
        f"Both models from the same {comparison.windows} starts. ± is one standard deviation of the difference of the root "
        "mean square errors, by a bootstrap over blocks of 4 s.",
    )
    page.add(notes_list(comparison.reasons))
    head = ["signal", "horizon", "model", "other", "difference", "95 % band", "unit", "model is"]
    kinds = dict.fromkeys(head, "number") | {"signal": "word", "unit": "word", "model is": "word"}
    page.add(table(head, comparison_rows(comparison), kinds))
    note = "above 0 the model is better; with 95 % bands"
    page.add(page.panel(comparison_figure(comparison), f"Errors compared with {comparison.other}", note))


def comparison_rows(comparison: ModelComparison) -> Sequence[Sequence[str]]:
    """A row a signal and horizon: errors of both, their difference and its band, unit, outcome."""
    outcomes = {1: "better", 0: "equal", -1: "worse"}
    return [
        [
            title(s.name),
            f"{h:g} s",
            value_text(s.model[k], s.std[k]),
            value_text(s.other[k], s.std[k]),
            plus_minus(s.difference[k], s.std[k], signed=True),
            f"{value_text(s.difference[k] - s.band[k], s.std[k])} to {value_text(s.difference[k] + s.band[k], s.std[k])}",
            unit_text(s.unit),
            outcomes[s.outcome(k)],
        ]
        for s in comparison.signals
        for k, h in enumerate(comparison.horizons)
        if s.model[k] > 0
    ]


def _unassessed(record: FlyBack, signal: SignalErrors) -> str:
    unassessed = [f"{h:g} s" for h, d in zip(record.horizons, signal.decides, strict=True) if not d]
    return f"not assessed at {', '.join(unassessed)}" if unassessed else ""


def _cards(record: FlyBack) -> list[str]:
    cards = []
    for signal in record.signals:
        k = max((k for k, d in enumerate(signal.decides) if d), default=None)
        if k is not None:
            name = f"{title(signal.name)} after {record.horizons[k]:g} s"
            other_errors = f"prior {signal.prior[k]:.2g}, constant velocity {signal.constant[k]:.2g}"
            error = plus_minus(signal.model[k], signal.model_std[k])
            cards.append(card(name, error, unit_text(signal.unit), other_errors))
    for gain in record.gains:
        value = plus_minus(gain.value, gain.std)
        cards.append(
            card(title(response_name(gain.name)), value, "", "measured / model", muted=not is_certain(gain))
        )
    if record.nmpc is not None:
        n = record.nmpc
        distance = f"{n.position_rms:.2g}" if math.isfinite(n.position_rms) else "lost"
        cards.append(
            card(
                "NMPC, distance from the path", distance, "m", f"{n.flown} of {n.draws} vehicles stayed on it"
            )
        )
    return cards


def _numbers(page: Page, record: FlyBack) -> None:
    page.section("All errors", "± is one standard deviation, over blocks of 4 s.")
    head = ["signal", "horizon", "model", "prior", "constant velocity", "unit", "in band", "assessed"]
    kinds = dict.fromkeys(head, "number") | {"signal": "word", "unit": "word", "assessed": "word"}
    page.add(table(head, error_rows(record), kinds))


def error_rows(record: FlyBack) -> Sequence[Sequence[str]]:
    """A row a signal and horizon: errors of the three predictions, unit, coverage, whether it is assessed."""
    return [
        [
            title(s.name),
            f"{h:g} s",
            *(
                plus_minus(value[k], std[k])
                for value, std in (
                    (s.model, s.model_std),
                    (s.prior, s.prior_std),
                    (s.constant, s.constant_std),
                )
            ),
            unit_text(s.unit),
            percent(s.coverage[k]),
            "yes" if s.decides[k] else "no",
        ]
        for s in record.signals
        for k, h in enumerate(record.horizons)
        if s.model[k] > 0
    ]


def errors_figure(record: FlyBack, signal: SignalErrors) -> Figure:
    """Root mean square error over the horizon, of model, prior and constant velocity, with standard deviations."""
    rows = (
        (signal.model, signal.model_std),
        (signal.prior, signal.prior_std),
        (signal.constant, signal.constant_std),
    )
    traces = []
    for (name, colour), (value, std) in zip(PREDICTORS, rows, strict=True):
        indices = [k for k, v in enumerate(value) if v > 0]
        traces.append(
            _curve(
                [record.horizons[k] for k in indices], [value[k] for k in indices], name, colour, "%{y:.3g}"
            )
            | {"error_y": {"type": "data", "array": [std[k] for k in indices], "thickness": 1.2, "width": 3}}
        )
    figure = layout(f"error ({unit_text(signal.unit)})", x_title="horizon (s)")
    figure["yaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "none"}
    figure["xaxis"] |= _horizons(record.horizons)
    model, prior, constant = traces
    prior["line"] |= {"dash": "6px,6px"}
    return Figure(
        (constant, model, prior), figure, height=250, has_time_axis=False
    )  # both show where they are one


def coverage_figure(record: FlyBack) -> Figure:
    """Share of errors inside the 95 % bands over the horizon, of each signal, and the accepted range."""
    traces = [
        _curve(record.horizons, 100.0 * np.array(signal.coverage), title(signal.name), colour, "%{y:.0f} %")
        | {"showlegend": True}
        for signal, colour in zip(record.signals, _SIGNALS, strict=False)
    ]
    figure = layout("errors in the 95 % band (%)", x_title="horizon (s)", legend=True)
    figure["xaxis"] |= _horizons(record.horizons)
    lowest = min(
        [
            80.0,
            *(
                100.0 * c
                for signal in record.signals
                for c, e in zip(signal.coverage, signal.model, strict=True)
                if e
            ),
        ]
    )
    figure["yaxis"] |= {"range": [max(lowest - 5.0, 0.0), 102.0]}
    figure["shapes"] = [_across(85.0, 100.0), _level(95.0)]
    return Figure(tuple(traces), figure, height=280, has_time_axis=False)


def comparison_figure(comparison: ModelComparison) -> Figure:
    """Relative difference of the errors of two models over the horizon, of each signal, with 95 % bands."""
    traces = []
    for k, (signal, colour) in enumerate(zip(comparison.signals, _SIGNALS, strict=False)):
        indices = [i for i, v in enumerate(signal.model) if v > 0]
        share = [100.0 * signal.difference[i] / signal.other[i] for i in indices]
        band = [100.0 * min(signal.band[i] / signal.other[i], _WIDEST) for i in indices]
        factor = _APART ** (k - 0.5 * (len(comparison.signals) - 1))
        traces.append(
            _curve(
                [factor * comparison.horizons[i] for i in indices],
                share,
                title(signal.name),
                colour,
                "%{y:.0f} %",
            )
            | {"showlegend": True}
            | {"error_y": {"type": "data", "array": encode_array(band), "thickness": 1.2, "width": 3}}
        )
    figure = layout("reduction of the error (%)", x_title="horizon (s)", legend=True)
    figure["xaxis"] |= _horizons(comparison.horizons)
    figure["shapes"] = [_level(0.0)]
    return Figure(tuple(traces), figure, height=280, has_time_axis=False)


def gains_figure(gains: Sequence[Gain]) -> Figure:
    """Response gains with two standard deviations, and their tolerances."""
    names = [response_name(gain.name) for gain in gains]
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": names,
        "y": encode_array([g.value for g in gains]),
        "marker": {"color": "@ekf", "size": 9},
        "error_y": {"type": "data", "array": [2.0 * g.std for g in gains], "thickness": 1.4, "width": 5},
        "customdata": encode_array([g.std for g in gains]),
        "hovertemplate": "%{y:.3f} ± %{customdata:.3f}<extra></extra>",
        "showlegend": False,
    }
    figure = layout("measured / model", x_title="")
    figure["xaxis"] |= {"type": "category", "range": [-0.5, len(gains) - 0.5]}
    widest = max(0.4, *(min(abs(g.value - 1.0) + 2.2 * g.std, 1.0) for g in gains))
    figure["yaxis"] |= {"range": [1.0 - widest, 1.0 + widest]}
    figure["shapes"] = [
        _across(1.0 - g.tolerance, 1.0 + g.tolerance, k - 0.4, k + 0.4) for k, g in enumerate(gains)
    ] + [_level(1.0)]
    return Figure((trace,), figure, height=280, has_time_axis=False)


def _curve(x: Sequence[float], y: Sequence[float] | np.ndarray, name: str, colour: str, hover: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": encode_array(x),
        "y": encode_array(y),
        "line": {"color": colour, "width": 1.8},
        "marker": {"color": colour, "size": 6},
        "hovertemplate": hover,
        "showlegend": False,
    }


def _horizons(horizons: Sequence[float]) -> dict:
    """The axis of horizons, at those that were predicted."""
    low, high = np.log10(horizons[0]), np.log10(horizons[-1])
    return {
        "type": "log",
        "tickvals": list(horizons),
        "ticktext": [f"{h:g}" for h in horizons],
        "range": [round(float(low) - 0.1, 3), round(float(high) + 0.1, 3)],
    }


def _across(y0: float, y1: float, x0: float | None = None, x1: float | None = None) -> dict:
    """A shaded range; from side to side without x0 and x1."""
    extent = {"xref": "paper", "x0": 0, "x1": 1} if x0 is None else {"xref": "x", "x0": x0, "x1": x1}
    return {
        "type": "rect",
        "yref": "y",
        "y0": round(y0, 4),
        "y1": round(y1, 4),
        "fillcolor": _TOLERANCE,
        "line": {"width": 0},
        "layer": "below",
        **extent,
    }


def _level(y: float) -> dict:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": "@ink:0.5", "width": 1, "dash": "3px,3px"},
    }
