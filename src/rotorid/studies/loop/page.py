"""The page of the study of the closed loop: control with the mass estimated in flight, compared with the nominal mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rotorid.control.gate import Gate
from rotorid.report.charts import Figure, Trace, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, legend, notes_list, table
from rotorid.results.text import title
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
"""Pilots as the page names them."""

GATED: Final = ("ekf, gated", "adaptive, gated")
FOUND: Final = ("ekf", "adaptive", *GATED)

_COLOURS: Final = {
    "nominal": "@ukf",
    "known": "@other0",
    "ekf": "@ekf",
    "ekf, gated": "@ekf",
    "adaptive": "@swls",
    "adaptive, gated": "@adaptive",
}
_DRAWN: Final = ("nominal", "known", "ekf, gated", "adaptive", "adaptive, gated")

_WORDS: Final = {
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


def worst(n: Numbers, part: str, pilots: Sequence[str], setting: str | None = None) -> Row:
    """The largest error of a cell as a share of that with the nominal mass; setting: of one failure, None of all."""
    rows = [
        r
        for r in n.some(part, "of nominal")
        if r.trajectory and r.method in pilots and setting in (None, r.setting)
    ]
    return max(rows, key=lambda r: r.value, default=Row(part, "", "of nominal", float("nan")))


def _where(row: Row) -> str:
    return ", ".join(w for w in (row.trajectory, row.mass_profile, row.setting, LABELS.get(row.method)) if w)


def _share(row: Row, *, error: bool = False) -> str:
    return f"{row_text(row, error=error, scale=100.0)} %"


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in two lines."""
    n = Numbers(rows)
    by = ", ".join(
        f"{LABELS[p]} {_share(n.get('step', p, 'of nominal'), error=True)}"
        for p in ("adaptive", "adaptive, gated", "ekf", "ekf, gated")
    )
    cell, failing, bare = (
        worst(n, "cells", FOUND),
        worst(n, "failures", GATED),
        worst(n, "failures", ("ekf", "adaptive")),
    )
    return (
        f"After a mass step of 30 %, RMS error of the path as a share of that with the nominal mass: {by}.",
        f"Worst cell of trajectory and mass: {_share(cell)} ({_where(cell)}). With a failing estimator: {_share(failing)} with "
        f"the gate ({_where(failing)}), {_share(bare)} without it ({_where(bare)}).",
    )


def loop_page(rows: Sequence[Row], curves: Sequence[Curve], flights: int, gate: Gate, seed: int) -> str:
    """The study as the HTML of a self-contained page. Rows and curves: of `rotorid.studies.loop.study`. gate: of the
    study."""
    n = Numbers(rows)
    page = Page("Closed-loop control with the estimated mass")
    add_study_header(page, "loop", (f"{flights} flights", f"seed {seed}"), *headline(rows))
    _cards(page, n)
    _steps(page, n, curves)
    _cells(page, n, curves)
    _efforts(page, n)
    _hard(page, n)
    _failures(page, n, curves)
    page.section("Method")
    page.add(notes_list(_notes(gate)))
    return page.as_html()


def _notes(gate: Gate) -> tuple[str, ...]:
    mass, trust = gate.quantity, gate.trust
    return (
        "The controller is the NMPC of rotorid dataset: 1 s ahead at 50 Hz, thrust and body rates bounded. It has no integral "
        "action, so that an error of the mass causes a constant error of height. The mass is a parameter of each call.",
        "The estimator gets what the controller gets: attitude, position and velocity with noise (0.01 rad, 0.01 m, 0.03 m/s) "
        "at 50 Hz, and the thrust and body rates that were commanded. Each starts with 1 ± 0.3 kg.",
        "Path, mass and noise of a cell are the same for all sources of the mass. There is no wind, drag or motor lag unless "
        "stated.",
        f"The gate passes values from {mass.lower:g} to {mass.text(mass.upper)}, which change by at most "
        f"{mass.text(mass.rate)}/s. It follows the estimate after {trust.hold:g} s of good readings, with a standard deviation "
        f"below {100 * trust.max_relative_std:g} % of the value. It returns to {mass.text(mass.nominal)} after "
        f"{trust.patience:g} s without a good reading, after {gate.check.grace:g} s of disagreement with the independent mass "
        "check, and at once after a value outside the range.",
        "The independent mass check estimates the mass by least squares of velocity over the impulse of the thrust in the last "
        "0.2 s, from the signals that the controller uses. It detects an estimate that is wrong but in the range and healthy.",
        "Without the gate the controller still refuses what is not a number, and masses below 0.05 kg or above 10 kg.",
        "Cost of the gate with a working estimator: a delay at the start, and after a jump until the independent mass check "
        "agrees.",
    )


def _cards(page: Page, n: Numbers) -> None:
    half = worst(n, "step", FOUND)
    cell, failing, bare = (
        worst(n, "cells", FOUND),
        worst(n, "failures", GATED),
        worst(n, "failures", ("ekf", "adaptive")),
    )
    shown = (
        ("After a 30 % step, worst", half, f"of nominal: {_where(half)}; target: at most 50"),
        ("Worst of all cells", cell, f"of nominal: {_where(cell)}; target: at most 105"),
        ("Estimator fails, with the gate", failing, f"of nominal: {_where(failing)}; target: at most 110"),
        ("Estimator fails, no gate", bare, f"of nominal: {_where(bare)}"),
    )
    cards = [card(name, row_text(row, scale=100.0), "%", note) for name, row, note in shown]
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _table(page: Page, n: Numbers, part: str) -> None:
    """RMS error of each cell by each pilot, and what is left of the nominal one's."""
    cells = list(
        dict.fromkeys((r.trajectory, r.mass_profile) for r in n.some(part, "of nominal") if r.trajectory)
    )
    share = "adaptive + gate: of nominal"
    head = ["trajectory", "mass", *LABELS.values(), share]
    body = []
    for t, m in [*cells, ("", "")]:
        errors = [row_text(n.get(part, p, "rms error", t, m), error=True, scale=1000.0) for p in LABELS]
        of = n.get(part, "adaptive, gated", "of nominal", t, m)
        body.append([t or "all", m, *errors, _share(of, error=True)])
    page.add(table(head, body, _kinds(head, 2)))


def _kinds(head: Sequence[str], words: int) -> dict[str, str]:
    return dict.fromkeys(head[:words], "word") | dict.fromkeys(head[words:], "number")


def _steps(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "After a step of the mass by 30 %",
        "RMS distance from the path in mm, from the step on, of one flight each; all: mean ± its standard error over these.",
    )
    _table(page, n, "step")
    of = [c for c in curves if c.part == "step"]
    _panels(page, of)


def _cells(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Every trajectory with every mass profile",
        "RMS distance from the path in mm over whole flights, mean ± its standard error over the flights of a cell (all: over "
        "all flights).",
    )
    _table(page, n, "cells")
    of = [c for c in curves if c.part == "cells"]
    last = of[-1].mass_profile if of else ""
    _panels(page, [c for c in of if c.mass_profile == last])


def _panels(page: Page, curves: Sequence[Curve]) -> None:
    """Distance from the path, and mass that was planned with, of each mass profile."""
    if not curves:
        return
    page.add(legend([(LABELS[p], _COLOURS[p]) for p in _DRAWN] + [("truth", "@ink")]))
    panels = []
    for mass in dict.fromkeys(c.mass_profile for c in curves):
        of = [c for p in _DRAWN for c in curves if c.method == p and c.mass_profile == mass]
        for quantity, unit in (("error", "mm"), ("mass", "kg")):
            drawn = [c for c in of if c.quantity == quantity]
            traces = [_line(c, LABELS[c.method], _COLOURS[c.method]) for c in drawn]
            if quantity == "mass":
                traces.append(_truth(drawn[0]))
            figure = Figure(tuple(traces), layout(unit), height=220, has_time_axis=False)
            what = "distance from the path" if quantity == "error" else "mass used by the controller"
            panels.append(page.panel(figure, f"{title(drawn[0].trajectory)}, {mass}: {what}"))
    page.add(f'<div class="pairs">{"".join(panels)}</div>')


def _line(curve: Curve, name: str, colour: str, width: float = 1.3) -> Trace:
    return line(curve.t, curve.value, name, colour, width=width)


def _truth(curve: Curve) -> Trace:
    return line(curve.t, curve.truth, "truth", "@ink", width=1.0, dash="dot", step=True)


def _efforts(page: Page, n: Numbers) -> None:
    page.section(
        "Effort and saturation",
        "Over all flights of all cells: error of the mass that was planned with, standard deviation of the thrust, RMS of "
        "the body rates, and how much of the time an input is at its limit; mean ± its standard error over flights.",
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
    for pilot, label in LABELS.items():
        numbers = [row_text(n.get("cells", pilot, q), error=True, scale=scale) for q, scale in columns]
        body.append([label, *numbers, _lost(n, "cells", pilot)])
    page.add(table(head, body, _kinds(head, 1)))


def _lost(n: Numbers, part: str, pilot: str, setting: str = "") -> str:
    row = n.get(part, pilot, "lost", setting=setting)
    return f"{row.value:.0f} of {row.flights}" if row.flights else number_text(row.value)


def _hard(page: Page, n: Numbers) -> None:
    page.section(
        "With motor lag, drag and wind",
        "RMS distance from the path in mm of one flight of each cell with the wind of the hard preset of rotorid dataset: 2 to "
        "6 m/s of wind with gusts, a drag of 0.3 N s/m, motors that lag by 0.05 s. Neither controller nor estimator models "
        "them; the error with the true mass shows their effect alone.",
    )
    _table(page, n, "hard")


def _failures(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    rows = n.some("failures", "of nominal")
    failures = list(dict.fromkeys(r.setting for r in rows))
    bare, gated = (
        next((r.method for r in rows if (r.method in GATED) == gate), "") for gate in (False, True)
    )
    page.section(
        "Estimator failures",
        f"The estimator ({LABELS.get(bare, bare)}), with injected failures. RMS distance from the path as a share of that "
        "with the nominal mass on the same flight: mean over the cells ± its standard error, and the worst cell. Lost: more "
        "than 3 m off.",
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
        for pilot in (bare, gated):
            mean, most = (
                n.get("failures", pilot, "of nominal", setting=failure),
                worst(n, "failures", [pilot], failure),
            )
            texts += [
                _share(mean, error=True),
                f"{number_text(100.0 * most.value)} %",
                _lost(n, "failures", pilot, failure),
            ]
        body.append([failure, _WORDS.get(failure, ""), *texts])
    page.add(table(head, body, _kinds(head, 2) | {"effect": "long"}))
    shown = [c for c in curves if c.part.startswith("failures, ")]
    if not shown:
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
        of = {(c.method, c.quantity): c for c in shown if c.part == f"failures, {failure}"}
        said, free, used = of[gated, "said"], of[bare, "mass"], of[gated, "mass"]
        traces = (
            _line(said, "estimate", "@other0", 1.0),
            _line(free, "no gate", "@ukf"),
            _line(used, "with the gate", "@adaptive", 1.8),
            _truth(used),
        )
        drawn = layout("kg")
        drawn["yaxis"] |= {"range": [0.4, 1.7], "nticks": 5}
        heading = f"{title(failure)} ({used.trajectory}, {used.mass_profile})"
        panels.append(page.panel(Figure(traces, drawn, height=190, has_time_axis=False), heading))
    page.add(grid(panels))
