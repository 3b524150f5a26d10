"""Where a vehicle whose mass is taken as known weighs something else: with a payload that it picked up, or dropped.

    m_w = log(mean T_z / mean f_z)       T_z: thrust of the rotors by the airframe's curve, f_z: specific force along it

in stretches of half a second in which f_z is about g: what is wrong with the curve is then the same in all of them, since the
rotors pull the weight, and what is left are the mass and slow changes, as of a battery. The mass changed where m_w jumps
from the median of some stretches to that of the next ones, near in time, by more than the scatter and a floor explain.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.rotor_thrusts import rotor_thrusts
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.mixing import with_asked_thrusts
from rotorid.models.system import GRAVITY
from rotorid.results.flights_check import predicted
from rotorid.results.flown import Known
from rotorid.results.words import joined, percent
from rotorid.signals.series import Intervals, between

_STEP = 0.05  # s between the times at which thrust and force are looked at
_STRETCH = 10  # of them
_STEADY = 0.03  # of g
_SIDE = 5  # stretches on either side of a change
_NEAR = 10.0  # s that they lie apart at most
_LEAST = 0.06  # of the mass
_SURE = 6.0  # robust standard deviations of a median
_BACK = 0.03  # of the mass: from which on it is not what it was before
_AROUND = 0.75  # s on either side of a change that belong to no part


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A part of a flight in which it weighed something else. start, end: s. more: of the mass in the rest, +0.33 is a third."""

    start: float
    end: float
    more: float


def of_known_mass(
    flights: Sequence[Flight], airframe: Airframe, known: Known, spans: Sequence[Intervals]
) -> tuple[list[Intervals], tuple[str, ...]]:
    """Of the spans of flights those in which they have the mass of most of the time, and what was left out, in sentences; all
    spans where logs do not tell."""
    found, said = [], []
    for flight, parts in zip(flights, spans, strict=True):
        others = []
        if "specific_force" in flight and predicted(flight, airframe, known):
            parts, others = loaded(flight, airframe, parts)
        found.append(parts)
        if others:
            weighed = joined(
                [
                    f"{percent(abs(o.more))} {'more' if o.more > 0 else 'less'} from {o.start:.1f} to {o.end:.1f} s"
                    for o in others
                ]
            )
            said.append(
                f"By the airframe's thrust curve, {flight.source.name} weighed {weighed} than in most of its time: that was "
                "left out, since one mass is taken as known; --known thrust finds the masses of all parts."
            )
    return found, tuple(said)


def loaded(flight: Flight, airframe: Airframe, spans: Intervals) -> tuple[Intervals, list[Loaded]]:
    """The parts of these spans in which the mass is that of most of the time, and those in which it is another.

    Raises what `rotor_thrusts` does.
    """
    t, m = _stretches(flight, airframe, spans)
    changes = _changes(t, m)
    if not changes:
        return spans, []
    edges = [spans[0][0], *(float(0.5 * (t[k] + t[k - 1])) for k in changes), spans[-1][1]]
    level = np.array([np.median(part) for part in np.split(m, changes)])
    length = np.array([_length(spans, a, b) for a, b in itertools.pairwise(edges)])
    level = level - level[int(np.argmax(length))]
    kept: Intervals = []
    others = []
    for a, b, more in zip(edges[:-1], edges[1:], level, strict=True):
        if abs(more) > _BACK:
            others.append(Loaded(a, b, float(np.expm1(more))))
            continue
        first, last = a if a == edges[0] else a + _AROUND, b if b == edges[-1] else b - _AROUND
        kept += [(max(s, first), min(e, last)) for s, e in spans if min(e, last) > max(s, first)]
    return kept, others


def _stretches(
    flight: Flight, airframe: Airframe, spans: Intervals
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Middle of each steady stretch in s, and m_w."""
    flight = with_asked_thrusts(flight, airframe)
    force = flight["specific_force"]
    up = np.array([rotor.axis[2] for rotor in airframe.rotors])
    found = []
    for start, end in spans:
        t = start + _STEP * np.arange(int((end - start) / _STEP))
        whole = len(t) // _STRETCH
        if whole < 1:
            continue
        _, now = rotor_thrusts(airframe, flight, t)
        rows = np.column_stack([t, now @ up, between(t, force.times, force.values)[:, 2]])
        found.append(rows[: whole * _STRETCH].reshape(whole, _STRETCH, 3).mean(axis=1))
    rows = np.concatenate(found) if found else np.zeros((0, 3))
    steady = (np.abs(rows[:, 2] - GRAVITY) < _STEADY * GRAVITY) & (rows[:, 1] > 0.0)
    return rows[steady, 0], np.log(rows[steady, 1] / rows[steady, 2])


def _changes(t: Float[np.ndarray, " n"], m: Float[np.ndarray, " n"]) -> list[int]:
    """First stretch after each change."""
    n = len(m)
    if n < 2 * _SIDE:
        return []
    spread = 1.4826 * float(np.median(np.abs(np.diff(m)))) / np.sqrt(2.0)
    least = max(_LEAST, _SURE * spread * np.sqrt(2.0 / _SIDE) * 1.25)  # 1.25: of a median over a mean
    jump = np.zeros(n)
    for k in range(_SIDE, n - _SIDE + 1):
        before, after = slice(k - _SIDE, k), slice(k, k + _SIDE)
        if t[k] - t[k - 1] <= _NEAR:
            jump[k] = np.median(m[after]) - np.median(m[before])
    found = []
    while np.abs(jump).max() > least:
        top = np.flatnonzero(np.abs(jump) > 0.95 * np.abs(jump).max())
        k = int(top[np.argmax(np.abs(m[top] - m[top - 1]))])
        found.append(k)
        jump[max(k - 2 * _SIDE, 0) : k + 2 * _SIDE] = 0.0
    return sorted(found)


def _length(spans: Intervals, start: float, end: float) -> float:
    return sum(max(0.0, min(e, end) - max(s, start)) for s, e in spans)
