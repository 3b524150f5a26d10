"""The numbers of an observed wrench and the findings on it: the content of `summary.json`, of the report and the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.estimators.base import Health
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.models.system import GRAVITY
from rotorid.results.files import Input, to_json
from rotorid.results.metrics import consistency, coverage
from rotorid.results.text import Verdict, to_verdict
from rotorid.workflows.track.summary import OVERCONFIDENT, LogSummary, summarise_log
from rotorid.workflows.track.track import Track, covered_share
from rotorid.workflows.wrench.contacts import Contact, Contacts, Offset
from rotorid.workflows.wrench.detection import averaging_factor, usable_duration
from rotorid.workflows.wrench.line_of_action import Box
from rotorid.workflows.wrench.observe import COMPONENTS, ObserverName, WrenchTrack
from rotorid.workflows.wrench.text import LASTING, direction_name, to_text

_TROUBLED: Final = (Health.INCONSISTENT, Health.RECOVERING, Health.DIVERGED)
_LARGE_SCATTER: Final = 2.0  # of the wrench, relative to that of the assumed noise
_AT_LIMIT: Final = 0.05
_WIDE: Final = (
    0.05  # of the weight: standard deviation of the force above which the airframe should be improved
)


@dataclasses.dataclass(frozen=True)
class WrenchSettings:
    """Settings of the command. gain: 1/s. rotor_input: the signal of the rotors that was used. model: description of the
    learned model, "" without one."""

    command: str
    observer: ObserverName
    gain: float
    airframe: str
    rotor_input: str
    model: str = ""


@dataclasses.dataclass(frozen=True)
class ComponentSummary:
    """One component of the wrench over the usable rows, in `unit`.

    mean_std: due to noise and to the uncertainty of the parameters. band: median standard deviation at one time. rmse: root
    mean square error, coverage: share of the rows whose 95 % band contains the truth; both None without truth.
    """

    unit: str
    mean: float
    mean_std: float
    band: float
    lowest: float
    highest: float
    offset: Offset
    rmse: float | None = None
    coverage: float | None = None


@dataclasses.dataclass(frozen=True)
class ObserverSummary:
    """The observer over the flight. start, end: of its rows, s. consistency: mean NIS per dimension. healthy: share of the rows
    that are OK; health: of each state. scale: of the covariances of force and torque, see `covariance_scale`. uncertain: names
    of the parameters whose uncertainty the band includes."""

    rows: int
    start: float
    end: float
    consistency: float
    healthy: float
    health: Mapping[str, float]
    scale: tuple[float, float]
    uncertain: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class WrenchSummary:
    """All numbers of a result. events: contacts and lasting forces. box: around the rotors, see `rotor_box`."""

    verdict: Verdict
    settings: WrenchSettings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    log: LogSummary
    observer: ObserverSummary
    components: Mapping[str, ComponentSummary]
    events: tuple[Contact, ...]
    box: Box

    def to_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return to_json(self)


def summarise_wrench(
    found: WrenchTrack,
    contacts: Contacts,
    flight: Flight,
    settings: WrenchSettings,
    inputs: Sequence[Input] = (),
) -> WrenchSummary:
    """Summarise the wrench of one flight."""
    track = found.track
    components = {name: _component(found, contacts, k, name) for k, name in enumerate(COMPONENTS)}
    return WrenchSummary(
        verdict=wrench_verdict(found, contacts),
        settings=settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        log=summarise_log(flight, covered_share(track, flight)),
        observer=ObserverSummary(
            rows=len(track.t),
            start=float(track.t[0]),
            end=float(track.t[-1]),
            consistency=consistency(track.nis, track.nis_dof),
            healthy=track.health_share(Health.OK),
            health={h.name.lower(): track.health_share(h) for h in Health},
            scale=found.scale,
            uncertain=tuple(dict.fromkeys(name.split()[0] for name in found.parameter_errors.causes)),
        ),
        components=components,
        events=contacts.events,
        box=contacts.box,
    )


def mean_wrench(track: WrenchTrack) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the usable rows and its standard deviation: force (world, N), torque (body, N m).

    Noise averages out over the time constants of the observer; errors of the parameters do not.
    """
    rows = track.usable_rows
    noise = np.sqrt(np.mean(track.noise_std[rows] ** 2, axis=0))
    noise = noise * averaging_factor(usable_duration(track), track.gain)
    steady = np.sqrt(np.sum(np.mean(track.parameter_errors.errors[rows], axis=0) ** 2, axis=1))
    return track.wrench[rows].mean(axis=0), np.hypot(noise, steady)


def _component(track: WrenchTrack, contacts: Contacts, k: int, name: str) -> ComponentSummary:
    rows = track.usable_rows
    quantity = track.track.quantities[name]
    value, std = quantity.value[rows], quantity.std[rows]
    mean, mean_std = mean_wrench(track)
    error = share = None
    if name in track.track.truth:
        truth = track.track.truth[name][rows]
        error = float(np.sqrt(np.mean((value - truth) ** 2)))
        share = coverage(value, std, truth)
    return ComponentSummary(
        unit=quantity.unit,
        mean=float(mean[k]),
        mean_std=float(mean_std[k]),
        band=float(np.median(std)),
        lowest=float(value.min()),
        highest=float(value.max()),
        offset=contacts.offsets[name],
        rmse=error,
        coverage=share,
    )


def wrench_verdict(found: WrenchTrack, contacts: Contacts) -> Verdict:
    """The verdict on the wrench of one flight."""
    track = found.track
    if track.health[-1] == Health.DIVERGED:
        failed = Finding("observation_failed", Severity.ERROR)
        return to_verdict("bad", [failed, Finding("check_inputs", Severity.ERROR)], to_text)
    doubts, offsets = _doubts(found), _offset_findings(contacts)
    tone = (
        "bad"
        if _troubled_share(track) > 0.5
        else "caution"
        if doubts or offsets or found.faults.faults
        else "good"
    )
    findings = [*found.faults.findings, _contact_finding(contacts), *offsets, *doubts, *_wide_band(found)]
    return to_verdict(tone, findings, to_text)


def _contact_finding(contacts: Contacts) -> Finding:
    events = contacts.events
    if not events:
        return Finding("no_contact", Severity.OK)
    clearest = max(events, key=lambda c: c.strength / max(c.strength_std, 1e-300))
    lasting = sum(c.duration > LASTING for c in events)
    values = {
        "contacts": len(events) - lasting,
        "lasting_forces": lasting,
        "force": clearest.strength,
        "force_std": clearest.strength_std,
        "direction": direction_name(clearest),
        "start": clearest.start,
        "duration": clearest.duration,
    }
    return Finding("contacts", Severity.OK, values)


def _offset_findings(contacts: Contacts) -> list[Finding]:
    """Components that are constant and outside of their band: a wrong airframe, or a force that never ends."""
    offsets: dict[str, dict[str, Any]] = {}
    for name, offset in contacts.offsets.items():
        if offset.significant:
            offsets[name] = {"value": offset.value, "std": offset.std, "unit": offset.unit}
            if name == "force_z":
                offsets[name]["mass_error"] = -offset.value / GRAVITY
    return [Finding("constant_wrench", Severity.WARNING, {"offsets": offsets})] if offsets else []


def _troubled_share(track: Track) -> float:
    return sum(track.health_share(h) for h in _TROUBLED)


def _doubts(track: WrenchTrack) -> list[Finding]:
    findings = []
    troubled_share = _troubled_share(track.track)
    ratio = consistency(track.track.nis, track.track.nis_dof)
    if troubled_share > 0.2:
        findings.append(Finding("model_mismatch", Severity.WARNING, {"share": troubled_share}))
    elif ratio > OVERCONFIDENT:
        findings.append(Finding("large_innovations", Severity.WARNING, {"factor": float(np.sqrt(ratio))}))
    if (limit := track.track.health_share(Health.OUT_OF_RANGE)) > _AT_LIMIT:
        values = {
            "share": limit,
            "has_residual": bool(track.system.heads),
            "has_motor_lag": bool(track.system.lags),
        }
        findings.append(Finding("out_of_range", Severity.WARNING, values))
    for quantity, scale in zip(("force", "torque"), track.scale, strict=True):
        if scale > _LARGE_SCATTER**2:
            values = {"component": quantity, "factor": float(np.sqrt(scale))}
            findings.append(Finding("large_scatter", Severity.WARNING, values))
    return findings


def _wide_band(track: WrenchTrack) -> list[Finding]:
    """The parameter that widens the band of the force most, where the band is wide."""
    std = np.median(track.parameter_errors.std, axis=0)[:3]
    k = int(np.argmax(std))
    if std[k] < _WIDE * track.system.weight:
        return []
    cause = track.parameter_errors.cause_of(k)
    values = {"component": COMPONENTS[k], "half_width": float(1.96 * std[k]), "cause": cause}
    return [Finding("wide_band", Severity.NOTE, values)]
