"""The page of a plan: the verdict, predicted standard deviations, manoeuvres, limits, and the checklist of the pilot."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.export.autopilot.set_points import LOGGING
from rotorid.report.charts import (
    Figure,
    axis_colour,
    encode_array,
    layout,
    line,
    shaded_interval,
    space_layout,
)
from rotorid.report.page import Page, add_header, card, escape, grid, legend, notes_list, table
from rotorid.results.text import Tone, duration_text, label, number_text, percent, unit_text, value_text
from rotorid.simulation.free_flight.manoeuvre_simulation import RATE
from rotorid.workflows.plan.plan import Plan
from rotorid.workflows.plan.summary import PlanSummary, QuantityRow
from rotorid.workflows.plan.text import std_cell

PLAN_TONES: dict[Tone, str] = {
    "good": "Targets identifiable",
    "caution": "Some targets not identifiable",
    "bad": "Targets not identifiable",
}
"""Heading of each verdict."""

_AXES = (("forward", "@axis-x"), ("left", "@axis-y"), ("up", "@axis-z"))
_POINTS = 1500


def plan_page(plan: Plan, summary: PlanSummary) -> str:
    """The report of a plan as a self-contained HTML page."""
    settings = summary.settings
    page = Page(f"{settings.airframe}: flight plan")
    about = [
        settings.autopilot,
        duration_text(settings.duration),
        f"targets: {', '.join(label(n) for n in settings.targets)}",
        f"held fixed: {', '.join(label(n) for n in settings.known)}",
    ]
    add_header(page, settings.airframe, about, summary.verdict, PLAN_TONES)
    _cards(page, summary)
    _predictions(page, summary)
    _manoeuvres(page, plan, summary)
    _limits(page, plan, summary)
    _checklist(page, summary)
    _settings(page, summary)
    return page.as_html()


def _ratio(before: float, after: float) -> str:
    ratio = before / after
    return f"{ratio:.0f}×" if ratio >= 10.0 else f"{ratio:.1f}×"


def _cards(page: Page, summary: PlanSummary) -> None:
    usage = summary.design.limit_usage
    targets = [row for row in summary.quantities.values() if row.is_target]
    least = min(row.hover_std / row.std for row in targets)
    cards = [
        card(
            "Manoeuvres",
            str(len(summary.manoeuvres)),
            note=f"of {summary.design.candidates} that satisfy the limits",
        ),
        card("Precision against hover", _ratio(least, 1.0), note="hover over plan std, worst target"),
        card(
            "Largest use of a limit",
            percent(max(usage.values())).removesuffix(" %"),
            "%",
            f"in simulation: {max(usage, key=lambda n: usage[n])}",
        ),
    ]
    if math.isfinite(summary.design.optimality_bound):
        cards.append(
            card(
                "Efficiency of the design",
                percent(1.0 / summary.design.optimality_bound).removesuffix(" %"),
                "%",
                "lower bound",
            )
        )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _predictions(page: Page, summary: PlanSummary) -> None:
    page.section(
        "Predicted standard deviations",
        "Standard deviations before the flight, after a hover of the same length, and after this plan. They follow from the "
        "output sensitivities along the simulated flight and from the noise of a log of "
        f"{summary.settings.autopilot}. The noise is autocorrelated, which increases the standard deviation from "
        + ", ".join(f"{label(n)} by a factor of {f:.1f}" for n, f in summary.design.noise_factor.items())
        + f". Real flight: {summary.allowance:g} times the prediction, for gusts, vibration and unmodelled dynamics.",
    )
    has_estimates = any(row.estimate_std is not None for row in summary.quantities.values())
    head = [
        "quantity",
        "value",
        "unit",
        "prior std",
        "hover std",
        "plan std",
        "hover / plan",
        "real flight std",
    ]
    head += ["estimate", "estimate std", "hover estimate std"] if has_estimates else []
    rows = [[label(name), *_row(row, has_estimates)] for name, row in _ordered(summary)]
    kinds = dict.fromkeys(head, "number") | {"quantity": "word", "unit": "word"}
    targets = sum(row.is_target for row in summary.quantities.values())
    first = "quantity is the target" if targets == 1 else f"{targets} are targets"
    below = f"The first {first}; the others are estimated with them."
    if has_estimates:
        below += " Estimates: from identifying the simulated flight and the simulated hover from their logs."
    page.add('<div class="stack">', table(head, rows, kinds, below=below))
    page.add(page.panel(_bars(summary), "Standard deviation over the prior's", "1: no information"), "</div>")


def _ordered(summary: PlanSummary) -> list[tuple[str, QuantityRow]]:
    return sorted(summary.quantities.items(), key=lambda item: not item[1].is_target)


def _row(row: QuantityRow, has_estimates: bool) -> list[str]:
    estimates = []
    if has_estimates:
        is_missing = row.estimate is None or row.estimate_std is None
        estimate = "–" if is_missing else value_text(row.estimate or 0.0, row.estimate_std or 0.0)
        estimates = [estimate, std_cell(row.estimate_std), std_cell(row.hover_estimate_std)]
    return [
        number_text(row.value),
        unit_text(row.unit) or "–",
        std_cell(row.prior_std),
        std_cell(row.hover_std),
        std_cell(row.std),
        _ratio(row.hover_std, row.std),
        std_cell(row.real_flight_std),
        *estimates,
    ]


def _bars(summary: PlanSummary) -> Figure:
    """Remaining share of each prior standard deviation after a hover and after the plan."""
    items = list(reversed(_ordered(summary)))
    names = [label(name) + (" " if row.is_target else "") for name, row in items]
    traces = []
    for what, token, of in (
        ("hover", "@bar", lambda row: row.hover_std),
        ("plan", "@ekf", lambda row: row.std),
    ):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": what,
                "x": [float(f"{of(row) / row.prior_std:.4g}") for _, row in items],
                "y": names,
                "marker": {"color": token if what == "plan" else "@ink:0.45", "size": 9},
                "hovertemplate": "%{y}: %{x:.2g}<extra>" + what + "</extra>",
            }
        )
    figure = layout("", legend=True, x_title="share of the prior standard deviation", hovermode="closest")
    figure["xaxis"] |= {"type": "log", "dtick": 1, "exponentformat": "none"}
    figure["margin"] = figure["margin"] | {"l": 150}
    return Figure(tuple(traces), figure, height=90 + 24 * len(items), has_time_axis=False)


def _manoeuvres(page: Page, plan: Plan, summary: PlanSummary) -> None:
    page.section(
        "Manoeuvres",
        "In sequence, each from rest to rest at the centre of the box. Reduction: prior over predicted standard deviation of "
        "the targets after this manoeuvre alone (geometric mean). Below: the simulated flight.",
    )
    head = ["from (s)", "to (s)", "manoeuvre", "kind", "size", "reduction"]
    rows = [
        [f"{m.start:g}", f"{m.end:g}", m.name, m.kind, f"{m.size:.2f}", _ratio(m.reduction, 1.0)]
        for m in summary.manoeuvres
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"manoeuvre": "word", "kind": "word"}))
    page.add(legend(_AXES))
    truth, start = plan.simulation.flight, np.asarray(plan.settings.start)
    t = np.arange(len(np.asarray(truth.position))) / RATE
    limits = plan.settings.limits
    half = 0.5 * np.asarray(limits.box)
    away = np.asarray(truth.position) - start
    rate = np.asarray(truth.body_rate)
    velocity = np.asarray(truth.velocity)
    command = np.asarray(truth.rotor_command)
    tilt = np.degrees(_tilts(np.asarray(truth.attitude)))
    bands = [shaded_interval(m.start, m.end) for m in summary.manoeuvres[::2]]
    panels = [
        page.panel(
            _curves(t, away, "m", bands, tuple(zip(-half, half, strict=True))), "Position", "in the box"
        ),
        page.panel(_curves(t, velocity, "m/s", bands), "Velocity", f"limit {limits.speed:g} m/s"),
        page.panel(
            _single(t, tilt, "°", bands, math.degrees(limits.tilt)),
            "Tilt",
            f"limit {math.degrees(limits.tilt):.0f}°",
        ),
        page.panel(
            _curves(t, rate, "rad/s", bands, ((-limits.rate, limits.rate),)),
            "Body rate",
            f"limit {limits.rate:.2f} rad/s",
        ),
        page.panel(
            _commands(t, command, bands, limits.command),
            "Rotor commands",
            f"{limits.command[0]:g} to {limits.command[1]:g}",
        ),
    ]
    page.add(grid(panels))
    page.add(page.panel(_path(away, plan), "Path", "m"))


def _tilts(q: np.ndarray) -> np.ndarray:
    return np.arccos(np.clip(1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2), -1.0, 1.0))


def _edges(t: np.ndarray, levels: tuple[float, ...]) -> list[dict]:
    ends = np.array([t[0], t[-1]])
    return [
        line(
            ends,
            np.array([v, v]),
            "limit",
            "@ink:0.4",
            width=1.0,
            dash="5px,4px",
            max_gap=2.0 * float(t[-1]) + 1.0,
            showlegend=False,
        )
        for v in dict.fromkeys(levels)
    ]


def _curves(
    t: np.ndarray,
    values: np.ndarray,
    unit: str,
    bands: list[dict],
    edges: tuple[tuple[float, float], ...] = (),
) -> Figure:
    figure = layout(unit)
    figure["shapes"] = bands
    traces = [
        line(t, values[:, k], name, axis_colour(k), points=_POINTS, width=1.2)
        for k, (name, _) in enumerate(_AXES)
    ]
    levels = tuple(float(v) for pair in edges for v in pair)
    return Figure((*traces, *_edges(t, levels)), figure, height=210)


def _single(t: np.ndarray, values: np.ndarray, unit: str, bands: list[dict], limit: float) -> Figure:
    figure = layout(unit)
    figure["shapes"] = bands
    trace = line(t, values, "tilt", "@ekf", points=_POINTS, width=1.2)
    return Figure((trace, *_edges(t, (limit,))), figure, height=210)


def _commands(t: np.ndarray, u: np.ndarray, bands: list[dict], limits: tuple[float, float]) -> Figure:
    figure = layout("")
    figure["shapes"] = bands
    traces = [
        line(t, column, f"rotor {k}", f"@ink:{0.35 + 0.15 * (k % 4):.2f}", points=_POINTS, width=0.9)
        for k, column in enumerate(u.T)
    ]
    return Figure((*traces, *_edges(t, limits)), figure, height=210)


def _path(away: np.ndarray, plan: Plan) -> Figure:
    every = max(1, len(away) // 3000)
    sides = np.asarray(plan.settings.limits.box)
    corners = [
        (-1, -1, -1), (1, -1, -1), (1, 1, -1), (-1, 1, -1), (-1, -1, -1), (-1, -1, 1), (1, -1, 1), (1, -1, -1),
        (1, -1, 1), (1, 1, 1), (1, 1, -1), (1, 1, 1), (-1, 1, 1), (-1, 1, -1), (-1, 1, 1), (-1, -1, 1),
    ]  # fmt: skip
    box = 0.5 * sides * np.array(corners, float)
    traces = []
    for points, token, width, name in (
        (away[::every], "@ekf", 3, "flown"),
        (box, "@ink:0.35", 1, "box"),
    ):
        x, y, z = (encode_array(points[:, k]) for k in range(3))
        traces.append(
            {
                "type": "scatter3d",
                "mode": "lines",
                "name": name,
                "x": x,
                "y": y,
                "z": z,
                "line": {"width": width, "color": token},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    axes = {axis: {"title": {"text": f"{way} (m)"}} for axis, (way, _) in zip("xyz", _AXES, strict=True)}
    camera = {"eye": {"x": 1.35, "y": -1.5, "z": 0.85}, "center": {"x": 0, "y": 0, "z": -0.15}}
    figure = space_layout(axes, {"aspectmode": "data", "camera": camera})
    return Figure(tuple(traces), figure, height=420, has_time_axis=False)


def _limits(page: Page, plan: Plan, summary: PlanSummary) -> None:
    page.section("Limits", "The limits, and the largest values in the simulated flight relative to them.")
    limits = plan.settings.limits
    texts = {
        "speed": f"{limits.speed:g} m/s",
        "tilt": f"{math.degrees(limits.tilt):.0f}°",
        "box": " × ".join(f"{v:g}" for v in limits.box) + " m",
        "rate": f"{limits.rate:.2f} rad/s ({math.degrees(limits.rate):.0f} °/s)",
        "command": f"{limits.command[0]:g} to {limits.command[1]:g}",
    }
    rows = [[label(name), texts[name], percent(share)] for name, share in summary.design.limit_usage.items()]
    page.add(
        table(
            ["quantity", "limit", "largest use"],
            rows,
            {"quantity": "word", "limit": "number", "largest use": "number"},
            tight=True,
        )
    )


def _checklist(page: Page, summary: PlanSummary) -> None:
    page.section(
        "Checklist for the pilot", "In this order. The pilot starts the plan and can stop it at any time."
    )
    items = "".join(f"<li>{escape(text)}</li>" for text in summary.checklist)
    page.add(f'<div class="panel"><ol class="notes">{items}</ol></div>')
    logging = LOGGING[summary.settings.autopilot]
    if logging.parameters:
        rows = [
            [name, str(value), reason]
            for (name, value), reason in zip(logging.parameters, logging.reasons, strict=True)
        ]
        kinds = {"parameter": "word", "value": "number", "reason": "long"}
        page.add(table(["parameter", "value", "reason"], rows, kinds, "Logging parameters"))
    if logging.notes:
        page.add(notes_list(text[:1].upper() + text[1:] + "." for text in logging.notes))


def _settings(page: Page, summary: PlanSummary) -> None:
    page.section("Settings")
    if summary.notes:
        page.add(notes_list(summary.notes))
    rows = [
        ["command", "rotorid plan"],
        ["airframe", summary.settings.airframe],
        ["criterion", f"{summary.settings.criterion}-optimal"],
        ["files", ", ".join(summary.files)],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
