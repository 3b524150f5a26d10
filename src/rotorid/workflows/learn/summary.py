"""The numbers of a learned model for `summary.json`, the page and the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from rotorid.findings import Finding, Severity
from rotorid.models.system import by_vectors
from rotorid.results.files import Input, to_json
from rotorid.results.text import Statement, Verdict, to_statements, to_verdict
from rotorid.workflows.learn.learn import (
    AXES,
    MIN_EXPLAINED,
    NO_RESIDUAL,
    LearningResult,
    LearnSettings,
    useful_blocks,
)
from rotorid.workflows.learn.physics import contact_spans
from rotorid.workflows.learn.text import EFFECTS, finding_text

MIN_INFORMATION_GAIN: Final = 0.3
"""Reduction of the prior standard deviation from which a parameter counts as identified."""

UNIDENTIFIABLE: Final = "unidentifiable_direction"
"""Code of the finding on parameters, or a combination of parameters, that the flights do not identify."""


@dataclasses.dataclass(frozen=True)
class ParameterSummary:
    """An estimated parameter in `unit`. information_gain: relative reduction of the prior standard deviation.

    is_at_bound: whether the estimate is at its lower bound, 0.
    """

    unit: str
    prior: float
    prior_std: float
    value: float
    std: float
    information_gain: float
    is_at_bound: bool


@dataclasses.dataclass(frozen=True)
class FlightSummary:
    """A flight, durations in s.

    duration: of the training data. rate: rows per second. contact_duration: excluded time with contact.
    saturation_duration: excluded time with a command at its limit.
    """

    name: str
    duration: float
    rate: float
    contact_duration: float
    saturation_duration: float


@dataclasses.dataclass(frozen=True)
class ResidualSummary:
    """The residual.

    blocks: blocks ("velocity", "body_rate") whose head is in the model. horizon: length of predictions, rows. epochs:
    number of training epochs. loss: of all heads on held-out data, relative to the model without residual. explained:
    share of the squared error that each head explains there, by block.
    """

    blocks: tuple[str, ...]
    architecture: str
    horizon: int
    epochs: int
    loss: float
    explained: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class LearnSummary:
    """All numbers of a learned model.

    rotor_input: rotor signal of the logs. findings: unidentifiable parameters, and the error that the residual explains.
    acceleration_errors: rms on held-out data by model and axis (body frame, m/s^2 and rad/s^2).
    """

    verdict: Verdict
    settings: LearnSettings
    airframe: str
    rotor_input: str
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    flights: tuple[FlightSummary, ...]
    parameters: Mapping[str, ParameterSummary]
    findings: tuple[Statement, ...]
    residual: ResidualSummary | None
    acceleration_errors: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_learned(
    result: LearningResult, inputs: Sequence[Input] = (), notes: Sequence[str] = ()
) -> LearnSummary:
    """Collect the numbers of a model. inputs: files that were read. notes: of the log readers."""
    residual = result.residual
    return LearnSummary(
        verdict=_verdict(result),
        settings=result.settings,
        airframe=result.model.airframe.name,
        rotor_input=result.flights[0].rotor_input,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        flights=_flights(result),
        parameters=_parameters(result),
        findings=to_statements(_findings(result), finding_text),
        residual=None
        if residual is None
        else ResidualSummary(
            useful_blocks(result.explained),
            result.settings.architecture,
            residual.horizon,
            residual.epochs,
            residual.loss,
            result.explained,
        ),
        acceleration_errors={
            model: dict(zip(AXES, map(float, values), strict=True))
            for model, values in result.acceleration_errors.items()
        },
        notes=tuple(notes),
    )


def _flights(result: LearningResult) -> tuple[FlightSummary, ...]:
    return tuple(
        FlightSummary(
            f.name,
            f.duration,
            f.rate,
            sum((s.end - s.start for s in result.contacts if s.flight == k), 0.0),
            f.saturation_duration,
        )
        for k, f in enumerate(result.flights)
    )


def _parameters(result: LearningResult) -> dict[str, ParameterSummary]:
    fit = result.fit
    if fit is None:
        return {}
    return {
        name: ParameterSummary(
            fit.unit[name],
            fit.prior[name],
            fit.prior_std[name],
            fit.values[name],
            fit.std[name],
            fit.information_gain[name],
            name in fit.at_bound,
        )
        for name in fit.names
    }


def _findings(result: LearningResult) -> list[Finding]:
    """Unidentifiable parameters or combinations of parameters, and the error that the residual explains."""
    directions = result.fit.unidentifiable_directions if result.fit is not None else ()
    distinct = dict.fromkeys((by_vectors(d.names), d.is_common_scale) for d in directions)
    findings = [
        Finding(UNIDENTIFIABLE, Severity.NOTE, {"names": list(names), "is_common_scale": is_common_scale})
        for names, is_common_scale in distinct
    ]
    if result.residual is not None:
        values = {
            "architecture": result.settings.architecture,
            "epochs": result.residual.epochs,
            "explained": dict(result.explained),
            "blocks": useful_blocks(result.explained),
        }
        findings.append(Finding("explained_error", Severity.NOTE, values))
    return findings


def _verdict(result: LearningResult) -> Verdict:
    findings = [_main_finding(result)]
    fit = result.fit
    if fit is not None:
        poor = [
            n for n in fit.names if fit.information_gain[n] < MIN_INFORMATION_GAIN and n not in fit.at_bound
        ]
        if poor:
            findings.append(Finding("parameters_poorly_excited", Severity.WARNING, {"names": poor}))
        if not fit.search.converged:
            findings.append(
                Finding("fit_not_converged", Severity.WARNING, {"iterations": fit.search.iterations})
            )
    findings += [
        Finding("contact_excluded", Severity.WARNING, {"flight": flight, "spans": spans})
        for flight, spans in contact_spans(result.contacts, result.flights)
    ]
    saturated = [f.name for f in result.flights if f.saturation_duration > 0]
    if saturated:
        findings.append(Finding("saturation_excluded", Severity.WARNING, {"flights": saturated}))
    return to_verdict("caution" if len(findings) > 1 else "good", findings, finding_text)


def _main_finding(result: LearningResult) -> Finding:
    values: dict[str, Any] = {"estimated": len(result.fit.names) if result.fit is not None else 0}
    if result.settings.architecture == NO_RESIDUAL or result.residual is None:
        return Finding("model_without_residual", Severity.OK, values)
    blocks = useful_blocks(result.explained)
    if not blocks:
        values |= {"explained": dict(result.explained), "required": MIN_EXPLAINED}
        return Finding("residual_omitted", Severity.OK, values)
    values |= {
        "explained": {block: result.explained[block] for block in blocks},
        "omitted": [block for block in EFFECTS if block in result.explained and block not in blocks],
    }
    return Finding("residual_learned", Severity.OK, values)
