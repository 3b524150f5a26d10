"""The report of an LPV model: the verdict first, then the parameters with their bounds, what was flown, and the controller."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, layout, line, numbers
from rotorid.report.headed import MODEL_TONES, add_header
from rotorid.report.html import Page, card, grid, notes_list, table
from rotorid.results.lpv import LpvFound
from rotorid.results.lpv_summary import LpvSummary, poles
from rotorid.results.words import label, percent, seconds, unit_text

_METHODS = {
    "cost": "one program for gains and certificate",
    "local": "an LQR at each vertex, certified together",
}
_COLOURS = ("@ekf", "@ukf", "@msckf", "@swls")


def lpv_page(found: LpvFound, summary: LpvSummary) -> str:
    """The report of a model, as the HTML of a self-contained page."""
    page = Page(f"{summary.airframe}: LPV model")
    _header(page, summary)
    _cards(page, summary)
    _parameters(page, found, summary)
    _flights(page, found, summary)
    _reduction(page, summary)
    _control(page, found, summary)
    _settings(page, summary)
    return page.as_html()


def number(value: float | None) -> str:
    """A number with four digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value + 0.0:.4g}".replace("-", "−")


def _header(page: Page, summary: LpvSummary) -> None:
    count = len(summary.flights)
    about = [
        f"{summary.rotors} rotors",
        "attitude and altitude" if summary.settings.subsystem == "attitude-altitude" else "all states",
        f"bounds from {'ranges' if summary.ranges else 'flights'}",
        f"{count} flight{'s' if count != 1 else ''}" if count else "",
    ]
    add_header(page, summary.airframe, about, summary.verdict, MODEL_TONES)


def _cards(page: Page, summary: LpvSummary) -> None:
    cards = [
        card("Parameters", str(len(summary.parameters)), note=f"2^{len(summary.parameters)} vertices"),
        card("Difference", f"{summary.difference:.1g}", note="from the nonlinear model, of its rates"),
    ]
    if summary.flights:
        least = min(f.inside for f in summary.flights)
        cards.append(
            card("In the bounds", percent(least).removesuffix(" %"), "%", "of the rows, in the worst flight")
        )
    if summary.control:
        c = summary.control
        cards.append(card("Certified decay", f"{c.decay:.2g}", "1/s", f"at {c.pairs} vertices and pairs"))
        cards.append(
            card("Bound of the cost", f"{c.cost:.2g}", note="1: as the LQR in the middle of the ranges")
        )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _parameters(page: Page, found: LpvFound, summary: LpvSummary) -> None:
    page.section(
        "Parameters",
        "x' = A(ρ) x + B(ρ) u + c with matrices affine in ρ. Entries: how many of A, B and c a parameter moves. Flown: what "
        "the flights show.",
    )
    head = ["parameter", "lower", "upper", "flown from", "to", "unit", "entries"]
    rows = [
        [
            label(name),
            number(p.lower),
            number(p.upper),
            number(p.flown_lower),
            number(p.flown_upper),
            unit_text(p.unit) or "–",
            str(p.places),
        ]
        for name, p in summary.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word"}
    page.add('<div class="stack">', table(head, rows, kinds))
    page.add(
        page.panel(
            _pattern(found), "Where the matrices vary", "half the range of each entry, over its largest"
        ),
        "</div>",
    )


def _pattern(found: LpvFound) -> Figure:
    """How far each entry of A and B moves over the box, in parts of its largest value; empty where it is always 0."""
    model, box = found.model, found.box
    varying = np.concatenate([model.A, model.B], axis=2)
    middle = np.concatenate([model.A0, model.B0], axis=1) + np.tensordot(box.centre, varying, 1)
    moved = np.tensordot(0.5 * box.width, np.abs(varying), 1)
    largest = np.abs(middle) + moved
    share = np.where(largest > 0, moved / np.where(largest > 0, largest, 1.0), np.nan)
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
    return Figure((trace,), figure, height=120 + 26 * len(names), timed=False)


def _flights(page: Page, found: LpvFound, summary: LpvSummary) -> None:
    if not found.flights:
        return
    page.section(
        "What was flown",
        "Each parameter along the first flight, with its bounds as dashed lines. Departure: exact rates of roll, pitch and yaw "
        "less the body rates that the model takes for them.",
    )
    head = ["flight", "rows", "in the air", "in the bounds", "largest departure (rad/s)", "RMS (rad/s)"]
    rows = [
        [
            f.name,
            str(f.rows),
            seconds(f.seconds),
            percent(f.inside),
            number(f.departure),
            number(f.departure_rms),
        ]
        for f in summary.flights
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"flight": "word"}))
    t, rho = found.flights[0].t, found.rho[0]
    panels = [
        page.panel(_curve(t, rho[:, k], found.box.lower[k], found.box.upper[k], p.unit), label(name))
        for k, (name, p) in enumerate(summary.parameters.items())
    ]
    page.add(grid(panels))


def _curve(t: np.ndarray, value: np.ndarray, lower: float, upper: float, unit: str) -> Figure:
    ends = np.array([t[0], t[-1]])
    length = float(t[-1] - t[0])
    edges = [
        line(ends, np.array([v, v]), what, "@other0", width=1.0, dash="5px,4px", longest=2.0 * length + 1.0)
        for v, what in ((lower, "lower bound"), (upper, "upper bound"))
    ]
    trace = line(t, value, "flown", "@ekf", points=700, width=1.2, digits=4)
    return Figure((*edges, trace), layout(unit_text(unit)), height=190)


def _reduction(page: Page, summary: LpvSummary) -> None:
    r = summary.reduction
    if r is None:
        return
    page.section(
        "Reduction",
        f"{r.components} principal components of the parameters along the flights hold {percent(r.share)} of their "
        f"variance; no parameter is off by more than {percent(r.worst)} of its range. The reduced model is no longer equal to "
        "the nonlinear one.",
    )
    order = np.arange(1, len(r.shares) + 1)
    trace = {
        "type": "bar",
        "x": order.tolist(),
        "y": numbers(np.cumsum(r.shares)),
        "marker": {"color": ["@ekf" if k <= r.components else "@bar" for k in order]},
        "hovertemplate": "%{y:.4f}",
    }
    figure = layout("share of the variance", x_title="components")
    page.add(page.panel(Figure((trace,), figure, height=230, timed=False)))


def _control(page: Page, found: LpvFound, summary: LpvSummary) -> None:
    c = summary.control
    if c is None or found.schedule is None:
        return
    page.section(
        "Controller",
        f"Gains at {c.vertices} vertices, by {_METHODS[c.method]}. One quadratic function proves that errors shrink for all "
        "parameters in the ranges, however fast they change; it was checked by its eigenvalues at every vertex and pair.",
    )
    rows = [
        ["largest eigenvalue of A'P + P A", f"{c.margin:.3g}"],
        ["errors shrink at least at", f"{c.decay:.3g} 1/s"],
        ["slack of the bounded cost", f"{c.slack:.1g}"],
        ["vertices and pairs checked", str(c.pairs)],
        ["bound of the cost, over the LQR's", f"{c.cost:.3g}"],
        ["poles from", f"{c.slowest:.3g} to {c.fastest:.3g} 1/s"],
        ["least damping ratio", f"{c.damping:.2g}"],
        *[[f"for {label(n)}", f"{number(a)} to {number(b)}"] for n, (a, b) in c.ranges.items()],
    ]
    places = poles(found)
    states = len(found.schedule.model.states)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(np.real(places).ravel()),
        "y": numbers(np.imag(places).ravel()),
        "marker": {"color": "@ekf", "size": 5, "opacity": 0.6},
        "hovertemplate": "%{x:.3g} %{y:+.3g}i<extra></extra>",
    }
    figure = layout("imaginary (1/s)", x_title="real (1/s)", hovermode="closest")
    page.add(
        '<div class="stack">',
        table(["what", "value"], rows, {"what": "word", "value": "number"}, "Certificate", tight=True),
        page.panel(
            Figure((trace,), figure, height=300, timed=False),
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
        ["states", ", ".join(label(n) for n in summary.states)],
        ["margin", percent(s.margin)],
        *[[f"range of {label(n)}", f"{number(a)} to {number(b)}"] for n, (a, b) in summary.ranges.items()],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
