"""Offset and drift of the vehicle's clock, from message time stamps and arrival times.

A message with the time stamp s arrives at a = s + c(a) + d. c is the clock of this computer minus the vehicle's clock, and
d > 0 is the transmission delay. Some messages have almost the minimum delay. c, including this minimum delay, is therefore
estimated by the line closest below all points (a, a - s):

    c(a) = c_0 + k a,      minimise sum (a_i - s_i - c(a_i))   subject to   c(a_i) <= a_i - s_i

The solution is the edge of the lower convex hull of the points below the mean of the a_i (S. Moon, P. Skelly, D. Towsley,
Estimation and removal of clock skew from network delay measurements, INFOCOM 1999). The points are the minima of each
second of the last minute. The minimum delay itself cannot be identified from messages in one direction.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

_INTERVAL: Final = 1.0  # s; the lowest point of each interval is used
_MAX_POINTS: Final = 60
_MIN_POINTS: Final = 5
_STEP_POINTS: Final = 5  # consecutive points far above the line: one of the clocks was set
_STEP: Final = 0.5  # s
_RESOLUTION: Final = 1e-4  # s: time stamps have a resolution of 1 ms; their mean is better

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class ClockState:
    """Offset and drift of the vehicle's clock, with standard deviations.

    offset: clock of this computer (s since 1970) minus the vehicle's clock (s since its boot), including the minimum
    transmission delay, s. drift: rate of change of the offset, s/s. delay: mean transmission delay of the last second
    above the minimum, s. offset_std, drift_std: standard deviations.
    """

    offset: float
    offset_std: float
    drift: float
    drift_std: float
    delay: float


class VehicleClock:
    """Estimator of `ClockState`. state: the latest estimate, a new object after each change; None before the first."""

    def __init__(self) -> None:
        self.state: ClockState | None = None
        self.restart()

    def restart(self) -> None:
        """Start again after a reboot of the vehicle, which resets its clock."""
        self.state = None
        self._points: deque[Point] = deque(maxlen=_MAX_POINTS)
        self._interval_end = -math.inf
        self._lowest: Point = (0.0, math.inf)
        self._sum, self._count = 0.0, 0

    def update(self, stamp: float, arrival: float, zero: float) -> None:
        """Add one message.

        Args:
            stamp: time stamp of the message, s since the vehicle's boot.
            arrival: arrival time, s since `zero`.
            zero: start of the session, s since 1970.
        """
        if arrival >= self._interval_end:
            if self._count:
                self._close_interval(arrival, zero)
            self._interval_end = arrival + _INTERVAL
            self._lowest, self._sum, self._count = (arrival, math.inf), 0.0, 0
        difference = arrival - stamp
        self._sum += difference
        self._count += 1
        if difference < self._lowest[1]:
            self._lowest = arrival, difference

    def _close_interval(self, now: float, zero: float) -> None:
        points = self._points
        points.append(self._lowest)
        if len(points) < _MIN_POINTS:
            return
        line, _ = self._line(points)
        above = [y - line(x) for x, y in points]
        if len(points) > _STEP_POINTS and min(above[-_STEP_POINTS:]) > _STEP:
            for _ in range(len(points) - _STEP_POINTS):
                points.popleft()
        line, slope = self._line(points)
        mean = sum(y - line(x) for x, y in points) / len(points)
        std = math.hypot(1.5 * mean / math.sqrt(len(points)), _RESOLUTION)
        delay = self._sum / self._count - line(now - 0.5 * _INTERVAL)
        span = points[-1][0] - points[0][0]
        self.state = ClockState(zero + line(now), std, slope, 2.0 * std / span, max(delay, 0.0))

    @staticmethod
    def _line(points: Sequence[Point]) -> tuple[Callable[[float], float], float]:
        """The line closest below all points, and its slope."""
        hull: list[Point] = []
        for x, y in points:
            while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1]) <= (
                hull[-1][1] - hull[-2][1]
            ) * (x - hull[-2][0]):
                hull.pop()
            hull.append((x, y))
        middle = sum(x for x, _ in points) / len(points)
        k = next(k for k in range(1, len(hull)) if hull[k][0] >= middle)
        (x0, y0), (x1, y1) = hull[k - 1], hull[k]
        slope = (y1 - y0) / (x1 - x0)
        return (lambda x: y0 + slope * (x - x0)), slope
