"""The numbers of an LPV model: what `summary.json` and the files hold, and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.models.lpv_bounds import MOST
from rotorid.models.lpv_files import as_mat, as_plain
from rotorid.results.lpv import LpvFound, LpvSettings
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict
from rotorid.results.words import percent

MODEL_JSON, MODEL_MAT, CONTROLLER_JSON, CONTROLLER_MAT = (
    "lpv.json",
    "lpv.mat",
    "controller.json",
    "controller.mat",
)
EXACT: Final = 1e-12
_WELL: Final = 0.99  # of the rows of a flight, in the box
_FAST: Final = 0.3  # rad/s of departure of the angles' rates


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """Bounds of one parameter; those of the flights alone where there are any. places: how many entries of A, B, c it moves."""

    unit: str
    lower: float
    upper: float
    flown_lower: float | None
    flown_upper: float | None
    places: int


@dataclasses.dataclass(frozen=True)
class FlownRow:
    """One flight. seconds: in the air, between its first and last row. inside: share of its rows in the box. departure: largest
    |exact rate - body rate| of roll, pitch and yaw, rad/s; departure_rms: the mean one."""

    name: str
    rows: int
    seconds: float
    inside: float
    departure: float
    departure_rms: float


@dataclasses.dataclass(frozen=True)
class ReductionRow:
    """Reduction to principal components. share: of the variance that they hold. worst: largest error of a parameter along the
    flights, over its range. shares: of all components."""

    components: int
    share: float
    worst: float
    shares: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class ControlRow:
    """The controller. margin, decay, slack, pairs: of its certificate, see `control.lpv.Certificate`. cost: bound of the cost
    over that of the LQR in the middle of the ranges. slowest, fastest: rates of the closed loops' poles at the vertices,
    1/s; damping: their least damping ratio."""

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
class LpvSummary:
    """All numbers of an LPV model. difference: from the nonlinear model, relative."""

    verdict: Verdict
    settings: LpvSettings
    airframe: str
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    states: tuple[str, ...]
    rotors: int
    vertices: int
    difference: float
    ranges: Mapping[str, tuple[float, float]]
    parameters: Mapping[str, ParameterRow]
    flights: tuple[FlownRow, ...]
    reduction: ReductionRow | None
    control: ControlRow | None
    notes: tuple[str, ...]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def poles(found: LpvFound) -> np.ndarray:
    """Poles of the closed loops in 1/s, a row for each vertex of the controller's box."""
    schedule = found.schedule
    assert schedule is not None
    corners = schedule.box.vertices()
    rows = []
    for v, K in zip(corners, schedule.vertex_gains(), strict=True):
        A, B, _ = schedule.model.at(v)
        rows.append(np.linalg.eigvals(A + B @ K))
    return np.array(rows)


def summarise_lpv(found: LpvFound, inputs: Sequence[Input] = (), notes: Sequence[str] = ()) -> LpvSummary:
    """The numbers of a model. notes: of the logs' readers."""
    packages = ("rotorid", "jax") + (("cvxpy", "clarabel") if found.schedule else ())
    flights = _flights(found)
    return LpvSummary(
        verdict=_verdict(found, flights),
        settings=found.settings,
        airframe=found.airframe.name,
        inputs=tuple(inputs),
        versions={name: version(name) for name in packages},
        states=found.model.states,
        rotors=len(found.model.inputs),
        vertices=2 ** len(found.model.names),
        difference=found.difference,
        ranges=found.ranges,
        parameters=_parameters(found),
        flights=flights,
        reduction=_reduction(found),
        control=_control(found),
        notes=tuple(notes),
    )


def _parameters(found: LpvFound) -> dict[str, ParameterRow]:
    model, box, seen = found.model, found.box, found.seen
    return {
        name: ParameterRow(
            model.units[k],
            float(box.lower[k]),
            float(box.upper[k]),
            float(seen.lower[k]) if seen else None,
            float(seen.upper[k]) if seen else None,
            int(np.count_nonzero(model.A[k]) + np.count_nonzero(model.B[k]) + np.count_nonzero(model.c[k])),
        )
        for k, name in enumerate(model.names)
    }


def _flights(found: LpvFound) -> tuple[FlownRow, ...]:
    rows = []
    for flight, inside in zip(found.flights, found.inside, strict=True):
        off = np.linalg.norm(flight.departure(), axis=1)
        length = float(flight.t[-1] - flight.t[0])
        rows.append(
            FlownRow(
                flight.name, len(flight.t), length, inside, float(off.max()), float(np.sqrt(np.mean(off**2)))
            )
        )
    return tuple(rows)


def _reduction(found: LpvFound) -> ReductionRow | None:
    r = found.reduction
    if r is None:
        return None
    return ReductionRow(len(r.model.names), r.share, float(r.error.max()), tuple(map(float, r.shares)))


def _control(found: LpvFound) -> ControlRow | None:
    schedule = found.schedule
    if schedule is None:
        return None
    c, all_poles = schedule.certificate, poles(found)
    return ControlRow(
        schedule.method,
        c.stable,
        c.margin,
        c.decay,
        c.slack,
        c.pairs,
        len(all_poles),
        schedule.cost,
        float(-np.real(all_poles).max()),
        float(-np.real(all_poles).min()),
        float(np.min(-np.real(all_poles) / np.abs(all_poles))),
        found.control_ranges,
    )


def _verdict(found: LpvFound, flights: Sequence[FlownRow]) -> Verdict:
    k, details = len(found.model.names), []
    tone = "good"
    headline = f"{len(found.model.states)} states, {k} parameters"
    if found.schedule is None:
        headline += f", 2^{k} vertices: equal to the nonlinear model."
    else:
        decay = found.schedule.certificate.decay
        headline += (
            f", and a controller that is stable for all of them, errors shrinking at {decay:.2g}/s or faster."
        )
    if found.difference > EXACT:
        tone = "bad"
        headline = f"The model differs from the nonlinear one by {found.difference:.1g} of its rates."
    outside = [f for f in flights if f.inside < _WELL]
    if outside:
        tone = "caution" if tone == "good" else tone
        worst = min(outside, key=lambda f: f.inside)
        details.append(
            f"{worst.name} is in the ranges for {percent(worst.inside)} of its time; widen them if it flew as it should."
        )
    quick = max(flights, key=lambda f: f.departure, default=None)
    if quick is not None and quick.departure > _FAST:
        tone = "caution" if tone == "good" else tone
        details.append(
            "The model takes body rates for the rates of the angles; in "
            f"{quick.name} that is off by up to {quick.departure:.2g} rad/s."
        )
    if k > MOST:
        details.append(f"Its 2^{k} vertices are not listed; reduce it with --components.")
    return Verdict(tone, headline, tuple(details))


def lpv_files(found: LpvFound) -> dict[str, bytes]:
    """The files of the model and, where there is one, of the controller."""
    plain: dict[str, Any] = as_plain(found.model, found.box)
    if found.reduction is not None:
        plain["reduced"] = as_plain(found.reduction.model, found.reduction.box)
    files = {MODEL_JSON: as_json(plain).encode(), MODEL_MAT: as_mat(found.model, found.box)}
    schedule = found.schedule
    if schedule is not None:
        c = schedule.certificate
        control = as_plain(schedule.model, schedule.box)
        gains = schedule.vertex_gains()
        numbers = {"margin": c.margin, "decay": c.decay, "slack": c.slack, "pairs": c.pairs}
        control |= {"gains": gains.tolist(), "method": schedule.method, "ranges": dict(found.control_ranges)}
        control["certificate"] = {"P": c.P.tolist(), **numbers}
        files[CONTROLLER_JSON] = as_json(control).encode()
        more = {"K": np.moveaxis(gains, 0, 2), "P": c.P, **numbers}
        files[CONTROLLER_MAT] = as_mat(schedule.model, schedule.box, more)
    return files
