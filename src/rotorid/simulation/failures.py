"""Estimators made to fail on purpose, for the loop that flies by them: what comes in, or what goes out, is not what it seems.

    frozen         from then on it gets the same measurements again and again
    thrust high    it receives 1.3 times the thrust, from the start
    thrust low     from then on it receives 0.75 times the thrust
    lying          from then on it reports twice the nominal mass less its own, sure and healthy
    stuck          from then on it repeats what it said, sure and healthy
    drifting       from then on its report slides away by 3 % a second, sure and healthy
    late           what it says is 3 s old
    silent         from then on it says nothing
    wild           from then on every third report is not a number, negative or a hundredfold, the others are right

Then is `FAILURE_TIME` s.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rotorid.control.gate import Reading
from rotorid.estimators.base import Health
from rotorid.simulation.profiles import NOMINAL_MASS

FAILURE_TIME = 5.0
"""When most of them begin, s."""

REPORTED_STD = 0.005
"""What a liar gives as its standard deviation, kg."""

_LATE = 3.0  # s
_DRIFT = 0.03  # of the mass a second
_WILD = (math.nan, -1.0, 100.0, math.inf)


EstimatorInput = tuple[np.ndarray, np.ndarray]
"""Inputs that acted and measured state, packed as those of `BareMultirotor`."""


class Failure(NamedTuple):
    """Of one flight. fed: (t in s, what the estimator should be fed) -> what it is fed. said: (t, its reading) -> what comes
    out, None if nothing."""

    fed: Callable[[float, EstimatorInput], EstimatorInput]
    said: Callable[[float, Reading], Reading | None]


def _unchanged_input(t: float, fed: EstimatorInput) -> EstimatorInput:
    return fed


def _unchanged_report(t: float, reading: Reading) -> Reading:
    return reading


def _frozen() -> Failure:
    last: list[np.ndarray] = []

    def fed(t: float, inputs: EstimatorInput) -> EstimatorInput:
        u, y = inputs
        if t < FAILURE_TIME or not last:
            last[:] = [y]
        return u, last[0]

    return Failure(fed, _unchanged_report)


def _thrust(scale: float, begin: float) -> Failure:
    def fed(t: float, inputs: EstimatorInput) -> EstimatorInput:
        u, y = inputs
        return (u * np.array([scale, 1.0, 1.0, 1.0]) if t >= begin else u), y

    return Failure(fed, _unchanged_report)


def _healthy_report(value: float) -> Reading:
    return Reading(value, REPORTED_STD, Health.OK)


def _mirrored() -> Failure:
    return Failure(
        _unchanged_input,
        lambda t, r: r if t < FAILURE_TIME else _healthy_report(2.0 * NOMINAL_MASS - r.value),
    )


def _stuck() -> Failure:
    last: list[float] = []

    def said(t: float, reading: Reading) -> Reading:
        if t < FAILURE_TIME or not last:
            last[:] = [reading.value]
            return reading
        return _healthy_report(last[0])

    return Failure(_unchanged_input, said)


def _drifting() -> Failure:
    def report(t: float, reading: Reading) -> Reading:
        if t < FAILURE_TIME:
            return reading
        return _healthy_report(reading.value * (1.0 + _DRIFT * (t - FAILURE_TIME)))

    return Failure(_unchanged_input, report)


def _late() -> Failure:
    waiting: deque[tuple[float, Reading]] = deque()

    def said(t: float, reading: Reading) -> Reading | None:
        waiting.append((t, reading))
        while len(waiting) > 1 and waiting[1][0] <= t - _LATE:
            waiting.popleft()
        return waiting[0][1] if waiting[0][0] <= t - _LATE else None

    return Failure(_unchanged_input, said)


def _no_report() -> Failure:
    return Failure(_unchanged_input, lambda t, r: r if t < FAILURE_TIME else None)


def _invalid() -> Failure:
    count = 0

    def said(t: float, reading: Reading) -> Reading:
        nonlocal count
        count += t >= FAILURE_TIME
        if t < FAILURE_TIME or count % 3:
            return reading
        return reading._replace(value=_WILD[count // 3 % len(_WILD)])

    return Failure(_unchanged_input, said)


FAILURES: dict[str, Callable[[], Failure]] = {
    "frozen": _frozen,
    "thrust high": lambda: _thrust(1.3, 0.0),
    "thrust low": lambda: _thrust(0.75, FAILURE_TIME),
    "lying": _mirrored,
    "stuck": _stuck,
    "drifting": _drifting,
    "late": _late,
    "silent": _no_report,
    "wild": _invalid,
}
"""By name; each call makes one for a new flight."""


def no_failure() -> Failure:
    """An estimator that works."""
    return Failure(_unchanged_input, _unchanged_report)
