"""The page of the study of SESAME D2.2: its figures and tables, with the published numbers, and further results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rotorid.report.charts import Figure, Trace, estimator_colour, layout, line
from rotorid.report.page import Page, add_study_header, card, legend, notes_list, table
from rotorid.results.text import estimator_label, percent, title
from rotorid.studies.page_parts import (
    Numbers,
    by_cell,
    error_panels,
    mass_panels,
    method_label,
    number_text,
    row_text,
)
from rotorid.studies.sesame.elm import table_part
from rotorid.studies.sesame.plain_inputs import Inputs
from rotorid.studies.study_files import Curve, Row

FIXED: Final = ("ekf", "ukf", "msckf", "swls")
METHODS: Final = (*FIXED, "adaptive")
TRAJECTORIES: Final = {"loop": 6, "zigzag": 7, "square": 8, "random": 9, "lemniscate": 10}
"""Trajectories, with the numbers of their figures in the report."""

_DIFFERENCES: Final = (
    "The document shows the results of its Kalman-type methods in figures only. Numbers can be compared for its three ELM "
    "tables.",
    "Its trajectories, mass profiles and noise levels are shown in figures only. Ours have the same names and shapes; sizes "
    "and speeds are random. The noise is 0.01 rad, 0.01 m and 0.03 m/s at 100 Hz; the initial mass is 30 % too small.",
    "The document reports SWLS as the most accurate method, with a slow response to repeated jumps. Here the four methods with "
    "a fixed tuning do not differ significantly: measurements and model are the same and nearly linear in the mass.",
    "The published update times are milliseconds, ours are microseconds, because the estimators are compiled to C. The EKF is "
    "the fastest method in both.",
    "The document does not name the columns of its ELM inputs. Tables 1 to 3 are shown with state, input and measurement of a "
    "row, with a history of 0.32 s of the same, and with slopes of velocity over impulse in windows of 0.04 to 1.6 s. In a "
    "row, the mass shows through the controller, so that the first two hold for flights with the same controller only.",
    "The document prefers OS-ELM for its smaller variance and excludes the random trajectory from OS-ELM. With the same "
    "training flights OS-ELM has the same weights as the regularised ELM to rounding, so that neither is a property of the "
    "method.",
    "On the published lemniscate the methods fail because of saturation. In our nominal flights the saturated thrust is "
    "logged, so that saturation has no effect. In the hard flights the commanded thrust is logged and it has.",
)


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in two lines."""
    n = Numbers(rows)
    best, name = _best_fixed(n)
    filtered, lagged = (n.get("adaptive", m, "rmspe_late") for m in ("adaptive", "adaptive, 0.25 s lag"))
    first = (
        f"Mass from 1 s on, RMSPE: adaptive {row_text(filtered)} %, {row_text(lagged)} % with a lag of 0.25 s; "
        f"best fixed tuning ({estimator_label(name)}) {row_text(best)} %."
    )
    detected = n.get("adaptive", "adaptive", "detected jumps").value
    delay = n.get("adaptive", "adaptive", "median detection delay").value
    false_alarms = n.get("adaptive", "adaptive", "false alarms in 10 minutes").value
    return (
        first,
        f"The adaptive estimator detects {percent(detected)} of the mass jumps, with a median delay of {delay:.2f} s and "
        f"{false_alarms:.1f} false alarms in 10 minutes.",
    )


def sesame_page(
    rows: Sequence[Row], curves: Sequence[Curve], flights: int, hard_flights: int, seed: int
) -> str:
    """The study as a self-contained HTML page. rows, curves: of `rotorid.studies.sesame.study`."""
    n = Numbers(rows)
    page = Page("Seven estimators of a changing mass")
    size = f"{flights} flights", f"{hard_flights} hard flights", f"seed {seed}"
    add_study_header(page, "sesame", size, *headline(rows))
    _cards(page, n)
    _methods(page, n, curves)
    _control(page, n, curves)
    _tunings(page, n)
    _adaptive(page, n, curves)
    _hard(page, n, curves)
    _elm(page, n, curves)
    page.section("Differences from the document")
    page.add(notes_list(_DIFFERENCES))
    return page.as_html()


def _best_fixed(n: Numbers) -> tuple[Row, str]:
    """The least error of the report's methods from 1 s on, each with its best drift, and the name of the method."""
    errors = {m: n.get("tunings", m, "rmspe_late", setting=_best_setting(n, m)) for m in FIXED}
    name = min(FIXED, key=lambda m: errors[m].value)
    return errors[name], name


def _best_setting(n: Numbers, method: str) -> str:
    return f"drift={n.get('tunings', method, 'best drift').value:g}"


def _cards(page: Page, n: Numbers) -> None:
    best, name = _best_fixed(n)
    ratio = n.get("adaptive", "adaptive", "ratio to the best fixed tuning", setting=name).value
    lagged_ratio = n.get(
        "adaptive", "adaptive, 0.25 s lag", "ratio to the best fixed tuning", setting=name
    ).value
    near_share = n.get("adaptive", "adaptive", "cells within 5 % of the best").value
    coverage = n.get("adaptive", "adaptive", "coverage")
    elm = min(
        (r for r in n.select(table_part(1, "windows"), "rmspe") if math.isfinite(r.value)),
        key=lambda r: r.value,
        default=None,
    )
    cards = [
        card(
            "Adaptive, ratio to the best fixed tuning",
            f"{ratio:.2f}",
            note=f"{lagged_ratio:.2f} with a lag of 0.25 s",
        ),
        card("Within 5 % of the best tuning", percent(near_share).removesuffix(" %"), "%", "of the cells"),
        card("Coverage of the 95 % band", percent(coverage.value).removesuffix(" %"), "%", "adaptive"),
        card("Best fixed tuning", row_text(best), "%", estimator_label(name)),
    ]
    if elm is not None:
        cards.append(card("Best ELM", row_text(elm), "%", f"{method_label(elm.method)}, {elm.setting}"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _methods(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Every method with its defaults",
        "RMSPE (eq. 48) over whole flights in %: mean over the flights of a cell ± its standard error. The initial mass is "
        "30 % too small.",
    )
    cells = list(
        dict.fromkeys((r.trajectory, r.mass_profile) for r in n.select("methods", "rmspe") if r.trajectory)
    )
    body = [
        [t, p, *(row_text(n.get("methods", m, "rmspe", t, p), error=True) for m in METHODS)] for t, p in cells
    ]
    body.append(["all", "", *(row_text(n.get("methods", m, "rmspe"), error=True) for m in METHODS)])
    page.add(_methods_table(["trajectory", "mass"], METHODS, body))
    page.section("Accuracy and calibration", "Over all flights. Bias, NEES and coverage: from 1 s on.")
    page.add(_methods_table(["number", "unit"], METHODS, _score_lines(n, "methods", METHODS)))
    for trajectory, number in TRAJECTORIES.items():
        cells = [c for c in by_cell(curves, "methods") if c[0].trajectory == trajectory]
        if cells:
            page.section(
                f"Figure {number}: {trajectory}",
                "One flight of each mass profile: the true mass in kg over time in s, and the error of each method, estimate "
                "minus truth, in kg. The initial mass is 30 % too small.",
            )
            page.add(error_panels(page, cells))


_SCORES: Final = (
    ("rmspe", "RMSPE", "%", 1.0),
    ("rmspe_late", "RMSPE from 1 s on", "%", 1.0),
    ("bias", "bias", "%", 1.0),
    ("delay", "delay to a step, median", "s", 1.0),
    ("overshoot", "overshoot of a step, largest", "%", 1.0),
    ("missed", "steps missed", "%", 100.0),
    ("nees", "NEES", "", 1.0),
    ("coverage", "coverage of the 95 % band", "%", 100.0),
    ("healthy", "healthy", "%", 100.0),
    ("undetected_errors", "outside the 95 % band with good health", "%", 100.0),
    ("update time", "update", "µs", 1e6),
)


def _score_lines(n: Numbers, part: str, methods: Sequence[str], setting: str = "") -> list[list[str]]:
    return [
        [
            label,
            unit,
            *(row_text(n.get(part, m, q, setting=setting), error=True, scale=scale) for m in methods),
        ]
        for q, label, unit, scale in _SCORES
    ]


def _methods_table(head: Sequence[str], methods: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    names = [method_label(m) for m in methods]
    kinds = dict.fromkeys(names, "number") | dict.fromkeys(head, "word")
    return table([*head, *names], body, kinds)


def _control(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figure 11: control inputs of the trajectories",
        "Thrust and body rates of the flights, by trajectory; mean over the flights ± its standard error.",
    )
    rows = [r for r in n.rows if r.part == "figure 11"]
    trajectories = list(dict.fromkeys(r.trajectory for r in rows))
    body = []
    for quantity in dict.fromkeys(r.quantity for r in rows):
        means = [n.get("figure 11", "control", quantity, t) for t in trajectories]
        is_share = means[0].unit == "1"
        texts = [row_text(r, error=True, scale=100.0 if is_share else 1.0) for r in means]
        body.append([quantity, "%" if is_share else means[0].unit, *texts])
    kinds = dict.fromkeys(trajectories, "number") | {"number": "word", "unit": "word"}
    page.add(table(["number", "unit", *trajectories], body, kinds))
    panels = []
    for trajectory in ("lemniscate", "loop"):
        inputs = [c for c in curves if c.part == "figure 11" and c.trajectory == trajectory]
        thrust = [c for c in inputs if c.quantity == "thrust"]
        rates = [c for c in inputs if c.quantity != "thrust"]
        for name, unit, panel_curves in (("thrust", "N", thrust), ("body rate", "rad/s", rates)):
            traces = [
                line(c.t, c.value, method_label(c.quantity), f"@axis-{'zxy'[k % 3]}", width=1.1)
                for k, c in enumerate(panel_curves)
            ]
            if traces:
                figure = Figure(tuple(traces), layout(unit), height=190, has_time_axis=False)
                panels.append(page.panel(figure, f"{title(trajectory)}: {name}"))
    axes = [(f"body rate {'xyz'[k]}", f"@axis-{'zxy'[k]}") for k in range(3)]
    page.add(legend(axes), f'<div class="pairs">{"".join(panels)}</div>')


def _tunings(page: Page, n: Numbers) -> None:
    page.section(
        "The best fixed tuning",
        "RMSPE from 1 s on, over the assumed drift of the mass. A larger drift gives a faster response and a noisier estimate.",
    )
    traces: list[Trace] = []
    for k, method in enumerate(FIXED):
        rows = [r for r in n.select("tunings", "rmspe_late") if r.method == method and not r.trajectory]
        if rows:
            drifts = [100.0 * float(r.setting.removeprefix("drift=")) for r in rows]
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": estimator_label(method),
                    "x": drifts,
                    "y": [r.value for r in rows],
                    "line": {"color": estimator_colour(method, k), "width": 1.6},
                    "hovertemplate": "%{y:.2f} %",
                }
            )
    figure = Figure(
        tuple(traces),
        layout("RMSPE (%)", x_title="drift of the mass (% per √s)", legend=True),
        300,
        has_time_axis=False,
    )
    page.add(page.panel(figure))


def _adaptive(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "The adaptive estimator and the attainable error",
        "RMSPE from 1 s on in %. Known jumps: the same filter with the time of each jump as an input. One sample late: with "
        "the time after the first measurement that is affected by the jump; no estimator can detect a jump earlier. 0.25 s "
        "lag: the estimate of the mass 0.25 s ago.",
    )
    variants = (
        "adaptive",
        "known jumps",
        "known jumps, one sample late",
        "adaptive, 0.25 s lag",
        "known jumps, 0.25 s lag",
    )
    profiles = list(
        dict.fromkeys(
            r.mass_profile for r in n.select("adaptive", "ratio to known jumps") if r.method == "adaptive"
        )
    )
    body = []
    for profile in [*filter(None, profiles), ""]:
        means = [row_text(n.get("adaptive", v, "rmspe_late", profile=profile)) for v in variants]
        ratio = n.get("adaptive", "adaptive", "ratio to known jumps", profile=profile).value
        lagged_ratio = n.get(
            "adaptive", "adaptive, 0.25 s lag", "ratio to known jumps, 0.25 s lag", profile=profile
        ).value
        body.append([profile or "all", *means, f"{ratio:.2f}", f"{lagged_ratio:.2f}"])
    head = ["mass", *variants, "ratio to known jumps", "ratio, 0.25 s lag"]
    page.add(table(head, body, dict.fromkeys(head[1:], "number") | {"mass": "word"}))
    quantities = (
        "jumps", "detected jumps", "median detection delay", "median changepoint error", "false alarms in 10 minutes",
    )  # fmt: skip
    lines = []
    for q in quantities:
        row = n.get("adaptive", "adaptive", q)
        text = (
            percent(row.value)
            if q == "detected jumps"
            else f"{row.value:.3g} {'' if row.unit == '1' else row.unit}"
        )
        lines.append([q, text])
    page.add(
        '<div class="between"></div>',
        table(["jumps of the mass by more than 5 %", "number"], lines, {"number": "number"}),
    )
    page.add(mass_panels(page, by_cell(curves, "adaptive")))


def _hard(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Hard flights",
        "Flights with motor lag, drag, gusts on all axes, unlogged thrust saturation, a measurement delay of 30 ms and 10 % "
        "missing measurements. The System is multirotor, which models motor lag, drag and wind.",
    )
    page.add(_methods_table(["number", "unit"], METHODS, _score_lines(n, "hard", METHODS, "multirotor")))
    bare = ("ekf", "adaptive")
    page.add(
        '<p class="caption between">With the System multirotor-bare of the document, which models none of them:</p>',
        _methods_table(["number", "unit"], bare, _score_lines(n, "hard", bare, "multirotor-bare")),
    )
    cells = [c for c in by_cell(curves, "hard") if c[0].mass_profile in ("steps", "sine")]
    page.add(mass_panels(page, cells, band_method="adaptive"))


_TABLES: Final = {
    1: "Table 1: hidden nodes, without and with regularisation",
    2: "Table 2: regularisation of 500 nodes",
    3: "Table 3: training flights of each cell",
}
_QUANTITIES: Final = ("rmspe", "norm of the weights", "training time")
_ELM_FIGURES: Final = {
    "figure 12": "Figure 12: ELM on the lemniscate",
    "figure 13": "Figure 13: ELM on the random trajectory",
    "figure 14": "Figure 14: ELM on the zigzag",
    "figure 15": "Figure 15: OS-ELM on the lemniscate",
    "figure 16": "Figure 16: OS-ELM on the zigzag",
    "os-elm random": "OS-ELM on the random trajectory, not in the document",
}


_INPUT_LABELS: Final[dict[Inputs, str]] = {
    "instant": "one row",
    "history": "0.32 s of rows",
    "windows": "windows",
}
"""Inputs of the networks, in the order of the columns."""


def _elm(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    for number, heading in _TABLES.items():
        rows = [r for r in n.rows if r.part == table_part(number, "windows")]
        if rows:
            _elm_table(page, n, number, heading, rows)
    for part, heading in _ELM_FIGURES.items():
        cells = by_cell(curves, part)
        if cells:
            page.section(heading, "Mass in kg over time in s, with the 95 % band.")
            page.add(mass_panels(page, cells))


def _elm_table(page: Page, n: Numbers, number: int, heading: str, rows: Sequence[Row]) -> None:
    guess = n.get("constant", "constant", "rmspe")
    page.section(
        heading,
        "Published numbers, and ours by the inputs of the networks: state, input and measurement of one row; the same with a "
        "history; slopes in windows. RMSPE on test flights, norm of the output weights, training time on one core. The mean of "
        f"the training masses as a constant estimate has an RMSPE of {row_text(guess)} %.",
    )
    head = ["method", "setting"]
    kinds: dict[str, str] = {"method": "word", "setting": "word"}
    quantities = [q for q in _QUANTITIES if any(r.quantity == q for r in rows)]
    for quantity in quantities:
        unit = next(r.unit for r in rows if r.quantity == quantity)
        name = quantity.replace("rmspe", "RMSPE") + (f" ({unit})" if unit not in ("", "1") else "")
        head += [f"{name}: published", *_INPUT_LABELS.values()]
        kinds[f"{name}: published"] = "number"
    kinds |= dict.fromkeys(_INPUT_LABELS.values(), "number")
    body = []
    for method, setting in dict.fromkeys((r.method, r.setting) for r in rows):
        texts = [method_label(method), setting]
        for quantity in quantities:
            ours = [n.get(table_part(number, i), method, quantity, setting=setting) for i in _INPUT_LABELS]
            texts += [number_text(ours[-1].published), *(row_text(r) for r in ours)]
        body.append(texts)
    page.add(table(head, body, kinds))
