"""The numbers of a fitted linear model for `summary.json`, the page and the terminal."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.identification.linear.responses import Mode
from rotorid.results.files import Input, to_json
from rotorid.results.text import Tone, Verdict, to_verdict
from rotorid.workflows.fit_linear.fit import LinearResult, LinearSettings
from rotorid.workflows.fit_linear.text import finding_text


@dataclasses.dataclass(frozen=True)
class ModeSummary:
    """A mode: natural frequency (Hz) and damping ratio with standard deviations, and the time constant (s) of a real one."""

    frequency: float
    frequency_std: float
    damping: float
    damping_std: float
    time_constant: float


@dataclasses.dataclass(frozen=True)
class Gain:
    """Static gain from an input to an output, in `unit`; null without an integrator-free, stable model."""

    input: str
    output: str
    unit: str
    value: float
    std: float


@dataclasses.dataclass(frozen=True)
class ModelSummary:
    """The model. rate: rows per second. rows: of the fit and held out. delay: of the inputs, s, known to a row. means: of the
    columns at the operating point."""

    rate: float
    rows: int
    order: int
    delay: float
    modes: tuple[ModeSummary, ...]
    static_gains: tuple[Gain, ...]
    means: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Validation:
    """held_out_fit: %, by horizon and output. orders: mean held-out fit (%) of each order with its best delay. residuals_white
    (by output), feedback: p-values."""

    held_out_fit: Mapping[str, Mapping[str, float]]
    orders: Mapping[str, float]
    residuals_white: Mapping[str, float]
    feedback: float


@dataclasses.dataclass(frozen=True)
class LinearSummary:
    """All numbers of a fit."""

    verdict: Verdict
    settings: LinearSettings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    model: ModelSummary
    validation: Validation
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_linear(
    result: LinearResult, inputs: Sequence[Input] = (), notes: Sequence[str] = ()
) -> LinearSummary:
    """Collect the numbers of a fit. inputs: files that were read. notes: of the reader."""
    dt = result.data.runs[0].dt
    best: dict[str, float] = {}
    for c in result.candidates:
        if math.isfinite(c.fit):
            best[str(c.order)] = max(best.get(str(c.order), -math.inf), c.fit)
    return LinearSummary(
        verdict=_verdict(result),
        settings=result.settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        model=ModelSummary(
            rate=1.0 / dt,
            rows=result.data.rows,
            order=result.fit.model.order,
            delay=result.delay * dt,
            modes=tuple(map(_mode, result.responses.modes)),
            static_gains=_gains(result),
            means=result.data.means,
        ),
        validation=Validation(
            held_out_fit=result.held_out,
            orders=best,
            residuals_white={c.output: c.probability for c in result.residuals.white},
            feedback=min(c.probability for c in result.feedback),
        ),
        notes=(*notes, *result.data.notes),
    )


def _mode(m: Mode) -> ModeSummary:
    is_real = m.pole.imag == 0.0 and m.frequency > 0.0
    time_constant = 1.0 / (2.0 * math.pi * m.frequency) if is_real else math.nan
    return ModeSummary(m.frequency, m.frequency_std, m.damping, m.damping_std, time_constant)


def _gains(result: LinearResult) -> tuple[Gain, ...]:
    """Gains at 0 Hz of a stable model."""
    run, static = result.data.runs[0], result.responses.static
    gains = []
    for i, output in enumerate(run.outputs):
        for j, name in enumerate(run.inputs):
            value = float(static.value[0, i, j].real) if result.fit.model.is_stable else math.nan
            std = abs(value) * float(static.log_gain_std[0, i, j])
            gains.append(Gain(name, output, result.data.gain_unit(output, name), value, std))
    return tuple(gains)


def _verdict(result: LinearResult) -> Verdict:
    fit = float(np.mean(list(result.held_out["10 rows"].values())))
    values = {"order": result.fit.model.order, "delay": result.delay, "fit": fit}
    findings = [Finding("model_fitted", Severity.OK, values), *result.findings]
    tones: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "caution"}
    tone = tones.get(max(finding.severity for finding in findings), "good")
    return to_verdict(tone, findings, finding_text)
