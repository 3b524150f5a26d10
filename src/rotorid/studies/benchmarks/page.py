"""The page of the study of public benchmarks: our rows beside the published ones."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rotorid.report.charts import Figure, Trace, axis, encode_array, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, legend, notes_list, table
from rotorid.results.text import label, unit_text
from rotorid.studies.benchmarks import arpl, nanobench, nanodrone, neurobem
from rotorid.studies.benchmarks.study import NANOBENCH_AIRFRAME
from rotorid.studies.page_parts import Numbers, number_text
from rotorid.studies.study_files import Curve, Row

_BLOCKS: Final = nanodrone.BLOCKS
_HYBRID, _MOTION = "rotorid, physics and residual", "rotorid, residual that sees the motion"
_SIGMAS: Final = 1.96
_UNCHANGED: Final = "nothing changes"
_OURS, _PUBLISHED = "@ekf", "@bar"
_COLOURS: Final = {_UNCHANGED: "@soft", "rotorid, physics": "@ukf", _HYBRID: "@ekf"}
_NANOBENCH_COLOURS: Final = {
    nanobench.UNCHANGED: "@soft",
    nanobench.CONSTANT_VELOCITY: "@bar",
    nanobench.CONSTANT_GAIN: "@msckf",
    nanobench.VOLTAGE_GAIN: "@ukf",
    nanobench.PHYSICS: "@swls",
    nanobench.RESIDUAL: "@ekf",
}
_FAR_OFF: Final = (nanobench.UNCHANGED, nanobench.PUBLISHED_AIRFRAME)
"""Models whose bars would hide the others."""
_LEAST_GAIN: Final = 0.1  # of a quantity that counts as identified
_DOTS: Final = ("@ukf", "@ekf", "@msckf")
_SYMBOLS: Final = ("circle", "diamond", "square")
_COVERAGE: Final = (90.0, 98.0)
"""Range of the coverage of a calibrated 95 % band, %."""

_QUANTITIES: Final = ("force", "horizontal force", "vertical force", "torque")


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in a line for each benchmark."""
    n, lines = Numbers(rows), []
    if n.select(nanodrone.FOLDER, "position"):
        errors = [n.get(nanodrone.FOLDER, _HYBRID, block) for block in _BLOCKS]
        best = [min(values) for values in zip(*nanodrone.PUBLISHED.values(), strict=True)]
        better = sum(row.value < limit for row, limit in zip(errors, best, strict=True))
        texts = (
            f"{label(row.quantity).lower()} {number_text(row.value)} {row.unit} ({number_text(limit)})"
            for row, limit in zip(errors, best, strict=True)
        )
        lines += [
            f"Nano-drone: {better} of {len(_BLOCKS)} errors over 50 steps below every published row.",
            f"Sums over the steps, with the best published in brackets: {', '.join(texts)}.",
        ]
    lines += _nanobench_headline(n)
    if n.select(neurobem.FOLDER, "force"):
        own = n.get(neurobem.FOLDER, _MOTION, "force")
        published = n.get(neurobem.FOLDER, "NeuroBEM", "force")
        torque = n.get(neurobem.FOLDER, _MOTION, "torque"), n.get(neurobem.FOLDER, "NeuroBEM", "torque")
        lines.append(
            f"NeuroBEM flights, each predicted by a model of the others: force {own.value:.3f} N (NeuroBEM "
            f"{published.value:.3f} N), torque {torque[0].value:.4f} N m (NeuroBEM {torque[1].value:.4f} N m)."
        )
    own = [r for r in n.rows if r.part == arpl.FOLDER]
    if own:
        inside = sum(_is_inside(row) for row in own)
        lines.append(
            f"ARPL's Crazyflie: {inside} of {len(own)} published numbers are within the 95 % bands of the estimates."
        )
    return tuple(lines)


def benchmarks_page(rows: Sequence[Row], curves: Sequence[Curve], seed: int) -> str:
    """The study as a self-contained HTML page. rows, curves: of `rotorid.studies.benchmarks.study`."""
    n, page = Numbers(rows), Page("Public benchmarks")
    first, *rest = headline(rows)
    add_study_header(page, "benchmarks", ("recorded flights of others", f"seed {seed}"), first, *rest)
    if n.select(nanodrone.FOLDER, "position"):
        _nanodrone(page, n, curves)
    if n.select(nanobench.FOLDER, "windows"):
        _nanobench(page, n, curves)
    if n.select(neurobem.FOLDER, "force"):
        _neurobem(page, n)
    if any(r.part == arpl.FOLDER for r in rows):
        _arpl(page, [r for r in n.rows if r.part == arpl.FOLDER])
    page.section("Method")
    page.add(notes_list(_NOTES))
    return page.as_html()


def _nanodrone(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Nano-drone",
        "Real Crazyflie 2.1 Brushless. From every time of the three test flights the state is predicted over 50 steps of "
        "0.01 s from the measured state and rotor speeds. Numbers are sums over the steps of the mean error at each step.",
    )
    models = list(dict.fromkeys(r.method for r in n.select(nanodrone.FOLDER, "position")))
    values = {(model, block): _sum_row(n, model, block).value for model in models for block in _BLOCKS}
    shown = [model for model in models if model != _UNCHANGED]
    panels = [
        page.panel(
            bars_figure(shown, [values[m, block] for m in shown], n.select(nanodrone.FOLDER, block)[0].unit),
            f"{label(block)}, sum of the mean errors",
        )
        for block in _BLOCKS
    ]
    page.add(legend([("rotorid", _OURS), ("published", _PUBLISHED)]) + grid(panels, "split"))
    head = ["model", "source", "position (m)", "velocity (m/s)", "attitude (rad)", "body rate (rad/s)"]
    head += ["below the best published (%)"]
    best = [min(column) for column in zip(*nanodrone.PUBLISHED.values(), strict=True)]
    body = []
    for model in models:
        row = [values[model, block] for block in _BLOCKS]
        source = "published" if model in nanodrone.PUBLISHED else "computed here"
        gains = [100.0 * (1.0 - value / limit) for value, limit in zip(row, best, strict=True)]
        gain = f"{min(gains):.0f} to {max(gains):.0f}".replace("-", "−") if _is_ours(model) else ""
        body.append([model, source, *map(number_text, row), gain])
    page.add(table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")))
    _mean_errors(page, [c for c in curves if c.part == nanodrone.FOLDER], _COLOURS)
    shares = {
        (m, label(block)): n.get(nanodrone.FOLDER, m, f"coverage, {block}").value
        for m in shown
        if _is_ours(m)
        for block in _BLOCKS
    }
    if np.isfinite(list(shares.values())).any():
        page.add(page.panel(coverage_figure(shares), "Coverage of the 95 % bands on the test flights"))
    _airframe(page, n)


def _mean_errors(page: Page, curves: Sequence[Curve], colours: Mapping[str, str]) -> None:
    """The mean errors over time by block. The scale is that of the models which predict."""
    names = [name for name in colours if any(c.method == name for c in curves)]
    panels = []
    for block in _BLOCKS:
        by_name = {c.method: c for c in curves if c.quantity == block}
        traces = [line(by_name[m].t, by_name[m].value, m, colours[m]) for m in names if m in by_name]
        shown = [by_name[m] for m in names if m in by_name and m != _UNCHANGED]
        limit = max((float(c.value.max()) for c in shown), default=1.0)
        axes = layout(
            next(iter(by_name.values())).unit,
            x_title="time since the measured state (s)",
            hovermode="closest",
        )
        axes["yaxis"] |= {"range": [0.0, 1.1 * limit]}
        figure = Figure(tuple(traces), axes, height=190, has_time_axis=False)
        panels.append(page.panel(figure, f"{label(block)}, mean error"))
    page.add(legend([(name, colours[name]) for name in names]) + grid(panels, "split"))


def _sum_row(n: Numbers, model: str, block: str) -> Row:
    """The sum of a model, published or computed."""
    setting = "published" if model in nanodrone.PUBLISHED else ""
    return n.get(nanodrone.FOLDER, model, block, setting=setting)


def _is_ours(model: str) -> bool:
    return model.startswith("rotorid")


def bars_figure(models: Sequence[str], values: Sequence[float], unit: str) -> Figure:
    """A bar for each model, the first on top; ours in a colour of their own."""
    bars: Trace = {
        "type": "bar",
        "orientation": "h",
        "y": list(models),
        "x": encode_array(values),
        "text": [number_text(value) for value in values],
        "textposition": "auto",
        "marker": {"color": [_OURS if _is_ours(model) else _PUBLISHED for model in models]},
        "hovertemplate": f"%{{y}}: %{{x:.3g}} {unit}<extra></extra>",
    }
    axes = layout("", x_title=unit, hovermode="closest", bargap=0.35)
    axes["xaxis"] = axis(unit, rangemode="tozero", nticks=5)
    axes["yaxis"] = axis("", type="category", autorange="reversed", showgrid=False)
    return Figure((bars,), axes, height=70 + 26 * len(models), has_time_axis=False)


def coverage_figure(shares: Mapping[tuple[str, str], float]) -> Figure:
    """Share of the truth within the bands by model and quantity, and the range in which it should be."""
    models = list(dict.fromkeys(model for model, _ in shares))
    traces = []
    for k, model in enumerate(models):
        quantities = [quantity for m, quantity in shares if m == model]
        dots: Trace = {
            "type": "scatter",
            "mode": "markers",
            "name": model,
            "x": encode_array([100.0 * shares[model, quantity] for quantity in quantities]),
            "y": quantities,
            "marker": {"size": 9, "color": _DOTS[k % len(_DOTS)], "symbol": _SYMBOLS[k % len(_SYMBOLS)]},
            "hovertemplate": f"{model}, %{{y}}: %{{x:.1f}} %<extra></extra>",
        }
        traces.append(dots)
    axes = layout("", x_title="coverage (%)", hovermode="closest", legend=True)
    low, high = _COVERAGE
    axes["shapes"] = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1,
         "fillcolor": "@gap", "line": {"width": 0}, "layer": "below"},
    ]  # fmt: skip
    lowest = 100.0 * float(np.nanmin(list(shares.values())))
    axes["xaxis"] = axis("coverage (%); grey: 90 to 98 %", range=[min(80.0, lowest - 2.0), 100.5])
    axes["yaxis"] = axis("", type="category", autorange="reversed")
    count = len(dict.fromkeys(quantity for _, quantity in shares))
    return Figure(tuple(traces), axes, height=110 + 24 * count, has_time_axis=False)


def _airframe(page: Page, n: Numbers) -> None:
    accepted = n.select("airframe", "accepted")[0]
    delay = n.select("airframe", "delay")[0]
    page.section(
        "Nano-drone: model",
        "Identified from the training flights together, as one vehicle; the test flights are used for the numbers above only. "
        "The file is `airframes/nanodrone.toml`.",
    )
    cards = [
        card(
            "rotorid identify",
            "accepted" if accepted.value else "refused",
            "",
            f"{accepted.flights} training flights" if accepted.value else "prior airframe used",
        ),
        card("Delay of the body rate", f"{1e3 * delay.value:.0f}", "ms", "after the rotor speeds"),
    ]
    values = {r.quantity: r.value for r in n.rows if r.part == "airframe" and r.method == "number"}
    thrust = values.get("thrust_coefficient", np.nan) * values.get("thrust_scale", 1.0)
    published = f"published: {number_text(nanodrone.THRUST_COEFFICIENT)}"
    cards.append(card("Thrust coefficient", number_text(thrust), "N s²", published))
    page.add(f'<div class="cards">{"".join(cards)}</div>')
    if accepted.setting:
        page.add(notes_list([accepted.setting]))
    head = ["quantity", "unit", "value", "standard deviation"]
    body = [
        [label(r.quantity), r.unit, number_text(r.value), number_text(r.standard_error)]
        for r in n.rows
        if r.part == "airframe" and r.method == "number"
    ]
    page.add(
        table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number"), tight=True)
    )


def _nanobench_headline(n: Numbers) -> list[str]:
    if not n.select(nanobench.FOLDER, "windows"):
        return []
    own = [n.get(nanobench.FOLDER, nanobench.RESIDUAL, block) for block in _BLOCKS]
    best = [min(n.get(nanobench.FOLDER, m, block).value for m in nanobench.BASELINES) for block in _BLOCKS]
    texts = (
        f"{label(row.quantity).lower()} {number_text(row.value)} {row.unit} ({number_text(limit)})"
        for row, limit in zip(own, best, strict=True)
    )
    return [
        f"NanoBench, flights left out: {own[0].flights}, each predicted by models of the others. Identification "
        f"{_acceptance_text(n)}.",
        f"Sums over 50 steps, with the best baseline in brackets: {', '.join(texts)}.",
    ]


def _acceptance_text(n: Numbers) -> str:
    accepted = [r.value for r in n.select(NANOBENCH_AIRFRAME, "accepted")]
    if np.isnan(accepted).all():
        return "not run: the prior airframe is used"
    return f"completed {np.nansum(accepted):.0f} of {len(accepted)} times; not validated by fly-back"


def _nanobench(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    windows = n.get(nanobench.FOLDER, "all", "windows")
    page.section(
        "NanoBench",
        "Real Crazyflie 2.1 with brushed motors. The inputs are motor commands; rotor speeds were not measured. Each flight is "
        f"predicted by models of the other flights (flights left out: {windows.flights}; windows: {windows.value:.0f}). "
        "Numbers are sums over 50 steps of 0.01 s of the mean error at each step, as for the nano-drone.",
    )
    gain = np.mean([r.value for r in n.select(nanobench.FOLDER, "gain")])
    ratio = nanobench.full_thrust(nanobench.published_airframe()) / gain
    published = (
        "Published airframe: the numbers published for another Crazyflie 2.1 (ARPL), without identification. Its thrust at "
        f"full command is {ratio:.1f} times that of this vehicle, and it has no asymmetry. Its errors are beyond the bars."
    )
    page.add(notes_list([*_NANOBENCH_COMPARISON, published]))
    shown = [m for m in nanobench.MODELS if m not in _FAR_OFF]
    values = {(m, b): n.get(nanobench.FOLDER, m, b).value for m in nanobench.MODELS for b in _BLOCKS}
    panels = [
        page.panel(
            bars_figure(shown, [values[m, block] for m in shown], n.select(nanobench.FOLDER, block)[0].unit),
            f"{label(block)}, sum of the mean errors",
        )
        for block in _BLOCKS
    ]
    page.add(legend([("rotorid", _OURS), ("baseline, computed here", _PUBLISHED)]) + grid(panels, "split"))
    head = ["model", "position (m)", "velocity (m/s)", "attitude (rad)", "body rate (rad/s)"]
    body = [[m, *(number_text(values[m, block]) for block in _BLOCKS)] for m in nanobench.MODELS]
    page.add(table(head, body, {"model": "word"} | dict.fromkeys(head[1:], "number")))
    total = [c for c in curves if c.part == nanobench.FOLDER and not c.trajectory]
    _mean_errors(page, total, _NANOBENCH_COLOURS)
    shares = {
        (m, label(block)): n.get(nanobench.FOLDER, m, f"coverage, {block}").value
        for m in (nanobench.PHYSICS, nanobench.RESIDUAL)
        for block in _BLOCKS
    }
    page.add(page.panel(coverage_figure(shares), "Coverage of the 95 % bands on flights left out"))
    flights = [r.trajectory for r in n.select(nanobench.FOLDER, "windows") if r.trajectory]
    head = ["flight left out", *shown]
    for block in _BLOCKS:
        body = [
            [f, *(number_text(n.get(nanobench.FOLDER, m, block, f).value) for m in shown)] for f in flights
        ]
        columns = {head[0]: "word"} | dict.fromkeys(head[1:], "number")
        page.add(
            table(head, body, columns, f"{label(block)} by flight", n.select(nanobench.FOLDER, block)[0].unit)
        )
    _nanobench_airframe(page, n)


def _nanobench_airframe(page: Page, n: Numbers) -> None:
    accepted = n.select(NANOBENCH_AIRFRAME, "accepted")
    gains = [r.value for r in n.select(nanobench.FOLDER, "gain")]
    page.section(
        "NanoBench: model",
        "Identified once for each flight that was left out, from the other flights. The files are in `airframes`. Identified: "
        "share by which the flights reduce the standard deviation of the prior.",
    )
    cards = [
        card("rotorid identify", _acceptance_text(n), ""),
        card("Constant thrust gain", number_text(float(np.mean(gains))), "N", "of one rotor at full command"),
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')
    refused = [f"Without {r.trajectory}: {r.setting}" for r in accepted if r.setting]
    if refused:
        page.add(notes_list(refused))
    rows = [r for r in n.rows if r.part == NANOBENCH_AIRFRAME and r.method == "number"]
    names = list(dict.fromkeys(r.quantity for r in rows))
    head = ["quantity", "unit", "prior", "estimate", "range over the fits", "identified (%)"]
    body, unidentified = [], []
    for name in names:
        own = [r for r in rows if r.quantity == name]
        priors = [r for r in n.select(NANOBENCH_AIRFRAME, name) if r.method == "prior"]
        values, stds = [r.value for r in own], np.array([r.standard_error for r in own])
        gain = float(np.median(1.0 - stds / np.array([r.standard_error for r in priors])))
        body.append([
            label(name),
            unit_text(own[0].unit),
            f"{number_text(priors[0].value)} ± {number_text(priors[0].standard_error)}",
            f"{number_text(float(np.median(values)))} ± {number_text(float(np.median(stds)))}",
            f"{number_text(min(values))} to {number_text(max(values))}",
            f"{100.0 * max(gain, 0.0):.0f}",
        ])  # fmt: skip
        unidentified += [label(name)] if gain < _LEAST_GAIN else []
    if unidentified:
        text = f"{', '.join(unidentified)}. Their estimates fit these flights and are no properties of the vehicle."
        page.add(notes_list([f"Not identified by these flights: {text}"]))
    if body:
        kinds = dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")
        page.add(
            table(head, body, kinds, "Medians over the fits, ± standard deviation of one fit", tight=True)
        )


def _neurobem(page: Page, n: Numbers) -> None:
    page.section(
        "NeuroBEM",
        "Real racing quadrotor to 17.7 m/s. Each flight is predicted by a model that was estimated from the other flights. "
        "The grey box sees the present state and rotor speeds. The residual also sees the changes of body rate and rotor speeds"
        " over the last 50 ms, as NeuroBEM's network does, and the battery voltage. The last model also sees the changes of "
        "velocity, and the attitude: like TR-NeuroMHE it sees the motion.",
    )
    models = dict.fromkeys(r.method for r in n.select(neurobem.FOLDER, "force") if not r.trajectory)
    head = ["model", "flights", "force (N)", "horizontal (N)", "vertical (N)", "torque (N m)"]
    head += ["coverage, force (%)", "coverage, torque (%)"]
    body, numbers = [], {}
    for model in models:
        rows = [n.get(neurobem.FOLDER, model, q) for q in _QUANTITIES]
        if not np.isfinite(rows[0].value):
            rows = [n.get(neurobem.FOLDER, model, q, setting="published") for q in _QUANTITIES]
        numbers[model] = [row.value for row in rows]
        shares = [
            [n.get(neurobem.FOLDER, model, f"coverage, {kind} {axis}").value for axis in "xyz"]
            for kind in ("force", "torque")
        ]
        coverage = [number_text(100 * float(np.mean(share))) for share in shares]
        flights = str(rows[0].flights) if rows[0].flights else "13, published"
        body.append([model, flights, *(number_text(row.value) for row in rows), *coverage])
    panels = [
        page.panel(
            bars_figure([r[0] for r in body], [numbers[r[0]][k] for r in body], unit), f"RMSE of {quantity}"
        )
        for quantity, unit, k in (("force", "N", 0), ("torque", "N m", 3))
    ]
    page.add(legend([("rotorid", _OURS), ("published", _PUBLISHED)]) + grid(panels, "split"))
    page.add(table(head, body, {"model": "word"} | dict.fromkeys(head[1:], "number")))
    covered = {
        (m, label(axis_name)): n.get(neurobem.FOLDER, m, f"coverage, {axis_name}").value
        for m in models
        if _is_ours(m)
        for axis_name in neurobem.AXES
    }
    page.add(page.panel(coverage_figure(covered), "Coverage of the 95 % bands on flights left out"))
    flights = list(dict.fromkeys(r.trajectory for r in n.select(neurobem.FOLDER, "force") if r.trajectory))
    own = [m for m in models if np.isfinite(n.get(neurobem.FOLDER, m, "force", flights[0]).value)]
    head = ["flight", *own]
    for quantity, unit in (("force", "N"), ("torque", "N m")):
        body = [
            [f, *(number_text(n.get(neurobem.FOLDER, m, quantity, f).value) for m in own)] for f in flights
        ]
        page.add(
            table(
                head,
                body,
                {"flight": "word"} | dict.fromkeys(own, "number"),
                f"RMSE of {quantity} by flight",
                unit,
            )
        )


def _is_inside(row: Row) -> bool:
    """Whether the published number is within the 95 % band of an estimate."""
    return abs(row.value - row.published) <= _SIGMAS * row.standard_error


def _arpl(page: Page, rows: Sequence[Row]) -> None:
    page.section(
        "ARPL",
        f"Real Crazyflie 2.1, {rows[0].flights} flights without pose, identified from its mass, its geometry and guesses. "
        "Published inertia and thrust are corrected for g = 9.81 m/s², which was 9.18 there.",
    )
    page.add(page.panel(ratio_figure(rows), "Estimate over the published number, with its 95 % band"))
    head = ["quantity", "unit", "estimate", "standard deviation", "published", "published within the band"]
    body = [
        [
            label(r.quantity),
            r.unit,
            *map(number_text, (r.value, r.standard_error, r.published)),
            "yes" if _is_inside(r) else "no",
        ]
        for r in rows
    ]
    page.add(table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")))


def ratio_figure(rows: Sequence[Row]) -> Figure:
    """Each estimate over its published number, with its 95 % band."""
    dots: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": encode_array([r.value / r.published for r in rows]),
        "y": [label(r.quantity) for r in rows],
        "marker": {"size": 9, "color": _OURS},
        "error_x": {
            "type": "data",
            "array": [_SIGMAS * r.standard_error / r.published for r in rows],
            "color": "@soft",
            "thickness": 1.2,
            "width": 3,
        },
        "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
    }
    axes = layout("", hovermode="closest")
    axes["shapes"] = [
        {"type": "line", "xref": "x", "yref": "paper", "x0": 1, "x1": 1, "y0": 0, "y1": 1,
         "line": {"color": "@ink", "width": 1, "dash": "dot"}},
    ]  # fmt: skip
    axes["xaxis"] = axis("estimate / published")
    axes["yaxis"] = axis("", type="category", autorange="reversed")
    return Figure((dots,), axes, height=90 + 24 * len(rows), has_time_axis=False)


_NANOBENCH_COMPARISON: Final = (
    "Prior, exponent of the voltage, residual and its settings were chosen with these flights at hand, not before they were "
    "seen: the margins over the baselines are those of a developed method, not of a blind test.",
    "All rows are computed here, on the same windows: the airborne part of each flight. The benchmark has published 107 files "
    "of its 170 flights, 87 of them different, and neither the code nor the split of its task 1, which refers to the code of "
    "the nano-drone benchmark. No published row with this measure was found. The table of the first version of task 1, RMSE "
    "of the vertical acceleration, is not comparable: all its values of R² are negative.",
    "Constant velocity is the baseline in the description of task 1; nothing changes is that of the code to which it refers. "
    "The physics of this code keeps the body rate, and so do the rows with a thrust gain. Their gains are estimated from the "
    "training flights, as in the first version of task 1. The parameters of the benchmark's own physics are not published.",
)

_NOTES: Final = (
    "Published rows: nano-drone benchmark (idsia-robotics/nanodrone-sysid-benchmark, Control Engineering Practice, 2026); "
    "NeuroBEM (Bauersfeld et al., RSS 2021) and TR-NeuroMHE (Wang et al., T-RO 2024) over 13 flights; ARPL (Eschmann et al., "
    "IROS 2024).",
    "The row NeuroBEM over the flights at hand is computed from its predictions in the files. Its network was trained on other "
    "flights of the same vehicle, and on speeds up to those of the test flights.",
    "Nano-drone: the specific force of the logs is in the world frame and was turned into the body frame by the attitude. A "
    "band is the 95 % quantile of the errors on training flights, by step and axis; coverage is the share of the measured "
    "numbers of the test flights that are within their band, all steps and axes together.",
    "NeuroBEM: a band is the prediction ± 1.96 standard deviations, which come from errors on training flights that were left "
    "out. Coverage is the share of the rows of the test flights whose band contains the truth.",
)
