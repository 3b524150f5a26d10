"""The time in the air.

On the ground a part of the weight is carried by the ground, so that a model without ground contact is wrong there.

The time in the air is detected from the signals of the log, in this order:

1. *Powered*: the rotor activity is at least 40 % of that in hover. Pauses of up to 1 s (a dive, a flip), and any
   pause well above the ground, belong to the flight. A vehicle that lies on the ground with turning rotors does not fly: for a
   second it does not rotate and its specific force is that of gravity, although that does not point along body z (it lies
   on its side) or the rotors' thrusts are out of balance. If the log gives it a speed there, the logged velocity is wrong, and
   the interval that follows is not used.
2. *Lifted*: within each powered interval, from the time at which the height rises above that at the start to the
   last time at which it is above that at the end. Without a height: while the rotor activity is at least 88 % of
   that in hover.
3. *Not landed*, if the autopilot logged its landing detection. It is late at landing, so it only shortens the
   interval.
4. *No contact*: the end is moved before the first shock of the accelerometer in the last seconds.

`MARGIN` is removed at a take-off or landing, for the ground effect of the rotors and the motion at touch-down. It is not
removed if the log begins or ends in flight: there the rotors carry the vehicle, or it moves (faster than 0.5 m/s, or with a
specific force below 85 % of gravity), at any rotor activity.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from rotorid.geometry.gravity import GRAVITY
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import Intervals, Series, grid, hold, interpolate_linear, smooth, true_runs

MARGIN: Final = 0.3
"""Margin after a take-off and before a landing, s."""

SHORTEST: Final = 1.0
"""Least duration of a flight, s."""


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
_STILL: Final = 0.1  # rad/s
_RESTING: Final = 0.1  # of gravity
_UPRIGHT: Final = 0.7  # of the specific force along body z
_BALANCED: Final = 0.5  # of the mean thrust; what a rotor departs from its share in steady flight
_CONTACT_WINDOW: Final = 0.5  # s
_SHORTEST_CONTACT: Final = 1.0  # s
_CONTACT_GAP: Final = 2.0  # s


def no_flight_message(flight: Flight, reason: str = "the vehicle is never in the air in this log") -> str:
    """The message of an error about a log without usable flight; it says whether the file is complete."""
    remedy = f"; {flight.cut}; copy it again, or use another log" if flight.cut else "; use another log"
    return f"{flight.source}: {reason}{remedy}"


@dataclasses.dataclass(frozen=True)
class _Evidence:
    """Signals that distinguish flight from ground, on one grid of times t in s; None if the log has none.

    activity: of the rotors, 1 in hover. height: m above an arbitrary level. speed: m/s. force: magnitude of the specific
    force, m/s^2. is_airborne: by the autopilot's landing detection. is_lying: on the ground with turning rotors.
    """

    t: Series
    activity: Float64[np.ndarray, " n"] | None
    height: Float64[np.ndarray, " n"] | None
    speed: Float64[np.ndarray, " n"] | None
    force: Float64[np.ndarray, " n"] | None
    is_airborne: np.ndarray | None
    is_lying: Bool[np.ndarray, " n"]

    def slice_between(self, start: float, end: float) -> slice:
        first, last = np.searchsorted(self.t, [start, end + 1e-9])
        return slice(int(first), max(int(last), int(first) + 1))


def airborne_intervals(flight: Flight) -> Intervals:
    """Detect the intervals in the air.

    Where the log has no rotor activity, height, speed or landed flag, the whole log counts as flight.

    Args:
        flight: the log.
    Returns:
        Start and end of each interval, s; empty where the log shows no flight.
    """
    evidence = _evidence(flight)
    if evidence.activity is None and evidence.height is None:
        intervals = (
            [(flight.start, flight.end)]
            if evidence.is_airborne is None
            else _mask_intervals(evidence, evidence.is_airborne)
        )
        if evidence.is_airborne is not None:
            intervals = [_trim(evidence, start, end, start, end) for start, end in intervals]
    else:
        intervals = [_lifted_interval(evidence, start, end) for start, end in _powered_intervals(evidence)]
    edge = flight.end - _STEP
    intervals = [(start, flight.end if end > edge else end) for start, end in intervals]
    return [(start, end) for start, end in intervals if end - start >= SHORTEST]


def intervals_in_use(flight: Flight) -> Intervals:
    """Start and end of the parts of a flight that are estimated, s: all of a simulated one, of others the parts in the air."""
    return [(flight.start, flight.end)] if flight.format == "simulation" else airborne_intervals(flight)


def _evidence(flight: Flight) -> _Evidence:
    t = grid(flight.start, flight.end, _STEP)
    force = None
    if "specific_force" in flight:
        s = flight["specific_force"]
        force = hold(t, s.times, np.linalg.norm(s.values, axis=1))
    is_airborne = None
    if "airborne" in flight:
        s = flight["airborne"]
        is_airborne = hold(t, s.times, s.values[:, 0]) > 0.5
    activity = _relative_activity(flight, t, force)
    is_lying = _is_lying(flight, t, activity)
    return _Evidence(t, activity, _height(flight, t), _speed(flight, t), force, is_airborne, is_lying)


def rotor_activity(flight: Flight) -> tuple[str, Series, Float64[np.ndarray, " n"]] | None:
    """The best available measure of the rotor activity: the signal's name, times in s, and the measure."""
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


def _relative_activity(
    flight: Flight, t: Series, force: np.ndarray | None
) -> Float64[np.ndarray, " n"] | None:
    """Rotor activity over that of hover."""
    activity = rotor_activity(flight)
    if activity is None:
        return None
    name, times, values = activity
    activity_ratio = np.where((t < times[0]) | (t > times[-1] + 0.5), 0.0, hold(t, times, values))
    high = float(np.percentile(values, 95))
    least_activity = 0.03 if name.endswith("command") else 0.0
    if high <= least_activity:
        return np.zeros_like(t)
    is_hover = activity_ratio > 0.4 * high
    if force is not None:
        is_level = is_hover & (np.abs(smooth(force, 10) / GRAVITY - 1.0) < 0.05)
        is_hover = is_level if is_level.sum() > 50 else is_hover
    return activity_ratio / float(np.median(activity_ratio[is_hover]))


def _is_lying(flight: Flight, t: Series, activity: np.ndarray | None) -> Bool[np.ndarray, " n"]:
    """Whether the vehicle lies on the ground with turning rotors; False where the log lacks body rate or specific force."""
    if activity is None or "body_rate" not in flight or "specific_force" not in flight:
        return np.zeros(len(t), bool)
    width = round(_CONTACT_WINDOW / _STEP)
    rate, force = (
        smooth(interpolate_linear(t, s.times, s.values), width)
        for s in (flight["body_rate"], flight["specific_force"])
    )
    magnitude = np.linalg.norm(force, axis=1)
    is_resting = (np.linalg.norm(rate, axis=1) < _STILL) & (np.abs(magnitude / GRAVITY - 1.0) < _RESTING)
    is_tilted = force[:, 2] < _UPRIGHT * magnitude
    is_lying = is_resting & (is_tilted | _is_unbalanced(flight, t, activity > _LIFTING))
    for (_, end), (start, _) in itertools.pairwise(true_runs(is_lying)):
        is_lying[end:start] |= (start - end) * _STEP < _CONTACT_GAP
    is_certain = is_tilted | (
        activity < _LIFTING
    )  # a rotor that fails in flight also leaves thrusts out of balance
    is_certain[[0, -1]] = True
    for first, last in true_runs(is_lying):
        rows = slice(first, last + 1)
        is_lying[rows] = (last - first) * _STEP >= _SHORTEST_CONTACT and bool(is_certain[rows].any())
    return is_lying


def _is_unbalanced(
    flight: Flight, t: Series, is_lifting: Bool[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"] | bool:
    """Whether a rotor departs by more than `_BALANCED` from an equal share of the thrust, and from its usual one.

    is_lifting: rows whose median is the usual one; where most of them are on the ground, it is that of the ground.
    """
    name = next((n for n in ("rotor_thrust", "rotor_speed", "rotor_command") if n in flight), None)
    if name is None or not is_lifting.any():
        return False
    s = flight[name]
    thrust = np.maximum(s.values, 0.0) ** (2 if name == "rotor_speed" else 1)
    thrust = smooth(hold(t, s.times, thrust), round(_CONTACT_WINDOW / _STEP))
    share = thrust / np.maximum(thrust.mean(axis=1, keepdims=True), 1e-9)
    usual = np.median(share[is_lifting], axis=0)
    return np.minimum(np.abs(share - usual), np.abs(share - 1.0)).max(axis=1) > _BALANCED


def _height(flight: Flight, t: Series) -> Float64[np.ndarray, " n"] | None:
    """Height over an arbitrary level, m, NaN in gaps; from the vertical speed where there is no position."""
    name = next((n for n in ("position", "velocity") if n in flight and len(flight[n].times) > 10), None)
    if name is None:
        return None
    s = flight[name]
    height = np.interp(t, s.times, s.values[:, 2])
    if name == "velocity":
        height = np.cumsum(height) * _STEP
    return np.where(_is_valid(s, t), height, np.nan)


def _speed(flight: Flight, t: Series) -> Float64[np.ndarray, " n"] | None:
    """Speed, m/s, NaN in gaps; from the position where there is no velocity."""
    name = next((n for n in ("velocity", "position") if n in flight and len(flight[n].times) > 10), None)
    if name is None:
        return None
    s = flight[name]
    velocity = interpolate_linear(t, s.times, s.values)
    if name == "position":
        velocity = np.gradient(smooth(velocity, 10), t, axis=0) if len(t) > 1 else np.zeros_like(velocity)
    return np.where(_is_valid(s, t), np.linalg.norm(velocity, axis=1), np.nan)


def _is_valid(s: Signal, t: Series) -> np.ndarray:
    index = np.clip(np.searchsorted(s.times, t), 1, len(s.times) - 1)
    nearest = np.minimum(np.abs(t - s.times[index - 1]), np.abs(t - s.times[index]))
    return nearest < max(0.5, 3.0 / s.rate)


def _mask_intervals(evidence: _Evidence, mask: np.ndarray) -> Intervals:
    return [(float(evidence.t[a]), float(evidence.t[b])) for a, b in true_runs(mask)]


def _powered_intervals(evidence: _Evidence) -> Intervals:
    """Intervals with powered rotors, including pauses in the air, without those in which the vehicle lies on the ground."""
    if evidence.activity is None:
        return [(float(evidence.t[0]), float(evidence.t[-1]))]
    is_powered = smooth(evidence.activity, 5) > _POWERED
    starts_and_ends = true_runs(is_powered)
    for (_, end), (start, _) in itertools.pairwise(starts_and_ends):
        pause = slice(end, start + 1)
        is_high = False
        if evidence.height is not None:
            lowest = np.nanmin(evidence.height)
            is_high = bool(np.all(evidence.height[pause] > lowest + 2.0))
        if is_high or (start - end) * _STEP < _PAUSE:
            is_powered[pause] = True
    for pause in _pauses_at_the_ends(starts_and_ends, len(is_powered)):
        if (pause.stop - pause.start) * _STEP < _PAUSE and _is_falling(evidence, pause):
            is_powered[pause] = True
    return _mask_intervals(evidence, is_powered & ~evidence.is_lying)


def _pauses_at_the_ends(powered: list[tuple[int, int]], n: int) -> list[slice]:
    """The rows before the first and after the last interval with powered rotors."""
    return [slice(0, powered[0][0]), slice(powered[-1][1] + 1, n)] if powered else []


def _is_falling(evidence: _Evidence, rows: slice) -> bool:
    """Whether the vehicle falls or moves with idle rotors in all rows, as in a flip or a dive."""
    if rows.stop <= rows.start:
        return False
    if evidence.force is not None:
        return bool(np.median(evidence.force[rows]) < _WEIGHTLESS * GRAVITY)
    return evidence.speed is not None and bool(np.all(evidence.speed[rows] > _MOVING))


def _is_moving(evidence: _Evidence, rows: slice) -> bool:
    """Whether the vehicle moves or is weightless, which excludes that it stands on the ground."""
    if evidence.force is not None and np.median(evidence.force[rows]) < _WEIGHTLESS * GRAVITY:
        return True
    return evidence.speed is not None and bool(np.median(evidence.speed[rows]) > _MOVING)


def _lifted_interval(evidence: _Evidence, start: float, end: float) -> tuple[float, float]:
    """The part of a powered interval in which the vehicle is off the ground, without margins."""
    part = evidence.slice_between(start, end)
    t, n = evidence.t[part], part.stop - part.start
    is_lifted = np.ones(n, bool)
    if evidence.activity is not None:
        activity = smooth(evidence.activity[part], 10)
        is_lifted &= activity > (_LIFTING if evidence.height is not None else _LIFTING_BLIND)
    if evidence.is_airborne is not None:
        is_lifted &= evidence.is_airborne[part]
    starts_in_flight, ends_in_flight = (
        _is_flying_at(evidence, part.start, start),
        _is_flying_at(evidence, part.stop - 1, end),
    )
    if not is_lifted.any() or _moves_while_lying(evidence, part.start):
        return start, start
    first, last = int(np.argmax(is_lifted)), n - 1 - int(np.argmax(is_lifted[::-1]))
    if evidence.height is not None:
        height = evidence.height[part]
        if not starts_in_flight:
            ground = evidence.height[evidence.slice_between(start - 1.0, start)]
            first = max(first, _lift_off_index(height, ground))
        if not ends_in_flight:
            ground = evidence.height[evidence.slice_between(end, end + 1.0)]
            last = min(last, n - 1 - _lift_off_index(height[::-1], ground))
    if first >= last:
        return start, start
    lift_off = start if starts_in_flight else float(t[first])
    touch_down = end if ends_in_flight else float(t[last])
    return _trim(evidence, lift_off, touch_down, start, end)


def _moves_while_lying(evidence: _Evidence, index: int) -> bool:
    """Whether the log gives the vehicle a speed while it lies on the ground, in the last second before this index."""
    rows = slice(max(index - round(_SHORTEST_CONTACT / _STEP), 0), index)
    if evidence.speed is None or not index or not evidence.is_lying[index - 1]:
        return False
    return bool(np.nanmedian(evidence.speed[rows]) > _MOVING)


def _lift_off_index(height: np.ndarray, ground: np.ndarray) -> int:
    """Index at which the height leaves the ground: 5 s at most before it is half a metre above it.

    An estimated height drifts by some 0.1 m while a vehicle stands with its rotors turning, so that the level
    is that of the last seconds before the climb. height: m, NaN in gaps. ground: m, before the rotors are
    powered.
    """
    is_valid = np.isfinite(height)
    if not is_valid.any():
        return 0
    has_ground = bool(np.isfinite(ground).any())
    level = float(np.nanmedian(ground)) if has_ground else float(height[is_valid][0])
    highest = float(np.nanmax(height)) - level
    noise = float(np.nanstd(ground)) if has_ground else 0.0
    clearance = float(np.clip(max(4.0 * noise, 0.1 * min(highest, 2.0)), 0.03, 0.5))
    is_above = is_valid & (height > level + max(clearance, min(0.5 * highest, 0.5)))
    if highest <= clearance or not is_above.any():
        return len(height) - 1
    first_above = int(np.argmax(is_above))
    window = slice(max(first_above - round(5.0 / _STEP), 0), first_above + 1)
    is_low = is_valid[window] & (height[window] <= np.nanmin(height[window]) + clearance)
    return window.start + int(np.flatnonzero(is_low)[-1])


def _is_flying_at(evidence: _Evidence, index: int, time: float) -> bool:
    """Whether the log begins or ends at this index, with the vehicle in the air."""
    is_edge = min(time - evidence.t[0], evidence.t[-1] - time) < _EDGE
    has_landed = evidence.is_airborne is not None and not evidence.is_airborne[index]
    if not is_edge or has_landed or evidence.is_lying[index]:
        return False
    rows = evidence.slice_between(time - _NEAR, time + _NEAR)
    return _is_carried(evidence, rows) or _is_moving(evidence, rows)


def _is_carried(evidence: _Evidence, rows: slice) -> bool:
    """Whether the rotors carry the vehicle; without rotor signals, whether there is a landing detection."""
    if evidence.activity is None:
        return evidence.is_airborne is not None
    return bool(np.median(evidence.activity[rows]) > _CARRYING)


def _trim(evidence: _Evidence, first: float, last: float, start: float, end: float) -> tuple[float, float]:
    """Remove the shock of a landing and the margins; `start` and `end` are those of the powered interval."""
    ends_in_flight = last >= end and _is_flying_at(evidence, len(evidence.t) - 1, end)
    is_carried = ends_in_flight and _is_carried(evidence, evidence.slice_between(end - _NEAR, end + _NEAR))
    if evidence.force is not None and not is_carried:
        last_rows = evidence.slice_between(max(last - _CONTACT_SEARCH, first), last)
        earlier_rows = evidence.slice_between(first, max(last - _CONTACT_SEARCH, first))
        threshold = max(2.0 * GRAVITY, 1.3 * float(np.max(evidence.force[earlier_rows])))
        shocks = np.flatnonzero(evidence.force[last_rows] > threshold)
        if len(shocks):
            last, ends_in_flight = float(evidence.t[last_rows][shocks[0]]), False
    begins_in_flight = first <= start and _is_flying_at(evidence, 0, start)
    return first + (0.0 if begins_in_flight else MARGIN), last - (0.0 if ends_in_flight else MARGIN)
