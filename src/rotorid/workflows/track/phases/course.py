"""The main quantity of each flight of a track: at take-off, its changes in flight, and at landing.

The value at take-off is that of the first row at which the estimate has converged: its standard deviation is at most 1.25 times
the median of the flight. Jumps are sought where the estimator detected a change, or had to reset its covariance, and are
confirmed as in `changes`. What the jumps leave of the change from take-off to landing is gradual.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from rotorid.estimators.base import Health
from rotorid.signals.phases.of_log import PhaseInterval
from rotorid.signals.phases.phase import Phase
from rotorid.workflows.track.changes import (
    SETTLING,
    Jump,
    TrackedValues,
    confirmed_jumps,
    main_values,
)
from rotorid.workflows.track.track import Track

_CONVERGED: Final = 1.25  # of the median standard deviation
_LONGEST_SETTLING: Final = 2.0 * SETTLING
_BEFORE_JUMP: Final = 0.3  # s
_GAP: Final = 0.5  # s
_SIGNIFICANT: Final = 2.0  # standard deviations of a gradual change


@dataclasses.dataclass(frozen=True)
class Course:
    """The course of a quantity over one flight, in its unit.

    take_off, landing: at take_off_time and landing_time, s from the start of the log. take_off_std, landing_std: absolute.
    jumps: changes within seconds. change: landing minus take-off; change_std: without what scales all values together, except
    for its effect on the change. has_landed: whether the flight ends on the ground; else the value is that of the last row.
    """

    take_off_time: float
    take_off: float
    take_off_std: float
    landing_time: float
    landing: float
    landing_std: float
    change: float
    change_std: float
    jumps: tuple[Jump, ...]
    has_landed: bool

    @property
    def gradual(self) -> tuple[float, float]:
        """The change that is no jump, with its standard deviation."""
        rest = self.change - sum(jump.size for jump in self.jumps)
        return rest, math.hypot(self.change_std, *(jump.size_std for jump in self.jumps))

    @property
    def has_gradual_change(self) -> bool:
        """Whether the gradual change is significant."""
        rest, std = self.gradual
        return abs(rest) > _SIGNIFICANT * std


def measure_course(values: TrackedValues, candidates: Sequence[float], has_landed: bool) -> Course | None:
    """The course of a quantity over one flight.

    Args:
        values: of the flight.
        candidates: times at which there may be a jump, s.
        has_landed: see `Course`.
    Returns:
        The course; None where there are no values.
    """
    if not len(values.t):
        return None
    jumps = confirmed_jumps(values, candidates)
    is_early = values.t <= values.t[0] + _LONGEST_SETTLING
    converged = np.flatnonzero(is_early & (values.std <= _CONVERGED * np.median(values.std)))
    first = int(converged[0]) if len(converged) else int(np.argmin(np.where(is_early, values.std, np.inf)))
    if jumps and values.t[first] > jumps[0].time - _BEFORE_JUMP:
        first = max(int(np.searchsorted(values.t, jumps[0].time - _BEFORE_JUMP)) - 1, 0)
    change_std, change = values.change_std, float(values.value[-1] - values.value[first])
    return Course(
        take_off_time=float(values.t[first]),
        take_off=float(values.value[first]),
        take_off_std=float(values.std[first]),
        landing_time=float(values.t[-1]),
        landing=float(values.value[-1]),
        landing_std=float(values.std[-1]),
        change=change,
        change_std=math.hypot(change_std[first], change_std[-1], values.common * change),
        jumps=jumps,
        has_landed=has_landed,
    )


def courses_of(track: Track) -> tuple[Course, ...]:
    """The course of a track's main quantity over each of its flights; none where the phases are not known."""
    if not track.phases:
        return ()
    values = main_values(track)
    candidates = track.detected_changes
    if candidates is None:
        candidates = reset_times(track.t, track.health)
    courses = []
    for start, end, has_landed in _flights(track.phases):
        course = measure_course(values.between(start, end), candidates, has_landed)
        if course is not None:
            courses.append(course)
    return tuple(courses)


def reset_times(t: Float[np.ndarray, " n"], health: Int[np.ndarray, " n"]) -> list[float]:
    """Times at which an estimator reset its covariance, but not after a gap, s. health: a `Health` a row."""
    is_reset = health == Health.RECOVERING
    begins = is_reset & ~np.roll(is_reset, 1) & (np.diff(t, prepend=t[:1]) < _GAP)
    return t[begins].tolist()


def _flights(phases: Sequence[PhaseInterval]) -> list[tuple[float, float, bool]]:
    """Start and end of each flight, s, and whether it ends on the ground. Contacts that are followed by flight belong to it."""
    flights, start = [], None
    for interval in phases:
        is_ground = interval.phase in (Phase.GROUND, Phase.CRASH)
        if start is None and not is_ground:
            start = interval.start
        elif start is not None and is_ground:
            flights.append((start, interval.start, True))
            start = None
    return flights if start is None else [*flights, (start, math.inf, False)]
