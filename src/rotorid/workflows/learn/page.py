"""The page of a learned model: the verdict, the parameters, acceleration errors and the training of the residual."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.learning.prediction import AVERAGED_ROWS
from rotorid.report.charts import Figure, axis, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, notes_list, table
from rotorid.results.text import (
    duration_text,
    join_words,
    label,
    percent,
    plus_minus,
    std_text,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.learn.learn import AXES, MIN_EXPLAINED, LearningResult
from rotorid.workflows.learn.summary import UNIDENTIFIABLE, LearnSummary, ParameterSummary
from rotorid.workflows.learn.text import EFFECTS, explained_text

_COLOURS = {"airframe": "@bar", "identified": "@ekf", "with residual": "@ukf"}
_MODELS = {
    "airframe": "airframe",
    "identified": "identified parameters",
    "with residual": "with residual",
}


def learning_page(result: LearningResult, summary: LearnSummary) -> str:
    """The report of a model as a self-contained HTML page."""
    page = Page(f"{summary.airframe}: learned model")
    _header(page, summary)
    _cards(page, summary)
    _parameters(page, summary)
    _acceleration_errors(page, summary)
    _training(page, result, summary)
    _flights(page, summary)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, summary: LearnSummary) -> None:
    about = [
        f"{len(summary.flights)} flight{'s' if len(summary.flights) > 1 else ''}",
        f"{duration_text(sum(f.duration for f in summary.flights))} of training data",
        f"rotor signal: {label(summary.rotor_input)}",
    ]
    add_header(page, summary.airframe, about, summary.verdict, MODEL_TONES)


def _cards(page: Page, summary: LearnSummary) -> None:
    cards = []
    for name in ("mass", "thrust_coefficient", "thrust_scale"):
        if name in summary.parameters:
            p = summary.parameters[name]
            note = f"± {std_text(p.value, p.std)}; prior {prior_text(p)}"
            cards.append(card(title(name), estimate_text(p), unit_text(p.unit), note))
    residual = summary.residual
    if residual is not None:
        for block, share in residual.explained.items():
            is_omitted = block not in residual.blocks
            note = "of the squared error on held-out data" + ("; too little, omitted" if is_omitted else "")
            heading = f"Explained {EFFECTS[block]} error"
            value = explained_text(share).removesuffix(" %")
            cards.append(card(heading, value, "%", note, muted=is_omitted))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def prior_text(p: ParameterSummary) -> str:
    """The prior of a parameter: "2.81 ± 0.28"."""
    return plus_minus(p.prior, p.prior_std)


def estimate_text(p: ParameterSummary) -> str:
    """The estimate of a parameter: "2.75"."""
    return value_text(p.value, p.std)


def gain_text(p: ParameterSummary) -> str:
    """The information gain of a parameter in percent; 0 for a negative one."""
    return percent(max(p.information_gain, 0.0))


def _parameters(page: Page, summary: LearnSummary) -> None:
    if not summary.parameters:
        page.section("Parameters", "No parameter was estimated; the values are those of the airframe.")
        return
    page.section(
        "Parameters",
        "Prior and estimate of each parameter, ± one standard deviation. Identified: relative reduction of the prior standard "
        "deviation.",
    )
    head = ["parameter", "prior", "estimate", "std", "unit", "identified", ""]
    rows = [
        [
            label(name),
            prior_text(p),
            estimate_text(p),
            std_text(p.value, p.std),
            unit_text(p.unit),
            gain_text(p),
            "at its lower bound" if p.is_at_bound else "",
        ]
        for name, p in summary.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word", "": "long"}
    page.add(table(head, rows, kinds))
    directions = [finding.text for finding in summary.findings if finding.code == UNIDENTIFIABLE]
    if directions:
        page.add(notes_list(directions))


def _acceleration_errors(page: Page, summary: LearnSummary) -> None:
    page.section(
        "Acceleration errors",
        "Root mean square of measured minus predicted acceleration on held-out data, both averaged over "
        f"{AVERAGED_ROWS} rows. All values include measurement noise.",
    )
    panels = []
    for first, name, unit in ((0, "Acceleration", "m/s²"), (3, "Angular acceleration", "rad/s²")):
        figure = _bars(summary, AXES[first : first + 3], unit)
        panels.append(page.panel(figure, name, "body axes: forward, left, up"))
    head = ["component", *(_MODELS[m] for m in summary.acceleration_errors), "unit"]
    rows = [
        [
            f"{'acceleration' if k < 3 else 'angular acceleration'} {name[-1]}",
            *(_number(values[name]) for values in summary.acceleration_errors.values()),
            "m/s²" if k < 3 else "rad/s²",
        ]
        for k, name in enumerate(AXES)
    ]
    kinds = dict.fromkeys(head, "number") | {"component": "word", "unit": "word"}
    page.add('<div class="stack">', grid(panels, "split"), table(head, rows, kinds), "</div>")


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "–"


def _bars(summary: LearnSummary, names: tuple[str, ...], y_title: str) -> Figure:
    traces = tuple(
        {
            "type": "bar",
            "name": _MODELS[model],
            "x": [name[-1] for name in names],
            "y": encode_array([values[name] for name in names]),
            "marker": {"color": _COLOURS[model]},
            "hovertemplate": "%{y:.3g}",
        }
        for model, values in summary.acceleration_errors.items()
    )
    figure = layout(y_title, x_title="", legend=True, barmode="group")
    figure["yaxis"] |= {"rangemode": "tozero"}
    return Figure(traces, figure, height=260, has_time_axis=False)


def _training(page: Page, result: LearningResult, summary: LearnSummary) -> None:
    residual, training = summary.residual, result.residual
    if residual is None or training is None:
        return
    rows = "1 row" if residual.horizon == 1 else f"{residual.horizon} rows"
    page.section(
        "Training of the residual",
        f"Squared error over {rows} by epoch, relative to the model without residual. The weights with the smallest error on "
        "held-out data are used. The model includes the residual of the force, or of the torque, if it explains at least "
        f"{percent(MIN_EXPLAINED)} of the squared error.",
    )
    page.add(page.panel(_losses(training.losses)))


def _losses(losses: np.ndarray) -> Figure:
    epochs = np.arange(len(losses), dtype=float)
    traces = (
        line(epochs[1:], losses[1:, 0], "training", "@bar", max_gap=2.0),
        line(epochs, losses[:, 1], "held out", "@ekf", max_gap=2.0, width=2.2),
    )
    figure = layout("loss", x_title="epoch", legend=True)
    positive = losses[np.isfinite(losses) & (losses > 0)]
    low, high = (float(np.log10(v)) for v in (positive.min(), max(positive.max(), 1.0)))
    figure["yaxis"] = axis("loss", type="log", range=[low - 0.05, high + 0.05], exponentformat="none")
    return Figure(traces, figure, height=260, has_time_axis=False)


def _flights(page: Page, summary: LearnSummary) -> None:
    page.section("Flights")
    if summary.notes:
        page.add(notes_list(summary.notes))
    head = ["flight", "training data", "rows per second", "contact excluded", "saturation excluded"]
    rows = [
        [
            f.name,
            duration_text(f.duration),
            f"{f.rate:.0f}",
            duration_text(f.contact_duration) if f.contact_duration else "–",
            duration_text(f.saturation_duration) if f.saturation_duration else "–",
        ]
        for f in summary.flights
    ]
    page.add(table(head, rows, dict.fromkeys(head, "number") | {"flight": "word"}))


def _settings(page: Page, summary: LearnSummary) -> None:
    page.section("Settings")
    s = summary.settings
    rows = [
        ["command", "rotorid learn"],
        ["airframe", summary.airframe],
        ["parameters", "estimated" if s.identify else "of the airframe"],
        ["architecture", s.architecture],
        ["horizon (rows)", str(s.horizon)],
        ["epochs", f"at most {s.epochs}; stops after {s.patience} without improvement"],
        ["seed", str(s.seed)],
        ["estimated", join_words([label(n) for n in summary.parameters]) or "none"],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
