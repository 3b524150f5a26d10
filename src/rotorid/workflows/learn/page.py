"""The report of a learned model: the verdict first, then the parameters, and what the residual is worth."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import numpy as np

from rotorid.report.charts import Figure, axis, layout, line, numbers
from rotorid.report.headed import MODEL_TONES, add_header
from rotorid.report.html import Page, card, grid, notes_list, table
from rotorid.results.learning import AXES, WORTH, ModelFound
from rotorid.results.learning_summary import ACTS, LearnSummary, ParameterSummary, share_text
from rotorid.results.words import joined, label, percent, seconds, title, unit_text

_COLOURS = {"airframe": "@bar", "identified": "@ekf", "with residual": "@ukf"}
_MODELS = {
    "airframe": "the airframe's physics",
    "identified": "identified physics",
    "with residual": "with the residual",
}


def learning_page(found: ModelFound, summary: LearnSummary) -> str:
    """The report of a model, as the HTML of a self-contained page."""
    page = Page(f"{summary.airframe}: learned model")
    _header(page, summary)
    _cards(page, summary)
    _parameters(page, summary)
    _missing(page, summary)
    _training(page, found, summary)
    _flights(page, summary)
    _settings(page, summary)
    return page.as_html()


def _header(page: Page, summary: LearnSummary) -> None:
    about = [
        f"{len(summary.flights)} flight{'s' if len(summary.flights) > 1 else ''}",
        f"{seconds(sum(f.seconds for f in summary.flights))} learned from",
        f"rotors known by {label(summary.rotor_input)}",
    ]
    add_header(page, summary.airframe, about, summary.verdict, MODEL_TONES)


def _cards(page: Page, summary: LearnSummary) -> None:
    cards = []
    for name in ("mass", "thrust_coefficient", "thrust_scale"):
        if name in summary.parameters:
            p = summary.parameters[name]
            note = f"{found_text(p)[1]}; before {prior_text(p)}"
            cards.append(card(title(name), found_text(p)[0], unit_text(p.unit), note))
    residual = summary.residual
    if residual is not None:
        for block, share in residual.explained.items():
            kept = block in residual.kept
            note = "of the squared error on what was held out" + ("" if kept else "; too little, left out")
            name = f"Residual of {ACTS[block]} explains"
            cards.append(card(name, share_text(share).removesuffix(" %"), "%", note, told=kept))
    cards.append(
        card("Flights", str(len(summary.flights)), note="without the parts in which something pushed")
    )
    page.add(f'<div class="cards">{"".join(cards)}</div>')


def significant(value: float, std: float) -> str:
    """A value with the digits that its standard deviation deserves, in powers of ten where it is small."""
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


def found_text(p: ParameterSummary) -> tuple[str, str]:
    """What was found of a parameter and its standard deviation: ("2.746", "± 0.17")."""
    return significant(p.value, p.std), f"± {std_text(p.std)}"


def _parameters(page: Page, summary: LearnSummary) -> None:
    if not summary.parameters:
        page.section("Parameters", "They are the airframe's: none was identified.")
        return
    page.section(
        "Parameters",
        "Each before the flights and after them, ± one standard deviation. Told: how much of the prior's standard deviation "
        "the flights removed.",
    )
    head = ["parameter", "before", "found", "±", "unit", "told", ""]
    rows = [
        [
            label(name),
            prior_text(p),
            found_text(p)[0],
            std_text(p.std),
            unit_text(p.unit),
            percent(max(p.told, 0.0)),
            "at its least value" if p.at_bound else "",
        ]
        for name, p in summary.parameters.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"parameter": "word", "unit": "word", "": "long"}
    page.add(table(head, rows, kinds))
    if summary.untold:
        page.add(notes_list(summary.untold))


def _missing(page: Page, summary: LearnSummary) -> None:
    page.section(
        "What each model lacks",
        "Root mean square of the measured acceleration less the predicted one, on what was held out, averaged over 25 rows. "
        "Noise of the measurements is in all of them.",
    )
    panels = []
    for first, name, unit in ((0, "Acceleration", "m/s²"), (3, "Angular acceleration", "rad/s²")):
        figure = _bars(summary, AXES[first : first + 3], unit)
        panels.append(page.panel(figure, name, "body axes: forward, left, up"))
    head = ["rate", *(_MODELS[m] for m in summary.missing), "unit"]
    rows = [
        [
            f"{'acceleration' if k < 3 else 'angular acceleration'} {name[-1]}",
            *(_number(values[name]) for values in summary.missing.values()),
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
            "y": numbers([values[name] for name in names]),
            "marker": {"color": _COLOURS[model]},
            "hovertemplate": "%{y:.3g}",
        }
        for model, values in summary.missing.items()
    )
    figure = layout(y_title, x_title="", legend=True, barmode="group")
    figure["yaxis"] |= {"rangemode": "tozero"}
    return Figure(traces, figure, height=260, timed=False)


def _training(page: Page, found: ModelFound, summary: LearnSummary) -> None:
    residual, learned = summary.residual, found.residual
    if residual is None or learned is None:
        return
    page.section(
        "How the residual was trained",
        f"Squared error over {residual.horizon} rows by epoch, 1 being physics alone. The weights with the least on what was "
        f"held out are kept; each of force and torque is taken where it explains {percent(WORTH)} or more.",
    )
    page.add(page.panel(_losses(learned.losses)))


def _losses(losses: np.ndarray) -> Figure:
    epochs = np.arange(len(losses), dtype=float)
    training, held = losses[1:, 0], losses[:, 1]
    traces = (
        line(epochs[1:], training, "training", "@bar", longest=2.0),
        line(epochs, held, "held out", "@ekf", longest=2.0, width=2.2),
    )
    figure = layout("loss", x_title="epoch", legend=True)
    shown = losses[np.isfinite(losses) & (losses > 0)]
    low, high = (float(np.log10(v)) for v in (shown.min(), max(shown.max(), 1.0)))
    figure["yaxis"] = axis("loss", type="log", range=[low - 0.05, high + 0.05], exponentformat="none")
    return Figure(traces, figure, height=260, timed=False)


def _flights(page: Page, summary: LearnSummary) -> None:
    page.section("What was read")
    if summary.notes:
        page.add(notes_list(summary.notes))
    head = ["flight", "learned from", "rows per second", "contact left out", "limits left out"]
    rows = [
        [
            f.name,
            seconds(f.seconds),
            f"{f.rate:.0f}",
            seconds(f.contact) if f.contact else "–",
            seconds(f.limited) if f.limited else "–",
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
        ["parameters", "identified" if s.identify else "the airframe's"],
        ["architecture", s.architecture],
        ["horizon", f"{s.horizon} rows"],
        ["epochs", f"{s.epochs} at most, {s.patience} without a better one"],
        ["seed", str(s.seed)],
        ["identified", joined([label(n) for n in summary.parameters]) or "nothing"],
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
