"""The numbers of tracked flights and the findings on them: the content of `summary.json`, of the report and the terminal."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.estimators.base import Health
from rotorid.estimators.battery.estimator import BatteryEstimate
from rotorid.estimators.registry import LEARNED_ESTIMATORS, EstimatorName
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.models.registry import SystemName
from rotorid.results.files import Input, to_json
from rotorid.results.metrics import consistency, coverage, rmspe
from rotorid.results.text import Verdict, to_verdict
from rotorid.signals.phases.of_log import PhaseInterval
from rotorid.signals.phases.phase import Phase
from rotorid.workflows.track.battery.estimate import battery_of
from rotorid.workflows.track.changes import Change, Jump, find_jumps, measure_change, settled_rows
from rotorid.workflows.track.estimates import ExplainedShare
from rotorid.workflows.track.phases.course import courses_of
from rotorid.workflows.track.phases.text import course_values
from rotorid.workflows.track.text import to_text
from rotorid.workflows.track.track import Quantity, Track, covered_share

OVERCONFIDENT: Final = 2.0
"""Mean NIS per dimension above which the innovations are called too large."""

_TROUBLED: Final = (Health.INCONSISTENT, Health.RECOVERING, Health.DIVERGED)
_TROUBLED_SHARE: Final = 0.2
_DISAGREE: Final = 3.0  # standard deviations between two estimators
_SETTLING: Final = 3.0  # s until a change can be measured
_QUICK: Final = 4.0  # s; faster is a step, since a filter itself takes a second or two
_CLEARLY: Final = 0.9  # share of the absolute standard deviation
_SLOW: Final = 1.0  # m/s; slower is a hover, in which drag is not excited


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the command. airframe: its name. known_mass: kg. seed: of a simulation."""

    command: str
    estimators: tuple[EstimatorName, ...]
    system: SystemName
    airframe: str
    known_mass: float | None = None
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class QuantitySummary:
    """One quantity of one estimator, in `unit`. Median, lowest and highest are over the settled rows (see `settled_rows`).

    final_std includes what scales all values together, as the uncertainty of the thrust curve does with the mass; change_std
    does not: it is that of a change. informed: whether the data carried information about it until the end; informed_share:
    share of such rows. rmspe: against truth, %. coverage: share of the settled rows whose 95 % band contains the truth. Both
    are None without truth, rmspe also where the truth is 0.
    """

    unit: str
    final: float
    final_std: float
    change_std: float
    median: float
    median_std: float
    lowest: float
    highest: float
    informed: bool
    informed_share: float
    rmspe: float | None = None
    coverage: float | None = None

    @property
    def has_common_std(self) -> bool:
        """Whether changes of the quantity are known clearly better than its absolute value."""
        return self.change_std < _CLEARLY * self.final_std


@dataclasses.dataclass(frozen=True)
class EstimatorSummary:
    """The results of one estimator. start, end, settled_from: s from the start of the flight.

    consistency: mean NIS per dimension, 1 for a consistent filter. health: share of the rows by name. healthy: share of OK.
    explained: by output (see `prediction`). jumps: of the main quantity (see `find_jumps`), None for an estimator without
    change detection. unconfirmed_changes: how many more it detected that its track does not confirm. courses: of the main
    quantity, one a flight; empty where the phases of the flight are not known.
    """

    rows: int
    start: float
    end: float
    settled_from: float
    consistency: float
    healthy: float
    health: Mapping[str, float]
    quantities: Mapping[str, QuantitySummary]
    explained: Mapping[str, ExplainedShare]
    jumps: tuple[Jump, ...] | None = None
    unconfirmed_changes: int = 0
    courses: tuple[Mapping[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class LogSummary:
    """The log of a result. time_origin: the log's own clock at t = 0, s. duration: s. airborne: share of the log that was
    used. phases: name, start and end (s) of each phase of the flight, and start_std (s) where it began in a gap; empty where
    they are not known."""

    format: str
    vehicle: str
    time_origin: float
    duration: float
    airborne: float
    notes: tuple[str, ...]
    phases: tuple[Mapping[str, Any], ...] = ()


def summarise_log(flight: Flight, airborne: float, phases: Sequence[PhaseInterval] = ()) -> LogSummary:
    """Summarise the log of a flight. airborne: share of the log that was used."""
    return LogSummary(
        flight.format,
        flight.vehicle,
        flight.time_origin,
        flight.duration,
        airborne,
        flight.notes,
        tuple(_phase_values(p) for p in phases),
    )


def _phase_values(interval: PhaseInterval) -> dict[str, Any]:
    values = {"phase": interval.phase.value, "start": interval.start, "end": interval.end}
    return values | ({"start_std": interval.start_std} if interval.start_std > 0.0 else {})


@dataclasses.dataclass(frozen=True)
class Summary:
    """All numbers of a result. battery: at the end, None where the log lacks its voltage or current."""

    verdict: Verdict
    settings: Settings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    log: LogSummary
    estimators: Mapping[str, EstimatorSummary]
    battery: BatteryEstimate | None = None

    def to_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return to_json(self)


def summarise(
    tracks: Sequence[Track],
    flight: Flight,
    settings: Settings,
    inputs: Sequence[Input] = (),
    speed: float | None = None,
    doubts: Sequence[Finding] = (),
) -> Summary:
    """Summarise the tracks of one flight.

    speed: 95th percentile of the horizontal speed, m/s, None where unknown. doubts: see `plausibility_findings`.
    """
    return Summary(
        verdict=track_verdict(tracks, speed, doubts),
        settings=settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        log=summarise_log(
            flight, covered_share(tracks[0], flight) if tracks else 0.0, tracks[0].phases if tracks else ()
        ),
        estimators={t.estimator: _summarise_track(t) for t in tracks},
        battery=battery_of(flight, tracks[0].t) if tracks and "battery_current" in flight else None,
    )


def _summarise_track(track: Track) -> EstimatorSummary:
    rows, jumps = settled_rows(track, track.main_quantity), find_jumps(track)
    return EstimatorSummary(
        rows=len(track.t),
        start=float(track.t[0]),
        end=float(track.t[-1]),
        settled_from=float(track.t[np.argmax(rows)]) if rows.any() else math.nan,
        consistency=consistency(track.nis, track.nis_dof),
        healthy=track.health_share(Health.OK),
        health={h.name.lower(): track.health_share(h) for h in Health},
        quantities={name: _summarise_quantity(track, name, q) for name, q in track.quantities.items()},
        explained=track.explained,
        jumps=jumps,
        unconfirmed_changes=len(track.detected_changes or ()) - len(jumps or ()),
        courses=tuple(course_values(course) for course in courses_of(track)),
    )


def _summarise_quantity(track: Track, name: str, q: Quantity) -> QuantitySummary:
    rows = settled_rows(track, name)
    value, std = (q.value[rows], q.std[rows]) if rows.any() else (np.array([np.nan]), np.array([np.nan]))
    error = share = None
    if name in track.truth and rows.any():
        truth = track.truth[name][rows]
        error = rmspe(value, truth) if np.all(truth != 0) else None
        share = coverage(value, std, truth)
    return QuantitySummary(
        unit=q.unit,
        final=float(q.value[-1]),
        final_std=float(q.std[-1]),
        change_std=float(q.change_std[-1]),
        median=float(np.median(value)),
        median_std=float(np.median(std)),
        lowest=float(np.min(value)),
        highest=float(np.max(value)),
        informed=bool(q.informed[-1]),
        informed_share=float(np.mean(q.informed)),
        rmspe=error,
        coverage=share,
    )


def track_verdict(
    tracks: Sequence[Track], speed: float | None = None, doubts: Sequence[Finding] = ()
) -> Verdict:
    """The verdict on the tracks of one flight.

    Args:
        tracks: of one flight; the first one that ends well gives the headline.
        speed: 95th percentile of the horizontal speed, m/s; None where it was not logged.
        doubts: what airframe and log contradict each other in; an error comes first.
    """
    errors = [doubt for doubt in doubts if doubt.severity == Severity.ERROR]
    warnings = [doubt for doubt in doubts if doubt.severity < Severity.ERROR]
    usable = [t for t in tracks if len(t.t)]
    if not usable:
        return to_verdict("bad", [Finding("no_flight", Severity.ERROR)], to_text)
    lead = leading_track(usable)
    name, main = lead.main_quantity, lead.quantities[lead.main_quantity]
    rows = settled_rows(lead, name, _SETTLING)
    if lead.health[-1] == Health.DIVERGED or not rows.any() or not np.isfinite(main.value[-1]):
        failed = Finding("tracking_failed", Severity.ERROR, {"quantity": name})
        return to_verdict("bad", [failed, *doubts, Finding("check_inputs", Severity.ERROR)], to_text)
    if not main.informed.any():
        values = {
            "quantity": name,
            "value": float(main.value[-1]),
            "std": float(main.std[-1]),
            "unit": main.unit,
        }
        unidentified = Finding("not_identified", Severity.WARNING, values)
        findings = [*errors, unidentified, *warnings, Finding("fly_longer", Severity.WARNING)]
        return to_verdict("bad" if errors else "caution", findings, to_text)
    changed = measure_change(lead.t[rows], main.value[rows], main.change_std[rows])
    changed = changed.with_common_std(main.common_relative_std)
    headline, *jumps = _change_findings(name, main.unit, changed, _first_jumps(usable, name))
    if not errors:  # which mark the health of all rows
        warnings += _doubts(usable, lead)
    is_bad = bool(errors) or _ends_inconsistent(lead) or _troubled_share(lead) > 0.5
    findings = [
        *errors,
        headline,
        *warnings,
        *jumps,
        *_course_findings(lead),
        *phase_findings(lead.phases),
        *_truth_findings(usable, name),
        *_drag_findings(lead, speed),
    ]
    return to_verdict("bad" if is_bad else "caution" if warnings else "good", findings, to_text)


def leading_track(tracks: Sequence[Track]) -> Track:
    """The first track that ends well, else the first."""
    return next((t for t in tracks if len(t.t) and t.health[-1] != Health.DIVERGED), tracks[0])


def _first_jumps(tracks: Sequence[Track], name: str) -> tuple[Jump, ...] | None:
    """The jumps of a quantity, from the first estimator with change detection."""
    return next((j for t in tracks if t.main_quantity == name and (j := find_jumps(t)) is not None), None)


def _change_findings(name: str, unit: str, changed: Change, jumps: tuple[Jump, ...] | None) -> list[Finding]:
    """The finding on the quantity over the flight, and one on its jumps where that does not cover them."""
    about: dict[str, Any] = {"quantity": name, "unit": unit}
    others = []
    if jumps:
        sizes = [{"time": j.time, "size": j.size, "size_std": j.size_std} for j in jumps]
        others = [Finding("jumps", Severity.NOTE, {**about, "jumps": sizes})]
    if not changed.is_significant:
        value = {"value": 0.5 * (changed.start + changed.end), "std": changed.std}
        return [Finding("constant", Severity.OK, about | value), *others]
    about |= {"end": changed.end, "end_std": changed.end_std}
    if changed.is_monotonic and len({j.size > 0 for j in jumps or ()}) < 2 and abs(changed.total) > 0:
        about |= {"start": changed.start, "start_std": changed.start_std}
        change_start, change_end = changed.span
        duration = change_end - change_start
        if duration > _QUICK:
            times = {"duration": duration, "change_start": change_start}
            return [Finding("changed_gradually", Severity.OK, about | times), *others]
        if jumps and len(jumps) == 1 and abs(jumps[0].time - changed.step_time) <= _QUICK:
            return [Finding("stepped", Severity.OK, about | {"time": jumps[0].time, "is_time_exact": True})]
        step = {"time": changed.step_time, "is_time_exact": False}
        return [Finding("stepped", Severity.OK, about | step), *others]
    about |= {"lowest": changed.lowest, "highest": changed.highest, "std": changed.std}
    if jumps is None and abs(changed.step) > 0.3 * (changed.highest - changed.lowest):
        about |= {"step": changed.step, "step_time": changed.step_time}
    return [Finding("varied", Severity.OK, about), *others]


def _course_findings(lead: Track) -> list[Finding]:
    """The main quantity at take-off and landing of each flight with its changes."""
    name, courses = lead.main_quantity, courses_of(lead)
    about = {"quantity": name, "unit": lead.quantities[name].unit, "flights": len(courses)}
    return [
        Finding("course", Severity.NOTE, about | {"flight": k, **course_values(course)})
        for k, course in enumerate(courses, 1)
    ]


def phase_findings(phases: Sequence[PhaseInterval]) -> list[Finding]:
    """Contacts that are followed by flight, and crashes."""
    findings = []
    contacts = [
        p.start
        for p, following in itertools.pairwise(phases)
        if p.phase is Phase.CONTACT and following.phase.is_airborne
    ]
    if contacts:
        findings.append(Finding("contacts", Severity.NOTE, {"times": contacts}))
    crashes = [p.start for p in phases if p.phase is Phase.CRASH]
    if crashes:
        findings.append(Finding("crash", Severity.WARNING, {"time": crashes[0]}))
    return findings


def _troubled_share(track: Track) -> float:
    return sum(track.health_share(h) for h in _TROUBLED)


def _ends_inconsistent(track: Track) -> bool:
    """Whether the last second is INCONSISTENT."""
    last = track.t >= track.t[-1] - 1.0
    return bool(np.all(track.health[last] == Health.INCONSISTENT))


def _doubts(tracks: Sequence[Track], lead: Track) -> list[Finding]:
    findings = []
    if (share := _troubled_share(lead)) > _TROUBLED_SHARE:
        findings.append(Finding("model_mismatch", Severity.WARNING, {"share": share}))
    elif (ratio := consistency(lead.nis, lead.nis_dof)) > OVERCONFIDENT:
        findings.append(Finding("large_innovations", Severity.WARNING, {"factor": float(np.sqrt(ratio))}))
    main = lead.quantities[lead.main_quantity]
    for track in tracks:
        other = track.quantities.get(lead.main_quantity)
        if track is lead or other is None:
            continue
        value, std = float(other.value[-1]), float(other.std[-1])
        if track.health[-1] == Health.DIVERGED or not np.isfinite(value):
            findings.append(Finding("estimator_diverged", Severity.WARNING, {"estimator": track.estimator}))
        elif _distance(main, other, are_alike=track.estimator not in LEARNED_ESTIMATORS) > _DISAGREE:
            values = {"estimator": track.estimator, "value": value, "std": std, "unit": other.unit}
            findings.append(Finding("estimators_disagree", Severity.WARNING, values))
    return findings


def _distance(a: Quantity, b: Quantity, *, are_alike: bool) -> float:
    """The difference of two final values, in standard deviations of the more precise one, or of the difference where the two
    do not have the same model."""
    difference = abs(float(a.value[-1] - b.value[-1]))
    first, second = (float(q.change_std[-1]) for q in (a, b))
    return difference / max(min(first, second) if are_alike else math.hypot(first, second), 1e-12)


def _truth_findings(tracks: Sequence[Track], name: str) -> list[Finding]:
    errors = {}
    for track in tracks:
        if name in track.truth and name in track.quantities and (rows := settled_rows(track, name)).any():
            error = rmspe(track.quantities[name].value[rows], track.truth[name][rows])
            if np.isfinite(error):
                errors[track.estimator] = error
    return [Finding("error_to_truth", Severity.NOTE, {"quantity": name, "rmspe": errors})] if errors else []


def _drag_findings(lead: Track, speed: float | None) -> list[Finding]:
    """Drag and wind at the end of the flight, or why they were not identified."""
    quantities: Mapping[str, Quantity] = lead.quantities
    if "drag" not in quantities:
        return []
    drag = quantities["drag"]
    if "velocity" in lead.innovations and not bool((lead.innovations["velocity"].std > 0).any()):
        return [Finding("drag_not_identified", Severity.NOTE, {"reason": "no_velocity"})]
    if not drag.informed[-1]:
        reason = "slow" if speed is None or speed >= _SLOW else "hover"
        return [Finding("drag_not_identified", Severity.NOTE, {"reason": reason})]
    values: dict[str, Any] = {
        "drag": float(drag.value[-1]),
        "drag_std": float(drag.std[-1]),
        "unit": drag.unit,
    }
    wind = [quantities.get("wind_x"), quantities.get("wind_y")]
    if wind[0] is not None and wind[1] is not None and wind[0].informed[-1] and wind[1].informed[-1]:
        x, y = wind[0], wind[1]
        strength, std = np.hypot(x.value, y.value), np.hypot(x.std, y.std)
        windy = (strength > 2.5 * std) & (lead.health == Health.OK)
        is_windy = windy[len(windy) // 10 :].mean() > 0.05
        values["wind"] = float(np.percentile(strength[windy], 95)) if is_windy else 0.0
    return [Finding("drag", Severity.NOTE, values)]
