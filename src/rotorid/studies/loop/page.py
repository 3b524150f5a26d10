"""The page of the closed-loop study: control with the model estimated in flight, compared with the nominal one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rotorid.control.gate import Gate
from rotorid.report.charts import Figure, Trace, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, legend, notes_list, table
from rotorid.results.text import title
from rotorid.studies.loop.model_page import add_model_section, model_headline, worst_model_cell
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve, Row

LABELS: Final = {
    "nominal": "nominal mass",
    "known": "true mass",
    "ekf": "EKF",
    "ekf, gated": "EKF + gate",
    "adaptive": "adaptive",
    "adaptive, gated": "adaptive + gate",
}
"""Names of the mass sources on the page."""

GATED_SOURCES: Final = ("ekf, gated", "adaptive, gated")
ESTIMATED_SOURCES: Final = ("ekf", "adaptive", *GATED_SOURCES)

_COLOURS: Final = {
    "nominal": "@ukf",
    "known": "@other0",
    "ekf": "@ekf",
    "ekf, gated": "@ekf",
    "adaptive": "@swls",
    "adaptive, gated": "@adaptive",
}
_FIGURE_SOURCES: Final = ("nominal", "known", "ekf, gated", "adaptive", "adaptive, gated")

_EFFECTS: Final = {
    "frozen": "from 5 s on the measurements are constant",
    "thrust high": "the thrust input is 1.3 times the true one",
    "thrust low": "from 5 s on the thrust input is 0.75 times the true one",
    "mirrored": "from 5 s on it reports twice the nominal mass minus its estimate, with good health",
    "stuck": "from 5 s on it repeats its last report, with good health",
    "drifting": "from 5 s on its report drifts by 3 %/s, with good health",
    "delayed": "its reports are delayed by 3 s",
    "no output": "from 5 s on there are no reports",
    "invalid": "from 5 s on every third report is NaN, infinite, negative or 100 kg",
}


def worst_cell(n: Numbers, part: str, sources: Sequence[str], failure: str | None = None) -> Row:
    """The row of the cell with the largest error relative to the nominal mass. failure: only with this failure."""
    rows = [
        r
        for r in n.select(part, "of nominal")
        if r.trajectory and r.method in sources and failure in (None, r.setting)
    ]
    return max(rows, key=lambda r: r.value, default=Row(part, "", "of nominal", float("nan")))


def _conditions(row: Row) -> str:
    """Trajectory, mass profile, failure and mass source of a row."""
    return ", ".join(w for w in (row.trajectory, row.mass_profile, row.setting, LABELS.get(row.method)) if w)


def _percent(row: Row, *, error: bool = False) -> str:
    return f"{row_text(row, error=error, scale=100.0)} %"


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in three lines."""
    n = Numbers(rows)
    errors = ", ".join(
        f"{LABELS[source]} {_percent(n.get('step', source, 'of nominal'), error=True)}"
        for source in ("adaptive", "adaptive, gated", "ekf", "ekf, gated")
    )
    cell, gated, ungated = (
        worst_cell(n, "cells", ESTIMATED_SOURCES),
        worst_cell(n, "failures", GATED_SOURCES),
        worst_cell(n, "failures", ("ekf", "adaptive")),
    )
    return (
        f"After a mass step of 30 %, RMS error of the path as a share of that with the nominal mass: {errors}.",
        f"Worst cell of trajectory and mass: {_percent(cell)} ({_conditions(cell)}). With a failing estimator: "
        f"{_percent(gated)} with the gate ({_conditions(gated)}), {_percent(ungated)} without it ({_conditions(ungated)}).",
        model_headline(n),
    )


def loop_page(rows: Sequence[Row], curves: Sequence[Curve], flights: int, gate: Gate, seed: int) -> str:
    """The study as a self-contained HTML page. rows, curves: of `rotorid.studies.loop.study`. gate: its settings."""
    n = Numbers(rows)
    page = Page("Closed-loop control with the estimated mass")
    add_study_header(page, "loop", (f"{flights} flights", f"seed {seed}"), *headline(rows))
    _cards(page, n)
    _steps(page, n, curves)
    _cells(page, n, curves)
    _efforts(page, n)
    _hard(page, n)
    add_model_section(page, n, curves)
    _failures(page, n, curves)
    page.section("Method")
    page.add(notes_list(_notes(gate)))
    return page.as_html()


def _notes(gate: Gate) -> tuple[str, ...]:
    mass, trust = gate.quantity, gate.trust
    return (
        "The controller is the NMPC of rotorid dataset with a horizon of 1 s at 50 Hz and bounds of thrust and body rates. "
        "It has no integral action, so that an error of the mass causes a constant error of height. The mass is a parameter of "
        "each call.",
        "The estimator has the same inputs as the controller: attitude, position and velocity with noise (0.01 rad, 0.01 m, "
        "0.03 m/s) at 50 Hz, and the commanded thrust and body rates. Its initial mass is 1 ± 0.3 kg.",
        "Path, mass and noise of a cell are the same for all sources of the mass. There is no wind, drag or motor lag unless "
        "stated.",
        f"The gate passes values from {mass.lower:g} to {mass.text(mass.upper)} and limits their rate of change to "
        f"{mass.text(mass.rate)}/s. It follows the estimate after {trust.hold:g} s of good readings, with a standard deviation "
        f"below {100 * trust.max_relative_std:g} % of the value. It returns to {mass.text(mass.nominal)} after "
        f"{trust.patience:g} s without a good reading, after {gate.check.grace:g} s of disagreement with the independent mass "
        "check, and at once after a value outside the range.",
        "The independent mass check estimates the mass by least squares of velocity over the impulse of the thrust in the last "
        "0.2 s, from the signals that the controller uses. It detects an estimate that is wrong but in the range and healthy.",
        "Without the gate the controller rejects only values that are not finite, below 0.05 kg or above 10 kg.",
        "With a working estimator the gate causes a delay at the start, and after a jump of the mass until the independent "
        "mass check agrees.",
    )


def _cards(page: Page, n: Numbers) -> None:
    step = worst_cell(n, "step", ESTIMATED_SOURCES)
    cell, gated, ungated = (
        worst_cell(n, "cells", ESTIMATED_SOURCES),
        worst_cell(n, "failures", GATED_SOURCES),
        worst_cell(n, "failures", ("ekf", "adaptive")),
    )
    entries = (
        ("After a 30 % step, worst", step, f"of nominal: {_conditions(step)}; target: at most 50"),
        ("Worst of all cells", cell, f"of nominal: {_conditions(cell)}; target: at most 105"),
        ("Estimator fails, with the gate", gated, f"of nominal: {_conditions(gated)}; target: at most 110"),
        ("Estimator fails, no gate", ungated, f"of nominal: {_conditions(ungated)}"),
    )
    model = worst_model_cell(n)
    cards = [card(name, row_text(row, scale=100.0), "%", note) for name, row, note in entries]
    whole = f"of nominal: {_conditions(model)}; target: at most 50"
    cards.insert(
        1, card("With wind, drag and lag, whole model, worst", row_text(model, scale=100.0), "%", whole)
    )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _table(page: Page, n: Numbers, part: str) -> None:
    """RMS error of each cell with each mass source, and the error with the adaptive estimator relative to the nominal."""
    cells = list(
        dict.fromkeys((r.trajectory, r.mass_profile) for r in n.select(part, "of nominal") if r.trajectory)
    )
    head = ["trajectory", "mass", *LABELS.values(), "adaptive + gate: of nominal"]
    body = []
    for t, m in [*cells, ("", "")]:
        errors = [row_text(n.get(part, s, "rms error", t, m), error=True, scale=1000.0) for s in LABELS]
        ratio = n.get(part, "adaptive, gated", "of nominal", t, m)
        body.append([t or "all", m, *errors, _percent(ratio, error=True)])
    page.add(table(head, body, _column_kinds(head, 2)))


def _column_kinds(head: Sequence[str], words: int) -> dict[str, str]:
    """Kinds of the columns of a table: the first ones are words, the others are numbers."""
    return dict.fromkeys(head[:words], "word") | dict.fromkeys(head[words:], "number")


def _steps(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "After a mass step of 30 %",
        "RMS distance from the path in mm from the step on, one flight each; all: mean ± its standard error over these.",
    )
    _table(page, n, "step")
    _panels(page, [c for c in curves if c.part == "step"])


def _cells(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Every trajectory with every mass profile",
        "RMS distance from the path in mm over whole flights: mean ± its standard error over the flights of a cell (all: over "
        "all flights).",
    )
    _table(page, n, "cells")
    cell_curves = [c for c in curves if c.part == "cells"]
    last_profile = cell_curves[-1].mass_profile if cell_curves else ""
    _panels(page, [c for c in cell_curves if c.mass_profile == last_profile])


def _panels(page: Page, curves: Sequence[Curve]) -> None:
    """Figures of the distance from the path and of the mass used by the controller, for each mass profile."""
    if not curves:
        return
    page.add(legend([(LABELS[s], _COLOURS[s]) for s in _FIGURE_SOURCES] + [("truth", "@ink")]))
    panels = []
    for mass in dict.fromkeys(c.mass_profile for c in curves):
        sorted_curves = [
            c for s in _FIGURE_SOURCES for c in curves if c.method == s and c.mass_profile == mass
        ]
        for quantity, unit in (("error", "mm"), ("mass", "kg")):
            panel_curves = [c for c in sorted_curves if c.quantity == quantity]
            traces = [_line(c, LABELS[c.method], _COLOURS[c.method]) for c in panel_curves]
            if quantity == "mass":
                traces.append(_truth(panel_curves[0]))
            figure = Figure(tuple(traces), layout(unit), height=220, has_time_axis=False)
            heading = "distance from the path" if quantity == "error" else "mass used by the controller"
            panels.append(page.panel(figure, f"{title(panel_curves[0].trajectory)}, {mass}: {heading}"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _line(curve: Curve, name: str, colour: str, width: float = 1.3) -> Trace:
    return line(curve.t, curve.value, name, colour, width=width)


def _truth(curve: Curve) -> Trace:
    return line(curve.t, curve.truth, "truth", "@ink", width=1.0, dash="dot", step=True)


def _efforts(page: Page, n: Numbers) -> None:
    page.section(
        "Effort and saturation",
        "Over all flights of all cells: RMS error of the mass used by the controller, standard deviation of the thrust, RMS of "
        "the body rates, share of the time with an input at its limit; mean ± its standard error over flights.",
    )
    head = [
        "source of the mass", "error of the mass (%)", "thrust (N)", "body rates (rad/s)", "saturated (%)",
        "largest error (mm)", "lost",
    ]  # fmt: skip
    columns = (
        ("error of the mass", 1.0), ("thrust effort", 1.0), ("body rate effort", 1.0), ("saturated", 100.0),
        ("largest error", 1000.0),
    )  # fmt: skip
    body = []
    for source, label in LABELS.items():
        numbers = [row_text(n.get("cells", source, q), error=True, scale=scale) for q, scale in columns]
        body.append([label, *numbers, _lost_text(n, "cells", source)])
    page.add(table(head, body, _column_kinds(head, 1)))


def _lost_text(n: Numbers, part: str, source: str, failure: str = "") -> str:
    """Number of lost flights and number of flights."""
    row = n.get(part, source, "lost", setting=failure)
    return f"{row.value:.0f} of {row.flights}" if row.flights else number_text(row.value)


def _hard(page: Page, n: Numbers) -> None:
    page.section(
        "With motor lag, drag and wind",
        "RMS distance from the path in mm of one flight of each cell, with the hard preset of rotorid dataset: wind of 2 to "
        "6 m/s with gusts, drag of 0.3 N s/m, motor lag of 0.05 s. Neither the controller nor the estimator models them; the "
        "error with the true mass is due to them alone.",
    )
    _table(page, n, "hard")


def _failures(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    rows = n.select("failures", "of nominal")
    failures = list(dict.fromkeys(r.setting for r in rows))
    ungated, gated = (
        next((r.method for r in rows if (r.method in GATED_SOURCES) == is_gated), "")
        for is_gated in (False, True)
    )
    page.section(
        "Estimator failures",
        f"Injected failures of the estimator ({LABELS.get(ungated, ungated)}). RMS distance from the path as a share of that "
        "with the nominal mass in the same flight: mean over the cells ± its standard error, and the worst cell. Lost: flights "
        "with a distance of more than 3 m.",
    )
    head = [
        "failure",
        "effect",
        "no gate",
        "worst cell",
        "lost",
        "with the gate",
        "worst cell ",
        "lost ",
    ]
    body = []
    for failure in failures:
        texts = []
        for source in (ungated, gated):
            mean = n.get("failures", source, "of nominal", setting=failure)
            worst = worst_cell(n, "failures", [source], failure)
            texts += [
                _percent(mean, error=True),
                f"{number_text(100.0 * worst.value)} %",
                _lost_text(n, "failures", source, failure),
            ]
        body.append([failure, _EFFECTS.get(failure, ""), *texts])
    page.add(table(head, body, _column_kinds(head, 2) | {"effect": "long"}))
    failure_curves = [c for c in curves if c.part.startswith("failures, ")]
    if not failure_curves:
        return
    keys = [
        ("estimate", "@other0"),
        ("no gate", "@ukf"),
        ("with the gate", "@adaptive"),
        ("truth", "@ink"),
    ]
    page.add(legend(keys))
    panels = []
    for failure in failures:
        by_source = {(c.method, c.quantity): c for c in failure_curves if c.part == f"failures, {failure}"}
        estimate, without_gate, with_gate = (
            by_source[key] for key in ((gated, "estimate"), (ungated, "mass"), (gated, "mass"))
        )
        traces = (
            _line(estimate, "estimate", "@other0", 1.0),
            _line(without_gate, "no gate", "@ukf"),
            _line(with_gate, "with the gate", "@adaptive", 1.8),
            _truth(with_gate),
        )
        axes = layout("kg")
        axes["yaxis"] |= {"range": [0.4, 1.7], "nticks": 5}
        heading = f"{title(failure)} ({with_gate.trajectory}, {with_gate.mass_profile})"
        panels.append(page.panel(Figure(traces, axes, height=190, has_time_axis=False), heading))
    page.add(grid(panels))
