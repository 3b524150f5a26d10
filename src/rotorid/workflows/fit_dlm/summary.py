"""The numbers of a fitted dynamic linear model for `summary.json`, the page and the terminal."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.results.files import Input, to_json
from rotorid.results.text import Tone, Verdict, to_verdict
from rotorid.workflows.fit_dlm.fit import SMOOTHED, DlmResult, DlmSettings
from rotorid.workflows.fit_dlm.text import direction_text, finding_text

_WHITE = 0.01
"""p-value below which the innovations count as not white."""


@dataclasses.dataclass(frozen=True)
class DlmParameter:
    """A parameter in `unit`. std: null at a bound or if unidentifiable. lower, upper: 95 % interval, null likewise."""

    unit: str
    value: float
    std: float
    lower: float
    upper: float
    is_at_bound: bool
    is_identifiable: bool


@dataclasses.dataclass(frozen=True)
class DlmState:
    """A smoothed quantity in `unit`: at the last measured row, and its range over all measured rows."""

    unit: str
    final: float
    final_std: float
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class DlmMaximum:
    """A local maximum of the likelihood. starts: number of searches that ended there."""

    log_likelihood: float
    starts: int
    converged: bool
    values: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class DlmStatistics:
    """Statistics of a fit. rows: of the table; measured: those with a number. whiteness: p-value of the Ljung-Box test."""

    rows: int
    measured: int
    log_likelihood: float
    aic: float
    bic: float
    whiteness: float


@dataclasses.dataclass(frozen=True)
class DlmSummary:
    """All numbers of a fit.
    unidentifiable_directions: sentences on parameters, or combinations of parameters, that the data do not identify."""

    verdict: Verdict
    settings: DlmSettings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    statistics: DlmStatistics
    parameters: Mapping[str, DlmParameter]
    states: Mapping[str, DlmState]
    maxima: tuple[DlmMaximum, ...]
    unidentifiable_directions: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_dlm(result: DlmResult, inputs: Sequence[Input] = (), notes: Sequence[str] = ()) -> DlmSummary:
    """Collect the numbers of a fit. inputs: files that were read. notes: of the table reader."""
    fit, rows = result.fit, len(result.y) - result.settings.forecast
    return DlmSummary(
        verdict=_verdict(result),
        settings=result.settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        statistics=DlmStatistics(
            rows, fit.measurement_count, fit.log_likelihood, fit.aic, fit.bic, result.whiteness
        ),
        parameters=_parameters(result),
        states=_states(result, rows),
        maxima=tuple(DlmMaximum(o.log_likelihood, o.starts, o.converged, o.values) for o in fit.optima),
        unidentifiable_directions=tuple(
            direction_text(u.names, u.steps) for u in fit.unidentifiable_directions
        ),
        notes=(*notes, *result.notes),
    )


def _parameters(result: DlmResult) -> dict[str, DlmParameter]:
    fit = result.fit
    unidentifiable = {n for u in fit.unidentifiable_directions for n in u.names}
    return {
        name: DlmParameter(
            e.unit,
            e.value,
            e.std,
            *(e.interval if not e.is_at_bound else (math.nan, math.nan)),
            is_at_bound=e.is_at_bound,
            is_identifiable=name not in unidentifiable,
        )
        for name, e in fit.estimates.items()
    }


def _states(result: DlmResult, rows: int) -> dict[str, DlmState]:
    smoothed = next(t for t in result.tracks if t.estimator == SMOOTHED)
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


def _verdict(result: DlmResult) -> Verdict:
    fit, column = result.fit, result.settings.column
    identified = [
        n
        for n in fit.names
        if n not in fit.at_bound and not any(n in u.names for u in fit.unidentifiable_directions)
    ]
    values = {
        "identified": len(identified),
        "parameters": len(fit.names),
        "column": column,
        "measurements": fit.measurement_count,
    }
    findings = [Finding("parameters_identified", Severity.OK, values)]
    findings += [
        Finding(
            "unidentifiable_direction", Severity.WARNING, {"names": list(u.names), "steps": list(u.steps)}
        )
        for u in fit.unidentifiable_directions
    ]
    if fit.at_bound:
        findings.append(Finding("estimates_at_bound", Severity.NOTE, {"names": list(fit.at_bound)}))
    maxima = [o for o in fit.optima if o.log_likelihood > fit.log_likelihood - 2.0]
    if len(maxima) > 1:
        findings.append(Finding("several_maxima", Severity.WARNING, {"count": len(maxima)}))
    if not fit.converged:
        findings.append(Finding("search_not_converged", Severity.ERROR))
    if result.whiteness < _WHITE:
        findings.append(Finding("innovations_not_white", Severity.WARNING, {"p": result.whiteness}))
    tones: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "caution"}
    tone = tones.get(max(finding.severity for finding in findings), "good")
    return to_verdict(tone, findings, finding_text)
