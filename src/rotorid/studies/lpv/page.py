"""The page of the study of Torren 2014: Figures 4.1 to 4.12 with published and own numbers, and further results."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rotorid.report.charts import Figure, Trace, band, layout, line
from rotorid.report.page import Page, add_study_header, card, escape, grid, legend, notes_list, table
from rotorid.results.text import title
from rotorid.studies.lpv import figures
from rotorid.studies.page_parts import Numbers, number_text, row_text
from rotorid.studies.study_files import Curve, Row

MEAN_ERROR: Final = "relative error, mean"
PEAK: Final = "relative error, largest after 10 rows"
DELAY: Final = "rows from a jump to an error below 5 %"
FORMS: Final = ("ramp", "sine", "square")
OURS: Final = ("ours", "learned")
_FIGURES: Final = {
    "no changes": "–",
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
_COLOURS: Final = ("@ekf", "@ukf", "@swls", "@adaptive")

_DIFFERENCES: Final = (
    "The document shows its results as figures without data. It gives numbers only for the first test of maximum "
    "likelihood and for the third-order example; these are shown with ours.",
    "The document does not give alpha. For alpha below 1 the data contain little information on it, and no filter can "
    "follow it as in the figures. Here alpha changes above 1, where the state grows.",
    "The listings of the document use a variance instead of a standard deviation in the kernels, and propagate the state with "
    "the old parameter. Here both are as in the papers that it cites (Liu and West 2001, Nemeth and others 2012).",
    "500 rows of a stationary process do not determine its parameters to 2 %: the error of the exact posterior, from Kalman "
    "likelihoods on a grid, is as large as that of the filter.",
    "If the state grows without bound, the measurements become exact relative to it, and the spread of the particles "
    "becomes smaller than their error. The bands of the particle filters then do not contain the truth; those of the "
    "adaptive estimator mostly do.",
)


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The main results in four lines."""
    n = Numbers(rows)
    estimates = ", ".join(
        f"{name} {n.get('first test', 'maximum likelihood', 'value', name).value:.3f} "
        f"({n.get('first test', 'maximum likelihood', 'value', name).published:.3f})"
        for name in ("x1", "x2", "x3")
    )
    ours, best, adaptive = (100 * _mean_error(n, m) for m in ("ours", best_published_setting(n), "adaptive"))
    return (
        f"Changing parameter, mean relative error: particle filter {ours:.2f} %, with the best setting of the document "
        f"{best:.2f} %; adaptive estimator {adaptive:.2f} %.",
        f"Maximum likelihood, in brackets the published values: {estimates}.",
        _control_line(n),
        figures.in_flight_line(n),
    )


def best_published_setting(n: Numbers) -> str:
    """The setting of the document with the smallest mean error over all forms."""
    published = [m for m, figure in _FIGURES.items() if figure != "–" and m in _methods(n, "changes")]
    return min(published, key=lambda method: _mean_error(n, method))


def lpv_study_page(rows: Sequence[Row], curves: Sequence[Curve], seed: int) -> str:
    """The study as the HTML of a self-contained page. Rows and curves: of `rotorid.studies.lpv.study`."""
    n = Numbers(rows)
    page = Page("LPV and Bayesian identification")
    add_study_header(page, "lpv", (f"seed {seed}",), *headline(rows))
    _cards(page, n)
    _changes(page, n, curves)
    figures.add_changes(page, n, curves)
    figures.add_stationary(page, n, curves)
    _priors(page, n)
    _constant(page, n, curves)
    figures.add_slow_sine(page, n, curves)
    _unchanged(page, n, curves)
    _likelihood(page, n)
    _lengths(page, n)
    _standard(page, n)
    _control(page, n)
    figures.add_in_flight(page, n, curves)
    page.section("Differences from the document")
    page.add(notes_list(_DIFFERENCES))
    return page.as_html()


def _mean_error(n: Numbers, method: str) -> float:
    return sum(n.get("changes", method, MEAN_ERROR, form).value for form in FORMS) / len(FORMS)


def _label(method: str) -> str:
    return _LABELS.get(method, method)


def _percent(row: Row) -> str:
    return row_text(row, error=True, scale=100.0)


def _methods(n: Numbers, part: str, quantity: str = MEAN_ERROR) -> list[str]:
    return list(dict.fromkeys(r.method for r in n.select(part, quantity)))


def _cards(page: Page, n: Numbers) -> None:
    cards = []
    for form in FORMS:
        row, best = (n.get("changes", m, MEAN_ERROR, form) for m in ("ours", best_published_setting(n)))
        note = f"best setting of the document {100 * best.value:.2f} %"
        cards.append(card(f"Error, {form}", f"{100 * row.value:.2f}", "%", note))
    delay = n.get("changes", "ours", DELAY, "square")
    cards.append(card("Delay after a jump", row_text(delay, error=True), "rows", "to an error below 5 %"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _column_kinds(head: Sequence[str], words: int) -> dict[str, str]:
    """Kinds of columns: the first ones are words, the others numbers."""
    return dict.fromkeys(head[:words], "word") | dict.fromkeys(head[words:], "number")


def _changes(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figures 4.8 to 4.12: a parameter that drifts and jumps",
        "As published, and degenerate: with alpha above 1 the state grows to 1e37, and the ratio of two rows is a better "
        "estimate than that of any filter; see the stationary process below. Relative error of alpha in %: mean over all "
        "rows ± its standard error, and largest after 10 rows. Number of rows from a jump to an error below 5 %. Coverage: "
        "share of the rows with the truth in the 95 % band, in %.",
    )
    head = [
        "setting",
        "figure",
        *FORMS,
        *(f"largest, {form}" for form in FORMS),
        "rows after a jump",
        "coverage",
    ]
    body = []
    for method in _methods(n, "changes"):
        means = [_percent(n.get("changes", method, MEAN_ERROR, form)) for form in FORMS]
        peaks = [number_text(100.0 * n.get("changes", method, PEAK, form).value) for form in FORMS]
        coverage = sum(n.get("changes", method, "covered", form).value for form in FORMS) / len(FORMS)
        delay = row_text(n.get("changes", method, DELAY, "square"), error=True)
        body.append(
            [_label(method), _FIGURES.get(method, "–"), *means, *peaks, delay, number_text(100.0 * coverage)]
        )
    page.add(table(head, body, _column_kinds(head, 2)))
    methods = ("no changes", best_published_setting(n), "ours", "adaptive")
    colours = dict(zip(methods, _COLOURS, strict=True))
    page.add(legend([*((_label(m), c) for m, c in colours.items()), ("truth", "@ink")]))
    panels = []
    for form in FORMS:
        group = [
            c
            for m in methods
            for c in curves
            if c.part == "changes" and c.method == m and c.trajectory == form
        ]
        panels.append(page.panel(_figure(group, colours), title(form)))
    page.add(grid(panels))


def _figure(curves: Sequence[Curve], colours: Mapping[str, str], *, has_bands: bool = False) -> Figure:
    traces: list[Trace] = []
    for c in curves:
        if has_bands:
            traces.append(
                band(c.t, c.value - 1.96 * c.std, c.value + 1.96 * c.std, f"{colours[c.method]}:0.16")
            )
        traces.append(
            line(c.t, c.value, _label(c.method), colours[c.method], width=1.3, max_gap=2.0, std=c.std)
        )
    traces.append(line(curves[0].t, curves[0].truth, "truth", "@ink", width=1.0, dash="dot", max_gap=2.0))
    return Figure(tuple(traces), layout("", x_title="row"), height=220, has_time_axis=False)


def _priors(page: Page, n: Numbers) -> None:
    rows = [r for r in n.rows if r.part == "priors"]
    if not rows:
        return
    page.section(
        "Priors of a changed parameter (future work of the document)",
        "Mean relative error in % over all forms, by prior of the changed parameter, its width (posterior: in standard "
        "deviations of the posterior; normal: in alpha; uniform: relative to the mean), and probability of a change per "
        "row. With a drift of 0.02 per row between changes, and without drift.",
    )
    settings = [dict(part.split("=") for part in r.setting.split(", ")) for r in rows]
    betas = list(dict.fromkeys(s["beta"] for s in settings))
    by_setting = {
        (r.method, s["spread"], s["drift"], s["beta"]): r for r, s in zip(rows, settings, strict=True)
    }
    head = [
        "prior",
        "width",
        "drift",
        *(b if b == "learned" else f"{100 * float(b):g} %" for b in betas),
    ]
    body = []
    for method, spread, drift in dict.fromkeys(key[:3] for key in by_setting):
        cells = [by_setting.get((method, spread, drift, beta)) for beta in betas]
        values = [number_text(100.0 * r.value) if r else "–" for r in cells]
        body.append([method, spread if float(spread) else "–", drift, *values])
    page.add(table(head, body, _column_kinds(head, 1)))


def _constant(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figures 4.3 and 4.4: constant parameters",
        "Relative error after all rows in %: of the mean over all data sets, and of each data set. The same for the exact "
        "posterior of these data; difference of filter and exact posterior, in %; ratio of their standard deviations.",
    )
    head = [
        "figure", "particles contain", "parameter", "mean of all", "each", "std", "coverage",
        "exact: mean of all", "exact: each", "filter minus exact", "std over exact",
    ]  # fmt: skip
    body = []
    for part in ("figure 4.3", "figure 4.4"):
        for r in n.select(part, "relative error, each"):
            get = lambda quantity, r=r: n.get(r.part, r.method, quantity, r.trajectory)  # noqa: E731
            exact = "of the exact posterior: relative error, "
            body.append(
                [
                    part.split()[1], "a Kalman filter" if "Kalman" in r.method else "a state", r.trajectory,
                    _percent(get("relative error, mean of all")), _percent(r), _percent(get("std over value")),
                    _percent(get("covered")), _percent(get(exact + "mean of all")), _percent(get(exact + "each")),
                    _percent(get("difference from the exact mean")),
                    row_text(get("std over the exact std"), error=True),
                ]
            )  # fmt: skip
    page.add(table(head, body, _column_kinds(head, 3)))
    figures.add_identified(
        page, "4.3", [c for c in curves if c.part == "figure 4.3" and c.method == "Liu and West"]
    )
    methods = {"Liu and West": _COLOURS[0], "Liu and West, Kalman": _COLOURS[1]}
    page.add(legend([*methods.items(), ("truth", "@ink")]))
    panels = []
    for name in ("alpha", "V", "W"):
        group = [c for c in curves if c.part == "figure 4.4" and c.quantity == name]
        if group:
            panels.append(page.panel(_figure(group, methods, has_bands=True), f"Figure 4.4: {name}"))
    page.add(grid(panels))


def _unchanged(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Figure 4.7: changepoints with a constant parameter",
        "Relative error of a constant alpha below 1 in the second half of the data, in %.",
    )
    head = ["setting", "mean", "largest"]
    body = [
        [
            _label(m),
            *(_percent(n.get("figure 4.7", m, q, "alpha")) for q in (MEAN_ERROR, "relative error, largest")),
        ]
        for m in _methods(n, "figure 4.7")
    ]
    page.add(table(head, body, _column_kinds(head, 1)))
    methods = ("no changes", "normal, 5 %", "ours", "adaptive")
    colours: dict[str, str] = dict(zip(methods, _COLOURS, strict=True))
    group = [c for m in methods for c in curves if c.part == "figure 4.7" and c.method == m]
    if group:
        page.add(legend([*((_label(m), c) for m, c in colours.items()), ("truth", "@ink")]))
        page.add(page.panel(_figure(group, colours), "alpha"))
        figures.add_identified(page, "4.7", [c for c in group if c.method == "normal, 5 %"])


def _likelihood(page: Page, n: Numbers) -> None:
    page.section(
        "Maximum likelihood: the first test",
        "Mean over the data sets ± its standard error; estimated standard deviation, and standard deviation over the data "
        "sets; coverage of the 95 % intervals, in %.",
    )
    head = [
        "model",
        "parameter",
        "true",
        "estimate",
        "published",
        "estimated std",
        "std over data sets",
        "coverage",
    ]
    body = []
    for part, method in (
        ("first test", "maximum likelihood"),
        ("varying x1", "x1c + x1t t"),
        ("varying x1", "constant x1"),
    ):
        for r in [r for r in n.select(part, "value") if r.method == method]:
            get = lambda quantity, r=r: n.get(r.part, r.method, quantity, r.trajectory)  # noqa: E731
            label = method if part == "varying x1" else "constant, as in the document"
            body.append(
                [
                    label, r.trajectory, number_text(get("true").value), row_text(r, error=True), number_text(r.published),
                    number_text(get("estimated std").value), number_text(get("std over data sets").value),
                    _percent(get("covered")),
                ]
            )  # fmt: skip
    page.add(table(head, body, _column_kinds(head, 2)))
    gain = n.get("varying x1", "x1c + x1t t", "gain of log-likelihood", "x1t")
    page.add(
        '<p class="detail">For data with a varying x1, the log-likelihood of the varying model is higher than that of the '
        f"constant one by {escape(row_text(gain, error=True))}.</p>"
    )


def _lengths(page: Page, n: Numbers) -> None:
    page.section(
        "Figures 4.1 and 4.2: amount of data for the quadrotor",
        "Relative error of the moments of inertia in %, median over the data sets, by number of rows (50 Hz).",
    )
    figures.add_lengths(page, n)
    for part, unknown in (("figure 4.1", "one unknown"), ("figure 4.2", "two unknown")):
        rows = n.select(part, "relative error, median")
        settings = list(dict.fromkeys(r.setting for r in rows))
        head = [unknown, "", *(s.removeprefix("rows=") for s in settings)]
        body = []
        for method in dict.fromkeys(r.method for r in rows):
            for quantity, label in (
                ("relative error, median", "error"),
                ("estimated std, median", "estimated std"),
                ("failed", "failed fits"),
            ):
                scale = 1.0 if quantity == "failed" else 100.0
                cells = [
                    number_text(scale * n.get(part, method, quantity, setting=s).value) for s in settings
                ]
                body.append([method, label, *cells])
        page.add(table(head, body, _column_kinds(head, 2)))


def _standard(page: Page, n: Numbers) -> None:
    for part, heading, caption in (
        (
            "standard: third order",
            "Standard methods: the third-order example",
            "Subspace identification, and prediction-error identification with its result as the initial value.",
        ),
        (
            "standard: time-varying",
            "Standard methods: a varying coefficient",
            "The coefficient is -6 + sin(t). The residuals of a constant model are not white.",
        ),
        (
            "standard: quadrotor",
            "Standard methods: the quadrotor",
            "Forms with free entries and the grey box with physical parameters, on the same flights.",
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
        kinds = _column_kinds(head, 3) | {"unit": "word"}
        page.add(table(head, body, kinds))


def _flights(n: Numbers) -> list[tuple[str, str]]:
    return list(dict.fromkeys((r.trajectory, r.mass_profile) for r in n.select("control", "rms error")))


def _control_line(n: Numbers) -> str:
    cells = _flights(n)
    scheduled, fixed = (
        [n.get("control", m, "rms error", *cell).value for cell in cells] for m in ("LPV", "LQR")
    )
    better = sum(a < b or (a == a and b != b) for a, b in zip(scheduled, fixed, strict=True))
    return f"Gain-scheduled LPV control: smaller position error than the LQR on {better} of {len(cells)} flights."


def _control(page: Page, n: Numbers) -> None:
    page.section(
        "LPV control of the nonlinear quadrotor",
        "RMS position error in m, by trajectory and payload. All controllers have the same weights and integral action.",
    )
    methods = _methods(n, "control", "rms error")
    head = ["trajectory", "payload", *methods, "LPV: largest", "LQR: largest"]
    body = []
    for cell in _flights(n):
        errors = [_error_text(n, m, "rms error", cell) for m in methods]
        body.append([*cell, *errors, *(_error_text(n, m, "largest error", cell) for m in ("LPV", "LQR"))])
    page.add(table(head, body, _column_kinds(head, 2)))


def _error_text(n: Numbers, method: str, quantity: str, cell: tuple[str, str]) -> str:
    """An error, or "crashed"."""
    is_crashed = n.get("control", method, "crashed", *cell).value == 1.0
    return "crashed" if is_crashed else number_text(n.get("control", method, quantity, *cell).value)
