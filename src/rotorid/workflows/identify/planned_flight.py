"""The manoeuvres of a flight of `rotorid plan` in its log, so that a part of each of them is held out.

The plan's folder has the manoeuvres and the simulated flight. With w and f_z the body rate and the vertical specific force of
log and plan, as means over 20 ms, each axis divided by its standard deviation in the plan (or 0.05 rad/s and 0.3 m/s^2 where
that is larger, so that the noise of an axis that is not excited has no weight), the plan starts in the log at the lag of the
largest normalised cross-correlation,

    r(k) = sum_i <x_i, y_(i+k)> / (|x| |y_k|),        x: plan, y: log, y_k: its part as long as the plan from lag k

which is 1 for equal motions and about 0.03 for unrelated ones of a minute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.documents import parse_json, read_at_most
from rotorid.errors import RotoridError, SettingError
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.results.files import SUMMARY
from rotorid.signals.series import Intervals, integral, total_length
from rotorid.simulation.free_flight.manoeuvres import ACTIVE
from rotorid.workflows.identify.held_out import split
from rotorid.workflows.identify.preparation import Preparation

PLANNED_FLIGHT: Final = "planned_flight.parquet"
"""Name of the simulated flight in the folder of a plan."""

LEAST: Final = 0.5
"""Least time of a manoeuvre on either side, fitted and held out, s."""

_STEP: Final = 0.02  # s
_LEAST_CORRELATION: Final = 0.25
_FLOORS: Final = (0.05, 0.05, 0.05, 0.3)  # rad/s, m/s^2
_LARGEST: Final = 10_000_000  # bytes of a summary


class PlannedManoeuvre(NamedTuple):
    """A manoeuvre. name: as in the plan. start, end: of its motion, s from the start of the plan."""

    name: str
    start: float
    end: float


class PlannedFlight(NamedTuple):
    """A plan. folder: its files. manoeuvres: in order of time. flight: as simulated."""

    folder: Path
    manoeuvres: tuple[PlannedManoeuvre, ...]
    flight: Flight


def split_with_plan(
    preparation: Preparation, folder: str | Path | None
) -> tuple[list[Intervals], list[Intervals], list[Finding]]:
    """Of the parts of each flight (s), those to fit, and those to validate on; and which manoeuvres of a plan they contain.

    Args:
        preparation: the flights.
        folder: of the plan that they flew; None: none.
    Raises:
        ExcitationError: a flight is too short.
        SettingError: the folder has no plan, or a flight does not contain it.
    """
    if folder is None:
        fitted, held_out = split(preparation)
        return fitted, held_out, []
    planned = read_planned_flight(folder)
    manoeuvres = [manoeuvres_in(planned, flight.flight) for flight in preparation.flights]
    fitted, held_out = split(preparation, manoeuvres)
    names = [flight.name for flight in preparation.flights]
    parts = zip(names, manoeuvres, fitted, held_out, strict=True)
    return fitted, held_out, [coverage_finding(planned, *of_flight) for of_flight in parts]


def read_planned_flight(folder: str | Path) -> PlannedFlight:
    """The manoeuvres and the simulated flight in a folder that `rotorid plan` wrote. Raises SettingError where it has none."""
    folder = Path(folder)
    try:
        rows = parse_json(read_at_most(folder / SUMMARY, _LARGEST))["manoeuvres"]
        manoeuvres = tuple(
            PlannedManoeuvre(str(row["name"]), float(row["start"]), float(row["start"]) + ACTIVE)
            for row in rows
        )
        flight = read(folder / PLANNED_FLIGHT)
    except (OSError, ValueError, KeyError, TypeError, RotoridError) as error:
        raise SettingError(
            f"{folder}: not the folder of a plan ({type(error).__name__}: {error}); give the one that `rotorid plan` wrote, "
            f"with {SUMMARY} and {PLANNED_FLIGHT}"
        ) from None
    return PlannedFlight(folder, manoeuvres, flight)


def manoeuvres_in(planned: PlannedFlight, flight: Flight) -> Intervals:
    """Start and end of each manoeuvre of a plan in a log, s. Raises SettingError where the log does not contain the plan."""
    from scipy.signal import correlate  # slow to import, and rarely needed

    reference = _motion(planned.flight)
    scale = np.maximum(reference.std(axis=0), _FLOORS[: reference.shape[1]])
    motion = _motion(flight)
    axes = slice(min(reference.shape[1], motion.shape[1]))
    x, y = reference[:, axes] / scale[axes], motion[:, axes] / scale[axes]
    beyond = np.zeros((len(x) // 2, x.shape[1]))  # a log may begin or end within the plan
    y = np.concatenate([beyond, y, beyond])
    if len(y) < len(x):
        y = np.concatenate([y, np.zeros((len(x) - len(y), x.shape[1]))])
    product = sum(correlate(y[:, k], x[:, k], mode="valid", method="fft") for k in range(x.shape[1]))
    energy = np.concatenate([[0.0], np.cumsum(np.sum(np.square(y), axis=1))])
    energy = energy[len(x) :] - energy[: -len(x)]
    correlation = product / np.sqrt(np.maximum(energy * np.sum(np.square(x)), 1e-12 * len(x)))
    best = int(np.argmax(correlation))
    if correlation[best] < _LEAST_CORRELATION:
        raise SettingError(
            f"{flight.source.name}: the flight of {planned.folder} is not in this log (correlation of the motions "
            f"{correlation[best]:.2f}, at least {_LEAST_CORRELATION:g} needed); give the log of that flight, or leave out "
            "--plan"
        )
    log_start, plan_start = (f["body_rate"].times[0] for f in (flight, planned.flight))
    start = float(log_start - plan_start) + _STEP * (best - len(beyond))
    return [(start + m.start, start + m.end) for m in planned.manoeuvres]


def _motion(flight: Flight) -> Float[np.ndarray, "n k"]:
    """Body rate and vertical specific force, means over 20 ms, without their mean. From the first body rate on."""
    rate = flight["body_rate"]
    edges = rate.times[0] + _STEP * np.arange(int((rate.times[-1] - rate.times[0]) / _STEP) + 1)
    columns = [np.diff(integral(edges, rate.times, rate.values), axis=0)]
    if "specific_force" in flight:
        force = flight["specific_force"]
        columns.append(np.diff(integral(edges, force.times, force.values[:, 2:]), axis=0))
    motion = np.hstack(columns) / _STEP
    return motion - motion.mean(axis=0)


def coverage_finding(
    planned: PlannedFlight, name: str, manoeuvres: Intervals, fitted: Intervals, held_out: Intervals
) -> Finding:
    """Which manoeuvres of a plan are fitted and held out.

    Args:
        planned: the plan.
        name: of the log.
        manoeuvres: start and end of each in the log, s.
        fitted, held_out: parts of the log, s.
    """
    missing = tuple(
        f"{one.name} at {start:.0f} s"
        for one, (start, end) in zip(planned.manoeuvres, manoeuvres, strict=True)
        if min(_overlap(parts, start, end) for parts in (fitted, held_out)) < LEAST
    )
    values = {
        "flight": name,
        "start": manoeuvres[0][0] - planned.manoeuvres[0].start if manoeuvres else 0.0,
        "count": len(manoeuvres),
        "missing": missing,
    }
    return Finding("planned_manoeuvres", Severity.WARNING if missing else Severity.NOTE, values)


def _overlap(parts: Intervals, start: float, end: float) -> float:
    return total_length([(max(a, start), min(b, end)) for a, b in parts if min(b, end) > max(a, start)])
