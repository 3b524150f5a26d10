"""The numbers of an observed wrench: what `summary.json` holds and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import numpy as np

from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight
from rotorid.models.system import GRAVITY
from rotorid.results.contact_detection import shrunk, usable_time
from rotorid.results.contact_point import Box
from rotorid.results.contacts import Contact, Contacts, Offset
from rotorid.results.metrics import consistency, coverage
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.track import airborne_share
from rotorid.results.verdict import OVERCONFIDENT, Verdict
from rotorid.results.words import joined, label, percent, plus_minus, seconds, title
from rotorid.results.wrench import COMPONENTS, ObserverName, WrenchTrack
from rotorid.results.wrench_words import LASTING, way

LABELS: Final[Mapping[str, str]] = {
    "mo": "momentum observer",
    "acceleration": "acceleration-based observer",
    "ekf": "EKF",
}
"""Observers as people write them."""

_TROUBLED: Final = (Health.INCONSISTENT, Health.RECOVERING, Health.DIVERGED)
_WANDERS: Final = 2.0  # times the scatter that the band has
_AT_LIMIT: Final = 0.05
_WIDE: Final = 0.05  # of the weight: a band of the force that asks for a better airframe
_CAUSES: Final[Mapping[str, str]] = {
    "attitude": "what the measured attitude may be off",
    "rotors": "how well rotors are made and mounted",
    "accelerometer_bias": "the bias of the accelerometer",
    "forward_flight": "how the rotors' pull shifts in forward flight",
}


@dataclasses.dataclass(frozen=True)
class WrenchSettings:
    """What the command was asked for. gain: 1/s. rotor_input: what the flight knows of its rotors. model: learned, in words;
    "" without one."""

    command: str
    observer: ObserverName
    gain: float
    airframe: str
    rotor_input: str
    model: str = ""


@dataclasses.dataclass(frozen=True)
class ComponentSummary:
    """One component of the wrench over the rows that count, in `unit`.

    mean_std: by noise and by the parameters. band: median standard deviation at one time. error: root mean square error,
    coverage: share of the rows whose 95 % band holds the truth; both None without truth.
    """

    unit: str
    mean: float
    mean_std: float
    band: float
    lowest: float
    highest: float
    offset: Offset
    error: float | None = None
    coverage: float | None = None


@dataclasses.dataclass(frozen=True)
class WrenchSummary:
    """All numbers of a result. time_origin: the log's own clock at t = 0, s. start, end: of the track, s. scale: of the
    covariances of force and torque, see `wrench_scatter`. uncertain: what the band holds of the parameters, by name."""

    verdict: Verdict
    settings: WrenchSettings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    time_origin: float
    duration: float
    airborne: float
    format: str
    vehicle: str
    notes: tuple[str, ...]
    rows: int
    start: float
    end: float
    consistency: float
    healthy: float
    health: Mapping[str, float]
    components: Mapping[str, ComponentSummary]
    events: tuple[Contact, ...]
    box: Box
    scale: tuple[float, float]
    uncertain: tuple[str, ...]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_wrench(
    found: WrenchTrack,
    pushes: Contacts,
    flight: Flight,
    settings: WrenchSettings,
    inputs: Sequence[Input] = (),
) -> WrenchSummary:
    """The numbers of the wrench of one flight."""
    track = found.track
    components = {name: _component(found, pushes, k, name) for k, name in enumerate(COMPONENTS)}
    return WrenchSummary(
        verdict=wrench_verdict(found, pushes),
        settings=settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        time_origin=flight.time_origin,
        duration=flight.duration,
        airborne=airborne_share(track, flight),
        format=flight.format,
        vehicle=flight.vehicle,
        notes=flight.notes,
        rows=len(track.t),
        start=float(track.t[0]),
        end=float(track.t[-1]),
        consistency=consistency(track.nis, track.nis_dof),
        healthy=track.share(Health.OK),
        health={h.name.lower(): track.share(h) for h in Health},
        components=components,
        events=pushes.events,
        box=pushes.box,
        scale=found.scale,
        uncertain=tuple(dict.fromkeys(name.split()[0] for name in found.spread.causes)),
    )


def mean_wrench(found: WrenchTrack) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the rows that count, and its standard deviation: force (world, N), torque (body, N m).

    Noise averages out over time constants of the observer; what the parameters make of the mean does not.
    """
    rows = found.usable
    noise = np.sqrt(np.mean(found.noise_std[rows] ** 2, axis=0))
    noise = noise * shrunk(usable_time(found), found.gain)
    steady = np.sqrt(np.sum(np.mean(found.spread.errors[rows], axis=0) ** 2, axis=1))
    return found.wrench[rows].mean(axis=0), np.hypot(noise, steady)


def _component(found: WrenchTrack, pushes: Contacts, k: int, name: str) -> ComponentSummary:
    rows = found.usable
    quantity = found.track.quantities[name]
    value, std = quantity.value[rows], quantity.std[rows]
    mean, mean_std = mean_wrench(found)
    error = share = None
    if name in found.track.truth:
        truth = found.track.truth[name][rows]
        error = float(np.sqrt(np.mean((value - truth) ** 2)))
        share = coverage(value, std, truth)
    return ComponentSummary(
        unit=quantity.unit,
        mean=float(mean[k]),
        mean_std=float(mean_std[k]),
        band=float(np.median(std)),
        lowest=float(value.min()),
        highest=float(value.max()),
        offset=pushes.offsets[name],
        error=error,
        coverage=share,
    )


def wrench_verdict(found: WrenchTrack, pushes: Contacts) -> Verdict:
    """What the wrench says, in plain words."""
    track = found.track
    if track.health[-1] == Health.DIVERGED:
        return Verdict(
            "bad",
            "The wrench could not be observed: the numbers became invalid, or the flight is too short.",
            ("The airframe or the units of the log do not fit this flight; `rotorid inspect` checks them.",),
        )
    doubts = _doubts(found)
    troubled = sum(track.share(h) for h in _TROUBLED)
    steady = _offsets(pushes)
    tone = "bad" if troubled > 0.5 else "caution" if doubts or steady else "good"
    return Verdict(tone, _headline(pushes), (*steady, *doubts, *_wide(found)))


def _headline(pushes: Contacts) -> str:
    events = pushes.events
    if not events:
        return "No push shows: the wrench keeps to its band from one end of the flight to the other."
    clearest = max(events, key=lambda c: c.strength / max(c.strength_std, 1e-300))
    lasting = sum(c.duration > LASTING for c in events)
    short = len(events) - lasting
    kinds = [
        f"{count} {noun}{'' if count == 1 else ending}"
        for count, noun, ending in ((short, "push", "es"), (lasting, "lasting force", "s"))
        if count
    ]
    told = (
        f"{plus_minus(clearest.strength, clearest.strength_std, 'N')} {way(clearest)} for {seconds(clearest.duration)} "
        f"from {clearest.start:.1f} s on"
    )
    if len(events) == 1:
        return f"{title(kinds[0])} on the vehicle: {told}."
    return f"{title(joined(kinds))} on the vehicle, the clearest {told}."


def _offsets(pushes: Contacts) -> list[str]:
    """What is steady and not within its band: an airframe that is wrong, or a force that never ends."""
    texts = []
    for name, offset in pushes.offsets.items():
        if not offset.significant:
            continue
        text = f"{label(name)} {plus_minus(offset.value, offset.std, offset.unit, signed=True)}"
        if name == "force_z":
            text += f", as of {abs(offset.value) / GRAVITY:.3g} kg too {'little' if offset.value < 0 else 'much'} mass"
        texts.append(text)
    if not texts:
        return []
    return [
        f"Steady through the flight, outside of its band and not counted as a push: {'; '.join(texts)}. "
        "The airframe is off, or something acts all the time."
    ]


def _doubts(found: WrenchTrack) -> list[str]:
    texts = []
    troubled = sum(found.track.share(h) for h in _TROUBLED)
    ratio = consistency(found.track.nis, found.track.nis_dof)
    if troubled > 0.2:
        texts.append(
            f"For {percent(troubled)} of the time the measurements disagreed with the model by more than a wrench explains."
        )
    elif ratio > OVERCONFIDENT:
        texts.append(f"Innovations are {np.sqrt(ratio):.1f} times what the model expects.")
    if (limit := found.track.share(Health.OUT_OF_RANGE)) > _AT_LIMIT:
        texts.append(f"For {percent(limit)} of the time {_out_of_range(found)}.")
    for what, scale in zip(("force", "torque"), found.scale, strict=True):
        if scale > _WANDERS**2:
            texts.append(
                f"The {what} wanders {np.sqrt(scale):.1f} times as far as noise explains (gusts, or a poor model), and its "
                "band is as wide: weak pushes do not stand out."
            )
    return texts


def _out_of_range(found: WrenchTrack) -> str:
    """Why the model did not hold for a while."""
    if not found.system.heads:
        return "rotors were at their limit, and nothing was learnt"
    limits = "rotors were at their limit, or " if found.system.lags else ""
    return f"{limits}the learned residual was far outside of what it was trained on, and its band is as wide"


def _wide(found: WrenchTrack) -> list[str]:
    """Which parameter makes the band of the force wide."""
    std = np.median(found.spread.std, axis=0)[:3]
    k = int(np.argmax(std))
    if std[k] < _WIDE * found.system.weight:
        return []
    cause = found.spread.cause_of(k)
    why = _CAUSES.get(cause, f"the {label(cause)}, whose std is in the airframe")
    return [
        f"The band of the {label(COMPONENTS[k])} is wide, {1.96 * std[k]:.2g} N either way, most of it by {why}."
    ]
