"""The numbers of a fitted dynamic linear model: what `summary.json` holds and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from rotorid.results.dlm import SMOOTHED, DlmFound, DlmSettings
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict
from rotorid.results.words import joined, label, title

_WHITE = 0.01
"""Probability below which the innovations count as not white."""


@dataclasses.dataclass(frozen=True)
class DlmParameter:
    """A parameter in `unit`. std: null at a bound and where the data do not tell it. lower, upper: 95 %, null likewise."""

    unit: str
    value: float
    std: float
    lower: float
    upper: float
    at_bound: bool
    told: bool


@dataclasses.dataclass(frozen=True)
class DlmState:
    """A quantity in `unit`: at the last measured row, and its range over them, smoothed."""

    unit: str
    final: float
    final_std: float
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class DlmMaximum:
    """A local maximum of the likelihood. starts: searches that ended there."""

    log_likelihood: float
    starts: int
    converged: bool
    values: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class DlmSummary:
    """All numbers of a fit. rows: of the table; measured: of them with a number. whiteness: probability that white innovations
    are as correlated as these. unidentified: what the data do not tell, a sentence each."""

    verdict: Verdict
    settings: DlmSettings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    rows: int
    measured: int
    log_likelihood: float
    aic: float
    bic: float
    whiteness: float
    parameters: Mapping[str, DlmParameter]
    states: Mapping[str, DlmState]
    maxima: tuple[DlmMaximum, ...]
    unidentified: tuple[str, ...]
    notes: tuple[str, ...]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_dlm(found: DlmFound, inputs: Sequence[Input] = (), notes: Sequence[str] = ()) -> DlmSummary:
    """The numbers of a fit. notes: of the table's reader."""
    fit, rows = found.fit, len(found.y) - found.settings.forecast
    return DlmSummary(
        verdict=_verdict(found),
        settings=found.settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        rows=rows,
        measured=fit.measured,
        log_likelihood=fit.log_likelihood,
        aic=fit.aic,
        bic=fit.bic,
        whiteness=found.whiteness,
        parameters=_parameters(found),
        states=_states(found, rows),
        maxima=tuple(DlmMaximum(o.log_likelihood, o.starts, o.converged, o.values) for o in fit.optima),
        unidentified=tuple(u.words for u in fit.unidentified),
        notes=(*notes, *found.notes),
    )


def _parameters(found: DlmFound) -> dict[str, DlmParameter]:
    fit = found.fit
    untold = {n for u in fit.unidentified for n in u.names}
    return {
        n: DlmParameter(
            fit.unit[n],
            fit.values[n],
            fit.std[n],
            *(fit.interval[n] if n not in fit.at_bound else (math.nan, math.nan)),
            at_bound=n in fit.at_bound,
            told=n not in untold,
        )
        for n in fit.names
    }


def _states(found: DlmFound, rows: int) -> dict[str, DlmState]:
    smoothed = next(t for t in found.tracks if t.estimator == SMOOTHED)
    return {
        name: DlmState(
            q.unit,
            float(q.value[rows - 1]),
            float(q.std[rows - 1]),
            float(np.min(q.value[:rows])),
            float(np.max(q.value[:rows])),
        )
        for name, q in smoothed.quantities.items()
    }


def _verdict(found: DlmFound) -> Verdict:
    """What was found, in plain words."""
    fit, column = found.fit, found.settings.column
    told = [n for n in fit.names if n not in fit.at_bound and not any(n in u.names for u in fit.unidentified)]
    details = [f"{title(u.words)}." for u in fit.unidentified]
    if fit.at_bound:
        names = joined([label(n) for n in fit.at_bound])
        still = [n.removesuffix("_variance") for n in fit.at_bound if n.endswith("_variance")]
        means = (
            f": {joined([label(n) for n in still])} without noise of its own"
            if len(still) == len(fit.at_bound)
            else ""
        )
        details.append(f"Most likely at its bound: {names}{means}.")
    best = [o for o in fit.optima if o.log_likelihood > fit.log_likelihood - 2.0]
    if len(best) > 1:
        details.append(f"{len(best)} maxima of the likelihood are about as good; all are listed.")
    if not fit.converged:
        details.append("The search did not settle; the values may be off.")
    white = not found.whiteness < _WHITE
    if not white:
        details.append("The innovations are not white: the model lacks a term.")
    tone = (
        "bad"
        if not fit.converged
        else "caution"
        if fit.unidentified or not white or len(best) > 1
        else "good"
    )
    counted = (
        f"{len(told)} of {len(fit.names)} parameters"
        if len(told) < len(fit.names)
        else f"{len(told)} parameters"
    )
    return Verdict(tone, f"{counted} of {column} told by {fit.measured} measurements.", tuple(details))
