"""The report of an identification: verdict, findings, estimates, residuals and validation, with their figures."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rotorid.identification.fitting.estimation import Autocorrelation
from rotorid.report.charts import Figure, axis_colour, band, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, legend, notes_list, table
from rotorid.results.text import (
    duration_text,
    evidence_text,
    join_words,
    label,
    percent,
    plus_minus,
    std_text,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.fly_back.page import add_fly_back
from rotorid.workflows.identify.findings import POORLY_IDENTIFIED
from rotorid.workflows.identify.residual_page import add_residual
from rotorid.workflows.identify.result import MassSegment
from rotorid.workflows.identify.summary import (
    WHITE,
    CurveBand,
    IdentifySummary,
    ParameterRow,
    PlotWindow,
    ThrustCurves,
)

_FIRST = ("mass", "thrust_scale", "inertia_x", "inertia_y", "motor_time_constant")
_CARDS = 8
_MASS_CARDS = 3
_SIGMAS = 1.96
_AXES = "xyz"
_ROTORS = {
    "rotor_command": "rotor commands",
    "rotor_thrust": "commanded thrusts",
    "rotor_speed": "measured rotor speeds",
}


def identify_page(
    summary: IdentifySummary,
    windows: Sequence[PlotWindow],
    autocorrelations: Sequence[Autocorrelation],
    curves: ThrustCurves | None,
) -> str:
    """Make the report.

    Args:
        summary: all numbers.
        windows: predictions and measurements to be plotted.
        autocorrelations: of the residuals of each output.
        curves: the thrust curve, where it was estimated.
    Returns:
        The HTML of a self-contained page.
    """
    page = Page(f"{summary.settings.airframe}: identified")
    fitted = sum(b - a for f in summary.data.flights for a, b in f.fitted)
    add_header(
        page,
        summary.settings.airframe,
        [
            ", ".join(f.name for f in summary.data.flights),
            f"{duration_text(fitted)} fitted",
            f"{summary.settings.known} held fixed",
        ],
        summary.verdict,
        MODEL_TONES,
    )
    _add_cards(page, summary)
    page.section("Findings")
    page.add(notes_list([f.text for f in summary.findings if f.text not in summary.verdict.details]))
    _add_parameters(page, summary)
    if curves is not None:
        _add_thrust_curve(page, curves)
    _add_structures(page, summary)
    _add_masses(page, summary)
    _add_predictions(page, summary, windows)
    _add_residuals(page, summary, autocorrelations)
    if summary.residual is not None:
        add_residual(page, summary.residual)
    if summary.fly_back is not None:
        add_fly_back(page, summary.fly_back)
    _add_settings(page, summary)
    return page.as_html()


def _add_cards(page: Page, summary: IdentifySummary) -> None:
    cards = _mass_cards(summary.estimates.masses)
    count = _CARDS - len(summary.estimates.hover) - len(cards)
    for name in [n for n in _FIRST if n in summary.estimates.parameters][:count]:
        row = summary.estimates.parameters[name]
        note = f"± {std_text(row.value, row.std)}, prior {plus_minus(row.prior, row.prior_std)}"
        is_identified = row.information_gain > POORLY_IDENTIFIED
        cards.append(
            card(
                title(name),
                value_text(row.value, row.std),
                unit_text(row.unit),
                note,
                muted=not is_identified,
            )
        )
    for name, quantity in summary.estimates.hover.items():
        cards.append(
            card(
                title(name),
                value_text(quantity.value, quantity.std),
                "" if quantity.unit == "1" else unit_text(quantity.unit),
                f"± {std_text(quantity.value, quantity.std)}"
                + ("" if name.startswith("hover") else ", in hover"),
            )
        )
    if cards:
        page.add(f'<div class="cards">{"".join(cards)}</div>')


def _mass_cards(masses: Sequence[MassSegment]) -> list[str]:
    """A card for each of a few masses, one for all of many; none where the mass is among the parameters."""
    if len(masses) < 2:
        return []
    if len(masses) > _MASS_CARDS:
        least, most = (of(masses, key=lambda m: m.value) for of in (min, max))
        value = f"{value_text(least.value, least.std)} to {value_text(most.value, most.std)}"
        stds = f"± {std_text(least.value, least.std)} and ± {std_text(most.value, most.std)}"
        return [card("Mass", value, "kg", f"{stds}; {len(masses)} segments")]
    return [
        card(
            "Mass",
            value_text(m.value, m.std),
            "kg",
            f"± {std_text(m.value, m.std)}; {m.flight}, {m.start:.0f} to {m.end:.0f} s",
        )
        for m in masses
    ]


def _add_parameters(page: Page, summary: IdentifySummary) -> None:
    flights = ", ".join(f.name for f in summary.data.flights)
    page.section(
        "Estimates",
        f"From {flights}, {summary.fit.windows} windows. ± is one standard deviation, corrected for the autocorrelation of the "
        "residuals. Identified: the share by which it is smaller than the prior's.",
    )
    head = ["quantity", "estimate", "prior", "identified"]
    rows = [
        [
            label(name) + (" (at its bound)" if row.is_at_bound else ""),
            plus_minus(row.value, row.std, row.unit),
            plus_minus(row.prior, row.prior_std),
            percent(row.information_gain),
        ]
        for name, row in summary.estimates.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"quantity": "word"}
    page.add('<div class="stack">', table(head, rows, kinds))
    page.add(
        page.panel(
            information_figure(summary.estimates.parameters),
            "Identified by these flights",
            "reduction of the prior standard deviation",
        )
    )
    if len(summary.estimates.names) > 1:
        page.add(
            page.panel(
                correlation_figure(summary),
                "Correlations",
                "red: errors of the same sign, blue: of opposite signs",
            )
        )
    page.add("</div>")


def _add_thrust_curve(page: Page, curves: ThrustCurves) -> None:
    low, high = curves.flown
    page.section(
        "Thrust curve",
        f"Of one rotor: prior and estimate, with 95 % bands. Shaded green: the commands in the flights, {low:.2f} to "
        f"{high:.2f}; outside, the curve is extrapolated.",
    )
    page.add(page.panel(curve_figure(curves)))


def _add_structures(page: Page, summary: IdentifySummary) -> None:
    structures = summary.estimates.structures
    if len(structures) < 2:
        return
    page.section(
        "Structure of the model",
        "Each structure has the terms of the one above it and those named. The estimates are those of the last one, whose "
        "terms stay near their prior where the flights do not identify them. Log evidence: less that of the last one; above "
        "0, the flights do not need the further terms. Probability: all structures being equally likely before. ± is one "
        "standard deviation if the structure is true; the differences between probable structures are part of the standard "
        "deviations above.",
    )
    has_inertia = any(math.isfinite(s.inertia_x) for s in structures)
    head = ["structure", "log evidence", "added", "probability", *(["inertia x"] if has_inertia else [])]
    rows = []
    for fewer, s in zip((None, *structures), structures, strict=False):
        added = [label(name) for name in s.parameters if fewer is None or name not in fewer.parameters]
        row = [
            f"+ {join_words(added)}" if fewer else join_words(added) or "none of these terms",
            evidence_text(s.log_evidence),
            evidence_text(s.log_evidence - fewer.log_evidence, signed=True) if fewer else "–",
            percent(s.probability),
        ]
        rows.append([*row, f"{plus_minus(s.inertia_x, s.inertia_x_std)} kg m²"] if has_inertia else row)
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"structure": "long"}))


def _add_masses(page: Page, summary: IdentifySummary) -> None:
    if not summary.estimates.masses:
        return
    page.section("Mass over time", "Constant in each segment, with 95 % bands.")
    names = [
        n
        for n in (f.name for f in summary.data.flights)
        if any(m.flight == n for m in summary.estimates.masses)
    ]
    page.add(grid([page.panel(masses_figure(summary, name), name) for name in names], "pairs"))


def _add_predictions(page: Page, summary: IdentifySummary, windows: Sequence[PlotWindow]) -> None:
    if not windows:
        return
    filtered = (
        " Within a window, a Kalman filter corrects the prediction by the measurements, since unmodelled forces or torques act "
        "on the vehicle."
        if summary.fit.process_noise
        else ""
    )
    page.section(
        "Predictions",
        f"The seconds of {windows[0].flight} with the largest motion. Each window is predicted from its start by the "
        f"{_ROTORS[summary.data.rotors]}.{filtered}",
    )
    page.add(legend([("measured", "@other0"), ("predicted", "@ekf")]))
    for window in windows:
        panels = [
            page.panel(prediction_figure(window, k), f"{title(window.name)} {_AXES[k]}")
            for k in range(window.measured.shape[1])
        ]
        page.add(grid(panels), '<div class="between"></div>')


def _add_residuals(page: Page, summary: IdentifySummary, autocorrelations: Sequence[Autocorrelation]) -> None:
    page.section(
        "Residuals",
        f"Measurements minus predictions, and their autocorrelation. For white residuals, {percent(WHITE)} of the "
        "autocorrelations lie outside the shaded band. Logged signals are filtered and vehicles vibrate, so the residuals of "
        "real flights are rarely white; the standard deviations above are corrected for this.",
    )
    head = ["output", "rms, prior", "rms, estimate", "unit", "outside the band"]
    rows = [
        [title(name), f"{r.prior_rms:.3g}", f"{r.rms:.3g}", unit_text(r.unit), percent(r.outside_band)]
        for name, r in summary.fit.residuals.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"output": "word", "unit": "word"}
    page.add(table(head, rows, kinds))
    page.add(legend([("x", "@axis-x"), ("y", "@axis-y"), ("z", "@axis-z")]))
    panels = [page.panel(autocorrelation_figure(a), title(a.name)) for a in autocorrelations]
    page.add(grid(panels, "split"))


def _add_settings(page: Page, summary: IdentifySummary) -> None:
    page.section("Settings")
    parts = [
        [f"fitted: {f.name}", ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in f.fitted)]
        for f in summary.data.flights
    ]
    parts += [
        [f"held out: {name}", ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in spans)]
        for name, spans in summary.data.held_out.items()
    ]
    known = summary.settings.known
    if known == "mass":
        known = f"mass, {plus_minus(*summary.settings.known_mass, 'kg')}"
    rows = [
        ["command", "rotorid identify"],
        ["airframe", summary.settings.airframe],
        [
            "free parameters",
            ", ".join(summary.settings.free) if summary.settings.free else "all that the logs allow",
        ],
        ["held fixed", known],
        ["signal of the rotors", label(summary.data.rotors)],
        ["seed", str(summary.settings.seed)],
        *parts,
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))


def information_figure(parameters: Mapping[str, ParameterRow]) -> Figure:
    """The information gain of each quantity: the reduction of its prior standard deviation."""
    rows = list(parameters.items())[::-1]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [label(name) for name, _ in rows],
        "x": [round(100.0 * row.information_gain, 2) for _, row in rows],
        "marker": {
            "color": [
                "@ekf:0.8" if row.information_gain > POORLY_IDENTIFIED else "@bar:0.6" for _, row in rows
            ]
        },
        "hovertemplate": "%{y}: %{x:.1f} %<extra></extra>",
    }
    figure = layout("", x_title="identified (%)", hovermode="closest")
    figure["xaxis"] |= {"range": [0, 101]}
    figure["yaxis"] |= {"type": "category", "dtick": 1}
    figure["bargap"] = 0.35
    return Figure((trace,), figure, height=70 + 22 * len(rows), has_time_axis=False)


def correlation_figure(summary: IdentifySummary) -> Figure:
    """The correlations of all estimates."""
    names = [label(n) for n in summary.estimates.names]
    z = [[round(v, 3) for v in row] for row in summary.estimates.correlation]
    trace = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": z,
        "zmin": -1,
        "zmax": 1,
        "colorscale": [
            [0.0, "#2166ac"],
            [0.25, "#92c5de"],
            [0.5, "#f7f7f7"],
            [0.75, "#f4a582"],
            [1.0, "#b2182b"],
        ],
        "colorbar": {"thickness": 10, "len": 0.7, "outlinewidth": 0, "tickvals": [-1, -0.5, 0, 0.5, 1]},
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "%{y}, %{x}: %{z:.2f}<extra></extra>",
    }
    figure = layout("", x_title="", hovermode="closest")
    figure["xaxis"] |= {"type": "category", "tickangle": -90, "showgrid": False, "dtick": 1}
    figure["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False, "dtick": 1}
    return Figure((trace,), figure, height=150 + 19 * len(names), has_time_axis=False)


def prediction_figure(window: PlotWindow, axis: int) -> Figure:
    """One axis: the measurement, and the prediction of each window."""
    name = _AXES[axis]
    figure = layout(f"{name} ({unit_text(window.unit)})")
    measured = _line(window.t, window.measured[:, axis], "measured", "@ink:0.35", 3.0)
    return Figure(
        (measured, _line(window.t, window.predicted[:, axis], "predicted", "@ekf", 1.3)), figure, height=190
    )


def _line(t: np.ndarray, value: np.ndarray, name: str, token: str, width: float) -> dict:
    """A curve, broken between windows where it is NaN, and not at rows without a measurement."""
    shown = np.isfinite(value) | ~np.isfinite(t)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": encode_array(t[shown]),
        "y": encode_array(value[shown]),
        "line": {"color": token, "width": width},
        "hovertemplate": "%{y:.3f}",
        "showlegend": False,
    }


def autocorrelation_figure(autocorrelation: Autocorrelation) -> Figure:
    """Autocorrelation of the residuals of one output, a line an axis, and the 95 % band of white residuals."""
    lags, widest = autocorrelation.lag, np.max(np.nan_to_num(autocorrelation.band), axis=1)
    traces = [band(lags, -widest, widest, "@ink:0.13", max_gap=1e9)]
    for k in range(autocorrelation.value.shape[1]):
        traces.append(
            line(
                lags,
                autocorrelation.value[:, k],
                _AXES[k % 3],
                axis_colour(k),
                width=1.5,
                max_gap=1e9,
                showlegend=False,
            )
        )
    figure = layout("autocorrelation", x_title="lag (s)")
    figure["yaxis"] |= {"range": [-1.02, 1.02], "nticks": 5}
    return Figure(tuple(traces), figure, height=200, has_time_axis=False)


def curve_figure(curves: ThrustCurves) -> Figure:
    """Thrust of one rotor over its command, of the prior and the estimate, with 95 % bands."""
    traces = []
    for curve_band, name, token in ((curves.prior, "prior", "@ukf"), (curves.estimate, "estimate", "@ekf")):
        traces += _curve(curve_band, name, token)
    figure = layout("thrust of one rotor (N)", x_title="command", legend=True)
    low, high = curves.flown
    figure["shapes"] = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": round(low, 3),
            "x1": round(high, 3),
            "y0": 0,
            "y1": 1,
            "fillcolor": "@good:0.10",
            "line": {"width": 0},
            "layer": "below",
        }
    ]
    top = float(np.max(np.maximum(curves.prior.thrust, curves.estimate.thrust)))
    figure["yaxis"] |= {"range": [-0.05 * top, 1.5 * top]}
    return Figure(tuple(traces), figure, height=320, has_time_axis=False)


def _curve(curve_band: CurveBand, name: str, token: str) -> list[dict]:
    half = _SIGMAS * curve_band.std
    return [
        band(
            curve_band.command,
            curve_band.thrust - half,
            curve_band.thrust + half,
            f"{token}:0.16",
            max_gap=1e9,
        ),
        line(
            curve_band.command,
            curve_band.thrust,
            name,
            token,
            width=1.8,
            max_gap=1e9,
            std=curve_band.std,
            showlegend=True,
        ),
    ]


def masses_figure(summary: IdentifySummary, flight: str) -> Figure:
    """The mass of a flight in its segments, with 95 % bands."""
    traces, segments = [], [m for m in summary.estimates.masses if m.flight == flight]
    for m in segments:
        t, value = np.array([m.start, m.end]), np.array([m.value, m.value])
        half = _SIGMAS * m.std
        traces.append(band(t, value - half, value + half, "@ekf:0.18", max_gap=1e9))
        traces.append(
            line(t, value, plus_minus(m.value, m.std, "kg"), "@ekf", width=2.0, max_gap=1e9, showlegend=False)
        )
    figure = layout("mass (kg)")
    values = [m.value for m in segments]
    margin = max(4.0 * max(m.std for m in segments), 0.15 * (max(values) - min(values)), 0.01 * max(values))
    figure["yaxis"] |= {"range": [min(values) - margin, max(values) + margin]}
    return Figure(tuple(traces), figure, height=220)
