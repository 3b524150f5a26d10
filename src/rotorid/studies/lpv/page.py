"""The page of the study of seed 002: Figures 4.1 to 4.12, published numbers beside ours, and further results."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.report.charts import Figure, Trace, band, layout, line
from rotorid.report.page import Page, add_study_header, card, escape, grid, legend, notes_list, table
from rotorid.results.text import title
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve, Row

MEAN_ERROR: Final = "relative error, mean"
PEAK: Final = "relative error, greatest after 10 rows"
DELAY: Final = "rows after a jump until it is followed"
FORMS: Final = ("ramp", "sine", "square")
OURS: Final = ("ours", "learned")
_OWN: Final = {
    "no changes": "4.5",
    "normal, 5 %": "4.8, 4.9",
    "normal, 10 %": "4.10",
    "narrower normal, 10 %": "4.11",
    "uniform, 10 %": "4.12",
}
"""Figures of the document by setting."""

_LABELS: Final = {
    "ours": "changepoints, ours",
    "learned": "changepoints, rate learned",
    "adaptive": "adaptive estimator",
}
_COLOURS: Final = ("@ekf", "@ukf", "@swls", "@mo")

_DIFFERENCES: Final = (
    "The document shows its results as pictures without data; it prints numbers for the first test of maximum likelihood and "
    "for the third-order example alone. Those stand beside ours.",
    "It prints neither alpha nor its forms. Under 1 the data say little about alpha, and no filter could follow it as the "
    "pictures do: so alpha changes above 1 here, where the state grows.",
    "Its listings draw kernels with a variance for a deviation, and move the state with the old parameter. Here both are as "
    "in the papers that it follows (Liu and West 2001, Nemeth and others 2012).",
    "500 rows of a stationary process do not tell its parameters to 2 %: the exact posterior, by Kalman likelihoods on a "
    "grid, is as far from the truth as the filter.",
    "Where the state grows without bound the measurements become exact beside it, and a cloud of particles is narrower than "
    "its own error: the bands of particle filters do not hold the truth there, those of the adaptive estimator mostly do.",
)


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in three lines."""
    n = Numbers(rows)
    said = ", ".join(
        f"{name} {n.get('first test', 'maximum likelihood', 'value', name).value:.3f} "
        f"({n.get('first test', 'maximum likelihood', 'value', name).published:.3f})"
        for name in ("x1", "x2", "x3")
    )
    ours, best = (_over_forms(n, m) for m in ("ours", best_of_the_document(n)))
    return (
        f"Changing parameters by particles: mean relative error {100 * ours:.2f} %, and {100 * best:.2f} % by the "
        f"document's best setting; by the adaptive estimator {100 * _over_forms(n, 'adaptive'):.2f} %.",
        f"Maximum likelihood, in brackets as published: {said}.",
        _control_line(n),
    )


def best_of_the_document(n: Numbers) -> str:
    """Its setting with the least mean error over the forms."""
    return min(_OWN, key=lambda method: _over_forms(n, method))


def lpv_study_page(rows: Sequence[Row], curves: Sequence[Curve], seed: int) -> str:
    """The study as the HTML of a self-contained page. Rows and curves: of `rotorid.studies.lpv.study`."""
    n = Numbers(rows)
    page = Page("LPV and Bayesian identification")
    add_study_header(page, "lpv", (f"seed {seed}",), *headline(rows))
    _cards(page, n)
    _changes(page, n, curves)
    _priors(page, n)
    _constant(page, n, curves)
    _still(page, n, curves)
    _likelihood(page, n)
    _lengths(page, n)
    _standard(page, n)
    _control(page, n)
    page.section("What differs from the document, and why")
    page.add(notes_list(_DIFFERENCES))
    return page.as_html()


def _over_forms(n: Numbers, method: str) -> float:
    return sum(n.get("changes", method, MEAN_ERROR, form).value for form in FORMS) / len(FORMS)


def _label(method: str) -> str:
    return _LABELS.get(method, method)


def _percent(row: Row) -> str:
    return row_text(row, error=True, scale=100.0)


def _methods(n: Numbers, part: str, quantity: str = MEAN_ERROR) -> list[str]:
    return list(dict.fromkeys(r.method for r in n.some(part, quantity)))


def _cards(page: Page, n: Numbers) -> None:
    cards = []
    for form in FORMS:
        row, best = (n.get("changes", m, MEAN_ERROR, form) for m in ("ours", best_of_the_document(n)))
        cards.append(
            card(f"error, {form}", f"{100 * row.value:.2f}", "%", f"document's best {100 * best.value:.2f} %")
        )
    delay = n.get("changes", "ours", DELAY, "square")
    cards.append(card("after a jump", row_text(delay, error=True), "rows", "until within 5 %"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _words(head: Sequence[str], words: int) -> dict[str, str]:
    """Kinds of columns: some of words, then numbers."""
    return dict.fromkeys(head[:words], "word") | dict.fromkeys(head[words:], "number")


def _changes(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figures 4.5 and 4.8 to 4.12: a parameter that drifts and jumps",
        "Relative error of alpha in %, mean over all rows ± its standard error, and its greatest after 10 rows; how many rows "
        "pass after a jump until the error is below 5 %; and how much of the time the truth lies in the 95 % band.",
    )
    head = [
        "setting",
        "figure",
        *FORMS,
        *(f"greatest, {form}" for form in FORMS),
        "rows after a jump",
        "in the band",
    ]
    body = []
    for method in _methods(n, "changes"):
        means = [_percent(n.get("changes", method, MEAN_ERROR, form)) for form in FORMS]
        peaks = [number_text(100.0 * n.get("changes", method, PEAK, form).value) for form in FORMS]
        inside = sum(n.get("changes", method, "covered", form).value for form in FORMS) / len(FORMS)
        delay = row_text(n.get("changes", method, DELAY, "square"), error=True)
        body.append(
            [_label(method), _OWN.get(method, "–"), *means, *peaks, delay, number_text(100.0 * inside)]
        )
    page.add(table(head, body, _words(head, 2)))
    shown = ("no changes", best_of_the_document(n), "ours", "adaptive")
    page.add(legend([*((_label(m), c) for m, c in zip(shown, _COLOURS, strict=True)), ("truth", "@ink")]))
    panels = []
    for form in FORMS:
        of = [
            c for m in shown for c in curves if c.part == "changes" and c.method == m and c.trajectory == form
        ]
        panels.append(page.panel(_figure(of, dict(zip(shown, _COLOURS, strict=True))), title(form)))
    page.add(grid(panels))


def _figure(of: Sequence[Curve], colours: Mapping[str, str], *, banded: bool = False) -> Figure:
    traces: list[Trace] = []
    for c in of:
        if banded:
            traces.append(
                band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, f"{colours[c.method]}:0.16")
            )
        traces.append(
            line(c.t, c.value, _label(c.method), colours[c.method], width=1.3, max_gap=2.0, std=c.std)
        )
    traces.append(line(of[0].t, of[0].truth, "truth", "@ink", width=1.0, dash="dot", max_gap=2.0))
    return Figure(tuple(traces), layout("", x_title="row"), height=220, has_time_axis=False)


def _priors(page: Page, n: Numbers) -> None:
    rows = [r for r in n.rows if r.part == "priors"]
    if not rows:
        return
    page.section(
        "The study of priors that the document asks for",
        "Mean relative error in % over all forms, by what a changed parameter is drawn from, its spread (in standard "
        "deviations of the posterior, in alpha, as a share of the mean), and the probability of a change in a row. With a "
        "drift of 0.02 a row between changes and without it.",
    )
    settings = [dict(part.split("=") for part in r.setting.split(", ")) for r in rows]
    betas = list(dict.fromkeys(s["beta"] for s in settings))
    found = {(r.method, s["spread"], s["drift"], s["beta"]): r for r, s in zip(rows, settings, strict=True)}
    head = [
        "drawn from",
        "spread",
        "drift",
        *(b if b == "learned" else f"{100 * float(b):g} %" for b in betas),
    ]
    body = []
    for method, spread, drift in dict.fromkeys(key[:3] for key in found):
        cells = [found.get((method, spread, drift, beta)) for beta in betas]
        values = [number_text(100.0 * r.value) if r else "–" for r in cells]
        body.append([method, spread if float(spread) else "–", drift, *values])
    page.add(table(head, body, _words(head, 1)))


def _constant(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figures 4.3 and 4.4: constant parameters",
        "Error after all rows in % of the truth: of the mean over all data sets, and of each. Beside it what the exact "
        "posterior of the same data errs by, and how far the filter's mean is from the exact one.",
    )
    head = [
        "figure", "particles hold", "parameter", "mean of all", "each", "std", "in the band",
        "exact: mean of all", "exact: each", "filter beside exact", "std over exact",
    ]  # fmt: skip
    body = []
    for part in ("figure 4.3", "figure 4.4"):
        for r in n.some(part, "relative error, each"):
            of = lambda what, r=r: n.get(r.part, r.method, what, r.trajectory)  # noqa: E731
            exact = "of the exact posterior: relative error, "
            body.append(
                [
                    part.split()[1], "a Kalman filter" if "Kalman" in r.method else "a state", r.trajectory,
                    _percent(of("relative error, mean of all")), _percent(r), _percent(of("std over value")),
                    _percent(of("covered")), _percent(of(exact + "mean of all")), _percent(of(exact + "each")),
                    _percent(of("mean beside the exact posterior's")),
                    row_text(of("std over the exact posterior's"), error=True),
                ]
            )  # fmt: skip
    page.add(table(head, body, _words(head, 3)))
    methods = {"Liu and West": _COLOURS[0], "Liu and West, Kalman": _COLOURS[1]}
    page.add(legend([*methods.items(), ("truth", "@ink")]))
    panels = []
    for name in ("alpha", "V", "W"):
        of = [c for c in curves if c.part == "figure 4.4" and c.quantity == name]
        if of:
            panels.append(page.panel(_figure(of, methods, banded=True), f"Figure 4.4: {name}"))
    page.add(grid(panels))


def _still(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figure 4.7: changepoints where nothing changes",
        "Relative error of a constant alpha below 1 in the second half of the data, in %: what it costs to expect changes.",
    )
    head = ["setting", "mean", "greatest"]
    body = [
        [
            _label(m),
            *(_percent(n.get("figure 4.7", m, q, "alpha")) for q in (MEAN_ERROR, "relative error, greatest")),
        ]
        for m in _methods(n, "figure 4.7")
    ]
    page.add(table(head, body, _words(head, 1)))
    methods = ("no changes", "normal, 5 %", "ours", "adaptive")
    shown: dict[str, str] = dict(zip(methods, _COLOURS, strict=True))
    of = [c for m in shown for c in curves if c.part == "figure 4.7" and c.method == m]
    if of:
        page.add(legend([*((_label(m), c) for m, c in shown.items()), ("truth", "@ink")]))
        page.add(page.panel(_figure(of, shown), "alpha"))


def _likelihood(page: Page, n: Numbers) -> None:
    page.section(
        "Maximum likelihood: the first test",
        "Mean over the data sets ± its standard error; the standard deviation that a fit tells of itself, and the scatter of "
        "fits; how many of their 95 % intervals hold the truth.",
    )
    head = ["model", "parameter", "true", "found", "published", "its own std", "scatter", "in the interval"]
    body = []
    for part, method in (
        ("first test", "maximum likelihood"),
        ("varying x1", "x1c + x1t t"),
        ("varying x1", "constant x1"),
    ):
        for r in [r for r in n.some(part, "value") if r.method == method]:
            of = lambda what, r=r: n.get(r.part, r.method, what, r.trajectory)  # noqa: E731
            label = method if part == "varying x1" else "constant, as the document's"
            body.append(
                [
                    label, r.trajectory, number_text(of("true").value), row_text(r, error=True), number_text(r.published),
                    number_text(of("its own std").value), number_text(of("scatter").value), _percent(of("covered")),
                ]
            )  # fmt: skip
    page.add(table(head, body, _words(head, 2)))
    gain = n.get("varying x1", "x1c + x1t t", "gain of log-likelihood", "x1t")
    page.add(
        f'<p class="detail">Where x1 changes, a model that says so gains {escape(row_text(gain, error=True))} in '
        "log-likelihood over one that does not.</p>"
    )


def _lengths(page: Page, n: Numbers) -> None:
    page.section(
        "Figures 4.1 and 4.2: how many data the quadrotor needs",
        "Relative error of its inertias in %, median over the data sets, by the number of rows, 0.02 s apart.",
    )
    for part, unknown in (("figure 4.1", "one unknown"), ("figure 4.2", "two unknown")):
        rows = n.some(part, "relative error, median")
        settings = list(dict.fromkeys(r.setting for r in rows))
        head = [unknown, "", *(s.removeprefix("rows=") for s in settings)]
        body = []
        for method in dict.fromkeys(r.method for r in rows):
            for quantity, what in (
                ("relative error, median", "error"),
                ("its own std, median", "its own std"),
                ("failed", "fits that failed"),
            ):
                scale = 1.0 if quantity == "failed" else 100.0
                cells = [
                    number_text(scale * n.get(part, method, quantity, setting=s).value) for s in settings
                ]
                body.append([method, what, *cells])
        page.add(table(head, body, _words(head, 2)))


def _standard(page: Page, n: Numbers) -> None:
    for part, heading, caption in (
        (
            "standard: third order",
            "Standard methods: the third-order example",
            "Subspace identification, and prediction errors from there.",
        ),
        (
            "standard: time-varying",
            "Standard methods: a coefficient that varies",
            "-6 + sin(t): a constant model finds one number; its residuals tell that something is wrong.",
        ),
        (
            "standard: quadrotor",
            "Standard methods: why the quadrotor defeats them",
            "Forms of free entries beside the physical parameters on the same flights.",
        ),
    ):
        rows = [r for r in n.rows if r.part == part]
        page.section(heading, caption)
        head = ["method", "quantity", "setting", "value", "unit", "published"]
        body = [
            [
                r.method, " ".join(filter(None, (r.quantity, r.trajectory))), r.setting, row_text(r, error=True), r.unit,
                number_text(r.published),
            ]
            for r in rows
        ]  # fmt: skip
        kinds = _words(head, 3) | {"unit": "word"}
        page.add(table(head, body, kinds))


def _flights(n: Numbers) -> list[tuple[str, str]]:
    return list(dict.fromkeys((r.trajectory, r.mass_profile) for r in n.some("control", "rms error")))


def _control_line(n: Numbers) -> str:
    cells = _flights(n)
    ours, fixed = ([n.get("control", m, "rms error", *cell).value for cell in cells] for m in ("LPV", "LQR"))
    better = sum(a < b or (a == a and b != b) for a, b in zip(ours, fixed, strict=True))
    return (
        f"Gain-scheduled LPV control: closer to its course than the LQR on {better} of {len(cells)} flights."
    )


def _control(page: Page, n: Numbers) -> None:
    page.section(
        "LPV control of the nonlinear quadrotor",
        "Rms distance from the wanted position in m, by course and payload. All have the same weights and integral action.",
    )
    methods = _methods(n, "control", "rms error")
    head = ["course", "payload", *methods, "LPV: largest", "LQR: largest"]
    body = []
    for cell in _flights(n):
        errors = [_or_lost(n, m, "rms error", cell) for m in methods]
        body.append([*cell, *errors, *(_or_lost(n, m, "largest error", cell) for m in ("LPV", "LQR"))])
    page.add(table(head, body, _words(head, 2)))


def _or_lost(n: Numbers, method: str, quantity: str, cell: tuple[str, str]) -> str:
    lost = n.get("control", method, "lost", *cell).value
    value = n.get("control", method, quantity, *cell).value
    return "crashed" if lost == 1.0 else number_text(value)
