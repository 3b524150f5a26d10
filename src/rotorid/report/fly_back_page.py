"""The report of a model that was flown back: the verdict, errors over the horizon, answers to the rotors, bands, and all
numbers.

`add_fly_back` adds the same sections to the page of another command.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import FlyBack, SignalErrors
from rotorid.report.fly_back_figures import (
    PREDICTORS,
    against_figure,
    coverage_figure,
    errors_figure,
    gain_label,
    gains_figure,
)
from rotorid.report.headed import MODEL_TONES, add_header
from rotorid.report.html import Page, card, grid, legend, notes_list, table
from rotorid.results.fly_back_against import Against
from rotorid.results.verdict import Verdict
from rotorid.results.words import percent, plus_minus, title, unit_text, value_text


def fly_back_page(
    model: Airframe, found: FlyBack, settings: Mapping[str, str], rivalry: Against | None = None
) -> str:
    """The report, as the HTML of a self-contained page. settings: what was asked for, in words. rivalry: the model beside
    another one."""
    page = Page(f"{model.name}: flown back")
    add_header(
        page,
        model.name,
        [f"flown back on {', '.join(found.flights)}", f"{found.windows} predictions"],
        fly_back_verdict(found),
        MODEL_TONES,
    )
    page.add(f'<div class="cards">{"".join(_cards(found))}</div>')
    add_fly_back(page, found)
    if rivalry is not None:
        _add_against(page, rivalry)
    page.section("Settings")
    page.add(
        table(["what", "value"], [[k, v] for k, v in settings.items()], {"what": "word", "value": "long"})
    )
    return page.as_html()


def fly_back_verdict(found: FlyBack) -> Verdict:
    """The verdict of a record, as commands and pages show it."""
    if found.accepted:
        return Verdict(
            "good", "The model is accepted: it predicts flights that it was not fitted to.", found.reasons[:1]
        )
    return Verdict("bad", "The model is refused.", found.reasons[:1])


def add_fly_back(page: Page, found: FlyBack) -> None:
    """The sections of a record."""
    page.section(
        "Flown back",
        f"Predictions of {', '.join(found.flights)} from the logged rotor commands alone, from {found.windows} starts. Root "
        "mean square error over the horizon with its standard deviation; constant velocity keeps what was measured at first.",
    )
    page.add(notes_list(found.reasons))
    page.add(legend([(found.prior if name == "prior" else name, colour) for name, colour in PREDICTORS]))
    panels = [page.panel(errors_figure(found, s), title(s.name), _judged(found, s)) for s in found.signals]
    page.add(grid(panels, "split"))
    page.section(
        "What the model claims",
        "Left: how strongly the vehicle answers its rotors, over how strongly the model says, with two standard deviations; "
        "shaded: what is allowed. Right: share of errors inside the model's 95 % bands.",
    )
    page.add(
        grid(
            [
                page.panel(gains_figure(found.gains), "Answer to the rotors", "1: as the model says"),
                page.panel(coverage_figure(found), "Coverage", "shaded: what is asked for"),
            ],
            "split",
        )
    )
    _numbers(page, found)


def _add_against(page: Page, found: Against) -> None:
    page.section(
        f"Beside {found.other}",
        f"Both from the same {found.windows} starts. ± is one standard deviation of the difference of the root mean square "
        "errors, over blocks of 4 s, drawn alike for both.",
    )
    page.add(notes_list(found.reasons))
    head = ["signal", "horizon", "model", "other", "better by", "95 % band", "unit", "verdict"]
    kinds = dict.fromkeys(head, "number") | {"signal": "word", "unit": "word", "verdict": "word"}
    page.add(table(head, against_rows(found), kinds))
    said = "above 0 the model is better; with 95 % bands"
    page.add(page.panel(against_figure(found), f"Errors smaller than those of {found.other}", said))


def against_rows(found: Against) -> Sequence[Sequence[str]]:
    """A row a signal and horizon: errors of both, their difference and its band, unit, which is better."""
    words = {1: "better", 0: "alike", -1: "worse"}
    return [
        [
            title(s.name),
            f"{h:g} s",
            value_text(s.model[k], s.std[k]),
            value_text(s.other[k], s.std[k]),
            plus_minus(s.better[k], s.std[k], signed=True),
            f"{value_text(s.better[k] - s.band[k], s.std[k])} to {value_text(s.better[k] + s.band[k], s.std[k])}",
            unit_text(s.unit),
            words[s.verdict(k)],
        ]
        for s in found.signals
        for k, h in enumerate(found.horizons)
        if s.model[k] > 0
    ]


def _judged(found: FlyBack, signal: SignalErrors) -> str:
    left = [f"{h:g} s" for h, d in zip(found.horizons, signal.decides, strict=True) if not d]
    return f"not judged by at {', '.join(left)}" if left else ""


def _cards(found: FlyBack) -> list[str]:
    cards = []
    for signal in found.signals:
        k = max((k for k, d in enumerate(signal.decides) if d), default=None)
        if k is not None:
            name = f"{title(signal.name)} after {found.horizons[k]:g} s"
            rivals = f"prior {signal.prior[k]:.2g}, constant velocity {signal.constant[k]:.2g}"
            error = plus_minus(signal.model[k], signal.model_std[k])
            cards.append(card(name, error, unit_text(signal.unit), rivals))
    for gain in found.gains:
        told = gain.std <= 0.5 * gain.tolerance
        value = plus_minus(gain.value, gain.std)
        cards.append(card(title(gain_label(gain)), value, "", "times the model's", told=told))
    if found.nmpc is not None:
        n = found.nmpc
        off = f"{n.position_rms:.2g}" if math.isfinite(n.position_rms) else "lost"
        cards.append(card("NMPC off the path", off, "m", f"{n.flown} of {n.draws} vehicles kept on it"))
    return cards


def _numbers(page: Page, found: FlyBack) -> None:
    page.section("All numbers", "± is one standard deviation, over blocks of 4 s.")
    head = ["signal", "horizon", "model", "prior", "constant velocity", "unit", "in band", "judged by"]
    kinds = dict.fromkeys(head, "number") | {"signal": "word", "unit": "word", "judged by": "word"}
    page.add(table(head, error_rows(found), kinds))


def error_rows(found: FlyBack) -> Sequence[Sequence[str]]:
    """A row a signal and horizon: errors of the three, unit, coverage, whether it is judged by."""
    return [
        [
            title(s.name),
            f"{h:g} s",
            *(
                plus_minus(value[k], std[k])
                for value, std in (
                    (s.model, s.model_std),
                    (s.prior, s.prior_std),
                    (s.constant, s.constant_std),
                )
            ),
            unit_text(s.unit),
            percent(s.coverage[k]),
            "yes" if s.decides[k] else "no",
        ]
        for s in found.signals
        for k, h in enumerate(found.horizons)
        if s.model[k] > 0
    ]
