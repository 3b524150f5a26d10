"""The page of a fitted linear model: the verdict, predictions, frequency and step responses, modes, and residual tests."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, axis, band, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, notes_list, table
from rotorid.results.text import number_text, std_text, unit_text, value_text
from rotorid.workflows.fit_linear.fit import HORIZONS, LinearResult
from rotorid.workflows.fit_linear.summary import LinearSummary
from rotorid.workflows.track.figures import SIGMAS, quantity_with_unit

_MODEL, _DATA = "@ekf", "@ink:0.55"


def linear_page(result: LinearResult, summary: LinearSummary, name: str) -> str:
    """The report as a self-contained HTML page. name: of the log."""
    page = Page(f"{name}: linear model")
    about = [
        f"{summary.model.rows} rows at {summary.model.rate:.4g} Hz",
        f"order {summary.model.order}",
        f"delay {1e3 * summary.model.delay:.3g} ms",
    ]
    add_header(page, name, about, summary.verdict, MODEL_TONES)
    _cards(page, summary)
    _predictions(page, result)
    _frequency(page, result)
    _steps(page, result)
    _tables(page, summary)
    _residuals(page, result)
    _settings(page, summary)
    return page.as_html()


def _cards(page: Page, summary: LinearSummary) -> None:
    cards = [
        card(f"Held-out fit, {name}", _mean_fit(summary, name), "%", "mean over the outputs; 100 is perfect")
        for name in HORIZONS
    ]
    if summary.model.modes and math.isfinite(summary.model.modes[0].frequency):
        m = summary.model.modes[0]
        cards.append(
            card(
                "Slowest mode",
                value_text(m.frequency, m.frequency_std),
                "Hz",
                f"± {std_text(m.frequency, m.frequency_std)}",
            )
        )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _mean_fit(summary: LinearSummary, horizon: str) -> str:
    value = float(np.mean(list(summary.validation.held_out_fit[horizon].values())))
    return f"{value:.1f}".replace("-", "−") if math.isfinite(value) else "–"


def _predictions(page: Page, result: LinearResult) -> None:
    run, simulated = result.shown
    page.section(
        "Held-out rows",
        "The outputs (grey), and their simulation from the inputs alone (blue), around the operating point.",
    )
    t = run.dt * np.arange(len(run.y))
    panels = []
    for i, name in enumerate(run.outputs):
        traces = (
            line(t, run.y[:, i], "measured", _DATA, width=1.0, max_gap=math.inf),
            line(t, simulated[:, i], "simulated", _MODEL, width=1.3, max_gap=math.inf),
        )
        axes = layout(quantity_with_unit(name, result.data.units[name]))
        panels.append(page.panel(Figure(traces, axes, height=230, has_time_axis=False), name))
    page.add(f'<div class="pairs">{"".join(panels)}</div>' if len(panels) > 1 else "".join(panels))


def _frequency(page: Page, result: LinearResult) -> None:
    page.section(
        "Frequency response",
        "Gain and phase from each input to each output, with 95 % bands. The phase contains the delay.",
    )
    f, run = result.responses.frequency, result.data.runs[0]
    phases = np.degrees(result.phase)
    panels = []
    for i, output in enumerate(run.outputs):
        for j, name in enumerate(run.inputs):
            gain, spread = np.abs(f.value[:, i, j]), np.minimum(SIGMAS * f.log_gain_std[:, i, j], 12.0)
            phase = phases[:, i, j]
            phase_std = np.minimum(SIGMAS * np.degrees(f.phase_std[:, i, j]), 360.0)
            for text, unit, value, low, high, is_log in (
                (
                    "gain",
                    _gain_unit(result, output, name),
                    gain,
                    gain * np.exp(-spread),
                    gain * np.exp(spread),
                    True,
                ),
                ("phase", "°", phase, phase - phase_std, phase + phase_std, False),
            ):
                traces = (
                    band(f.frequency, low, high, f"{_MODEL}:0.18"),
                    line(f.frequency, value, text, _MODEL, width=1.4, max_gap=math.inf),
                )
                axes = layout(unit, x_title="frequency (Hz)")
                axes["xaxis"] = axis("frequency (Hz)", type="log")
                if is_log:
                    inside = np.isfinite(value) & (value > 0.0)
                    edges = np.log10([value[inside].min() / 3.0, value[inside].max() * 3.0])
                    axes["yaxis"] = axis(unit, type="log", range=edges.tolist())
                figure = Figure(traces, axes, height=210, has_time_axis=False)
                panels.append(page.panel(figure, f"{name} to {output}: {text}"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _gain_unit(result: LinearResult, output: str, name: str) -> str:
    """Title of an axis of gains."""
    return unit_text(result.data.gain_unit(output, name)) or "1"


def _steps(page: Page, result: LinearResult) -> None:
    page.section(
        "Step responses", "Outputs after a unit step of each input, with 95 % bands, including the delay."
    )
    s, run = result.responses.step, result.data.runs[0]
    t = s.time + result.delay * run.dt
    panels = []
    for i, output in enumerate(run.outputs):
        for j, name in enumerate(run.inputs):
            value, half = s.value[:, i, j], SIGMAS * s.std[:, i, j]
            traces = (
                band(t, value - half, value + half, f"{_MODEL}:0.18"),
                line(t, value, "response", _MODEL, width=1.4, max_gap=math.inf),
            )
            figure = Figure(traces, layout(_gain_unit(result, output, name)), height=210, has_time_axis=False)
            panels.append(page.panel(figure, f"{name} to {output}"))
    page.add(grid(panels))


def _tables(page: Page, summary: LinearSummary) -> None:
    page.section(
        "Numbers",
        "Modes of the model without the delay. Where residuals are not white, the standard deviations allow for that.",
    )
    head = ["mode", "natural frequency (Hz)", "std", "damping ratio", "std ", "time constant (s)"]
    rows = [
        [
            str(k + 1),
            *(number_with_std(m.frequency, m.frequency_std)),
            *(number_with_std(m.damping, m.damping_std)),
            number_text(m.time_constant) if math.isfinite(m.time_constant) else "–",
        ]
        for k, m in enumerate(summary.model.modes)
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number")))
    head = ["input", "output", "static gain", "std", "unit"]
    rows = [
        [g.input, g.output, *number_with_std(g.value, g.std), unit_text(g.unit)]
        for g in summary.model.static_gains
    ]
    page.add(table(head, rows, dict.fromkeys(head, "word") | {"static gain": "number", "std": "number"}))
    head = ["output", *(f"held-out fit, {name} (%)" for name in HORIZONS)]
    outputs = list(next(iter(summary.validation.held_out_fit.values())))
    rows = [[o, *(percent_text(summary.validation.held_out_fit[h][o]) for h in HORIZONS)] for o in outputs]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"output": "word"}))
    head = ["order", "held-out fit, 10 rows (%)"]
    page.add(
        table(
            head,
            [[o, percent_text(v)] for o, v in summary.validation.orders.items()],
            dict.fromkeys(head, "number"),
        )
    )


def number_with_std(value: float, std: float) -> tuple[str, str]:
    """A number and its standard deviation; dashes where it has none."""
    if not (math.isfinite(value) and math.isfinite(std)):
        return "–", "–"
    if std == 0.0:
        return number_text(value), "–"
    return value_text(value, std), std_text(value, std)


def percent_text(value: float) -> str:
    """A fit in %; a dash where it is not finite."""
    return f"{value:.1f}".replace("-", "−") if math.isfinite(value) else "–"


def _residuals(page: Page, result: LinearResult) -> None:
    page.section(
        "Residuals",
        "Correlations of the one-step errors with earlier ones and with inputs, and of later inputs with them (feedback). "
        "Grey: 99 % band of zero.",
    )
    panels = []
    tests = [(c, f"{c.output}: autocorrelation", 1) for c in result.residuals.white]
    tests += [(c, f"{c.output} after {c.input}", 0) for c in result.residuals.independent]
    tests += [(c, f"{c.input} after {c.output}: feedback", 0) for c in result.feedback]
    for correlation, heading, first in tests:
        lags, values = correlation.lags[first:], correlation.value[first:]
        bars = {
            "type": "bar",
            "x": encode_array(lags),
            "y": encode_array(values),
            "marker": {"color": _MODEL},
            "hovertemplate": "%{y:.3f}",
            "showlegend": False,
        }
        axes = layout("", x_title="lag (rows)")
        axes["shapes"] = [
            {
                "type": "rect",
                "xref": "paper",
                "yref": "y",
                "x0": 0,
                "x1": 1,
                "y0": -correlation.band,
                "y1": correlation.band,
            }
            | {"fillcolor": "@gap", "line": {"width": 0}, "layer": "below"}
        ]
        figure = Figure((bars,), axes, height=180, has_time_axis=False)
        panels.append(page.panel(figure, f"{heading}, p = {correlation.probability:.2g}"))
    page.add(grid(panels))


def _settings(page: Page, summary: LinearSummary) -> None:
    page.section("Settings")
    if summary.notes:
        page.add(notes_list(summary.notes))
    rows = [
        ["command", "rotorid fit-linear"],
        ["inputs", ", ".join(summary.settings.inputs)],
        ["outputs", ", ".join(summary.settings.outputs)],
        *[[f"mean of {name}", number_text(value)] for name, value in summary.model.means.items()],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
