"""Figures 4.1 to 4.12 of Torren 2014, each with its curves."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rotorid.report.charts import Figure, Trace, band, layout, line
from rotorid.report.page import Page, grid, legend, table
from rotorid.results.text import title
from rotorid.studies.lpv.in_flight import FLOWN
from rotorid.studies.lpv.pilots import PART as IN_FLIGHT
from rotorid.studies.lpv.pilots import PILOTS
from rotorid.studies.lpv.slow_changes import RAMP, SINE, collapse_row
from rotorid.studies.lpv.stationary import PART, RECOMMENDED, REFERENCE
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve

ESTIMATE: Final = "@ekf"

CHANGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "4.8": ("normal, 5 %", ("ramp",)),
    "4.9": ("normal, 5 %", ("sine", "square")),
    "4.10": ("normal, 10 %", ("sine", "square")),
    "4.11": ("narrower normal, 10 %", ("sine", "square")),
    "4.12": ("uniform, 10 %", ("sine", "square")),
}
"""Setting and forms of alpha by figure."""


def add_lengths(page: Page, n: Numbers) -> None:
    """Figures 4.1 and 4.2: error of the moments of inertia over the length of the data."""
    panels = []
    for part, unknown in (("figure 4.1", "one unknown parameter"), ("figure 4.2", "two unknown parameters")):
        rows = n.select(part, "relative error, median")
        traces: list[Trace] = []
        for method, colour in zip(dict.fromkeys(r.method for r in rows), ("@ekf", "@ukf"), strict=False):
            for quantity, name, dash in (
                ("relative error, median", "error", "solid"),
                ("estimated std, median", "estimated std", "dot"),
            ):
                points = [r for r in n.select(part, quantity) if r.method == method]
                traces.append(
                    {
                        "type": "scatter",
                        "mode": "lines+markers",
                        "name": f"{name}, {method}",
                        "x": [float(r.setting.removeprefix("rows=")) for r in points],
                        "y": [100.0 * r.value for r in points],
                        "line": {"color": colour, "width": 1.6, "dash": dash},
                        "hovertemplate": "%{y:.2f} %",
                    }
                )
        if traces:
            axes = layout("relative error (%)", x_title="rows", legend=True)
            axes["xaxis"] |= {"type": "log"}
            axes["yaxis"] |= {"type": "log"}
            figure = Figure(tuple(traces), axes, 280, has_time_axis=False)
            page_title = f"Figure {part.split()[1]}: {unknown}"
            panels.append(page.panel(figure, page_title))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def add_identified(page: Page, figure: str, curves: Sequence[Curve]) -> None:
    """For each curve the estimate with its 95 % band and the truth, and its relative error."""
    if not curves:
        return
    page.add(legend([("estimate, 95 % band", ESTIMATE), ("truth", "@ink"), ("relative error", "@ukf")]))
    panels = []
    for c in curves:
        name = f"Figure {figure}: {c.quantity}{f', {title(c.trajectory)}' if c.trajectory else ''}"
        panels.append(page.panel(identified(c), name))
        error = 100.0 * (c.value / c.truth - 1.0)
        trace = line(c.t, error, "relative error", "@ukf", width=1.2, max_gap=2.0)
        axes = layout("%", x_title="row")
        panels.append(page.panel(Figure((trace,), axes, 200, has_time_axis=False), f"{name}, relative error"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def identified(c: Curve) -> Figure:
    """An estimate with its 95 % band, and the truth."""
    traces = (
        band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, f"{ESTIMATE}:0.16", max_gap=2.0),
        line(c.t, c.value, "estimate", ESTIMATE, width=1.3, max_gap=2.0, std=c.std),
        line(c.t, c.truth, "truth", "@ink", width=1.0, dash="dot", max_gap=2.0),
    )
    return Figure(traces, layout("", x_title="row"), 200, has_time_axis=False)


def add_slow_sine(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """Figures 4.5 and 4.6: alpha follows a slow sine, with unknown variances."""
    group = [c for c in curves if c.part == SINE]
    if not group:
        return
    errors = ", ".join(
        f"{c.quantity} {row_text(n.get(SINE, c.method, 'relative error, mean', c.quantity), error=True, scale=100.0)}"
        for c in group
    )
    page.section(
        "Figures 4.5 and 4.6: a parameter that follows a slow sine, with unknown variances",
        "Liu and West's filter without changes. Mean relative error in the second half of the data in %, over all data sets: "
        f"{errors}. Figure 4.6 is a detail of alpha.",
    )
    panels = [page.panel(identified(c), f"Figure 4.5: {c.quantity}") for c in group]
    alpha = group[0]
    part = slice(len(alpha.t) // 2, None)
    detail = Curve(
        alpha.part, alpha.method, "", "", alpha.t[part], alpha.value[part], alpha.std[part], alpha.truth[part],
        alpha.quantity, "",
    )  # fmt: skip
    panels.append(page.panel(identified(detail), "Figure 4.6: alpha, second half"))
    page.add(legend([("estimate, 95 % band", ESTIMATE), ("truth", "@ink")]), grid(panels))


def add_changes(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """Figures 4.8 to 4.12, one for each, and why Figure 4.8 needs a state that does not grow."""
    for figure, (method, forms) in CHANGES.items():
        group = [
            c
            for form in forms
            for c in curves
            if c.part == "changes" and (c.method, c.trajectory) == (method, form)
        ]
        if not group:
            continue
        page.section(f"Figure {figure}", f"Changes with the setting {method}. First data set.")
        add_identified(page, figure, group)
        if figure == "4.8":
            page.add(_explanation(n, group[0]))
            slow = [c for c in curves if c.part == RAMP and c.method == method]
            add_identified(page, "4.8, alpha below 1", slow)


def add_stationary(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """The stationary version: errors and coverage beside the reference, and three curves with their bands."""
    rows = n.select(PART, "rms error")
    if not rows:
        return
    page.section(
        "A parameter that jumps in a stationary process",
        "Not of the document. alpha jumps with probability 0.02 per row to a number uniform on 0 to 1; W = 1, V = 0.25, so "
        "that the signal has 4 to 14 times the variance of the noise. The reference is a Rao-Blackwellised particle filter "
        "of this model with 20 000 particles, which is nearly the exact posterior. RMS error of alpha after 20 rows ± "
        "standard error, share of the rows with the truth in the 95 % band, and RMS distance from the mean of the reference "
        "(of the reference: from its second run).",
    )
    head = ["setting", "RMS error", "coverage (%)", "distance from the reference"]
    body = [
        [
            r.method,
            row_text(r, error=True),
            number_text(100.0 * n.get(PART, r.method, "covered").value),
            number_text(n.get(PART, r.method, "distance from the reference").value),
        ]
        for r in rows
    ]
    page.add(table(head, body, {head[0]: "word"} | dict.fromkeys(head[1:], "number")))
    page.add(legend([("estimate, 95 % band", ESTIMATE), ("truth", "@ink")]))
    shown = (REFERENCE, RECOMMENDED, "normal, 5 %")
    panels = [
        page.panel(identified(c), title(c.method))
        for m in shown
        for c in curves
        if (c.part, c.method) == (PART, m)
    ]
    page.add(grid(panels))


def _explanation(n: Numbers, ramp: Curve) -> str:
    """Why the error is large on the ramp above 1, and how large it is on a ramp below 1."""
    row = collapse_row(ramp)
    above = n.get("changes", ramp.method, "relative error, mean", "ramp")
    below = n.get(RAMP, ramp.method, "relative error, mean", "alpha")
    collapse = (
        f"from row {row} on, all particles have the same alpha"
        if row is not None
        else "the particles keep a spread"
    )
    return (
        '<p class="caption between">The document calls the result for a ramp really good; it does not give the ramp. With '
        f"alpha above 1 the error is {row_text(above, error=True, scale=100.0)} %: the state grows, each measurement becomes "
        f"exact relative to it, and {collapse}. The setting draws a changed alpha about the posterior, with √3 times its "
        "standard deviation. After the collapse it draws the same alpha again, and no measurement can move it. With alpha from "
        "0.5 to 0.9, where the state does not grow, the same setting has an error of "
        f"{row_text(below, error=True, scale=100.0)} % in the second half:</p>"
    )


def in_flight_line(n: Numbers) -> str:
    """The result of the flights with faults in one line."""
    courses = _courses(n)
    errors = {p: [n.get(IN_FLIGHT, p, "rms error", c).value for c in courses] for p in PILOTS}
    texts = [
        f"{p} {1e3 * np.mean(e):.0f} mm" if np.isfinite(e).all() else f"{p} crashed"
        for p, e in errors.items()
    ]
    return (
        "With a payload and a lost rotor share identified in flight by Liu and West's filter, position error (RMS): "
        f"{', '.join(texts)}."
    )


def add_in_flight(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """The flights with faults: errors of the controllers, and what the filter identifies."""
    low, high = (
        n.get(IN_FLIGHT, "first flight", f"{end} mass", _courses(n)[0]) for end in ("least", "largest")
    )
    page.section(
        "Identified in flight: a payload and a lost share of a rotor",
        "Liu and West's filter with changepoints identifies mass and rotor shares from noisy velocities and body rates, first "
        "beside the LQR. The range of the mass there, ± 3 standard deviations, bounds the LPV model of the identified LPV "
        f"controller: {row_text(low)} to {row_text(high)} kg (mean). Then each controller flies with a mass of "
        f"{FLOWN.mass[0]:g} kg, {FLOWN.mass[1]:g} kg from {FLOWN.mass_time:g} s on, and a rotor that keeps "
        f"{100 * FLOWN.share:g} % of its thrust from {FLOWN.share_time:g} s on. Fixed LPV, LQR and NMPC are of the nominal "
        "vehicle. RMS of the position error, m, from 2 s on.",
    )
    head = [
        "trajectory", "controller", "all", "with payload", "with lost share", "mass error (%)",
        "in its band (%)", "share error (%)", "in their bands (%)",
    ]  # fmt: skip
    body = []
    for course in _courses(n):
        for pilot in PILOTS:
            get = functools.partial(n.get, IN_FLIGHT, pilot)
            distances = ("rms error", "after the payload", "after the loss")
            shares = ("mass error", "mass in its band", "share error", "shares in their bands")
            cells = [row_text(get(q, course), error=True) for q in distances]
            body.append([course, pilot, *cells, *(row_text(get(q, course), scale=100.0) for q in shares)])
    page.add(table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")))
    course = _courses(n)[0]
    by_pilot = {(c.method, c.quantity): c for c in curves if c.part == IN_FLIGHT and c.trajectory == course}
    traces = [
        line(c.t, np.maximum(c.value, 1e-3), pilot, colour, width=1.4)
        for pilot, colour in zip(PILOTS, ("@ekf", "@ukf", "@msckf", "@adaptive", "@liu-west"), strict=True)
        if (c := by_pilot.get((pilot, "error"))) is not None
    ]
    axes = layout("position error (m)", x_title="time (s)", legend=True)
    axes["yaxis"] |= {"type": "log"}
    page.add(page.panel(Figure(tuple(traces), axes, 300), f"Position error, {course}"))
    panels = []
    for quantity, y_title in (("mass", "mass (kg)"), ("share", "share of the rotor")):
        c = by_pilot.get(("identified LPV", quantity))
        if c is not None:
            traces = [
                band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, f"{ESTIMATE}:0.16"),
                line(c.t, c.value, "estimate", ESTIMATE, width=1.4, std=c.std),
                line(c.t, c.truth, "truth", "@ink", width=1.0, dash="dot"),
            ]
            figure = Figure(tuple(traces), layout(y_title, x_title="time (s)"), 240)
            panels.append(
                page.panel(figure, f"{title(quantity)}, in the loop of the identified LPV controller")
            )
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _courses(n: Numbers) -> list[str]:
    return list(dict.fromkeys(r.trajectory for r in n.select(IN_FLIGHT, "rms error")))
