"""The page of the calibration study of `rotorid identify`: coverage of its bands over many simulated flights."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.report.charts import Figure, Trace, axis, encode_array, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, notes_list, table
from rotorid.results.text import label
from rotorid.studies.page_parts import Numbers, number_text
from rotorid.studies.study_files import Curve, Row

_PART: Final = "quantities"
_BIAS: Final = 3.0  # standard errors


def identified_quantities(n: Numbers) -> list[str]:
    """The identified quantities, in order."""
    return [r.method for r in n.select(_PART, "coverage")]


def miscalibrated(n: Numbers, target: tuple[float, float]) -> list[str]:
    """The quantities whose coverage is outside the target range: the 95 % interval of their coverage does not meet it."""
    low, high = (
        {q: n.get(_PART, q, f"coverage, {end}").value for q in identified_quantities(n)}
        for end in ("low", "high")
    )
    return [q for q in low if high[q] < target[0] or low[q] > target[1]]


def biased(n: Numbers) -> list[str]:
    """The quantities whose mean of z is more than `_BIAS` standard errors from zero."""
    return [
        q
        for q in identified_quantities(n)
        if abs(n.get(_PART, q, "mean of z").value) > _BIAS * n.get(_PART, q, "standard error of z").value
    ]


def headline(rows: Sequence[Row], target: tuple[float, float]) -> tuple[str, ...]:
    """The study in a few lines. target: range of the coverage."""
    n = Numbers(rows)
    quantities, outside = identified_quantities(n), miscalibrated(n, target)
    joint = n.get("all", "all", "coverage")
    if not quantities:
        return ("The identification failed for all flights.",)
    range_text, flights = f"{100 * target[0]:.0f} to {100 * target[1]:.0f} %", joint.flights
    lines = [
        f"The coverage of the 95 % bands agrees with {range_text} for {len(quantities) - len(outside)} of {len(quantities)} "
        f"quantities: its 95 % interval from {flights} flights meets that range. The smallest is "
        f"{_least_coverage(n, quantities)}.",
    ]
    if outside:
        lines.append(f"Outside: {', '.join(f'{label(q)} {_coverage_text(n, _PART, q)}' for q in outside)}.")
    if of_bias := biased(n):
        means = ", ".join(f"{label(q)} {_mean_text(n, q)}" for q in of_bias)
        lines.append(
            f"Biased by more than {_BIAS:.0f} standard errors (mean of z ± standard error): {means}."
        )
    lines.append(
        f"The joint 95 % region of all quantities contains the true values in {_coverage_text(n, 'all', 'all')} of the flights."
    )
    return tuple(lines)


def identify_calibration_page(
    rows: Sequence[Row],
    curves: Sequence[Curve],
    flights: int,
    failed: int,
    target: tuple[float, float],
    seed: int,
) -> str:
    """The study as a self-contained HTML page. rows, curves: of `rotorid.studies.identify.calibration`. target: range of the
    coverage."""
    n = Numbers(rows)
    page = Page("Calibration of rotorid identify")
    first, *rest = headline(rows, target)
    add_study_header(page, "identify", (f"{flights} flights", f"seed {seed}"), first, *rest)
    _cards(page, n, flights, failed)
    _coverage(page, n, target)
    _table(page, n)
    _quantiles(page, curves)
    page.section("Method")
    page.add(notes_list(_NOTES))
    _failures(page, rows)
    return page.as_html()


_NOTES: Final = (
    "Each flight has another airframe, whose parameters are random with the distribution of the prior of the identification. "
    "The mass is fixed.",
    "The trajectories are random figures with chirps on roll and pitch rate and multisines on yaw rate and thrust. The "
    "cascaded controller is designed with the prior means.",
    "The sensors have coloured noise, constant biases, vibration at three harmonics of each rotor's speed with "
    "aliasing, delays and lost samples, which the identification does not model.",
    "The IMU and the attitude are delayed by 3 ms. Delays of commands and velocity are relative to the time stamps of the IMU, "
    "whose own delay cannot be identified from a log.",
    "A band is the estimate ± 1.96 estimated standard deviations. Intervals of coverage are 95 % Wilson intervals.",
)


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _coverage_text(n: Numbers, part: str, method: str) -> str:
    """A coverage with its 95 % interval."""
    return f"{_percent(n.get(part, method, 'coverage').value)} ({_interval(n, part, method)})"


def _least_coverage(n: Numbers, quantities: Sequence[str]) -> str:
    least = min(quantities, key=lambda q: n.get(_PART, q, "coverage").value)
    return f"{_coverage_text(n, _PART, least)}, of {label(least)}"


def _mean_text(n: Numbers, quantity: str) -> str:
    mean, error = (n.get(_PART, quantity, name).value for name in ("mean of z", "standard error of z"))
    return f"{mean:+.2f} ± {error:.2f}".replace("-", "−")


def _interval(n: Numbers, part: str, method: str) -> str:
    low, high = (n.get(part, method, f"coverage, {end}").value for end in ("low", "high"))
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def _cards(page: Page, n: Numbers, flights: int, failed: int) -> None:
    coverages = [n.get(_PART, q, "coverage").value for q in identified_quantities(n)]
    joint, ratio, seconds = (n.get("all", "all", q) for q in ("coverage", "nees over dof", "seconds, median"))
    mean_coverage = f"{100 * float(np.mean(coverages)):.1f}" if coverages else "–"
    cards = [
        card("Coverage, mean over quantities", mean_coverage, "%", "target: 95"),
        card("Joint coverage of the 95 % region", f"{100 * joint.value:.1f}", "%", _interval(n, "all", "all")),
        card("NEES / degrees of freedom", number_text(ratio.value), "", "1 for a consistent covariance"),
        card("Identified", f"{flights - failed}", f"of {flights}", f"{seconds.value:.1f} s per flight, median"),
    ]  # fmt: skip
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def _coverage(page: Page, n: Numbers, target: tuple[float, float]) -> None:
    page.section(
        "Coverage by quantity",
        "Share of the flights whose 95 % band contains the true value, with its 95 % confidence interval; grey: target range.",
    )
    quantities = identified_quantities(n)[::-1]
    rows = [[n.get(_PART, q, f"coverage{end}").value for end in ("", ", low", ", high")] for q in quantities]
    share, low, high = 100.0 * np.array(rows, float).reshape(-1, 3).T
    others = set(miscalibrated(n, target))
    dots: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": encode_array(share),
        "y": [label(q) for q in quantities],
        "marker": {"size": 8, "color": ["@ukf" if q in others else "@ekf" for q in quantities]},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": (high - share).tolist(),
            "arrayminus": (share - low).tolist(),
            "color": "@soft",
            "thickness": 1.2,
            "width": 3,
        },
        "hovertemplate": "%{x:.1f} %<extra></extra>",
    }
    axes = layout("", x_title="coverage (%)", hovermode="closest")
    axes["shapes"] = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": 100 * target[0], "x1": 100 * target[1], "y0": 0, "y1": 1,
         "fillcolor": "@gap", "line": {"width": 0}, "layer": "below"},
    ]  # fmt: skip
    axes["xaxis"] = axis("coverage (%)", range=[min(60.0, float(np.min(low, initial=100.0)) - 2.0), 101.0])
    axes["yaxis"] = axis("", type="category")
    page.add(page.panel(Figure((dots,), axes, height=90 + 20 * len(quantities), has_time_axis=False)))


def _table(page: Page, n: Numbers) -> None:
    page.section(
        "Every quantity",
        "z: error divided by its estimated standard deviation. A mean of many standard errors (behind ±) is a bias. The "
        "standard deviation is 1 for a calibrated estimate. Information gain: reduction of the prior standard deviation. "
        "Errors are in SI units.",
    )
    head = [
        "quantity", "coverage (%)", "interval (%)", "mean of z", "std of z", "RMS error", "estimated std, median", "prior std",
        "information gain (%)",
    ]  # fmt: skip
    body = []
    for q in identified_quantities(n):
        value = {
            name: n.get(_PART, q, name).value
            for name in ("std of z", "rms error", "std, median", "prior std")
        }
        body.append(
            [
                label(q),
                f"{100 * n.get(_PART, q, 'coverage').value:.1f}",
                _interval(n, _PART, q).replace(" %", ""),
                _mean_text(n, q),
                f"{value['std of z']:.2f}",
                *(number_text(value[name]) for name in ("rms error", "std, median", "prior std")),
                f"{100 * n.get(_PART, q, 'information gain, median').value:.0f}",
            ]
        )
    page.add(table(head, body, {"quantity": "word"} | dict.fromkeys(head[1:], "number")))


def _quantiles(page: Page, curves: Sequence[Curve]) -> None:
    page.section(
        "Distribution of the normalised errors",
        "Quantiles of z over those of a standard normal distribution. On the dotted line the standard deviations are correct; "
        "a steeper curve means that they are too small, a flatter one that they are too large.",
    )
    panels = []
    for curve in (c for c in curves if c.part == "z"):
        traces = (
            line(curve.t, curve.value, label(curve.method), "@ekf", max_gap=np.inf),
            line(curve.t, curve.truth, "standard normal", "@ink", width=1.0, dash="dot", max_gap=np.inf),
        )
        axes = layout("z", x_title="standard normal", hovermode="closest")
        axes["yaxis"] |= {"range": [-5.0, 5.0]}
        axes["xaxis"] |= {"range": [-3.2, 3.2]}
        panels.append(page.panel(Figure(traces, axes, height=180, has_time_axis=False), label(curve.method)))
    page.add(grid(panels))


def _failures(page: Page, rows: Sequence[Row]) -> None:
    failed = [r for r in rows if r.quantity == "failed"]
    if failed:
        page.section("Flights whose identification failed")
        page.add(notes_list(f"{r.setting}: {r.method}" for r in failed))
