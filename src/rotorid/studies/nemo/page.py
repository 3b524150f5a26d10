"""The page of the study of Alharbat 2025: Table II and Figures 5 to 8 with published and own numbers, and further results."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from rotorid.report.charts import Figure, Trace, layout, line
from rotorid.report.page import Page, add_study_header, card, legend, notes_list, table
from rotorid.studies.nemo.models import FLAPPING
from rotorid.studies.nemo.study import PUBLISHED
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve, Row

LABELS: Final = {
    "mo": "MO",
    "nemo-1": "NeMO, α = 1",
    "nemo-25": "NeMO, α = 25",
    "nemo-50": "NeMO, α = 50",
    "nemo-body": "NeMO, body frame",
    "identified": "MO, identified parameters",
    "identify-first": "NeMO, identified parameters",
    "oracle": "MO, true parameters",
}
"""Names of the methods on the page."""

KINDS: Final = ("G", "MG-1", "MG-2", "MGD", "MGF")
SCENARIOS: Final = {
    "hover": "hovering",
    "free-flight": "free flight",
    "hover-wrench": "hovering + wrench",
    "free-flight-wrench": "free flight + wrench",
    "all": "all",
}
_WITH_WRENCH: Final = ("hover-wrench", "free-flight-wrench")
_COLOURS: Final = {
    "mo": "@ukf",
    "nemo-1": "@swls",
    "nemo-50": "@swls",
    "identified": "@msckf",
    "identify-first": "@ekf",
}
_PUBLISHED_METHODS: Final = ("mo", "nemo-1", "nemo-25", "nemo-50")

_DIFFERENCES: Final = (
    "The document gives sums of RMS errors over an unknown number of flights, and adds N and N m. Our errors are means "
    "over the flights of a scenario, with the same sum of units, so only ratios can be compared. Errors are evaluated from "
    "1 s on.",
    "The document does not give the arm length, size and speed of the lemniscates, size of the external wrenches, gain of "
    "the observer, and limits of the rotors. Ours are 0.39 m; 0.75 to 2.5 m; 1.5 to 5 N and 0.15 to 0.5 N m for 1.5 to 3 "
    "s; 10 1/s; and 0.25 to 2 times the hover thrust.",
    "All errors with an external wrench include the lag of the observer; it is the only error of the observer with true "
    "parameters, but for MGF.",
    "The training for a longer horizon starts from the weights for a shorter one, with windows that overlap by half. This "
    "reduces the computation time.",
    "The network of the document is split into translation and rotation, in the world frame. In the body frame, with a linear "
    "part, errors of all four types are linear: thrust, geometry, mass, inertia and drag.",
    "In free flight only the ratio of mass and thrust acts, so their errors cannot be separated. The error of the identified "
    "wrench therefore has the relative error of the mass, 2.5 %. Priors are those of a user: a mass weighed to 1 %, and the "
    "defaults of rotorid identify, which do not depend on the errors in the document.",
    "For MGD the model has a drag and a rotor friction that the vehicle does not have. The flights of these four types are the "
    "same, as in the document.",
    "MGF is not in the document. The rotors of its vehicle flap with hysteresis: the force in the rotor plane, at most "
    f"{FLAPPING['MGF'].force:g} N along each axis, depends on the history of the velocity. No parameter of the model describes "
    "it, nor does a residual without memory describe it completely. The observer with true parameters has this error, too.",
)


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The main results, a line each. Each number is of a method that was run."""
    n = Numbers(rows)
    document = [kind for kind in _kinds(n, "exact") if kind in PUBLISHED]
    ratios = [
        f"{kind} {_relative_to_mo(n, 'exact', 'nemo-50', kind):.3f} ({_published(n, kind):.3f})"
        for kind in document
    ]
    largest = []
    for method in ("identified", "identify-first", "nemo-50"):
        errors = [_relative_to_oracle(n, "exact", method, kind, s) for kind in document for s in _WITH_WRENCH]
        if all(math.isfinite(e) for e in errors):
            largest.append(f"{LABELS[method]} {max(errors):.2f}{_residuals_used(n, method, document)}")
    return (
        f"Error of NeMO (α = 50) relative to MO, in brackets the published ratio: {', '.join(ratios)}.",
        f"Largest error with an external wrench, relative to MO with true parameters: {', '.join(largest)}.",
        *(_flapping_line(n, kind) for kind in _kinds(n, "exact") if kind in FLAPPING),
        _late_line(n),
    )


def _flapping_line(n: Numbers, kind: str) -> str:
    """The errors of all methods that were run for a type that no parameter describes."""
    errors = {m: _error(n, "exact", m, kind).value for m in LABELS}
    texts = [
        f"{LABELS[m]} {e:.2f}{_residuals_used(n, m, [kind])}" for m, e in errors.items() if math.isfinite(e)
    ]
    return f"{kind}, rotors that flap, which no parameter describes: {', '.join(texts)}."


def _residuals_used(n: Numbers, method: str, kinds: Sequence[str]) -> str:
    """For how many types a learned residual is in the model, where it is not for all."""
    used = [n.get("exact", method, "residual used", setting=kind).value == 0.0 for kind in kinds]
    return f" (without a residual for {sum(used)} of {len(used)} types)" if any(used) else ""


def _late_line(n: Numbers) -> str:
    """The types for which the learned residual increases the error of late and noisy logs."""
    worse = []
    for kind in _kinds(n, "late"):
        nemo, mo = (_error(n, "late", method, kind).value for method in ("nemo-50", "mo"))
        if nemo > mo:
            worse.append(f"{kind} ({nemo:.2f}, MO {mo:.2f})")
    if not worse:
        return "With noise and a delay of 20 ms, NeMO (α = 50) is better than MO for every type."
    return f"With noise and a delay of 20 ms, NeMO (α = 50) is worse than MO for {', '.join(worse)}."


def _kinds(n: Numbers, part: str) -> list[str]:
    """The residual types with results."""
    return [kind for kind in KINDS if math.isfinite(_error(n, part, "mo", kind).value)]


def nemo_page(rows: Sequence[Row], curves: Sequence[Curve], flights: int, seed: int) -> str:
    """The study as the HTML of a self-contained page. Rows and curves: of `rotorid.studies.nemo.study`."""
    n = Numbers(rows)
    page = Page("External wrench with model errors")
    about = f"{flights} flight{'s' if flights > 1 else ''} per scenario", f"seed {seed}"
    add_study_header(page, "nemo", about, *reversed(headline(rows)))
    _cards(page, n)
    _errors(page, n, "exact", "Table II", "Exact logs, as in the document.")
    _oracle_ratios(page, n, "exact")
    _quantiles(page, n)
    _axes(page, n)
    _series(page, curves)
    _late(page, n)
    _calibration(page, n)
    _trainings(page, n)
    page.section("Differences from the document")
    page.add(notes_list(_DIFFERENCES))
    return page.as_html()


def _error(n: Numbers, part: str, method: str, kind: str, scenario: str = "all") -> Row:
    return n.get(part, method, "rms error", scenario, setting=kind)


def _relative_to_mo(n: Numbers, part: str, method: str, kind: str) -> float:
    return _error(n, part, method, kind).value / _error(n, part, "mo", kind).value


def _relative_to_oracle(n: Numbers, part: str, method: str, kind: str, scenario: str) -> float:
    return _error(n, part, method, kind, scenario).value / _error(n, part, "oracle", kind, scenario).value


def _methods(n: Numbers, part: str) -> list[str]:
    """The methods with results."""
    return [m for m in LABELS if any(math.isfinite(_error(n, part, m, kind).value) for kind in KINDS)]


def _ratio(value: float, places: int) -> str:
    return f"{value:.{places}f}" if math.isfinite(value) else "–"


def _published(n: Numbers, kind: str, method: str = "nemo-50") -> float:
    return _error(n, "exact", method, kind).published / _error(n, "exact", "mo", kind).published


def _cards(page: Page, n: Numbers) -> None:
    cards = [
        card(
            f"NeMO / MO, {kind}",
            f"{_relative_to_mo(n, 'exact', 'nemo-50', kind):.3f}",
            note=f"published {_published(n, kind):.3f}" if kind in PUBLISHED else "not in the document",
        )
        for kind in _kinds(n, "exact")
        if math.isfinite(_relative_to_mo(n, "exact", "nemo-50", kind))
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _errors(page: Page, n: Numbers, part: str, heading: str, caption: str) -> None:
    page.section(
        heading,
        f"{caption} RMS error of force and torque (N, N m), mean over the flights ± its standard error. Last columns: error "
        "over all scenarios relative to MO, and the published ratio.",
    )
    head = ["type", "method", *SCENARIOS.values(), "relative to MO", "published"]
    body = []
    for kind in _kinds(n, part):
        for method in _methods(n, part):
            texts = [row_text(_error(n, part, method, kind, s), error=True) for s in SCENARIOS]
            published = _published(n, kind, method) if part == "exact" else math.nan
            body.append(
                [
                    kind,
                    LABELS[method],
                    *texts,
                    _ratio(_relative_to_mo(n, part, method, kind), 3),
                    number_text(published),
                ]
            )
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "method": "word"}))
    if part != "exact":
        return
    page.add('<p class="caption between">Table II of the document, sums over its flights:</p>')
    body = [
        [kind, LABELS[m], *(number_text(_error(n, part, m, kind, s).published) for s in SCENARIOS)]
        for kind in PUBLISHED
        for m in _PUBLISHED_METHODS
        if m in _methods(n, part)
    ]
    head = ["type", "method", *SCENARIOS.values()]
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "method": "word"}))


def _oracle_ratios(page: Page, n: Numbers, part: str) -> None:
    page.section(
        "Errors relative to an observer with true parameters",
        "Error with an external wrench, relative to that of MO with the true parameters, whose error is the lag of the "
        "observer, and for MGF also the flapping.",
    )
    methods = [m for m in _methods(n, part) if m != "oracle"]
    head = ["type", "scenario", *(LABELS[m] for m in methods)]
    body = [
        [kind, SCENARIOS[s], *(_ratio(_relative_to_oracle(n, part, m, kind, s), 2) for m in methods)]
        for kind in _kinds(n, part)
        for s in _WITH_WRENCH
    ]
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "scenario": "word"}))


_BOX_METHODS: Final = ("mo", "nemo-50", "identified", "identify-first")


def _quantiles(page: Page, n: Numbers) -> None:
    page.section(
        "Figures 7 and 8: distribution of the errors",
        "Boxes contain the middle half of all errors, whiskers 90 %: for the flights of a scenario, for a residual type, "
        "and for all flights by axis.",
    )
    methods = [m for m in _BOX_METHODS if m in _methods(n, "exact")]
    page.add(legend([(LABELS[m], _COLOURS[m]) for m in methods]))
    by_scenario = [(SCENARIOS[s], s, "all") for s in SCENARIOS if s != "all"]
    by_kind = [(kind, "all", kind) for kind in _kinds(n, "exact")]
    panels = []
    for what, unit in (("force", "N"), ("torque", "N m")):
        panels.append(
            page.panel(
                _box(n, methods, [(x, what, s, k) for x, s, k in by_scenario], unit),
                f"Error of the {what}, by scenario",
            )
        )
        panels.append(
            page.panel(
                _box(n, methods, [(x, what, s, k) for x, s, k in by_kind], unit),
                f"Error of the {what}, by residual type",
            )
        )
    for what, unit in (("force", "N"), ("torque", "N m")):
        axes = [(axis, f"{what}_{axis}", "all", "all") for axis in "xyz"]
        panels.append(page.panel(_box(n, methods, axes, unit), f"Error of the {what}, by axis"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _box(
    n: Numbers, methods: Sequence[str], groups: Sequence[tuple[str, str, str, str]], unit: str
) -> Figure:
    """Boxes of all methods. groups: name, quantity, scenario and residual type of each."""
    traces: list[Trace] = []
    for method in methods:

        def quantile(q: int, method: str = method) -> list[float]:
            return [
                n.get("exact", method, f"{what} q{q}", s, setting=kind).value for _, what, s, kind in groups
            ]

        box: dict[str, Any] = {
            "type": "box",
            "name": LABELS[method],
            "x": [name for name, *_ in groups],
            "q1": quantile(25),
            "median": quantile(50),
            "q3": quantile(75),
            "lowerfence": quantile(5),
            "upperfence": quantile(95),
            "line": {"color": _COLOURS[method], "width": 1.4},
            "fillcolor": f"{_COLOURS[method]}:0.25",
        }
        traces.append(box)
    figure = layout(unit, x_title="")
    figure["boxmode"] = "group"
    figure["xaxis"] |= {"type": "category"}
    return Figure(tuple(traces), figure, height=240, has_time_axis=False)


_AXES_METHODS: Final = {
    "mo": "none (MO)",
    "linear, world": "linear, world frame",
    "network, world": "network, world frame",
    "linear, body": "linear, body frame",
    "network, body": "network, body frame",
}


def _axes(page: Page, n: Numbers) -> None:
    rows = n.select("axes", "rms force_x")
    if not rows:
        return

    def ratio(method: str, axis: str) -> str:
        row = n.get("axes", method, f"ratio force_{axis}", "free-flight", setting="MG-1")
        return row_text(row, error=True)

    page.section(
        "Figure 8: why the force error along x and y is larger than that of MO",
        "The rotors' force errs by a vector that is constant in the body. The residual of the document is in the world frame "
        "and does not have the attitude as an input, so that it does not determine this vector for flights with different "
        "headings, however long it is trained: in the training flights it is smaller, in others larger. In the body frame it "
        "is linear in the inputs. Fits of the error by least squares, without the lag of the observer. RMS error in N, mean "
        f"over {rows[0].flights} seeds of flights and network ± its standard error. In free flight with MG-1, relative to MO: "
        f"network in the world frame x {ratio('network, world', 'x')}, y {ratio('network, world', 'y')}, z "
        f"{ratio('network, world', 'z')}; in the body frame x {ratio('network, body', 'x')}, y {ratio('network, body', 'y')}, "
        f"z {ratio('network, body', 'z')}.",
    )
    head = ["type", "flights", "residual", *"xyz", *(f"{axis} / MO" for axis in "xyz")]
    body = []
    for kind in dict.fromkeys(r.setting for r in rows):
        for scenario in dict.fromkeys(r.trajectory for r in rows):
            for method, label in _AXES_METHODS.items():
                texts = [
                    row_text(
                        n.get("axes", method, f"{what} force_{axis}", scenario, setting=kind), error=True
                    )
                    for what in ("rms", "ratio")
                    for axis in "xyz"
                ]
                body.append([kind, SCENARIOS.get(scenario, scenario), label, *texts])
    page.add(table(head, body, dict.fromkeys(head[3:], "number") | dict.fromkeys(head[:3], "word")))


def _series(page: Page, curves: Sequence[Curve]) -> None:
    captions = {
        "figure 5": (
            "Figure 5: free flight without external wrench",
            "Residual type MG-1. The true wrench is zero.",
        ),
        "figure 6": ("Figure 6: hovering with external wrench", "Residual type MG-2."),
    }
    for part, (heading, caption) in captions.items():
        part_curves = [c for c in curves if c.part == part]
        if not part_curves:
            continue
        page.section(heading, caption)
        methods = list(dict.fromkeys(c.method for c in part_curves))
        page.add(legend([*((LABELS[m], _COLOURS[m]) for m in methods), ("truth", "@ink")]))
        panels = []
        for quantity in dict.fromkeys(c.quantity for c in part_curves):
            group = [c for c in part_curves if c.quantity == quantity]
            traces = [line(c.t, c.value, LABELS[c.method], _COLOURS[c.method], width=1.3) for c in group]
            traces.append(line(group[0].t, group[0].truth, "truth", "@ink", width=1.0, dash="dot"))
            figure = Figure(tuple(traces), layout(group[0].unit), height=180, has_time_axis=False)
            what, axis = quantity.split("_")
            panels.append(page.panel(figure, f"{what.capitalize()} {axis}"))
        page.add(f'<div class="pairs">{"".join(panels)}</div>')


def ranking(n: Numbers, part: str, kind: str) -> list[str]:
    """The methods that were run by increasing error over all scenarios."""
    errors = {m: _error(n, part, m, kind).value for m in ("mo", "nemo-50", "identified", "identify-first")}
    return sorted((m for m, error in errors.items() if math.isfinite(error)), key=errors.__getitem__)


def _late(page: Page, n: Numbers) -> None:
    _errors(
        page,
        n,
        "late",
        "With noise and a delay of 20 ms",
        "White noise on all signals (2 mm, 0.02 m/s, 0.3°, 0.01 rad/s, rotor speeds 0.3 %), and states delayed by 20 ms "
        "relative to the rotor speeds, in training and evaluation.",
    )
    lines = []
    for kind in _kinds(n, "late"):
        exact, late = (ranking(n, part, kind) for part in ("exact", "late"))
        order = " < ".join(f"{LABELS[m]} ({_error(n, 'late', m, kind).value:.2f})" for m in late)
        lines.append(
            f"{kind}: the ranking is that of exact logs: {order}."
            if exact == late
            else f"{kind}: the ranking is not that of exact logs ({' < '.join(LABELS[m] for m in exact)}): {order}."
        )
    page.add(notes_list([_late_line(n), *lines]))


def _calibration(page: Page, n: Numbers) -> None:
    page.section(
        "Coverage of the 95 % bands",
        "Share of the time in which a component is in its 95 % band, and in which the health of the observer is good, for all "
        "types and scenarios.",
    )
    body = []
    for method in _methods(n, "exact"):
        texts = [LABELS[method]]
        for part in ("exact", "late"):
            for quantity in ("covered", "healthy"):
                values = [r.value for r in n.select(part, quantity) if r.method == method]
                texts.append(number_text(100.0 * sum(values) / len(values)) if values else "–")
        body.append(texts)
    head = ["method", "in the band (%)", "healthy (%)", "late: in the band (%)", "late: healthy (%)"]
    page.add(table(head, body, dict.fromkeys(head[1:], "number") | {"method": "word"}))


def _trainings(page: Page, n: Numbers) -> None:
    page.section(
        "Training and identification",
        "Loss on held-out data, 1 without residual. Training time of one model; models for the same flights are trained at the "
        "same time. In brackets: the residual explains too little and is left out.",
    )
    head = ["method", "logs", "epochs", "time (s)", *(f"loss, {kind}" for kind in _kinds(n, "exact"))]
    body = []
    for method, label in LABELS.items():
        for part in ("exact", "late"):
            seconds = [r.value for r in n.select(part, "seconds") if r.method == method]
            if not seconds:
                continue
            losses = [_loss_text(n, part, method, kind) for kind in _kinds(n, "exact")]
            epochs = max((r.value for r in n.select(part, "epochs") if r.method == method), default=math.nan)
            texts = [label, part, number_text(epochs) if math.isfinite(epochs) else "–"]
            body.append([*texts, number_text(sum(seconds) / len(seconds)), *losses])
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"method": "word", "logs": "word"}))


def _loss_text(n: Numbers, part: str, method: str, kind: str) -> str:
    text = number_text(n.get(part, method, "loss", setting=kind).value)
    return f"({text})" if n.get(part, method, "residual used", setting=kind).value == 0.0 else text
