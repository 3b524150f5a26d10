"""The section on the whole identified model of the page of the closed-loop study (SESAME D2.2, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rotorid.report.charts import Figure, band, layout, line
from rotorid.report.page import Page, grid, legend, notes_list, table
from rotorid.results.text import title
from rotorid.studies.loop.whole_model import MODEL, TEAM, TEAM_LEAD, TEAM_WINDOW
from rotorid.studies.page_parts import Numbers, row_text
from rotorid.studies.study_files import Curve, Row

WHOLE: Final = "controller, state, planner"
"""The source that uses the identified model for all."""

MODEL_LABELS: Final = {
    "nominal": "nominal model",
    "true model": "true model",
    "controller": "identified: controller",
    "controller, state": "and state",
    WHOLE: "and planner",
}
_TEAM_LABELS: Final = {
    "nominal": "nominal model",
    "message": "message of the other vehicle",
    "identification": "own identification",
    "message, identification": "message and identification",
}
_COLOURS: Final = {
    "nominal": "@ukf",
    "true model": "@other0",
    "controller": "@ekf",
    "controller, state": "@swls",
    WHOLE: "@adaptive",
}
_PANELS: Final = {"mass": "mass", "drag": "drag", "motor_time_constant": "motor time constant"}


def worst_model_cell(n: Numbers) -> Row:
    """The flight with the largest path error with the whole identified model, relative to the nominal one."""
    rows = [r for r in n.select(MODEL, "path error of nominal") if r.trajectory and r.method == WHOLE]
    return max(rows, key=lambda r: r.value, default=Row(MODEL, WHOLE, "path error of nominal", float("nan")))


def model_headline(n: Numbers) -> str:
    """The result in a sentence."""
    mean, worst = n.get(MODEL, WHOLE, "path error of nominal"), worst_model_cell(n)
    return (
        "With wind, drag, motor lag and a mass step of 30 %, the path error with the identified model in controller, state "
        f"estimator and planner is {row_text(mean, error=True, scale=100.0)} % of that with the nominal model, "
        f"{row_text(worst, scale=100.0)} % at worst ({worst.trajectory}, {worst.mass_profile})."
    )


def add_model_section(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """Add the tables and figures of the parts "model" and "team"."""
    page.section(
        "Figure 2: the identified model in controller, state estimator and planner",
        "A mass step of 30 % with the wind, drag and motor lag of the hard preset. An EKF identifies mass, drag, wind and "
        "motor lag. They go to the controller (its prediction and its reference thrust and attitude), to the state estimate "
        "from which it starts, and to the planner, which re-times the path so that the thrust stays below 17 of 20 N. Path "
        "error: RMS distance from the nearest point of the path in mm, from the step on.",
    )
    _add_path_errors(page, n)
    _add_quantities(page, n)
    _add_figures(page, n, [c for c in curves if c.part == MODEL])
    page.section(
        "Another vehicle of the team",
        f"A vehicle takes off in the same mean wind {TEAM_LEAD:g} s after another one of its type, which has published drag, "
        "wind and motor lag as means over 5 s. With the message alone, the second vehicle identifies nothing and "
        f"keeps it. Path error and distance from the set points in the first {TEAM_WINDOW:g} s: mean ± standard error.",
    )
    head = [
        "the second vehicle uses",
        "path error (mm)",
        "distance from the set points (mm)",
        "of nominal (%)",
    ]
    body = [
        [
            text,
            row_text(n.get(TEAM, source, "path error"), error=True, scale=1000.0),
            row_text(n.get(TEAM, source, "rms error"), error=True, scale=1000.0),
            row_text(n.get(TEAM, source, "of nominal"), error=True, scale=100.0),
        ]
        for source, text in _TEAM_LABELS.items()
    ]
    page.add(table(head, body, {head[0]: "word"} | dict.fromkeys(head[1:], "number")))


def _add_path_errors(page: Page, n: Numbers) -> None:
    cells = dict.fromkeys(
        (r.trajectory, r.mass_profile) for r in n.select(MODEL, "path error of nominal") if r.trajectory
    )
    head = [
        "trajectory",
        "mass",
        *MODEL_LABELS.values(),
        "all three: of nominal (%)",
        "all three: late by (%)",
    ]
    body = []
    for t, m in [*cells, ("", "")]:
        errors = [
            row_text(n.get(MODEL, s, "path error", t, m), error=True, scale=1000.0) for s in MODEL_LABELS
        ]
        ratio = row_text(n.get(MODEL, WHOLE, "path error of nominal", t, m), error=True, scale=100.0)
        body.append([t or "all", m, *errors, ratio, row_text(n.get(MODEL, WHOLE, "delay", t, m))])
    page.add(table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")))


def _add_quantities(page: Page, n: Numbers) -> None:
    columns = (
        ("distance from the set points (mm)", "rms error", 1000.0), ("largest (mm)", "largest error", 1000.0),
        ("change of the thrust per control (N)", "thrust change", 1.0), ("late by (%)", "delay", 1.0),
    )  # fmt: skip
    head = ["model", *(name for name, _, _ in columns)]
    body = [
        [text, *(row_text(n.get(MODEL, source, q), scale=scale) for _, q, scale in columns)]
        for source, text in MODEL_LABELS.items()
    ]
    page.add(table(head, body, {head[0]: "word"} | dict.fromkeys(head[1:], "number")))


def _add_figures(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    """Path errors of all sources, and the identified parameters with 95 % bands, for each step of the mass."""
    if not curves:
        return
    page.add(legend([(MODEL_LABELS[s], _COLOURS[s]) for s in MODEL_LABELS] + [("truth", "@ink")]))
    panels = []
    for mass in dict.fromkeys(c.mass_profile for c in curves):
        of_step = [c for c in curves if c.mass_profile == mass]
        heading = f"{title(of_step[0].trajectory)}, {mass}"
        errors = [c for c in of_step if c.quantity == "path error"]
        traces = [line(c.t, c.value, MODEL_LABELS[c.method], _COLOURS[c.method], width=1.3) for c in errors]
        figure = Figure(tuple(traces), layout("mm"), height=190, has_time_axis=False)
        panels.append(page.panel(figure, f"{heading}: path error"))
        for c in of_step:
            if c.quantity in _PANELS:
                low, high = c.value - 1.96 * c.std, c.value + 1.96 * c.std
                traces = (
                    band(c.t, low, high, f"{_COLOURS[WHOLE]}:0.18"),
                    line(c.t, c.value, "identified", _COLOURS[WHOLE], width=1.3, std=c.std),
                    line(c.t, c.truth, "truth", "@ink", width=1.0, dash="dot", step=True),
                )
                figure = Figure(traces, layout(c.unit), height=190, has_time_axis=False)
                panels.append(page.panel(figure, f"{heading}: {_PANELS[c.quantity]}"))
    page.add(grid(panels))
    shares = ", ".join(
        f"{text} {row_text(n.get(MODEL, WHOLE, f'{name} in band'), scale=100.0)} %"
        for name, text in _PANELS.items()
    )
    page.add(
        notes_list(
            [
                f"Share of the time after the step in which the 95 % bands contain the truth: {shares}.",
                "The motor lag is biased towards lower values, more than its band says: the controller answers the noise of "
                "the measurements, and the filter assumes more process noise and drift than this vehicle has, so that the "
                "errors of its state and the commands are correlated. With the noise of the simulation, the lag of 50 ms is "
                "estimated without bias (49.7 ± 3.3 ms; eight flights in still air).",
            ]
        )
    )
