"""The page of the study of public benchmarks: our rows beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.report.charts import Figure, estimator_colour, layout, line
from rotorid.report.page import Page, add_study_header, card, grid, legend, notes_list, table
from rotorid.results.text import label
from rotorid.studies.benchmarks import nanodrone, neurobem
from rotorid.studies.page_parts import Numbers, number_text
from rotorid.studies.study_files import Curve, Row

_BLOCKS: Final = nanodrone.BLOCKS
_HYBRID, _MOTION = "rotorid, physics and residual", "rotorid, residual that sees the motion"
_QUANTITIES: Final = ("force", "horizontal force", "vertical force", "torque")


def headline(rows: Sequence[Row]) -> tuple[str, ...]:
    """The study in a line for each benchmark."""
    n, lines = Numbers(rows), []
    if n.select(nanodrone.FOLDER, "position"):
        errors = [n.get(nanodrone.FOLDER, _HYBRID, block) for block in _BLOCKS]
        best = [min(values) for values in zip(*nanodrone.PUBLISHED.values(), strict=True)]
        better = sum(row.value < limit for row, limit in zip(errors, best, strict=True))
        texts = (
            f"{label(row.quantity).lower()} {number_text(row.value)} {row.unit} (best published {number_text(limit)})"
            for row, limit in zip(errors, best, strict=True)
        )
        lines.append(
            f"Nano-drone: {better} of {len(_BLOCKS)} sums over 50 steps below every published row: "
            f"{', '.join(texts)}."
        )
    if n.select(neurobem.FOLDER, "force"):
        own = n.get(neurobem.FOLDER, _MOTION, "force")
        published = n.get(neurobem.FOLDER, "NeuroBEM", "force")
        torque = n.get(neurobem.FOLDER, _MOTION, "torque"), n.get(neurobem.FOLDER, "NeuroBEM", "torque")
        lines.append(
            f"NeuroBEM flights, each predicted by a model of the others: force {own.value:.3f} N (NeuroBEM "
            f"{published.value:.3f} N), torque {torque[0].value:.4f} N m (NeuroBEM {torque[1].value:.4f} N m)."
        )
    return tuple(lines)


def benchmarks_page(rows: Sequence[Row], curves: Sequence[Curve], seed: int) -> str:
    """The study as a self-contained HTML page. rows, curves: of `rotorid.studies.benchmarks.study`."""
    n, page = Numbers(rows), Page("Public benchmarks")
    first, *rest = headline(rows)
    add_study_header(page, "benchmarks", ("recorded flights of others", f"seed {seed}"), first, *rest)
    if n.select(nanodrone.FOLDER, "position"):
        _nanodrone(page, n, curves)
    if n.select(neurobem.FOLDER, "force"):
        _neurobem(page, n)
    return page.as_html()


def _nanodrone(page: Page, n: Numbers, curves: Sequence[Curve]) -> None:
    page.section(
        "Nano-drone",
        "Real Crazyflie 2.1 Brushless. From every time of the three test flights the state is predicted over 50 steps of "
        "0.01 s from the measured state and rotor speeds. Numbers are sums over the steps of the mean error at each step.",
    )
    models = dict.fromkeys(r.method for r in n.select(nanodrone.FOLDER, "position"))
    head = ["model", "source", "position (m)", "velocity (m/s)", "attitude (rad)", "body rate (rad/s)"]
    body = []
    for model in models:
        published = n.get(nanodrone.FOLDER, model, "position", setting="published")
        is_published = np.isfinite(published.value)
        setting = "published" if is_published else ""
        values = [n.get(nanodrone.FOLDER, model, block, setting=setting).value for block in _BLOCKS]
        source = "published" if is_published else "computed here"
        body.append([model, source, *(number_text(value) for value in values)])
    page.add(table(head, body, dict.fromkeys(head[:2], "word") | dict.fromkeys(head[2:], "number")))
    own = [c for c in curves if c.part == nanodrone.FOLDER]
    names = list(dict.fromkeys(c.method for c in own))
    panels = []
    for block in _BLOCKS:
        traces = [
            line(c.t, c.value, c.method, estimator_colour("", k))
            for k, name in enumerate(names)
            for c in own
            if c.method == name and c.quantity == block
        ]
        unit = next((c.unit for c in own if c.quantity == block), "")
        axes = layout(unit, x_title="time since the measured state (s)", hovermode="closest")
        limit = max(
            (float(c.value.max()) for c in own if c.quantity == block and c.method != names[1]), default=1.0
        )
        axes["yaxis"] |= {"range": [0.0, 1.1 * limit]}
        panels.append(
            page.panel(
                Figure(tuple(traces), axes, height=190, has_time_axis=False), f"{label(block)}, mean error"
            )
        )
    page.add(legend([(name, estimator_colour("", k)) for k, name in enumerate(names)]) + grid(panels))
    _airframe(page, n)


def _airframe(page: Page, n: Numbers) -> None:
    accepted = n.select("airframe", "accepted")[0]
    delay = n.select("airframe", "delay")[0]
    page.section(
        "Nano-drone: model",
        "Identified from the training flights; the test flights are used for the table above only.",
    )
    cards = [
        card("Delay of the body rate", f"{1e3 * delay.value:.0f}", "ms", "after the rotor speeds"),
        card(
            "rotorid identify",
            "accepted" if accepted.value else "refused",
            "",
            "" if accepted.value else "prior airframe used",
        ),
    ]
    page.add(f'<div class="cards">{"".join(cards)}</div>')
    if accepted.setting:
        page.add(notes_list([accepted.setting]))
    head = ["quantity", "value", "standard deviation"]
    body = [
        [label(r.quantity), number_text(r.value), number_text(float(r.setting.removeprefix("std=")))]
        for r in n.rows
        if r.part == "airframe" and r.quantity not in ("delay", "accepted")
    ]
    page.add(table(head, body, {"quantity": "word"} | dict.fromkeys(head[1:], "number"), tight=True))


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
    body = []
    for model in models:
        rows = [n.get(neurobem.FOLDER, model, q) for q in _QUANTITIES]
        if not np.isfinite(rows[0].value):
            rows = [n.get(neurobem.FOLDER, model, q, setting="published") for q in _QUANTITIES]
        shares = [
            [n.get(neurobem.FOLDER, model, f"coverage, {kind} {axis}").value for axis in "xyz"]
            for kind in ("force", "torque")
        ]
        coverage = [number_text(100 * float(np.mean(share))) for share in shares]
        flights = str(rows[0].flights) if rows[0].flights else "13, published"
        body.append([model, flights, *(number_text(row.value) for row in rows), *coverage])
    page.add(table(head, body, {"model": "word"} | dict.fromkeys(head[1:], "number")))
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
    page.section("Method")
    page.add(notes_list(_NOTES))


_NOTES: Final = (
    "Published rows: nano-drone benchmark (idsia-robotics/nanodrone-sysid-benchmark, Control Engineering Practice, 2026); "
    "NeuroBEM (Bauersfeld et al., RSS 2021) and TR-NeuroMHE (Wang et al., T-RO 2024) over 13 flights.",
    "The row NeuroBEM over the flights at hand is computed from its predictions in the files. Its network was trained on other "
    "flights of the same vehicle, and on speeds up to those of the test flights.",
    "A band is the prediction ± 1.96 standard deviations. The standard deviations come from errors on training flights that "
    "were left out. Coverage is the share of the rows of the test flights whose band contains the truth, mean of the axes.",
)
