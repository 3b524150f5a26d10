"""The numbers of an LPV model for `summary.json`, the page and the terminal, and its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.models.lpv.bounds import MOST
from rotorid.models.lpv.files import as_mat, as_plain
from rotorid.results.files import Input, to_json
from rotorid.results.text import Tone, Verdict, to_verdict
from rotorid.workflows.lpv.lpv import LpvResult, LpvSettings
from rotorid.workflows.lpv.text import finding_text

MODEL_JSON, MODEL_MAT, CONTROLLER_JSON, CONTROLLER_MAT = (
    "lpv.json",
    "lpv.mat",
    "controller.json",
    "controller.mat",
)
EXACT: Final = 1e-12
_WELL: Final = 0.99  # share of the rows of a flight inside the box
_FAST: Final = 0.3  # rad/s, of the difference between angle rates and body rates


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """Bounds of a parameter, and its range along the flights. entries: number of entries of A, B and c that depend on it."""

    unit: str
    lower: float
    upper: float
    flight_lower: float | None
    flight_upper: float | None
    entries: int


@dataclasses.dataclass(frozen=True)
class FlightRow:
    """A flight. seconds: airborne, from its first to its last row. inside: share of its rows inside the box. departure: largest
    difference between the rates of roll, pitch and yaw and the body rates, rad/s; departure_rms: its rms."""

    name: str
    rows: int
    seconds: float
    inside: float
    departure: float
    departure_rms: float


@dataclasses.dataclass(frozen=True)
class ReductionRow:
    """Reduction to principal components. share: of the variance that they explain. worst: largest error of a parameter along
    the flights, relative to its range. shares: of all components."""

    components: int
    share: float
    worst: float
    shares: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class ControlRow:
    """The controller. margin, decay, slack, pairs: of its certificate, see `Certificate`. cost: bound on its cost, relative to
    the LQR at the centre of the ranges. slowest, fastest: decay rates of the closed-loop poles at the vertices, 1/s. damping:
    their smallest damping ratio."""

    method: str
    stable: bool
    margin: float
    decay: float
    slack: float
    pairs: int
    vertices: int
    cost: float
    slowest: float
    fastest: float
    damping: float
    ranges: Mapping[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class ModelRow:
    """The model. difference: largest relative error of x' against the nonlinear model."""

    states: tuple[str, ...]
    rotors: int
    vertices: int
    difference: float


@dataclasses.dataclass(frozen=True)
class LpvSummary:
    """All numbers of an LPV model."""

    verdict: Verdict
    settings: LpvSettings
    airframe: str
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    model: ModelRow
    ranges: Mapping[str, tuple[float, float]]
    parameters: Mapping[str, ParameterRow]
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
    flights = _flights(result)
    return LpvSummary(
        verdict=_verdict(result, flights),
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
        ranges=result.ranges,
        parameters=_parameters(result),
        flights=flights,
        reduction=_reduction(result),
        control=_control(result),
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
        off = np.linalg.norm(flight.departure(), axis=1)
        length = float(flight.t[-1] - flight.t[0])
        rows.append(
            FlightRow(
                flight.name, len(flight.t), length, inside, float(off.max()), float(np.sqrt(np.mean(off**2)))
            )
        )
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


def _verdict(result: LpvResult, flights: Sequence[FlightRow]) -> Verdict:
    count = len(result.model.names)
    size = {"states": len(result.model.states), "parameters": count}
    if result.difference > EXACT:
        findings = [Finding("model_inexact", Severity.ERROR, {"difference": result.difference})]
    elif result.controller is None:
        findings = [Finding("model_exact", Severity.OK, size)]
    else:
        decay = result.controller.schedule.certificate.decay
        findings = [Finding("controller_certified", Severity.OK, {**size, "decay": decay})]
    worst = min(flights, key=lambda f: f.inside, default=None)
    if worst is not None and worst.inside < _WELL:
        values = {"flight": worst.name, "inside": worst.inside}
        findings.append(Finding("flight_outside_bounds", Severity.WARNING, values))
    quick = max(flights, key=lambda f: f.departure, default=None)
    if quick is not None and quick.departure > _FAST:
        values = {"flight": quick.name, "departure": quick.departure}
        findings.append(Finding("angle_rates_differ", Severity.WARNING, values))
    if count > MOST:
        findings.append(Finding("vertices_not_listed", Severity.NOTE, {"parameters": count}))
    tones: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "caution"}
    tone = tones.get(max(finding.severity for finding in findings), "good")
    return to_verdict(tone, findings, finding_text)


def lpv_files(result: LpvResult) -> dict[str, bytes]:
    """The files of the model and of the controller, if there is one, by name."""
    plain: dict[str, Any] = as_plain(result.model, result.box)
    if result.reduction is not None:
        plain["reduced"] = as_plain(result.reduction.model, result.reduction.box)
    files = {MODEL_JSON: to_json(plain).encode(), MODEL_MAT: as_mat(result.model, result.box)}
    if result.controller is not None:
        schedule = result.controller.schedule
        c = schedule.certificate
        control = as_plain(schedule.model, schedule.box)
        gains = schedule.vertex_gains()
        numbers = {"margin": c.margin, "decay": c.decay, "slack": c.slack, "pairs": c.pairs}
        control |= {
            "gains": gains.tolist(),
            "method": schedule.method,
            "ranges": dict(result.controller.ranges),
        }
        control["certificate"] = {"P": c.P.tolist(), **numbers}
        files[CONTROLLER_JSON] = to_json(control).encode()
        more = {"K": np.moveaxis(gains, 0, 2), "P": c.P, **numbers}
        files[CONTROLLER_MAT] = as_mat(schedule.model, schedule.box, more)
    return files
