"""The numbers of an LPV model for `summary.json`, the page and the terminal, and its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.models.lpv.bounds import MAX_PARAMETERS
from rotorid.models.lpv.files import as_json, as_mat
from rotorid.results.files import Input, to_json
from rotorid.results.text import Statement, Tone, Verdict, to_statements, to_verdict
from rotorid.workflows.lpv.lpv import LpvResult, LpvSettings
from rotorid.workflows.lpv.text import finding_text

MODEL_JSON, MODEL_MAT, CONTROLLER_JSON, CONTROLLER_MAT = (
    "lpv.json",
    "lpv.mat",
    "controller.json",
    "controller.mat",
)
MAX_DIFFERENCE: Final = 1e-12
"""Largest relative difference from the nonlinear model that is due to rounding."""

_MIN_INSIDE: Final = 0.99  # least share of rows inside the box without a warning
_MAX_RATE_ERROR: Final = 0.3  # largest rate error without a warning, rad/s


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """Bounds of a parameter, and its range along the flights. entries: number of entries of A, B and c that depend on
    it."""

    unit: str
    lower: float
    upper: float
    flight_lower: float | None
    flight_upper: float | None
    entries: int


@dataclasses.dataclass(frozen=True)
class FlightRow:
    """A flight.

    duration: airborne, from its first to its last row, s. inside: share of its rows inside the box. rate_error: largest
    difference between the rates of roll, pitch and yaw and the body rates, rad/s; rate_error_rms: its rms.
    """

    name: str
    rows: int
    duration: float
    inside: float
    rate_error: float
    rate_error_rms: float


@dataclasses.dataclass(frozen=True)
class ReductionRow:
    """Reduction to principal components. share: of the variance that they explain. max_error: largest error of a parameter
    along the flights, relative to its range. shares: of all components."""

    components: int
    share: float
    max_error: float
    shares: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class ControlRow:
    """The controller.

    margin, decay, slack, pairs: of its certificate, see `Certificate`. cost: bound on its cost, relative to the LQR at the
    centre of the ranges. min_pole_decay, max_pole_decay: decay rates of the closed-loop poles at the vertices, 1/s.
    min_damping: their smallest damping ratio.
    """

    method: str
    is_stable: bool
    margin: float
    decay: float
    slack: float
    pairs: int
    vertices: int
    cost: float
    min_pole_decay: float
    max_pole_decay: float
    min_damping: float
    ranges: Mapping[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class ModelRow:
    """The model. difference: largest relative error of x' against the nonlinear model."""

    states: tuple[str, ...]
    rotors: int
    vertices: int
    difference: float


@dataclasses.dataclass(frozen=True)
class Scheduling:
    """ranges: of the flight variables. parameters: the scheduling parameters, with their bounds."""

    ranges: Mapping[str, tuple[float, float]]
    parameters: Mapping[str, ParameterRow]


@dataclasses.dataclass(frozen=True)
class LpvSummary:
    """All numbers of an LPV model. findings: accuracy, flights, reduction and certificate."""

    verdict: Verdict
    findings: tuple[Statement, ...]
    settings: LpvSettings
    airframe: str
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    model: ModelRow
    scheduling: Scheduling
    flights: tuple[FlightRow, ...]
    reduction: ReductionRow | None
    control: ControlRow | None
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def poles(result: LpvResult) -> np.ndarray:
    """Closed-loop poles in 1/s, one row for each vertex of the controller's box."""
    assert result.controller is not None
    schedule = result.controller.schedule
    corners = schedule.box.vertices()
    rows = []
    for v, K in zip(corners, schedule.vertex_gains(), strict=True):
        A, B, _ = schedule.model.at(v)
        rows.append(np.linalg.eigvals(A + B @ K))
    return np.array(rows)


def summarise_lpv(result: LpvResult, inputs: Sequence[Input] = (), notes: Sequence[str] = ()) -> LpvSummary:
    """Collect the numbers of a model. inputs: files that were read. notes: of the log readers."""
    packages = ("rotorid", "jax") + (("cvxpy", "clarabel") if result.controller else ())
    flights, reduction, control = _flights(result), _reduction(result), _control(result)
    return LpvSummary(
        verdict=_verdict(result, flights),
        findings=to_statements(_findings(result.difference, flights, reduction, control), finding_text),
        settings=result.settings,
        airframe=result.airframe.name,
        inputs=tuple(inputs),
        versions={name: version(name) for name in packages},
        model=ModelRow(
            states=result.model.states,
            rotors=len(result.model.inputs),
            vertices=2 ** len(result.model.names),
            difference=result.difference,
        ),
        scheduling=Scheduling(result.ranges, _parameters(result)),
        flights=flights,
        reduction=reduction,
        control=control,
        notes=tuple(notes),
    )


def _parameters(result: LpvResult) -> dict[str, ParameterRow]:
    model, box, flight_box = result.model, result.box, result.flight_box
    return {
        name: ParameterRow(
            model.units[k],
            float(box.lower[k]),
            float(box.upper[k]),
            float(flight_box.lower[k]) if flight_box else None,
            float(flight_box.upper[k]) if flight_box else None,
            int(np.count_nonzero(model.A[k]) + np.count_nonzero(model.B[k]) + np.count_nonzero(model.c[k])),
        )
        for k, name in enumerate(model.names)
    }


def _flights(result: LpvResult) -> tuple[FlightRow, ...]:
    rows = []
    for flight, inside in zip(result.flights, result.inside, strict=True):
        error = np.linalg.norm(flight.rate_errors(), axis=1)
        duration = float(flight.t[-1] - flight.t[0])
        rms = float(np.sqrt(np.mean(error**2)))
        rows.append(FlightRow(flight.name, len(flight.t), duration, inside, float(error.max()), rms))
    return tuple(rows)


def _reduction(result: LpvResult) -> ReductionRow | None:
    r = result.reduction
    if r is None:
        return None
    return ReductionRow(len(r.model.names), r.share, float(r.error.max()), tuple(map(float, r.shares)))


def _control(result: LpvResult) -> ControlRow | None:
    if result.controller is None:
        return None
    schedule = result.controller.schedule
    c, all_poles = schedule.certificate, poles(result)
    return ControlRow(
        schedule.method,
        c.is_stable,
        c.margin,
        c.decay,
        c.slack,
        c.pairs,
        len(all_poles),
        schedule.cost,
        float(-np.real(all_poles).max()),
        float(-np.real(all_poles).min()),
        float(np.min(-np.real(all_poles) / np.abs(all_poles))),
        result.controller.ranges,
    )


def _findings(
    difference: float,
    flights: Sequence[FlightRow],
    reduction: ReductionRow | None,
    control: ControlRow | None,
) -> list[Finding]:
    """Accuracy of the model, flights, reduction and certificate."""
    findings = [Finding("model_difference", Severity.NOTE, {"difference": difference})]
    findings += [
        Finding("rows_inside_bounds", Severity.NOTE, {"flight": f.name, "inside": f.inside}) for f in flights
    ]
    if reduction is not None:
        values = {"components": reduction.components, "share": reduction.share}
        findings.append(Finding("variance_explained", Severity.NOTE, values))
    if control is not None:
        names = ("margin", "pairs", "decay", "cost")
        values = {name: getattr(control, name) for name in names}
        findings.append(Finding("certificate", Severity.NOTE, values))
    return findings


def _verdict(result: LpvResult, flights: Sequence[FlightRow]) -> Verdict:
    count = len(result.model.names)
    size = {"states": len(result.model.states), "parameters": count}
    if result.difference > MAX_DIFFERENCE:
        findings = [Finding("model_inexact", Severity.ERROR, {"difference": result.difference})]
    elif result.controller is None:
        findings = [Finding("model_exact", Severity.OK, size)]
    else:
        decay = result.controller.schedule.certificate.decay
        findings = [Finding("controller_certified", Severity.OK, {**size, "decay": decay})]
    outside = min(flights, key=lambda f: f.inside, default=None)
    if outside is not None and outside.inside < _MIN_INSIDE:
        values = {"flight": outside.name, "inside": outside.inside}
        findings.append(Finding("flight_outside_bounds", Severity.WARNING, values))
    fastest = max(flights, key=lambda f: f.rate_error, default=None)
    if fastest is not None and fastest.rate_error > _MAX_RATE_ERROR:
        values = {"flight": fastest.name, "rate_error": fastest.rate_error}
        findings.append(Finding("angle_rates_differ", Severity.WARNING, values))
    if count > MAX_PARAMETERS:
        findings.append(Finding("vertices_not_listed", Severity.NOTE, {"parameters": count}))
    tones: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "caution"}
    tone = tones.get(max(finding.severity for finding in findings), "good")
    return to_verdict(tone, findings, finding_text)


def lpv_files(result: LpvResult) -> dict[str, bytes]:
    """The files of the model and of the controller, if there is one, by name."""
    model: dict[str, Any] = as_json(result.model, result.box)
    if result.reduction is not None:
        model["reduced"] = as_json(result.reduction.model, result.reduction.box)
    files = {MODEL_JSON: to_json(model).encode(), MODEL_MAT: as_mat(result.model, result.box)}
    if result.controller is not None:
        schedule = result.controller.schedule
        c = schedule.certificate
        gains = schedule.vertex_gains()
        numbers = {"margin": c.margin, "decay": c.decay, "slack": c.slack, "pairs": c.pairs}
        controller = as_json(schedule.model, schedule.box) | {
            "gains": gains.tolist(),
            "method": schedule.method,
            "ranges": dict(result.controller.ranges),
            "certificate": {"P": c.P.tolist(), **numbers},
        }
        files[CONTROLLER_JSON] = to_json(controller).encode()
        variables = {"K": np.moveaxis(gains, 0, 2), "P": c.P, **numbers}
        files[CONTROLLER_MAT] = as_mat(schedule.model, schedule.box, variables)
    return files
