"""Whether the mass changes although it is held fixed: a payload that was picked up or dropped.

    m_w = log(mean T_z / mean f_z)       T_z: thrust of the rotors by the airframe's curve, f_z: specific force along it

over stretches of half a second in which f_z is about g. An error of the curve is then the same in all of them, since the
thrust is the weight; the mass and slow changes, as of a battery, remain. The mass changed where m_w steps from the median of
some stretches to that of the next ones, near in time, by more than the scatter and a floor explain.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.rotor_thrusts import rotor_thrusts
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import with_commanded_thrusts
from rotorid.models.system import GRAVITY
from rotorid.signals.series import Intervals, interpolate_linear
from rotorid.workflows.identify.preparation import Preparation
from rotorid.workflows.identify.request import FitRequest

_STEP = 0.05  # s between the times at which thrust and force are sampled
_STRETCH = 10  # of them
_STEADY = 0.03  # of g
_SIDE = 5  # stretches on either side of a change
_NEAR = 10.0  # s between them at most
_LEAST = 0.06  # of the mass
_SIGMAS = 6.0  # robust standard deviations of a median
_LONG = 0.5  # of the longest part: the first part as long as that has the mass that is held fixed
_SAME = 0.03  # of the mass: largest difference of parts with the same mass
_AROUND = 0.75  # s on either side of a change that belong to no part


@dataclasses.dataclass(frozen=True)
class MassChange:
    """A part of a flight with another mass. start, end: s. change: relative to the mass that is held fixed, 0.33 is a third
    more."""

    start: float
    end: float
    change: float


def check_payload(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Leave out the parts with another mass, where the mass is held fixed and the caller chose no parts."""
    if request.has_given_parts or request.known != "mass":
        return request, []
    preparation, findings = without_payload(request.preparation)
    return dataclasses.replace(request, preparation=preparation), findings


def without_payload(preparation: Preparation) -> tuple[Preparation, list[Finding]]:
    """The flights without the parts that have another mass than the one held fixed, and a finding for each flight with such
    parts; unchanged where the logs have no specific force or no thrust."""
    parts, findings = [], []
    for flight in preparation.flights:
        main_parts, changes = flight.parts, []
        if "specific_force" in flight.flight and flight.has_thrusts:
            main_parts, changes = mass_changes(flight.flight, flight.airframe, flight.parts)
        parts.append(main_parts)
        if changes:
            values = {"flight": flight.name, "parts": tuple(changes)}
            findings.append(Finding("payload", Severity.WARNING, values, ("specific_force",)))
    return preparation.within(parts), findings


def mass_changes(flight: Flight, airframe: Airframe, parts: Intervals) -> tuple[Intervals, list[MassChange]]:
    """The time in which the mass is that of the first long part, and the parts in which it is another.

    Raises what `rotor_thrusts` does.
    """
    t, m = _stretches(flight, airframe, parts)
    changes = _changes(t, m)
    if not changes:
        return parts, []
    edges = [parts[0][0], *(float(0.5 * (t[k] + t[k - 1])) for k in changes), parts[-1][1]]
    level = np.array([np.median(part) for part in np.split(m, changes)])
    length = np.array([_length(parts, a, b) for a, b in itertools.pairwise(edges)])
    level = level - level[int(np.argmax(length >= _LONG * length.max()))]
    main_parts: Intervals = []
    other_parts = []
    for a, b, change in zip(edges[:-1], edges[1:], level, strict=True):
        if abs(change) > _SAME:
            other_parts.append(MassChange(a, b, float(np.expm1(change))))
            continue
        first, last = a if a == edges[0] else a + _AROUND, b if b == edges[-1] else b - _AROUND
        main_parts += [(max(s, first), min(e, last)) for s, e in parts if min(e, last) > max(s, first)]
    return main_parts, other_parts


def _stretches(
    flight: Flight, airframe: Airframe, parts: Intervals
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Middle of each steady stretch, s, and m_w."""
    flight = with_commanded_thrusts(flight, airframe)
    force = flight["specific_force"]
    axes_z = np.array([rotor.axis[2] for rotor in airframe.rotors])
    stretches = []
    for start, end in parts:
        t = start + _STEP * np.arange(int((end - start) / _STEP))
        count = len(t) // _STRETCH
        if count < 1:
            continue
        _, thrusts = rotor_thrusts(airframe, flight, t)
        rows = np.column_stack([t, thrusts @ axes_z, interpolate_linear(t, force.times, force.values)[:, 2]])
        stretches.append(rows[: count * _STRETCH].reshape(count, _STRETCH, 3).mean(axis=1))
    rows = np.concatenate(stretches) if stretches else np.zeros((0, 3))
    steady = (np.abs(rows[:, 2] - GRAVITY) < _STEADY * GRAVITY) & (rows[:, 1] > 0.0)
    return rows[steady, 0], np.log(rows[steady, 1] / rows[steady, 2])


def _changes(t: Float[np.ndarray, " n"], m: Float[np.ndarray, " n"]) -> list[int]:
    """First stretch after each change."""
    n = len(m)
    if n < 2 * _SIDE:
        return []
    spread = 1.4826 * float(np.median(np.abs(np.diff(m)))) / np.sqrt(2.0)
    threshold = max(
        _LEAST, _SIGMAS * spread * np.sqrt(2.0 / _SIDE) * 1.25
    )  # 1.25: std of a median over that of a mean
    jump = np.zeros(n)
    for k in range(_SIDE, n - _SIDE + 1):
        rows_before, rows_after = slice(k - _SIDE, k), slice(k, k + _SIDE)
        if t[k] - t[k - 1] <= _NEAR:
            jump[k] = np.median(m[rows_after]) - np.median(m[rows_before])
    changes = []
    while np.abs(jump).max() > threshold:
        top = np.flatnonzero(np.abs(jump) > 0.95 * np.abs(jump).max())
        k = int(top[np.argmax(np.abs(m[top] - m[top - 1]))])
        changes.append(k)
        jump[max(k - 2 * _SIDE, 0) : k + 2 * _SIDE] = 0.0
    return sorted(changes)


def _length(parts: Intervals, start: float, end: float) -> float:
    return sum(max(0.0, min(e, end) - max(s, start)) for s, e in parts)
