"""The page of a plan: the verdict first, then what it tells, the manoeuvres, the limits, and what the pilot does."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.export.set_points import LOGGING
from rotorid.report.charts import Figure, axis_colour, layout, line, numbers, shaded, space_layout
from rotorid.report.headed import add_header
from rotorid.report.html import Page, card, escape, grid, legend, notes_list, table
from rotorid.results.plan import Plan
from rotorid.results.plan_summary import PlanSummary, QuantityRow
from rotorid.results.verdict import Tone
from rotorid.results.words import decimals, label, percent, seconds, unit_text
from rotorid.simulation.rehearsal import RATE

PLAN_TONES: dict[Tone, str] = {
    "good": "Plan can be flown",
    "caution": "Plan tells a part of it",
    "bad": "Plan tells too little",
}
"""What the verdict on a plan comes to."""

_AXES = (("forward", "@axis-x"), ("left", "@axis-y"), ("up", "@axis-z"))
_POINTS = 1500


def plan_page(plan: Plan, summary: PlanSummary) -> str:
    """The report of a plan, as the HTML of a self-contained page."""
    page = Page(f"{summary.airframe}: flight plan")
    about = [
        f"{summary.autopilot}",
        seconds(summary.duration),
        f"for {', '.join(label(n) for n in summary.asked)}",
        f"known: {', '.join(label(n) for n in summary.known)}",
    ]
    add_header(page, summary.airframe, about, summary.verdict, PLAN_TONES)
    _cards(page, summary)
    _told(page, summary)
    _manoeuvres(page, plan, summary)
    _limits(page, plan, summary)
    _checklist(page, summary)
    _settings(page, summary)
    return page.as_html()


def small(value: float, std: float) -> str:
    """A value with the digits that its standard deviation deserves; by powers of ten where it is small."""
    if not math.isfinite(value):
        return "–"
    if value and abs(value) < 1e-3:
        digits = max(0, math.floor(math.log10(abs(value))) + decimals(std)) if std > 0 else 2
        mantissa, exponent = f"{value:.{min(digits, 6)}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    return f"{value:.{min(decimals(std), 8)}f}".replace("-", "−")


def spread(std: float | None) -> str:
    """A standard deviation with two digits."""
    if std is None or not math.isfinite(std):
        return "–"
    return f"{std:.2g}".replace("-", "−")


def _gain(before: float, after: float) -> str:
    gain = before / after
    return f"{gain:.0f}×" if gain >= 10.0 else f"{gain:.1f}×"


def _cards(page: Page, summary: PlanSummary) -> None:
    asked = [row for row in summary.quantities.values() if row.asked]
    least = min(row.hover_std / row.std for row in asked)
    cards = [
        card("Manoeuvres", str(len(summary.manoeuvres)), note=f"of {summary.candidates} that fit the limits"),
        card("Against a hover", _gain(least, 1.0), note="less uncertain, at least, in what is asked for"),
        card(
            "Of its limits",
            percent(max(summary.used.values())).removesuffix(" %"),
            "%",
            f"at most, in simulation: {max(summary.used, key=lambda n: summary.used[n])}",
        ),
    ]
    if math.isfinite(summary.at_best):
        cards.append(
            card("Of the best choice", percent(1.0 / summary.at_best).removesuffix(" %"), "%", "at least")
        )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _told(page: Page, summary: PlanSummary) -> None:
    page.section(
        "What it will tell",
        "Standard deviations before, after a hover of the same length, and after this plan: what an identification will "
        "find, by the sensitivities along the simulated flight and the noise of a log of "
        f"{summary.autopilot}. That noise is coloured, which the identification does not know; it widens the part of "
        + ", ".join(f"{label(n)} by {f:.1f}" for n, f in summary.factor.items())
        + f". Count with {summary.allowance:g} times as much on a real vehicle: gusts, vibration and what no model has come "
        "to it.",
    )
    proved = any(row.found_std is not None for row in summary.quantities.values())
    head = ["quantity", "value", "unit", "before", "hover", "plan", "against hover", "count with"]
    head += ["found", "its std", "found in hover"] if proved else []
    rows = [[label(name), *_row(row, proved)] for name, row in _ordered(summary)]
    kinds = dict.fromkeys(head, "number") | {"quantity": "word", "unit": "word"}
    asked = sum(row.asked for row in summary.quantities.values())
    below = f"The first {asked} are asked for; the others have to be found beside them."
    if proved:
        below += " Found: by identifying the simulated flight, and a simulated hover, from their logs."
    page.add('<div class="stack">', table(head, rows, kinds, below=below))
    page.add(page.panel(_bars(summary), "Standard deviation over that before", "1: nothing told"), "</div>")


def _ordered(summary: PlanSummary) -> list[tuple[str, QuantityRow]]:
    return sorted(summary.quantities.items(), key=lambda item: not item[1].asked)


def _row(row: QuantityRow, proved: bool) -> list[str]:
    found = []
    if proved:
        nothing = row.found is None or row.found_std is None
        found = ["–" if nothing else small(row.found or 0.0, row.found_std or 0.0), spread(row.found_std)]
        found.append(spread(row.found_hover_std))
    return [
        small(row.value, row.std),
        unit_text(row.unit) or "–",
        spread(row.prior_std),
        spread(row.hover_std),
        spread(row.std),
        _gain(row.hover_std, row.std),
        spread(row.allowed_std),
        *found,
    ]


def _bars(summary: PlanSummary) -> Figure:
    """Of each quantity, what is left of its prior standard deviation after a hover and after the plan."""
    items = list(reversed(_ordered(summary)))
    names = [label(name) + (" " if row.asked else "") for name, row in items]
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
    return Figure(tuple(traces), figure, height=90 + 24 * len(items), timed=False)


def _manoeuvres(page: Page, plan: Plan, summary: PlanSummary) -> None:
    page.section(
        "Manoeuvres",
        "One after the other, each from rest to rest at the middle of the box. Alone: how much smaller a single one makes the "
        "standard deviations that are asked for (geometric mean). Below: what the simulated vehicle flew.",
    )
    head = ["from (s)", "to (s)", "manoeuvre", "kind", "size", "alone"]
    rows = [
        [f"{m.start:g}", f"{m.end:g}", m.name, m.kind, f"{m.size:.2f}", _gain(m.alone, 1.0)]
        for m in summary.manoeuvres
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"manoeuvre": "word", "kind": "word"}))
    page.add(legend(_AXES))
    truth, start = plan.truth, np.asarray(plan.settings.start)
    t = np.arange(len(np.asarray(truth.position))) / RATE
    limits = plan.settings.limits
    half = 0.5 * np.asarray(limits.box)
    away = np.asarray(truth.position) - start
    rate = np.asarray(truth.body_rate)
    velocity = np.asarray(truth.velocity)
    command = np.asarray(truth.rotor_command)
    tilt = np.degrees(_tilts(np.asarray(truth.attitude)))
    bands = [shaded(m.start, m.end) for m in summary.manoeuvres[::2]]
    panels = [
        page.panel(_curves(t, away, "m", bands, tuple(zip(-half, half, strict=True))), "Place", "in the box"),
        page.panel(_curves(t, velocity, "m/s", bands), "Velocity", f"{limits.speed:g} m/s at most"),
        page.panel(
            _single(t, tilt, "°", bands, math.degrees(limits.tilt)),
            "Tilt",
            f"{math.degrees(limits.tilt):.0f}° at most",
        ),
        page.panel(
            _curves(t, rate, "rad/s", bands, ((-limits.rate, limits.rate),)),
            "Body rate",
            f"{limits.rate:.2f} rad/s at most",
        ),
        page.panel(
            _commands(t, command, bands, limits.command),
            "Rotor commands",
            f"{limits.command[0]:g} to {limits.command[1]:g}",
        ),
    ]
    page.add(grid(panels))
    page.add(page.panel(_path(away, plan), "In space", "m"))


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
            longest=2.0 * float(t[-1]) + 1.0,
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
        x, y, z = (numbers(points[:, k]) for k in range(3))
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
    return Figure(tuple(traces), figure, height=420, timed=False)


def _limits(page: Page, plan: Plan, summary: PlanSummary) -> None:
    page.section(
        "Limits", "What was allowed, and how much of it the simulated flight took where it took most."
    )
    limits = plan.settings.limits
    texts = {
        "speed": f"{limits.speed:g} m/s",
        "tilt": f"{math.degrees(limits.tilt):.0f}°",
        "box": " × ".join(f"{v:g}" for v in limits.box) + " m",
        "rate": f"{limits.rate:.2f} rad/s ({math.degrees(limits.rate):.0f} °/s)",
        "command": f"{limits.command[0]:g} to {limits.command[1]:g}",
    }
    rows = [[label(name), texts[name], percent(share)] for name, share in summary.used.items()]
    page.add(
        table(
            ["limit", "allowed", "taken"],
            rows,
            {"limit": "word", "allowed": "number", "taken": "number"},
            tight=True,
        )
    )


def _checklist(page: Page, summary: PlanSummary) -> None:
    page.section(
        "What the pilot does", "In order. Nothing here flies by itself: the pilot can stop it at any time."
    )
    items = "".join(f"<li>{escape(text)}</li>" for text in summary.checklist)
    page.add(f'<div class="panel"><ol class="notes">{items}</ol></div>')
    logging = LOGGING[summary.autopilot]
    if logging.parameters:
        rows = [
            [name, str(value), why]
            for (name, value), why in zip(logging.parameters, logging.why, strict=True)
        ]
        kinds = {"parameter": "word", "value": "number", "because": "long"}
        page.add(table(["parameter", "value", "because"], rows, kinds, "Parameters of the log"))
    if logging.more:
        page.add(notes_list(text[:1].upper() + text[1:] + "." for text in logging.more))


def _settings(page: Page, summary: PlanSummary) -> None:
    page.section("Settings")
    if summary.notes:
        page.add(notes_list(summary.notes))
    rows = [
        ["command", "rotorid plan"],
        ["airframe", summary.airframe],
        ["criterion", f"{summary.criterion}-optimal"],
        ["files", ", ".join(summary.files)],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
