"""The page of a learned model: the verdict, the parameters, acceleration errors and the training of the residual."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, axis, encode_array, layout, line
from rotorid.report.page import MODEL_TONES, Page, add_header, card, grid, notes_list, table
from rotorid.results.text import duration_text, join_words, label, percent, title, unit_text
from rotorid.workflows.learn.learn import AXES, MIN_EXPLAINED, LearningResult
from rotorid.workflows.learn.summary import LearnSummary, ParameterSummary
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
        f"{duration_text(sum(f.seconds for f in summary.flights))} of training data",
        f"rotor signal: {label(summary.rotor_input)}",
    ]
    add_header(page, summary.airframe, about, summary.verdict, MODEL_TONES)


def _cards(page: Page, summary: LearnSummary) -> None:
    cards = []
    for name in ("mass", "thrust_coefficient", "thrust_scale"):
        if name in summary.parameters:
            p = summary.parameters[name]
            note = f"{estimate_text(p)[1]}; prior {prior_text(p)}"
            cards.append(card(title(name), estimate_text(p)[0], unit_text(p.unit), note))
    residual = summary.residual
    if residual is not None:
        for block, share in residual.explained.items():
            kept = block in residual.kept
            note = "of the squared error on held-out data" + ("" if kept else "; too little, omitted")
            name = f"Explained {EFFECTS[block]} error"
            cards.append(card(name, explained_text(share).removesuffix(" %"), "%", note, muted=not kept))
    cards.append(card("Flights", str(len(summary.flights)), note="parts with contact excluded"))
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def significant(value: float, std: float) -> str:
    """A value with as many digits as its standard deviation supports; small ones in scientific notation."""
    if not math.isfinite(value):
        return "–"
    if value == 0.0:
        return "0"
    digits = (
        4 if not std > 0 else max(1, math.floor(math.log10(abs(value))) - math.floor(math.log10(std)) + 2)
    )
    return f"{value:.{min(digits, 6)}g}".replace("-", "−")


def std_text(std: float) -> str:
    """A standard deviation with two digits."""
    return f"{std:.2g}".replace("-", "−")


def prior_text(p: ParameterSummary) -> str:
    """The prior of a parameter: "2.81 ± 0.28"."""
    return f"{significant(p.prior, p.prior_std)} ± {std_text(p.prior_std)}"


def estimate_text(p: ParameterSummary) -> tuple[str, str]:
    """The estimate of a parameter and its standard deviation: ("2.746", "± 0.17")."""
    return significant(p.value, p.std), f"± {std_text(p.std)}"


def _parameters(page: Page, summary: LearnSummary) -> None:
    if not summary.parameters:
        page.section("Parameters", "Those of the airframe; no parameter was estimated.")
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
            estimate_text(p)[0],
            std_text(p.std),
            unit_text(p.unit),
            percent(max(p.information_gain, 0.0)),
            "at its lower bound" if p.is_at_bound else "",
        ]
        for name, p in summary.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word", "": "long"}
    page.add(table(head, rows, kinds))
    if summary.unidentifiable_directions:
        page.add(notes_list(summary.unidentifiable_directions))


def _acceleration_errors(page: Page, summary: LearnSummary) -> None:
    page.section(
        "Acceleration errors",
        "Root mean square of measured minus predicted acceleration on held-out data, averaged over 25 rows. All values include "
        "measurement noise.",
    )
    panels = []
    for first, name, unit in ((0, "Acceleration", "m/s²"), (3, "Angular acceleration", "rad/s²")):
        figure = _bars(summary, AXES[first : first + 3], unit)
        panels.append(page.panel(figure, name, "body axes: forward, left, up"))
    head = ["rate", *(_MODELS[m] for m in summary.acceleration_errors), "unit"]
    rows = [
        [
            f"{'acceleration' if k < 3 else 'angular acceleration'} {name[-1]}",
            *(_number(values[name]) for values in summary.acceleration_errors.values()),
            "m/s²" if k < 3 else "rad/s²",
        ]
        for k, name in enumerate(AXES)
    ]
    kinds = dict.fromkeys(head, "number") | {"rate": "word", "unit": "word"}
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
    residual, learned = summary.residual, result.residual
    if residual is None or learned is None:
        return
    page.section(
        "Training of the residual",
        f"Squared error over {residual.horizon} rows by epoch, relative to the model without residual. The weights with the "
        "smallest error on held-out data are used. The residuals of force and torque are each kept if they explain at least "
        f"{percent(MIN_EXPLAINED)} of the squared error.",
    )
    page.add(page.panel(_losses(learned.losses)))


def _losses(losses: np.ndarray) -> Figure:
    epochs = np.arange(len(losses), dtype=float)
    training, held = losses[1:, 0], losses[:, 1]
    traces = (
        line(epochs[1:], training, "training", "@bar", max_gap=2.0),
        line(epochs, held, "held out", "@ekf", max_gap=2.0, width=2.2),
    )
    figure = layout("loss", x_title="epoch", legend=True)
    shown = losses[np.isfinite(losses) & (losses > 0)]
    low, high = (float(np.log10(v)) for v in (shown.min(), max(shown.max(), 1.0)))
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
            duration_text(f.seconds),
            f"{f.rate:.0f}",
            duration_text(f.contact) if f.contact else "–",
            duration_text(f.saturated) if f.saturated else "–",
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
        ["horizon", f"{s.horizon} rows"],
        ["epochs", f"at most {s.epochs}; stops after {s.patience} without improvement"],
        ["seed", str(s.seed)],
        ["estimated", join_words([label(n) for n in summary.parameters]) or "none"],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["setting", "value"], rows, {"setting": "word", "value": "long"}))
