"""The page of the study of seed 001: Table II and Figures 5 to 8, published numbers beside ours, and further results."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from rotorid.report.charts import Figure, Trace, layout, line
from rotorid.report.page import Page, add_study_header, card, legend, notes_list, table
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve, Row

LABELS: Final = {
    "mo": "MO",
    "nemo-1": "NeMO, α = 1",
    "nemo-25": "NeMO, α = 25",
    "nemo-50": "NeMO, α = 50",
    "nemo-body": "NeMO, body frame",
    "identified": "MO, identified physics",
    "identify-first": "identified, then learned",
    "oracle": "MO, true physics",
}
"""Methods as the page names them."""

KINDS: Final = ("G", "MG-1", "MG-2", "MGD")
SCENARIOS: Final = {
    "hover": "hovering",
    "free-flight": "free flight",
    "hover-wrench": "hovering + wrench",
    "free-flight-wrench": "free flight + wrench",
    "all": "all",
}
_PUSHED: Final = ("hover-wrench", "free-flight-wrench")
_COLOURS: Final = {"mo": "@ukf", "nemo-1": "@swls", "nemo-50": "@swls", "identify-first": "@ekf"}
_SEED: Final = ("mo", "nemo-1", "nemo-25", "nemo-50")

_DIFFERENCES: Final = (
    "The document sums RMS errors over flights whose number it does not tell, and mixes N with N m. Ours are means over the "
    "flights "
    "of a scenario, of the same mixture; so only ratios can be compared. Errors count from 1 s on.",
    "It gives no arm length, no size or speed of its lemniscates, no size of the pushes, no gain of the observer and no "
    "bounds of "
    "the rotors: 0.39 m, 0.75 to 2.5 m, 1.5 to 5 N and 0.15 to 0.5 N m for 1.5 to 3 s, 10 per s, and a quarter to twice the "
    "thrust of hovering are ours.",
    "The lag of the observer stands in every number with an external wrench: that is what the one with true physics has left.",
    "A longer horizon is trained from the weights of the shorter one, on windows that overlap by half, which a laptop can do.",
    "The document splits the network into translation and rotation, in the world frame. In the body frame, beside a linear "
    "map, "
    "all four types are linear: wrong thrust, geometry, mass, inertia and drag.",
    "Errors of mass and thrust cannot be separated in free flight, where only their ratio acts; the identified wrench is "
    "as wrong as the mass was taken to be sure. The document's errors of the mass, 2.5 %, are taken as that.",
    "MGD is understood as physics that believes in a drag and a friction which the vehicle does not have: the flights are "
    "the same "
    "for all types, as the document says.",
)


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in two lines."""
    n = Numbers(rows)
    nemo = ", ".join(
        f"{kind} {_of_mo(n, 'exact', 'nemo-50', kind):.3f} ({_published(n, kind):.3f})" for kind in KINDS
    )
    worst = max(_of_oracle(n, "exact", "identify-first", kind, s) for kind in KINDS for s in _PUSHED)
    body = max(_of_oracle(n, "exact", "nemo-50", kind, s) for kind in KINDS for s in _PUSHED)
    return (
        f"Error of NeMO (α = 50) over that of MO, in brackets as published: {nemo}.",
        f"Physics identified first, then learned: at most {worst:.2f} times the error of an observer with true physics where "
        f"something pushes; NeMO (α = 50): at most {body:.2f} times.",
    )


def nemo_page(rows: Sequence[Row], curves: Sequence[Curve], flights: int, seed: int) -> str:
    """The study as the HTML of a self-contained page. Rows and curves: of `rotorid.studies.nemo.study`."""
    n = Numbers(rows)
    page = Page("The external wrench with wrong physics")
    about = "9 training flights", f"{flights} flights a scenario", f"seed {seed}"
    add_study_header(page, "nemo", about, *reversed(headline(rows)))
    _cards(page, n)
    _errors(page, n, "exact", "Table II", "Exact logs, as in the document.")
    _beyond(page, n, "exact")
    _boxes(page, n)
    _series(page, curves)
    _late(page, n)
    _honesty(page, n)
    _trainings(page, n)
    page.section("What differs from the document, and why")
    page.add(notes_list(_DIFFERENCES))
    return page.as_html()


def _error(n: Numbers, part: str, method: str, kind: str, scenario: str = "all") -> Row:
    return n.get(part, method, "rms error", scenario, setting=kind)


def _of_mo(n: Numbers, part: str, method: str, kind: str) -> float:
    return _error(n, part, method, kind).value / _error(n, part, "mo", kind).value


def _of_oracle(n: Numbers, part: str, method: str, kind: str, scenario: str) -> float:
    return _error(n, part, method, kind, scenario).value / _error(n, part, "oracle", kind, scenario).value


def _ratio(value: float, places: int) -> str:
    return f"{value:.{places}f}" if math.isfinite(value) else "–"


def _published(n: Numbers, kind: str, method: str = "nemo-50") -> float:
    return _error(n, "exact", method, kind).published / _error(n, "exact", "mo", kind).published


def _cards(page: Page, n: Numbers) -> None:
    cards = [
        card(
            f"NeMO / MO, {kind}",
            f"{_of_mo(n, 'exact', 'nemo-50', kind):.3f}",
            note=f"published {_published(n, kind):.3f}",
        )
        for kind in KINDS
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _errors(page: Page, n: Numbers, part: str, heading: str, caption: str) -> None:
    page.section(
        heading,
        f"{caption} RMS error of force and torque (N, N m), mean over the flights ± its standard error; in the last columns "
        "all "
        "scenarios together over MO, ours and as published.",
    )
    head = ["type", "method", *SCENARIOS.values(), "of MO", "published"]
    body = []
    for kind in KINDS:
        for method, label in LABELS.items():
            texts = [row_text(_error(n, part, method, kind, s), error=True) for s in SCENARIOS]
            published = _published(n, kind, method) if part == "exact" else math.nan
            body.append(
                [kind, label, *texts, _ratio(_of_mo(n, part, method, kind), 3), number_text(published)]
            )
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "method": "word"}))
    if part != "exact":
        return
    page.add('<p class="caption between">The document\'s own Table II, sums over its flights:</p>')
    body = [
        [kind, LABELS[m], *(number_text(_error(n, part, m, kind, s).published) for s in SCENARIOS)]
        for kind in KINDS
        for m in _SEED
    ]
    head = ["type", "method", *SCENARIOS.values()]
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "method": "word"}))


def _beyond(page: Page, n: Numbers, part: str) -> None:
    page.section(
        "Against an observer with true physics",
        "Error over that of MO with the vehicle's true parameters, where something pushes. Its own error is the lag of the "
        "observer.",
    )
    methods = [m for m in LABELS if m != "oracle"]
    head = ["type", "scenario", *(LABELS[m] for m in methods)]
    body = [
        [kind, SCENARIOS[s], *(_ratio(_of_oracle(n, part, m, kind, s), 2) for m in methods)]
        for kind in KINDS
        for s in _PUSHED
    ]
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"type": "word", "scenario": "word"}))


_BOXED: Final = ("mo", "nemo-50", "identify-first")


def _boxes(page: Page, n: Numbers) -> None:
    page.section(
        "Figures 7 and 8: where the errors lie",
        "Boxes hold the middle half of all errors, whiskers 90 %. Over all flights of a scenario, of a type, and over all, "
        "by axis.",
    )
    page.add(legend([(LABELS[m], _COLOURS[m]) for m in _BOXED]))
    by_scenario = [(SCENARIOS[s], s, "all") for s in SCENARIOS if s != "all"]
    by_kind = [(kind, "all", kind) for kind in KINDS]
    panels = []
    for what, unit in (("force", "N"), ("torque", "N m")):
        panels.append(
            page.panel(
                _box(n, [(x, what, s, k) for x, s, k in by_scenario], unit),
                f"Error of the {what}, by scenario",
            )
        )
        panels.append(
            page.panel(
                _box(n, [(x, what, s, k) for x, s, k in by_kind], unit),
                f"Error of the {what}, by residual type",
            )
        )
    for what, unit in (("force", "N"), ("torque", "N m")):
        axes = [(axis, f"{what}_{axis}", "all", "all") for axis in "xyz"]
        panels.append(page.panel(_box(n, axes, unit), f"Error of the {what}, by axis"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _box(n: Numbers, groups: Sequence[tuple[str, str, str, str]], unit: str) -> Figure:
    """groups: name, quantity, scenario, residual type."""
    traces: list[Trace] = []
    for method in _BOXED:

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
    drawn = layout(unit, x_title="")
    drawn["boxmode"] = "group"
    drawn["xaxis"] |= {"type": "category"}
    return Figure(tuple(traces), drawn, height=240, has_time_axis=False)


def _series(page: Page, curves: Sequence[Curve]) -> None:
    captions = {
        "figure 5": (
            "Figure 5: free flight, nothing pushes",
            "Residual type MG-1. What is not zero is wrong.",
        ),
        "figure 6": ("Figure 6: hovering under pushes", "Residual type MG-2."),
    }
    for part, (heading, caption) in captions.items():
        some = [c for c in curves if c.part == part]
        if not some:
            continue
        page.section(heading, caption)
        methods = list(dict.fromkeys(c.method for c in some))
        page.add(legend([*((LABELS[m], _COLOURS[m]) for m in methods), ("truth", "@ink")]))
        panels = []
        for quantity in dict.fromkeys(c.quantity for c in some):
            of = [c for c in some if c.quantity == quantity]
            traces = [line(c.t, c.value, LABELS[c.method], _COLOURS[c.method], width=1.3) for c in of]
            traces.append(line(of[0].t, of[0].truth, "truth", "@ink", width=1.0, dash="dot"))
            figure = Figure(tuple(traces), layout(of[0].unit), height=180, has_time_axis=False)
            what, axis = quantity.split("_")
            panels.append(page.panel(figure, f"{what.capitalize()} {axis}"))
        page.add(f'<div class="pairs">{"".join(panels)}</div>')


def ranking(n: Numbers, part: str, kind: str) -> list[str]:
    """The methods of the seed and ours, the one with the least error over all scenarios first."""
    errors = {m: _error(n, part, m, kind).value for m in ("mo", "nemo-50", "identified", "identify-first")}
    return sorted((m for m, error in errors.items() if math.isfinite(error)), key=errors.__getitem__)


def _late(page: Page, n: Numbers) -> None:
    _errors(
        page,
        n,
        "late",
        "With noise, and 20 ms late",
        "White noise on all that is logged (2 mm, 0.02 m/s, 0.3°, 0.01 rad/s, rotor speeds 0.3 %), and states 20 ms behind "
        "the rotor "
        "speeds, in training and in use.",
    )
    lines = []
    for kind in KINDS:
        exact, late = ([m for m in ranking(n, part, kind) if m != "identified"] for part in ("exact", "late"))
        order = " < ".join(LABELS[m] for m in late)
        lines.append(f"{kind}: the ranking {'holds' if exact == late else 'changes'}: {order}.")
    page.add(notes_list(lines))


def _honesty(page: Page, n: Numbers) -> None:
    page.section(
        "What the bands are worth",
        "Share of the time in which a component lies in its 95 % band, and in which the observer calls itself healthy, over "
        "all "
        "types and scenarios.",
    )
    body = []
    for method, label in LABELS.items():
        texts = [label]
        for part in ("exact", "late"):
            for quantity in ("covered", "healthy"):
                values = [r.value for r in n.some(part, quantity) if r.method == method]
                texts.append(number_text(100.0 * sum(values) / len(values)) if values else "–")
        body.append(texts)
    head = ["method", "in the band (%)", "healthy (%)", "late: in the band (%)", "late: healthy (%)"]
    page.add(table(head, body, dict.fromkeys(head[1:], "number") | {"method": "word"}))


def _trainings(page: Page, n: Numbers) -> None:
    page.section(
        "Training and identification",
        "Loss on what was held out, 1 being physics alone; seconds for one model, four being trained at once.",
    )
    head = ["method", "logs", "epochs", "seconds a model", *(f"loss, {kind}" for kind in KINDS)]
    body = []
    for method, label in LABELS.items():
        for part in ("exact", "late"):
            seconds = [r.value for r in n.some(part, "seconds") if r.method == method]
            if not seconds:
                continue
            losses = [number_text(n.get(part, method, "loss", setting=kind).value) for kind in KINDS]
            epochs = n.get(part, method, "epochs", setting=KINDS[0]).value
            texts = [label, part, number_text(epochs) if math.isfinite(epochs) else "–"]
            body.append([*texts, number_text(sum(seconds) / len(seconds)), *losses])
    page.add(table(head, body, dict.fromkeys(head[2:], "number") | {"method": "word", "logs": "word"}))
