"""The numbers of a plan for `summary.json`, the page and the terminal, and the files for the autopilot."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.control.setpoints import CHANNELS, Lissajous, Move
from rotorid.export.autopilot.mission_plan import MISSION, Stop, mission_plan
from rotorid.export.autopilot.set_points import LOGGING, RATE, SetPoints, player_files
from rotorid.findings import Finding, Severity
from rotorid.geometry import rotation_rows
from rotorid.models.system import GRAVITY
from rotorid.results.files import Input, to_json
from rotorid.results.text import Tone, Verdict, to_verdict
from rotorid.simulation.free_flight.manoeuvre_simulation import RATE as ROWS
from rotorid.workflows.identify.preparation import TORQUE_RATE
from rotorid.workflows.plan.plan import ALLOWANCE, FASTER_COMMANDS, ROWS_PER_PERIOD, Plan
from rotorid.workflows.plan.text import checklist, finding_text

Estimates = Mapping[str, tuple[float, float]]
"""Value and standard deviation by quantity."""

_REMAINING: Final = 0.3  # of the prior standard deviation, of a quantity that counts as identified
_HOVER_RATIO: Final = (
    5.0  # standard deviation after a hover over that after the plan, of a quantity that needs the plan
)


@dataclasses.dataclass(frozen=True)
class QuantityRow:
    """A quantity, with standard deviations.

    prior_std: before. hover_std: predicted after a hover of the same length. std: predicted after the plan. real_flight_std:
    expected on a real vehicle. estimate, estimate_std: from identifying the simulated flight, None where that was not done.
    hover_estimate_std: from identifying the simulated hover.
    """

    unit: str
    is_target: bool
    value: float
    prior_std: float
    hover_std: float
    std: float
    real_flight_std: float
    estimate: float | None = None
    estimate_std: float | None = None
    hover_estimate_std: float | None = None


@dataclasses.dataclass(frozen=True)
class ManoeuvreRow:
    """A manoeuvre. start, end: s. reduction: see `ScheduledManoeuvre`."""

    name: str
    kind: str
    start: float
    end: float
    size: float
    reduction: float


@dataclasses.dataclass(frozen=True)
class PlanSettingsRow:
    """What was asked for; see `PlanSettings`. command_rate: at which rotor commands will be logged, Hz."""

    airframe: str
    autopilot: str
    targets: tuple[str, ...]
    known: tuple[str, ...]
    duration: float
    limits: Mapping[str, float | tuple[float, ...]]
    criterion: str
    command_rate: float


@dataclasses.dataclass(frozen=True)
class DesignRow:
    """limit_usage: largest value over its limit in simulation. candidates, optimality_bound: see `Plan`. noise_factor: factor
    on the standard deviation of each signal's contribution, for the autocorrelation of its noise."""

    limit_usage: Mapping[str, float]
    candidates: int
    optimality_bound: float
    noise_factor: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class PlanSummary:
    """All numbers of a plan. allowance: see `ALLOWANCE`. logging: parameters of the autopilot."""

    verdict: Verdict
    settings: PlanSettingsRow
    design: DesignRow
    allowance: float
    quantities: Mapping[str, QuantityRow]
    manoeuvres: tuple[ManoeuvreRow, ...]
    logging: Mapping[str, int]
    checklist: tuple[str, ...]
    files: tuple[str, ...]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_plan(
    plan: Plan,
    estimates: Estimates | None = None,
    hover_estimates: Estimates | None = None,
    files: Sequence[str] = (),
    inputs: Sequence[Input] = (),
    notes: Sequence[str] = (),
) -> PlanSummary:
    """Collect the numbers of a plan.

    Args:
        plan: the plan.
        estimates: from identifying its simulated flight.
        hover_estimates: from identifying the simulated hover.
        files: names of the files in the folder.
        inputs: files that were read.
        notes: further notes.
    """
    settings, limits = plan.settings, plan.settings.limits
    rows = _quantities(plan, estimates or {}, hover_estimates or {})
    return PlanSummary(
        verdict=_verdict(plan, rows),
        settings=PlanSettingsRow(
            airframe=plan.airframe.name,
            autopilot=settings.autopilot,
            targets=settings.targets,
            known=settings.known,
            duration=settings.duration,
            limits={
                "speed": limits.speed,
                "tilt": limits.tilt,
                "box": limits.box,
                "rate": limits.rate,
                "command": limits.command,
            },
            criterion=settings.criterion,
            command_rate=settings.command_rate,
        ),
        design=DesignRow(
            limit_usage=plan.simulation.limit_usage,
            candidates=plan.candidates,
            optimality_bound=plan.optimality_bound,
            noise_factor=dict(plan.noise.inflation),
        ),
        allowance=ALLOWANCE,
        quantities=rows,
        manoeuvres=tuple(
            ManoeuvreRow(p.manoeuvre.name, p.manoeuvre.kind, p.start, p.end, p.manoeuvre.size, p.reduction)
            for p in plan.schedule
        ),
        logging=dict(LOGGING[settings.autopilot].parameters),
        checklist=checklist(plan),
        files=tuple(files),
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        notes=(*map(finding_text, _assumptions(plan)), *notes),
    )


def _quantities(plan: Plan, estimates: Estimates, hover_estimates: Estimates) -> dict[str, QuantityRow]:
    q, rows = plan.quantities, {}
    for k, name in enumerate(q.names):
        std = plan.prediction.std[name]
        value, value_std = estimates.get(name, (None, None))
        rows[name] = QuantityRow(
            unit=q.unit[k],
            is_target=k < q.target_count,
            value=q.values[k],
            prior_std=q.prior_std[k],
            hover_std=plan.hover_prediction.std[name],
            std=std,
            real_flight_std=min(ALLOWANCE * std, q.prior_std[k]),
            estimate=value,
            estimate_std=value_std,
            hover_estimate_std=hover_estimates.get(name, (None, None))[1],
        )
    return rows


def _verdict(plan: Plan, rows: Mapping[str, QuantityRow]) -> Verdict:
    targets = {name: row for name, row in rows.items() if row.is_target}
    ratios = {name: row.hover_std / row.std for name, row in targets.items()}
    better = [name for name, ratio in ratios.items() if ratio >= _HOVER_RATIO]
    easy = [
        name for name, row in targets.items() if name not in better and row.std < _REMAINING * row.prior_std
    ]
    unidentifiable = [name for name in targets if name not in (*better, *easy)]
    hover = plan.settings.duration
    findings = []
    tone: Tone = "good"
    if unidentifiable and not better and not easy:
        tone = "bad"
        findings.append(_finding("targets_unidentifiable", Severity.ERROR, names=unidentifiable))
    elif unidentifiable:
        tone = "caution"
        names = {"names": [*better, *easy], "unidentifiable": unidentifiable}
        findings.append(_finding("targets_partly_identifiable", Severity.WARNING, **names))
    elif better:
        ratio = min(ratios[name] for name in better)
        findings.append(_finding("targets_identifiable", names=better, precision_ratio=ratio, hover=hover))
    else:
        findings.append(_finding("targets_identifiable_in_hover", names=easy, hover=hover))
    if unidentifiable:
        findings.append(_finding("little_gain_over_hover", Severity.WARNING, names=unidentifiable))
    if easy and (better or unidentifiable):
        findings.append(_finding("also_identifiable_in_hover", names=easy, hover=hover))
    usage = max(plan.simulation.limit_usage.values())
    selected = {"selected": len(plan.schedule), "candidates": plan.candidates, "limit_usage": usage}
    findings.append(_finding("manoeuvres_selected", **selected))
    if math.isfinite(plan.optimality_bound):
        findings.append(_finding("optimality_bound", reduction=1.0 - 1.0 / plan.optimality_bound))
    return to_verdict(tone, findings, finding_text)


def _finding(code: str, severity: Severity = Severity.OK, **values: Any) -> Finding:
    return Finding(code, severity, values)


def _assumptions(plan: Plan) -> list[Finding]:
    """Assumptions of the predictions that may not hold."""
    settings, findings = plan.settings, []
    rate = settings.command_rate
    if not settings.torques_observable:
        values = {
            "rate": rate,
            "highest": rate / ROWS_PER_PERIOD,
            "least": TORQUE_RATE,
            "remedy": FASTER_COMMANDS[settings.autopilot],
        }
        findings.append(Finding("slow_rotor_commands", Severity.NOTE, values))
    elif settings.autopilot == "ardupilot":
        findings.append(Finding("rotor_speeds_assumed", Severity.NOTE, {"rate": rate}))
    if settings.autopilot == "crazyflie":
        findings.append(Finding("no_set_point_script", Severity.NOTE))
    return findings


def set_points(plan: Plan) -> SetPoints:
    """The set points for the autopilot, see `export.autopilot.set_points`."""
    every = round(ROWS / RATE)
    wanted, truth = plan.simulation.setpoints, plan.simulation.flight
    q = np.asarray(truth.attitude)
    yaw = np.unwrap(rotation_rows.yaw(q))
    excitation = dict(zip(CHANNELS, np.asarray(wanted.excitation).T, strict=True))
    c, s = np.cos(yaw), np.sin(yaw)
    ahead, left = GRAVITY * np.tan(excitation["pitch"]), -GRAVITY * np.tan(excitation["roll"])
    added = np.stack([c * ahead - s * left, s * ahead + c * left, GRAVITY * excitation["thrust"]], axis=1)
    rows = slice(None, None, every)
    return SetPoints(
        (np.arange(len(yaw)) / ROWS)[rows],
        (np.asarray(truth.position) - np.asarray(plan.settings.start))[rows],
        np.asarray(truth.velocity)[rows],
        (np.asarray(wanted.acceleration) + added)[rows],
        yaw[rows],
        (np.asarray(wanted.yaw_rate) + excitation["rate_z"])[rows],
    )


def stops(plan: Plan) -> list[Stop]:
    """Waypoints of the set-point manoeuvres of a plan (steps, circles, turns), for a mission."""
    height, waypoints = plan.settings.height, []
    for scheduled in plan.schedule:
        setpoints = scheduled.manoeuvre.scaled_setpoints()
        for move in setpoints.moves:
            if isinstance(move, Move) and move.turn:
                waypoints.append(Stop(0.0, 0.0, height, 0.0, float(move.turn)))
        if scheduled.manoeuvre.kind == "step":
            move = setpoints.moves[0]
            assert isinstance(move, Move)
            x, y, z = (float(v) for v in np.asarray(move.by))
            speed = math.dist((x, y, z), (0.0, 0.0, 0.0)) / float(move.duration)
            waypoints += [Stop(x, y, height + z, 0.0, 0.0, speed), Stop(0.0, 0.0, height, 0.0, 0.0, speed)]
        if scheduled.manoeuvre.kind == "circle":
            waypoints += _around(setpoints.moves[2], height)
    return waypoints


def _around(move: object, height: float) -> list[Stop]:
    assert isinstance(move, Lissajous)
    periods, amplitude = np.asarray(move.period, float), np.asarray(move.amplitude, float)
    phase, points = np.asarray(move.phase, float), 8
    t = np.arange(points + 1) / points * periods[0]
    points_m = amplitude * np.sin(2.0 * np.pi * t[:, None] / periods + phase)
    speed = float(np.abs(amplitude[:2]).max() * 2.0 * np.pi / periods[0])
    return [Stop(float(x), float(y), height + float(z), 0.0, 0.0, max(speed, 0.2)) for x, y, z in points_m]


def plan_files(plan: Plan, home: tuple[float, float] | None, heading: float) -> dict[str, bytes]:
    """The files for the autopilot by name.

    Args:
        plan: the plan.
        home: latitude and longitude of a mission, deg; None: no mission is written.
        heading: of its forward direction, rad clockwise from north.
    Raises:
        SettingError: a mission cannot be written.
    """
    files = player_files(set_points(plan), plan.settings.autopilot)
    if home is not None:
        text = mission_plan(stops(plan), home, heading, plan.settings.height, plan.settings.autopilot)
        files[MISSION] = text.encode()
    return files
