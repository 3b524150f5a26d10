"""The page of the RotorPy study: targets, coverage of the bands by quantity and kind of flight, and tracked masses."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from rotorid.report.charts import Figure, band, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, notes_list, table
from rotorid.results.text import label
from rotorid.studies.page_parts import Numbers, number_text
from rotorid.studies.rotorpy.study import REQUIRED, TRACK_METHODS
from rotorid.studies.rotorpy.tracking import SIGMAS
from rotorid.studies.study_files import Curve, Row

COVERAGE: Final = (0.90, 0.98)
"""Target of the coverage of the 95 % bands."""

_EXTRA = ("yaw_inertia_ratio", "torque_ratio", "rotor_drag", "rotor_inflow", "translational_lift")
_SHOWN_TRACKS = 6


class Target(NamedTuple):
    """A target. name: of the number. value, limit: in unit. is_met: whether the value is within the limit."""

    name: str
    value: float
    limit: str
    unit: str
    is_met: bool


def targets_of(rows: Sequence[Row]) -> list[Target]:
    """The targets of the study with the reached values."""
    n = Numbers(rows)
    targets = []
    for name in REQUIRED:
        value = n.get("quantities", name, "coverage").value
        if math.isfinite(value):
            targets.append(
                Target(
                    f"coverage, {label(name)}",
                    100 * value,
                    "90 to 98",
                    "%",
                    COVERAGE[0] <= value <= COVERAGE[1],
                )
            )
    error = n.get("all", "all", "inertia, median error", setting="excited").value
    largest = n.get("all", "all", "largest z, accepted").value
    targets += [
        Target("inertia, median error, excited flights", 100 * error, "≤ 5", "%", error <= 0.05),
        Target("largest |z| of an accepted model", largest, "≤ 4", "", largest <= 4.0),
    ]
    for method in TRACK_METHODS:
        for quantity, name, scale, limit in (
            ("rmspe, median", "RMSPE of the mass, median", 1.0, 1.5),
            ("inside, mean", "true mass within the band", 100.0, 90.0),
            ("ok_wrong, mean", "health ok and true mass outside", 100.0, 10.0),
            ("wind inside, mean", "true wind within the band", 100.0, 90.0),
        ):
            value = scale * n.get("tracks", method, quantity).value
            if math.isfinite(value):
                is_lower = "within" not in name
                is_met = value <= limit if is_lower else value >= limit
                text = f"{'≤' if is_lower else '≥'} {limit:g}"
                targets.append(Target(f"{name}, {method}", value, text, "%", is_met))
    return targets


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in two or three lines."""
    n = Numbers(rows)
    identified = n.get("all", "all", "identified")
    if not identified.flights:
        return ("No flight was identified.",)
    targets = targets_of(rows)
    missed = [f"{t.name}: {number_text(t.value)} {t.unit} ({t.limit})" for t in targets if not t.is_met]
    accepted = n.get("all", "all", "accepted").value
    return (
        f"{len(targets) - len(missed)} of {len(targets)} targets are met on {identified.flights} flights of RotorPy.",
        f"{identified.value:.0f} models were identified, {accepted:.0f} of them accepted.",
        *([f"Missed: {'; '.join(missed)}."] if missed else []),
    )


def rotorpy_page(rows: Sequence[Row], curves: Sequence[Curve], flights: tuple[int, int], seed: int) -> str:
    """The study as a self-contained HTML page. flights: number of identified flights and of tracks."""
    n = Numbers(rows)
    page = Page("RotorPy as referee")
    first, *rest = headline(rows)
    about = (f"{flights[0]} flights identified, {flights[1]} tracked", f"seed {seed}")
    add_study_header(page, "rotorpy", about, first, *rest)
    _cards(page, n)
    page.section("Targets")
    body = [
        [t.name, f"{number_text(t.value)} {t.unit}".strip(), t.limit, "yes" if t.is_met else "no"]
        for t in targets_of(rows)
    ]
    page.add(table(["number", "value", "target", "met"], body, {"number": "word", "value": "number"}))
    _coverage(page, n)
    _groups(page, n)
    _tracks(page, n, curves)
    _rejections(page, rows)
    page.section("Method")
    page.add(notes_list(_NOTES))
    return page.as_html()


_NOTES: Final = (
    "RotorPy (pip package rotorpy) simulates the AscTec Hummingbird, the Crazyflie and three vehicles with drawn parameters: "
    "motor lag on the speed, inflow and translational lift of each rotor, rotor drag, and quadratic drag of the body.",
    "Its SE(3) controller flies closed loop. Ordinary flights are slow; excited ones have multisines on thrust and torques.",
    "Winds: none; 2 to 4 m/s with gusts of the Dryden model; 2 to 5 m/s without gusts.",
    "The prior airframe has the true geometry and a weighed mass (1 %). Its inertia is off by 20 to 30 %, its torque "
    "ratio by 20 %, its thrust by 10 %; its motor lag is 30 ms, and it has no drag.",
    "A quarter of each flight, in blocks, validates the model. Bands are estimates ± 1.96 standard deviations.",
    "Flight identifies the ratio of yaw inertia to torque ratio only: the band of inertia z includes that of the torque ratio.",
)


def _percent(value: float) -> str:
    return f"{100 * value:.0f}" if math.isfinite(value) else "–"


def _cards(page: Page, n: Numbers) -> None:
    identified, seconds = n.get("all", "all", "identified"), n.get("all", "all", "seconds, median")
    cards = [
        card("Accepted", f"{n.get('all', 'all', 'accepted').value:.0f}", f"of {identified.flights}", ""),
        card("Largest |z|, accepted", number_text(n.get("all", "all", "largest z, accepted").value), "", "target: 4"),
        card(
            "Inertia, median error, excited",
            number_text(100 * n.get("all", "all", "inertia, median error", setting="excited").value), "%", "target: 5",
        ),
        card("Time per flight, median", number_text(seconds.value), "s"),
    ]  # fmt: skip
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _shown(n: Numbers) -> list[str]:
    names = dict.fromkeys(r.method for r in n.select("quantities", "coverage"))
    return [name for name in (*REQUIRED, *_EXTRA) if name in names]


def _coverage(page: Page, n: Numbers) -> None:
    page.section(
        "Every quantity",
        "z: error over the estimated standard deviation. Coverage: share of flights with |z| ≤ 1.96.",
    )
    head = [
        "quantity", "flights", "coverage (%)", "interval (%)", "median error (%)", "median |z|", "largest |z|",
        "largest |z|, accepted",
    ]  # fmt: skip
    body = []
    for name in _shown(n):

        def value(quantity: str, name: str = name) -> float:
            return n.get("quantities", name, quantity).value

        body.append(
            [
                label(name),
                f"{n.get('quantities', name, 'coverage').flights}",
                _percent(value("coverage")),
                f"{_percent(value('coverage, low'))} to {_percent(value('coverage, high'))}",
                number_text(100 * value("median error")),
                *(number_text(value(q)) for q in ("median z", "largest z", "largest z, accepted")),
            ]
        )
    page.add(table(head, body, {"quantity": "word"} | dict.fromkeys(head[1:], "number")))


def _groups(page: Page, n: Numbers) -> None:
    page.section("By kind of flight", "Coverage (%) and, in brackets, the median error (%).")
    groups = [r.setting for r in n.select("all", "accepted") if r.setting]
    head = ["quantity", *groups]
    body = [
        ["accepted", *(_accepted(n, group) for group in groups)],
        *([label(name), *(_cell(n, name, group) for group in groups)] for name in _shown(n)),
    ]
    page.add(table(head, body, {"quantity": "word"} | dict.fromkeys(groups, "number")))


def _accepted(n: Numbers, group: str) -> str:
    row = n.get("all", "all", "accepted", setting=group)
    return f"{row.value:.0f} of {row.flights}"


def _cell(n: Numbers, name: str, group: str) -> str:
    coverage = n.get("quantities", name, "coverage", setting=group).value
    error = n.get("quantities", name, "median error", setting=group).value
    return f"{_percent(coverage)} ({number_text(100 * error)})" if math.isfinite(coverage) else "–"


def _tracks(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Tracked mass", "Over the rows from 5 s on; means over the flights, and the median for the RMSPE."
    )
    head = [
        "airframe", "flights", "number", "RMSPE (%)", "mass within band (%)", "ok and outside (%)", "ok (%)",
        "wind within band (%)",
    ]  # fmt: skip
    body = []
    for row in n.select("tracks", "rmspe, median"):
        value = [
            n.get("tracks", row.method, q, setting=row.setting).value
            for q in ("inside, mean", "ok_wrong, mean", "ok, mean", "wind inside, mean")
        ]
        body.append(
            [
                row.method,
                row.setting or "all",
                str(row.flights),
                number_text(row.value),
                *map(_percent, value),
            ]
        )
    page.add(table(head, body, {"airframe": "word", "flights": "word"} | dict.fromkeys(head[2:], "number")))
    shown = [c for c in curves if c.method == TRACK_METHODS[0]][:_SHOWN_TRACKS]
    page.add(grid([page.panel(_mass_figure(c), c.trajectory) for c in shown]))


def _mass_figure(curve: Curve) -> Figure:
    """The tracked mass over the true one at the start, with its 95 % band."""
    value, std, truth = (column / curve.truth[0] for column in (curve.value, curve.std, curve.truth))
    traces = (
        band(curve.t, value - SIGMAS * std, value + SIGMAS * std, "@ekf:0.18"),
        line(curve.t, value, "estimate", "@ekf", width=1.2),
        line(curve.t, truth, "truth", "@ink", width=1.0, dash="dot"),
    )
    axes = layout("mass / true mass at the start")
    axes["yaxis"] |= {"range": [0.85, 1.35]}
    return Figure(traces, axes, height=190, has_time_axis=False)


def _rejections(page: Page, rows: Sequence[Row]) -> None:
    counts = Counter(r.method for r in rows if r.part == "identify" and r.quantity in ("rejected", "failed"))
    if counts:
        page.section("Models that were not accepted", "Reasons, with the number of flights.")
        page.add(notes_list(f"{count}: {reason}" for reason, count in counts.most_common()))
