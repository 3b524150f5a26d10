"""The report of an identification: the verdict, all numbers with what the flights told of them, what the model leaves
unexplained, and its proof. Nothing is computed here."""

# ruff: noqa: RUF001

from __future__ import annotations

from rotorid.identification.flown_residuals import Autocorrelation
from rotorid.report.fly_back_page import add_fly_back
from rotorid.report.headed import MODEL_TONES, add_header
from rotorid.report.html import Page, card, grid, legend, notes_list, table
from rotorid.report.identify_figures import (
    autocorrelation_figure,
    correlation_figure,
    curve_figure,
    masses_figure,
    stretch_figure,
    told_figure,
)
from rotorid.results.identify_shown import Curves, Stretch
from rotorid.results.identify_summary import WHITE, IdentifySummary
from rotorid.results.words import label, percent, plus_minus, seconds, title, unit_text, value_text

_FIRST = ("mass", "thrust_scale", "inertia_x", "inertia_y", "motor_time_constant", "drag", "drag_area")
_CARDS = 8


def identify_page(
    summary: IdentifySummary,
    shown: tuple[Stretch, ...],
    white: tuple[Autocorrelation, ...],
    curves: Curves | None,
) -> str:
    """The report, as the HTML of a self-contained page. shown: predictions beside measurements. white: autocorrelations of
    residuals. curves: of the thrust, where it was looked for."""
    page = Page(f"{summary.airframe}: identified")
    fitted = sum(b - a for f in summary.flights for a, b in f.fitted)
    add_header(
        page,
        summary.airframe,
        [
            ", ".join(f.name for f in summary.flights),
            f"{seconds(fitted)} fitted",
            f"{summary.assumed} taken as known",
        ],
        summary.verdict,
        MODEL_TONES,
    )
    _cards(page, summary)
    _verdicts(page, summary)
    _parameters(page, summary)
    if curves is not None:
        _thrust(page, curves)
    _masses(page, summary)
    _predictions(page, summary, shown)
    _residuals(page, summary, white)
    if summary.fly_back is not None:
        add_fly_back(page, summary.fly_back)
    _settings(page, summary)
    return page.as_html()


def _cards(page: Page, summary: IdentifySummary) -> None:
    cards = []
    for name in [n for n in _FIRST if n in summary.parameters][: _CARDS - len(summary.hover)]:
        row = summary.parameters[name]
        std = value_text(row.std, row.std)
        note = f"± {std}, before {plus_minus(row.prior, row.prior_std)}"
        cards.append(
            card(title(name), value_text(row.value, row.std), unit_text(row.unit), note, told=row.told > 0.3)
        )
    for name, one in summary.hover.items():
        cards.append(
            card(title(name), value_text(one.value, one.std), "", f"± {value_text(one.std, one.std)}")
        )
    if cards:
        page.add(f'<div class="cards">{"".join(cards)}</div>')


def _verdicts(page: Page, summary: IdentifySummary) -> None:
    page.section("What to make of it")
    page.add(notes_list(summary.verdicts))
    if summary.untold:
        said = [f"{text[:1].upper()}{text[1:]}." for text in summary.untold]
        page.add('<h3 class="between">Directions that the flights do not tell</h3>', notes_list(said))


def _parameters(page: Page, summary: IdentifySummary) -> None:
    flights = ", ".join(f.name for f in summary.flights)
    page.section(
        "Parameters",
        f"From {flights}, {summary.windows} windows. ± is one standard deviation; it allows for residuals that hang together "
        "over some seconds. Told: the share of the standard deviation before that the flights removed.",
    )
    head = ["quantity", "found", "before", "unit", "told"]
    rows = [
        [
            label(name) + (" (at its least)" if row.at_bound else ""),
            plus_minus(row.value, row.std),
            plus_minus(row.prior, row.prior_std),
            unit_text(row.unit) or "–",
            percent(row.told),
        ]
        for name, row in summary.parameters.items()
    ]
    kinds = {"quantity": "word", "found": "number", "before": "number", "unit": "word", "told": "number"}
    page.add('<div class="stack">', table(head, rows, kinds))
    page.add(page.panel(told_figure(summary.parameters), "Told by these flights"))
    if len(summary.names) > 1:
        page.add(
            page.panel(
                correlation_figure(summary), "Correlations", "what is known only together is red or blue"
            )
        )
    page.add("</div>")


def _thrust(page: Page, curves: Curves) -> None:
    low, high = curves.used
    page.section(
        "Thrust curve",
        f"Of one rotor, with 95 % bands, before and after. Shaded green: the commands that were flown, {low:.2f} to "
        f"{high:.2f}; elsewhere the curve is continued.",
    )
    page.add(page.panel(curve_figure(curves)))


def _masses(page: Page, summary: IdentifySummary) -> None:
    if not summary.masses:
        return
    page.section("Mass over time", "Constant in parts, as many as the flights show, with 95 % bands.")
    names = [n for n in (f.name for f in summary.flights) if any(m.flight == n for m in summary.masses)]
    page.add(grid([page.panel(masses_figure(summary, name), name) for name in names], "pairs"))


def _predictions(page: Page, summary: IdentifySummary, shown: tuple[Stretch, ...]) -> None:
    if not shown:
        return
    followed = (
        "; within a window, the prediction follows its measurements as a filter does, since the flight is disturbed"
        if summary.disturbed
        else ""
    )
    page.section(
        "Predicted and measured",
        f"The liveliest seconds of {shown[0].flight}: each window is predicted from its start, by the rotor commands"
        f"{followed}.",
    )
    page.add(legend([("measured", "@other0"), ("predicted", "@ekf")]))
    for stretch in shown:
        panels = [
            page.panel(stretch_figure(stretch, k), f"{title(stretch.name)} {'xyz'[k]}")
            for k in range(stretch.measured.shape[1])
        ]
        page.add(grid(panels), '<div class="between"></div>')


def _residuals(page: Page, summary: IdentifySummary, white: tuple[Autocorrelation, ...]) -> None:
    page.section(
        "What is left unexplained",
        "Residuals of the windows before and after, and how they hang together: of white residuals "
        f"{percent(WHITE)} of the autocorrelations lie outside the shaded band. Logs are filtered and vehicles shake, so real "
        "residuals are rarely white; the standard deviations above allow for it.",
    )
    head = ["output", "before, rms", "found, rms", "unit", "outside the band"]
    rows = [
        [title(name), f"{r.rms_before:.3g}", f"{r.rms:.3g}", unit_text(r.unit), percent(r.outside)]
        for name, r in summary.residuals.items()
    ]
    kinds = dict.fromkeys(head, "number") | {"output": "word", "unit": "word"}
    page.add(table(head, rows, kinds))
    page.add(legend([("x", "@axis-x"), ("y", "@axis-y"), ("z", "@axis-z")]))
    panels = [page.panel(autocorrelation_figure(of), title(of.name)) for of in white]
    page.add(grid(panels, "split"))


def _settings(page: Page, summary: IdentifySummary) -> None:
    page.section("Settings")
    parts = [
        [f"fitted: {f.name}", ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in f.fitted)]
        for f in summary.flights
    ]
    parts += [
        [f"held out: {name}", ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in spans)]
        for name, spans in summary.held.items()
    ]
    known = summary.assumed
    if known == "mass":
        known = f"mass, {plus_minus(*summary.known_mass, 'kg')}"
    rows = [
        ["command", "rotorid identify"],
        ["airframe", summary.airframe],
        ["free", ", ".join(summary.free) if summary.free else "what the logs can tell"],
        ["taken as known", known],
        ["rotors by", label(summary.rotors)],
        ["seed", str(summary.seed)],
        *parts,
        *[[name, version] for name, version in summary.versions.items()],
        *[[f"{i.role}: {i.name}", f"sha256 {i.sha256}"] for i in summary.inputs],
    ]
    page.add(table(["what", "value"], rows, {"what": "word", "value": "long"}))
