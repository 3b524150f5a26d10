"""The page of an LPV model: the verdict, the parameters with their bounds, the flights, and the controller."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, notes_list, table
from rotorid.results.text import duration_text, label, number_text, percent, unit_text
from rotorid.workflows.lpv.lpv import LpvResult
from rotorid.workflows.lpv.summary import LpvSummary, poles

_METHODS = {
    "cost": "one semidefinite program for gains and certificate",
    "local": "an LQR at each vertex and a common certificate",
}
_COLOURS = ("@ekf", "@ukf", "@msckf", "@swls")


def lpv_page(result: LpvResult, summary: LpvSummary) -> str:
    """The report of a model as a self-contained HTML page."""
    page = Page(f"{summary.airframe}: LPV model")
    _header(page, summary)
    _cards(page, summary)
    _parameters(page, result, summary)
    _flights(page, result, summary)
    _reduction(page, summary)
    _control(page, result, summary)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, summary: LpvSummary) -> None:
    count = len(summary.flights)
    about = [
        f"{summary.model.rotors} rotors",
        "attitude and altitude" if summary.settings.subsystem == "attitude-altitude" else "all states",
        f"bounds from {'ranges' if summary.scheduling.ranges else 'flights'}",
        f"{count} flight{'s' if count != 1 else ''}" if count else "",
    ]
    add_header(page, summary.airframe, about, summary.verdict, MODEL_TONES)


def _cards(page: Page, summary: LpvSummary) -> None:
    cards = [
        card(
            "Parameters",
            str(len(summary.scheduling.parameters)),
            note=f"2^{len(summary.scheduling.parameters)} vertices",
        ),
        card("Difference", f"{summary.model.difference:.1g}", note="relative, from the nonlinear model"),
    ]
    if summary.flights:
        inside = percent(min(f.inside for f in summary.flights)).removesuffix(" %")
        cards.append(card("Inside the bounds", inside, "%", "of the rows, lowest of all flights"))
    if summary.control:
        c = summary.control
        cards.append(
            card("Certified decay", f"{c.decay:.2g}", "1/s", f"at {c.pairs} vertices and pairs of vertices")
        )
        cards.append(
            card("Cost bound", f"{c.cost:.2g}", note="relative to the LQR at the centre of the ranges")
        )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _parameters(page: Page, result: LpvResult, summary: LpvSummary) -> None:
    page.section(
        "Parameters",
        "x' = A(ρ) x + B(ρ) u + c with matrices affine in ρ. Lift: rotor speed times cos(roll) cos(pitch) over mass. "
        "Pull: horizontal acceleration per angle. Flight: range along the flights. Entries: number of entries of A, B and c "
        "that depend on the parameter.",
    )
    head = ["parameter", "lower", "upper", "flight lower", "flight upper", "unit", "entries"]
    rows = [
        [
            label(name),
            number_text(p.lower),
            number_text(p.upper),
            number_text(p.flight_lower),
            number_text(p.flight_upper),
            unit_text(p.unit) or "–",
            str(p.entries),
        ]
        for name, p in summary.scheduling.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word"}
    page.add('<div class="stack">', table(head, rows, kinds))
    page.add(
        page.panel(
            _pattern(result),
            "Variation of the matrices",
            "half the range of each entry over its largest value",
        ),
        "</div>",
    )


def _pattern(result: LpvResult) -> Figure:
    """Half the range of each entry of A and B over its largest value; empty for entries that are always 0."""
    model, box = result.model, result.box
    varying = np.concatenate([model.A, model.B], axis=2)
    middle = np.concatenate([model.A0, model.B0], axis=1) + np.tensordot(box.centre, varying, 1)
    half_range = np.tensordot(0.5 * box.width, np.abs(varying), 1)
    largest = np.abs(middle) + half_range
    share = np.where(largest > 0, half_range / np.where(largest > 0, largest, 1.0), np.nan)
    names = [label(n) for n in model.states]
    trace = {
        "type": "heatmap",
        "x": [*names, *(label(n) for n in model.inputs)],
        "y": names,
        "z": [[None if math.isnan(v) else round(float(v), 4) for v in row] for row in share],
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": [[0.0, "@grid"], [1.0, "@ekf"]],
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{y} by %{x}: %{z:.2f}<extra></extra>",
    }
    figure = layout("", x_title="", hovermode="closest")
    figure["yaxis"] |= {"autorange": "reversed", "showgrid": False}
    figure["xaxis"] |= {"showgrid": False, "tickangle": -45}
    return Figure((trace,), figure, height=120 + 26 * len(names), has_time_axis=False)


def _flights(page: Page, result: LpvResult, summary: LpvSummary) -> None:
    if not result.flights:
        return
    page.section(
        "Flights",
        "Each parameter along the first flight, with its bounds as dashed lines. Rate error: rates of roll, pitch and yaw "
        "minus the body rates by which the model approximates them.",
    )
    head = ["flight", "rows", "airborne", "inside the bounds", "largest rate error (rad/s)", "RMS (rad/s)"]
    rows = [
        [
            f.name,
            str(f.rows),
            duration_text(f.duration),
            percent(f.inside),
            number_text(f.rate_error),
            number_text(f.rate_error_rms),
        ]
        for f in summary.flights
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"flight": "word"}))
    t, rho = result.flights[0].t, result.rho[0]
    panels = [
        page.panel(_curve(t, rho[:, k], result.box.lower[k], result.box.upper[k], p.unit), label(name))
        for k, (name, p) in enumerate(summary.scheduling.parameters.items())
    ]
    page.add(grid(panels))


def _curve(t: np.ndarray, value: np.ndarray, lower: float, upper: float, unit: str) -> Figure:
    ends = np.array([t[0], t[-1]])
    max_gap = 2.0 * float(t[-1] - t[0]) + 1.0
    bounds = [
        line(ends, np.array([v, v]), name, "@other0", width=1.0, dash="5px,4px", max_gap=max_gap)
        for v, name in ((lower, "lower bound"), (upper, "upper bound"))
    ]
    trace = line(t, value, "flight", "@ekf", points=700, width=1.2, digits=4)
    return Figure((*bounds, trace), layout(unit_text(unit)), height=190)


def _reduction(page: Page, summary: LpvSummary) -> None:
    r = summary.reduction
    if r is None:
        return
    page.section(
        "Reduction",
        f"{r.components} principal components of the parameters along the flights explain {percent(r.share)} of their "
        f"variance; the largest error of a parameter is {percent(r.max_error)} of its range. The reduced model is an "
        "approximation of the nonlinear model.",
    )
    order = np.arange(1, len(r.shares) + 1)
    trace = {
        "type": "bar",
        "x": order.tolist(),
        "y": encode_array(np.cumsum(r.shares)),
        "marker": {"color": ["@ekf" if k <= r.components else "@bar" for k in order]},
        "hovertemplate": "%{y:.4f}",
    }
    figure = layout("share of the variance", x_title="components")
    page.add(page.panel(Figure((trace,), figure, height=230, has_time_axis=False)))


def _control(page: Page, result: LpvResult, summary: LpvSummary) -> None:
    c = summary.control
    if c is None or result.controller is None:
        return
    page.section(
        "Controller",
        f"Gains at {c.vertices} vertices, by {_METHODS[c.method]}. A common quadratic Lyapunov function certifies stability "
        "for all parameters in the ranges, at any rate of change. Its eigenvalues were checked at each vertex and pair of "
        "vertices.",
    )
    rows = [
        ["largest eigenvalue of A'P + P A", f"{c.margin:.3g}"],
        ["decay rate, at least", f"{c.decay:.3g} 1/s"],
        ["slack of the cost bound", f"{c.slack:.1g}"],
        ["vertices and pairs of vertices checked", str(c.pairs)],
        ["cost bound, relative to the LQR", f"{c.cost:.3g}"],
        ["decay rates of poles", f"{c.min_pole_decay:.3g} to {c.max_pole_decay:.3g} 1/s"],
        ["smallest damping ratio", f"{c.min_damping:.2g}"],
        *[
            [f"range of {label(n)}", f"{number_text(a)} to {number_text(b)}"]
            for n, (a, b) in c.ranges.items()
        ],
    ]
    pole_values = poles(result)
    states = len(result.controller.schedule.model.states)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": encode_array(np.real(pole_values).ravel()),
        "y": encode_array(np.imag(pole_values).ravel()),
        "marker": {"color": "@ekf", "size": 5, "opacity": 0.6},
        "hovertemplate": "%{x:.3g} %{y:+.3g}i<extra></extra>",
    }
    figure = layout("imaginary (1/s)", x_title="real (1/s)", hovermode="closest")
    page.add(
        '<div class="stack">',
        table(
            ["quantity", "value"], rows, {"quantity": "word", "value": "number"}, "Certificate", tight=True
        ),
        page.panel(
            Figure((trace,), figure, height=300, has_time_axis=False),
            "Poles",
            f"{states} at each of {c.vertices} vertices",
        ),
        "</div>",
    )


def _settings(page: Page, summary: LpvSummary) -> None:
    page.section("Settings")
    if summary.notes:
        page.add(notes_list(summary.notes))
    s = summary.settings
    rows = [
        ["command", "rotorid lpv"],
        ["airframe", summary.airframe],
        ["states", ", ".join(label(n) for n in summary.model.states)],
        ["margin", percent(s.margin)],
        *[
            [f"range of {label(n)}", f"{number_text(a)} to {number_text(b)}"]
            for n, (a, b) in summary.scheduling.ranges.items()
        ],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
