"""Failures of an estimator for simulated closed-loop flights: they corrupt its input or its output.

    frozen         the measurements keep their last values
    thrust high    the thrust input is 1.3 times the true one, from the start
    thrust low     the thrust input is 0.75 times the true one
    mirrored       the output is twice the nominal mass minus the estimate, with a small standard deviation and good health
    stuck          the output keeps its last value, with a small standard deviation and good health
    drifting       the output drifts by 3 % per second, with a small standard deviation and good health
    delayed        the output is delayed by 3 s, from the start
    no output      there is no output
    invalid        every third output is NaN, infinite, negative or a hundred times too large; the others are correct

Failures without another start time begin at `FAILURE_TIME`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from rotorid.control.gate import Reading
from rotorid.estimators.base import Health
from rotorid.simulation.profiles import NOMINAL_MASS

FAILURE_TIME: Final = 5.0
"""Time at which most failures begin, s."""

REPORTED_STD: Final = 0.005
"""Standard deviation of a corrupted output that is reported as healthy, kg."""

_DELAY: Final = 3.0  # s
_DRIFT_RATE: Final = 0.03  # relative, 1/s
_INVALID_VALUES: Final = (math.nan, -1.0, 100.0, math.inf)

EstimatorInput = tuple[np.ndarray, np.ndarray]
"""Inputs that acted and measured state, packed as those of `BareMultirotor`."""


class Failure(NamedTuple):
    """A failure in one flight.

    corrupt_input: (t in s, correct input) -> input of the estimator. corrupt_output: (t in s, output of the estimator) ->
    reported output, None for no output.
    """

    corrupt_input: Callable[[float, EstimatorInput], EstimatorInput]
    corrupt_output: Callable[[float, Reading], Reading | None]


def _keep_input(t: float, inputs: EstimatorInput) -> EstimatorInput:
    return inputs


def _keep_output(t: float, reading: Reading) -> Reading:
    return reading


def _frozen() -> Failure:
    last: list[np.ndarray] = []

    def corrupt(t: float, inputs: EstimatorInput) -> EstimatorInput:
        u, y = inputs
        if t < FAILURE_TIME or not last:
            last[:] = [y]
        return u, last[0]

    return Failure(corrupt, _keep_output)


def _thrust(scale: float, begin: float) -> Failure:
    def corrupt(t: float, inputs: EstimatorInput) -> EstimatorInput:
        u, y = inputs
        return (u * np.array([scale, 1.0, 1.0, 1.0]) if t >= begin else u), y

    return Failure(corrupt, _keep_output)


def _healthy_reading(value: float) -> Reading:
    return Reading(value, REPORTED_STD, Health.OK)


def _mirrored() -> Failure:
    return Failure(
        _keep_input,
        lambda t, r: r if t < FAILURE_TIME else _healthy_reading(2.0 * NOMINAL_MASS - r.value),
    )


def _stuck() -> Failure:
    last: list[float] = []

    def corrupt(t: float, reading: Reading) -> Reading:
        if t < FAILURE_TIME or not last:
            last[:] = [reading.value]
            return reading
        return _healthy_reading(last[0])

    return Failure(_keep_input, corrupt)


def _drifting() -> Failure:
    def corrupt(t: float, reading: Reading) -> Reading:
        if t < FAILURE_TIME:
            return reading
        return _healthy_reading(reading.value * (1.0 + _DRIFT_RATE * (t - FAILURE_TIME)))

    return Failure(_keep_input, corrupt)


def _delayed() -> Failure:
    queue: deque[tuple[float, Reading]] = deque()

    def corrupt(t: float, reading: Reading) -> Reading | None:
        queue.append((t, reading))
        while len(queue) > 1 and queue[1][0] <= t - _DELAY:
            queue.popleft()
        return queue[0][1] if queue[0][0] <= t - _DELAY else None

    return Failure(_keep_input, corrupt)


def _no_output() -> Failure:
    return Failure(_keep_input, lambda t, r: r if t < FAILURE_TIME else None)


def _invalid() -> Failure:
    count = 0

    def corrupt(t: float, reading: Reading) -> Reading:
        nonlocal count
        count += t >= FAILURE_TIME
        if t < FAILURE_TIME or count % 3:
            return reading
        return reading._replace(value=_INVALID_VALUES[count // 3 % len(_INVALID_VALUES)])

    return Failure(_keep_input, corrupt)


FAILURES: dict[str, Callable[[], Failure]] = {
    "frozen": _frozen,
    "thrust high": lambda: _thrust(1.3, 0.0),
    "thrust low": lambda: _thrust(0.75, FAILURE_TIME),
    "mirrored": _mirrored,
    "stuck": _stuck,
    "drifting": _drifting,
    "delayed": _delayed,
    "no output": _no_output,
    "invalid": _invalid,
}
"""Failures by name; each call returns the failure for a new flight."""


def no_failure() -> Failure:
    """An estimator without a failure."""
    return Failure(_keep_input, _keep_output)
