"""When a vehicle flies free of the ground.

On the ground the ground carries it: a filter that takes the thrust for the whole force reads nonsense there.
The time in the air is found from what the log has, in this order:

1. *Powered*: the rotors pull at least 40 % of what they pull in flight. Pauses of up to 1 s (a dive, a flip),
   and any pause well above the ground, belong to the flight.
2. *Lifted*: within each powered stretch, from the first moment at which the height has grown since the start,
   until the last at which it is above where the vehicle ended up. Without a height: while the rotors pull at
   least 88 % of what they pull in flight.
3. *Not landed*, where the autopilot logged its own opinion. It is late at landing, so it only takes away.
4. *No contact*: the end moves before the first shock of the accelerometer in the last seconds.

`MARGIN` is taken off at a take-off or landing, for the rotors' ground effect and the sway of the touchdown,
but not where the log begins or ends in flight: there the rotors carry the vehicle, or it is on the way (faster than
0.5 m/s, or weightless by 15 % or more, as nothing is that stands on the ground), however little they pull.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.geometry.gravity import GRAVITY
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import Intervals, Series, grid, hold, interpolate_linear, smooth, true_runs

MARGIN: Final = 0.3
"""Taken off after a take-off and before a landing, s."""

SHORTEST: Final = 1.0
"""A shorter hop is no flight, s."""


_STEP: Final = 0.02
_PAUSE: Final = 1.0
_POWERED: Final = 0.4
_LIFTING: Final = 0.6
_LIFTING_BLIND: Final = 0.88
_CONTACT_SEARCH: Final = 3.0
_CARRYING: Final = 0.75  # of what hover takes
_EDGE: Final = 0.15  # s
_NEAR: Final = 0.2  # s
_MOVING: Final = 0.5  # m/s
_WEIGHTLESS: Final = 0.85  # of gravity


def no_flight_message(flight: Flight, why: str = "the vehicle is never in the air in this log") -> str:
    """The message of an error about a log without usable flight; it says whether the file is complete."""
    remedy = f", and {flight.cut}: copy it again, or use another log" if flight.cut else "; use another log"
    return f"{flight.source}: {why}{remedy}"


@dataclasses.dataclass(frozen=True)
class _Evidence:
    """What tells flight from ground, on one grid of times t in s; None where the log does not tell.

    pull: rotor activity, 1 in hover. height: m above an arbitrary level. speed: m/s. force: magnitude of the specific
    force, m/s^2.
    """

    t: Series
    pull: Float64[np.ndarray, " n"] | None
    height: Float64[np.ndarray, " n"] | None
    speed: Float64[np.ndarray, " n"] | None
    force: Float64[np.ndarray, " n"] | None
    aloft: np.ndarray | None

    def slice_between(self, start: float, end: float) -> slice:
        first, last = np.searchsorted(self.t, [start, end + 1e-9])
        return slice(int(first), max(int(last), int(first) + 1))


def airborne_intervals(flight: Flight) -> Intervals:
    """Detect when the vehicle flies free of the ground.

    Where the log has no rotor activity, height, speed or landed flag, the whole log counts as flight.

    Args:
        flight: the log.
    Returns:
        Start and end of each interval, s; empty where the log shows no flight.
    """
    evidence = _evidence(flight)
    if evidence.pull is None and evidence.height is None:
        found = (
            [(flight.start, flight.end)] if evidence.aloft is None else _stretches(evidence, evidence.aloft)
        )
        if evidence.aloft is not None:
            found = [_trim(evidence, start, end, start, end) for start, end in found]
    else:
        found = [_lifted(evidence, start, end) for start, end in _powered(evidence)]
    edge = flight.end - _STEP
    found = [(start, flight.end if end > edge else end) for start, end in found]
    return [(start, end) for start, end in found if end - start >= SHORTEST]


def _evidence(flight: Flight) -> _Evidence:
    t = grid(flight.start, flight.end, _STEP)
    force = None
    if "specific_force" in flight:
        s = flight["specific_force"]
        force = hold(t, s.times, np.linalg.norm(s.values, axis=1))
    aloft = None
    if "airborne" in flight:
        s = flight["airborne"]
        aloft = hold(t, s.times, s.values[:, 0]) > 0.5
    return _Evidence(t, _pull(flight, t, force), _height(flight, t), _speed(flight, t), force, aloft)


def rotor_activity(flight: Flight) -> tuple[str, Series, Float64[np.ndarray, " n"]] | None:
    """The best measure of how strongly the rotors pull: the signal's name, times in s, and the measure."""
    for name in ("thrust", "rotor_thrust", "rotor_speed", "rotor_command", "collective_command"):
        if name in flight and len(flight[name].times) > 1:
            s = flight[name]
            values = s.values**2 if name == "rotor_speed" else s.values
            if s.rate < 5.0 and any(
                n in flight for n in ("rotor_command", "collective_command") if n != name
            ):
                continue
            return name, s.times, values.mean(axis=1)
    return None


def _pull(flight: Flight, t: Series, force: np.ndarray | None) -> Float64[np.ndarray, " n"] | None:
    """Rotor activity over that of hover."""
    activity = rotor_activity(flight)
    if activity is None:
        return None
    name, times, values = activity
    pull = np.where((t < times[0]) | (t > times[-1] + 0.5), 0.0, hold(t, times, values))
    high = float(np.percentile(values, 95))
    smallest = 0.03 if name.endswith("command") else 0.0
    if high <= smallest:
        return np.zeros_like(t)
    typical = pull > 0.4 * high
    if force is not None:
        carried = typical & (np.abs(smooth(force, 10) / GRAVITY - 1.0) < 0.05)
        typical = carried if carried.sum() > 50 else typical
    return pull / float(np.median(pull[typical]))


def _height(flight: Flight, t: Series) -> Float64[np.ndarray, " n"] | None:
    """Height over an arbitrary level, m, NaN in gaps; from the vertical speed where there is no position."""
    name = next((n for n in ("position", "velocity") if n in flight and len(flight[n].times) > 10), None)
    if name is None:
        return None
    s = flight[name]
    height = np.interp(t, s.times, s.values[:, 2])
    if name == "velocity":
        height = np.cumsum(height) * _STEP
    return np.where(_known(s, t), height, np.nan)


def _speed(flight: Flight, t: Series) -> Float64[np.ndarray, " n"] | None:
    """Speed, m/s, NaN in gaps; from the position where there is no velocity."""
    name = next((n for n in ("velocity", "position") if n in flight and len(flight[n].times) > 10), None)
    if name is None:
        return None
    s = flight[name]
    velocity = interpolate_linear(t, s.times, s.values)
    if name == "position":
        velocity = np.gradient(smooth(velocity, 10), t, axis=0) if len(t) > 1 else np.zeros_like(velocity)
    return np.where(_known(s, t), np.linalg.norm(velocity, axis=1), np.nan)


def _known(s: Signal, t: Series) -> np.ndarray:
    index = np.clip(np.searchsorted(s.times, t), 1, len(s.times) - 1)
    nearest = np.minimum(np.abs(t - s.times[index - 1]), np.abs(t - s.times[index]))
    return nearest < max(0.5, 3.0 / s.rate)


def _stretches(evidence: _Evidence, mask: np.ndarray) -> Intervals:
    return [(float(evidence.t[a]), float(evidence.t[b])) for a, b in true_runs(mask)]


def _powered(evidence: _Evidence) -> Intervals:
    """Stretches with the rotors pulling, pauses in the air included."""
    if evidence.pull is None:
        return [(float(evidence.t[0]), float(evidence.t[-1]))]
    powered = smooth(evidence.pull, 5) > _POWERED
    starts_and_ends = true_runs(powered)
    for (_, end), (start, _) in itertools.pairwise(starts_and_ends):
        pause = slice(end, start + 1)
        high = False
        if evidence.height is not None:
            lowest = np.nanmin(evidence.height)
            high = bool(np.all(evidence.height[pause] > lowest + 2.0))
        if high or (start - end) * _STEP < _PAUSE:
            powered[pause] = True
    for pause in _pauses_at_the_ends(starts_and_ends, len(powered)):
        if (pause.stop - pause.start) * _STEP < _PAUSE and _falls(evidence, pause):
            powered[pause] = True
    return _stretches(evidence, powered)


def _pauses_at_the_ends(powered: list[tuple[int, int]], n: int) -> list[slice]:
    """The rows before the rotors first pull, and after they last do."""
    return [slice(0, powered[0][0]), slice(powered[-1][1] + 1, n)] if powered else []


def _falls(evidence: _Evidence, rows: slice) -> bool:
    """Whether the vehicle is on the way with idle rotors, throughout some rows: as in a flip or a dive."""
    if rows.stop <= rows.start:
        return False
    if evidence.force is not None:
        return bool(np.median(evidence.force[rows]) < _WEIGHTLESS * GRAVITY)
    return evidence.speed is not None and bool(np.all(evidence.speed[rows] > _MOVING))


def _on_the_way(evidence: _Evidence, rows: slice) -> bool:
    """Whether the vehicle moves or is weightless, as nothing is that stands on the ground."""
    if evidence.force is not None and np.median(evidence.force[rows]) < _WEIGHTLESS * GRAVITY:
        return True
    return evidence.speed is not None and bool(np.median(evidence.speed[rows]) > _MOVING)


def _lifted(evidence: _Evidence, start: float, end: float) -> tuple[float, float]:
    """The part of a powered stretch in which the vehicle is off the ground, margins taken off."""
    part = evidence.slice_between(start, end)
    t, n = evidence.t[part], part.stop - part.start
    up = np.ones(n, bool)
    if evidence.pull is not None:
        pull = smooth(evidence.pull[part], 10)
        up &= pull > (_LIFTING if evidence.height is not None else _LIFTING_BLIND)
    if evidence.aloft is not None:
        up &= evidence.aloft[part]
    flying_at_start, flying_at_end = (
        _flying_at(evidence, part.start, start),
        _flying_at(evidence, part.stop - 1, end),
    )
    if not up.any():
        return start, start
    first, last = int(np.argmax(up)), n - 1 - int(np.argmax(up[::-1]))
    if evidence.height is not None:
        height = evidence.height[part]
        if not flying_at_start:
            ground = evidence.height[evidence.slice_between(start - 1.0, start)]
            first = max(first, _lift_off(height, ground))
        if not flying_at_end:
            ground = evidence.height[evidence.slice_between(end, end + 1.0)]
            last = min(last, n - 1 - _lift_off(height[::-1], ground))
    if first >= last:
        return start, start
    begin = start if flying_at_start else float(t[first])
    finish = end if flying_at_end else float(t[last])
    return _trim(evidence, begin, finish, start, end)


def _lift_off(height: np.ndarray, ground: np.ndarray) -> int:
    """Index at which heights leave the ground for good: 5 s at most before they are half a metre above it.

    An estimated height drifts by some 0.1 m while a vehicle waits with its rotors turning, so that the level
    is taken from the last seconds before the climb. height: m, NaN in gaps. ground: m, from before the rotors
    pulled.
    """
    known = np.isfinite(height)
    if not known.any():
        return 0
    waited = bool(np.isfinite(ground).any())
    level = float(np.nanmedian(ground)) if waited else float(height[known][0])
    highest = float(np.nanmax(height)) - level
    noise = float(np.nanstd(ground)) if waited else 0.0
    clear = float(np.clip(max(4.0 * noise, 0.1 * min(highest, 2.0)), 0.03, 0.5))
    above = known & (height > level + max(clear, min(0.5 * highest, 0.5)))
    if highest <= clear or not above.any():
        return len(height) - 1
    high = int(np.argmax(above))
    window = slice(max(high - round(5.0 / _STEP), 0), high + 1)
    low = known[window] & (height[window] <= np.nanmin(height[window]) + clear)
    return window.start + int(np.flatnonzero(low)[-1])


def _flying_at(evidence: _Evidence, index: int, time: float) -> bool:
    """Whether the log begins or ends at this index, with the vehicle in the air."""
    edge = min(time - evidence.t[0], evidence.t[-1] - time) < _EDGE
    if not edge or (evidence.aloft is not None and not evidence.aloft[index]):
        return False
    near = evidence.slice_between(time - _NEAR, time + _NEAR)
    return _carries(evidence, near) or _on_the_way(evidence, near)


def _carries(evidence: _Evidence, rows: slice) -> bool:
    """Whether the rotors carry the vehicle; where the log does not tell, whether the autopilot thought so."""
    if evidence.pull is None:
        return evidence.aloft is not None
    return bool(np.median(evidence.pull[rows]) > _CARRYING)


def _trim(evidence: _Evidence, first: float, last: float, start: float, end: float) -> tuple[float, float]:
    """Take off the shock of a landing and the margins; `start` and `end` are those of the powered stretch."""
    ends_in_flight = last >= end and _flying_at(evidence, len(evidence.t) - 1, end)
    carried = ends_in_flight and _carries(evidence, evidence.slice_between(end - _NEAR, end + _NEAR))
    if evidence.force is not None and not carried:
        tail = evidence.slice_between(max(last - _CONTACT_SEARCH, first), last)
        calm = evidence.slice_between(first, max(last - _CONTACT_SEARCH, first))
        shock = max(2.0 * GRAVITY, 1.3 * float(np.max(evidence.force[calm])))
        hits = np.flatnonzero(evidence.force[tail] > shock)
        if len(hits):
            last, ends_in_flight = float(evidence.t[tail][hits[0]]), False
    begins_in_flight = first <= start and _flying_at(evidence, 0, start)
    return first + (0.0 if begins_in_flight else MARGIN), last - (0.0 if ends_in_flight else MARGIN)
