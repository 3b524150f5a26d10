"""The numbers of a result: what `summary.json` holds and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rotorid.errors import RotoridError
from rotorid.estimators.base import Health
from rotorid.logs.flight import Flight
from rotorid.results.jumps import Jump, jumps
from rotorid.results.metrics import consistency, coverage, rmspe
from rotorid.results.plain import as_json
from rotorid.results.settled import settled
from rotorid.results.track import EstimatorName, Quantity, SystemName, Track, airborne_share
from rotorid.results.verdict import Verdict, verdict


@dataclasses.dataclass(frozen=True)
class Input:
    """A file that a result was made from. role: "log", "airframe", "truth", "mapping"."""

    role: str
    name: str
    sha256: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a command was asked for. airframe: its name. known_mass: kg. seed: of a simulation."""

    command: str
    estimators: tuple[EstimatorName, ...]
    system: SystemName
    airframe: str
    known_mass: float | None = None
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class QuantitySummary:
    """One quantity of one estimator, in `unit`. Medians are over the settled rows (see `results.settled`).

    informed: at the end, whether the data had spoken about it. informed_share: share of the rows. error:
    RMSPE in percent, and coverage: share of the settled rows whose 95 % band holds the truth, both None
    without truth (and error where the truth is 0).
    """

    unit: str
    final: float
    final_std: float
    median: float
    median_std: float
    lowest: float
    highest: float
    informed: bool
    informed_share: float
    error: float | None = None
    coverage: float | None = None


@dataclasses.dataclass(frozen=True)
class EstimatorSummary:
    """What one estimator found. start, end, settled_from: s from the start of the flight.

    consistency: NIS over its dimension, 1 of a consistent filter. health: share of the rows by name. healthy:
    share of OK. changes: jumps of the main quantity that its track bears out (see `results.jumps`), None where it does
    not look for changes. unconfirmed_changes: how many more it was convinced of for a while.
    """

    rows: int
    start: float
    end: float
    settled_from: float
    consistency: float
    healthy: float
    health: Mapping[str, float]
    quantities: Mapping[str, QuantitySummary]
    changes: tuple[Jump, ...] | None = None
    unconfirmed_changes: int = 0


@dataclasses.dataclass(frozen=True)
class Summary:
    """All numbers of a result. time_origin: the log's own clock at t = 0, s. duration: of the log, s."""

    verdict: Verdict
    settings: Settings
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    time_origin: float
    duration: float
    airborne: float
    format: str
    vehicle: str
    notes: tuple[str, ...]
    estimators: Mapping[str, EstimatorSummary]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise(
    tracks: Sequence[Track],
    flight: Flight,
    settings: Settings,
    inputs: Sequence[Input] = (),
    speed: float | None = None,
) -> Summary:
    """The numbers of the tracks of one flight. speed: what the vehicle flew, m/s, None where unknown."""
    return Summary(
        verdict=verdict(tracks, speed),
        settings=settings,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        time_origin=flight.time_origin,
        duration=flight.duration,
        airborne=airborne_share(tracks[0], flight) if tracks else 0.0,
        format=flight.format,
        vehicle=flight.vehicle,
        notes=flight.notes,
        estimators={t.estimator: _of_track(t) for t in tracks},
    )


def file_input(role: str, path: Path) -> Input:
    """An input by its name and hash; of a folder (a ROS bag) that of its files, by name. Raises RotoridError where it cannot
    be read."""
    try:
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        content = b"".join(p.read_bytes() for p in files)
    except OSError as error:
        raise RotoridError(f"{path}: cannot be read ({error.strerror})") from None
    return Input(role, path.name, hashlib.sha256(content).hexdigest(), len(content))


def _of_track(track: Track) -> EstimatorSummary:
    rows, changes = settled(track, track.main), jumps(track)
    return EstimatorSummary(
        rows=len(track.t),
        start=float(track.t[0]),
        end=float(track.t[-1]),
        settled_from=float(track.t[np.argmax(rows)]) if rows.any() else math.nan,
        consistency=consistency(track.nis, track.nis_dof),
        healthy=track.share(Health.OK),
        health={h.name.lower(): track.share(h) for h in Health},
        quantities={name: _of_quantity(track, name, q) for name, q in track.quantities.items()},
        changes=changes,
        unconfirmed_changes=len(track.changes or ()) - len(changes or ()),
    )


def _of_quantity(track: Track, name: str, q: Quantity) -> QuantitySummary:
    rows = settled(track, name)
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
        median=float(np.median(value)),
        median_std=float(np.median(std)),
        lowest=float(np.min(value)),
        highest=float(np.max(value)),
        informed=bool(q.informed[-1]),
        informed_share=float(np.mean(q.informed)),
        error=error,
        coverage=share,
    )
