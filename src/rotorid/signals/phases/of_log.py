"""The phases of a log: its rows, and the detector over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import SHORTEST
from rotorid.signals.phases.detector import GROUND_EFFECT, PhaseDetector
from rotorid.signals.phases.phase import Phase, PhaseRow
from rotorid.signals.series import Intervals, Series, grid, hold, integral, interpolate_linear

_STEP = 0.02  # s
_GAP = 1.0  # s without a row of a signal, over which it is unknown
# without thrust and specific force for longer than both, nothing is known
_SHORT_GAP: Final = 0.3  # s
_GAP_ROWS: Final = 4.0  # periods


class PhaseInterval(NamedTuple):
    """A phase from start to end, s. start_std: s, where it began in a gap of the log."""

    phase: Phase
    start: float
    end: float
    start_std: float = 0.0


def flight_phases(
    flight: Flight, thrust: Signal, weight: float, ground_effect: float = GROUND_EFFECT
) -> tuple[PhaseInterval, ...]:
    """The phases of a log, in order of time and without gaps.

    Args:
        flight: the log.
        thrust: commanded thrust of each rotor, or of all together, N.
        weight: nominal weight, N.
        ground_effect: as of `PhaseDetector`, m.
    """
    detector = PhaseDetector(ground_effect)
    intervals = [PhaseInterval(Phase.GROUND, flight.start, flight.end)]
    for row in _rows(flight, thrust, weight):
        change = detector.update(row)
        if change is None:
            continue
        start = max(change.start, flight.start)
        while len(intervals) > 1 and intervals[-1].start >= start:
            intervals.pop()
        last = intervals[-1]
        intervals[-1] = last._replace(end=max(start, last.start))
        intervals.append(PhaseInterval(change.phase, max(start, last.start), flight.end, change.start_std))
    return tuple(i for i in intervals if i.end > i.start)


def free_flight_intervals(airborne: Intervals, phases: Sequence[PhaseInterval]) -> Intervals:
    """The parts of intervals in the air that are free flight, start and end in s; all of them where the phases are not known.

    A low hover, which begins as a landing and is followed by flight, counts as flight.
    """
    if not phases:
        return airborne
    free = [
        (p.start, p.end)
        for p, following in zip(phases, [*phases[1:], None], strict=True)
        if _is_free(p, following)
    ]
    common = [(max(a, c), min(b, d)) for a, b in airborne for c, d in joined(free)]
    return [(start, end) for start, end in common if end - start >= SHORTEST]


def _is_free(interval: PhaseInterval, following: PhaseInterval | None) -> bool:
    if interval.phase is Phase.LANDING:
        return following is None or following.phase is Phase.FLIGHT
    return interval.phase is Phase.FLIGHT


def joined(intervals: Intervals) -> Intervals:
    """Intervals in order, those that touch as one."""
    result: Intervals = []
    for start, end in intervals:
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def _rows(flight: Flight, thrust: Signal, weight: float) -> list[PhaseRow]:
    t = grid(flight.start, flight.end, _STEP)
    thrusts = interpolate_linear(t, thrust.times, thrust.values / weight)
    thrusts[(t < thrust.times[0]) | (t > thrust.times[-1] + _GAP)] = 0.0
    force = _mean(flight, "specific_force", t)
    rate = _mean(flight, "body_rate", t)
    height, velocity = (_vector(flight, name, t) for name in ("position", "velocity"))
    airborne = None
    if "airborne" in flight:
        s = flight["airborne"]
        airborne = (hold(t, s.times, s.values[:, 0]) > 0.5).tolist()
    return [
        PhaseRow(
            float(t[k]),
            tuple(thrusts[k].tolist()),
            None if force is None or not np.isfinite(force[k, 0]) else tuple(force[k].tolist()),
            float("nan") if rate is None else float(np.linalg.norm(rate[k])),
            float(height[k, 2]),
            float(velocity[k, 2]),
            float(np.hypot(velocity[k, 0], velocity[k, 1])),
            None if airborne is None else airborne[k],
        )
        for k in np.flatnonzero(~_is_in_gap(flight, thrust, t))
    ]


def _is_in_gap(flight: Flight, thrust: Signal, t: Series) -> Bool[np.ndarray, " n"]:
    """Whether a time lies in a gap of the log: of the thrust and, where it is logged, of the specific force."""
    signals = [thrust, *([flight["specific_force"]] if "specific_force" in flight else [])]
    is_missing = np.ones(len(t), bool)
    for times in (s.times for s in signals if len(s.times) > 1):
        after = np.clip(np.searchsorted(times, t), 1, len(times) - 1)
        longest = max(_SHORT_GAP, _GAP_ROWS * float(np.median(np.diff(times))))
        is_inside = (t > times[after - 1]) & (t < times[after])
        is_missing &= is_inside & (times[after] - times[after - 1] > longest)
    return is_missing


def _mean(flight: Flight, name: str, t: Series) -> Float[np.ndarray, "n 3"] | None:
    """Mean over the step before each time, nan in gaps; None where the log lacks the signal."""
    if name not in flight or len(flight[name].times) < 2:
        return None
    s = flight[name]
    mean = (integral(t, s.times, s.values) - integral(t - _STEP, s.times, s.values)) / _STEP
    return np.where(_is_known(s, t)[:, None], mean, np.nan)


def _vector(flight: Flight, name: str, t: Series) -> Float[np.ndarray, "n 3"]:
    """Values at each time, nan in gaps and where the log lacks the signal."""
    if name not in flight or len(flight[name].times) < 2:
        return np.full((len(t), 3), np.nan)
    s = flight[name]
    return np.where(_is_known(s, t)[:, None], interpolate_linear(t, s.times, s.values), np.nan)


def _is_known(s: Signal, t: Series) -> np.ndarray:
    """Whether a signal has rows on both sides of each time that are not further apart than `_GAP`."""
    after = np.clip(np.searchsorted(s.times, t), 1, len(s.times) - 1)
    return (s.times[after] - s.times[after - 1] < _GAP) & (t > s.times[0]) & (t <= s.times[-1])
