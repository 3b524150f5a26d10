"""How the vehicle's clock stands to ours, from the stamps of its messages and their arrivals alone.

A message with the stamp s arrives at a = s + c(a) + d, c being our clock less the vehicle's and d > 0 what it took on the
way. Now and then one comes almost unhindered, so that c, and the shortest way with it, is the line closest under all the
points (a, a - s):

    c(a) = c_0 + k a,      minimise sum (a_i - s_i - c(a_i))   subject to   c(a_i) <= a_i - s_i

It is the edge of their lower convex hull under the mean of the a_i (S. Moon, P. Skelly, D. Towsley, Estimation and
removal of clock skew from network delay measurements, INFOCOM 1999). The points are the lowest of each second over the
last minute: other messages are slow, clocks drift, and vehicles boot. How long the shortest way takes cannot be told
by one that leads in one direction only."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

_SPAN: Final = 1.0  # s, of which the lowest point counts
_KEPT: Final = 60
_FEWEST: Final = 5
_STEPPED: Final = 5  # points in a row far above the line: one of the clocks was set
_STEP: Final = 0.5  # s
_RESOLUTION: Final = 1e-4  # s: stamps are in ms, but many

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class ClockState:
    """offset: our clock (s since 1970) less the vehicle's (s since its boot), the shortest way of a message included, and
    its standard deviation, s. drift: how much more our clock runs in a second of ours, and its standard deviation, s/s.
    delay: what messages of the last second took longer than the shortest way, on average, s."""

    offset: float
    offset_std: float
    drift: float
    drift_std: float
    delay: float


class VehicleClock:
    """Hears stamps. state: what they tell; None before there are enough. A new object each time that it changes."""

    def __init__(self) -> None:
        self.state: ClockState | None = None
        self.restart()

    def restart(self) -> None:
        """Forget all: after a boot the vehicle's clock is another one."""
        self.state = None
        self._points: deque[Point] = deque(maxlen=_KEPT)
        self._until = -math.inf
        self._lowest: Point = (0.0, math.inf)
        self._sum, self._count = 0.0, 0

    def hear(self, stamp: float, arrival: float, zero: float) -> None:
        """Take one message. stamp: s since the vehicle's boot. arrival: s since `zero`, which is s since 1970."""
        if arrival >= self._until:
            if self._count:
                self._close(arrival, zero)
            self._until = arrival + _SPAN
            self._lowest, self._sum, self._count = (arrival, math.inf), 0.0, 0
        apart = arrival - stamp
        self._sum += apart
        self._count += 1
        if apart < self._lowest[1]:
            self._lowest = arrival, apart

    def _close(self, now: float, zero: float) -> None:
        points = self._points
        points.append(self._lowest)
        if len(points) < _FEWEST:
            return
        line, _ = self._line(points)
        above = [y - line(x) for x, y in points]
        if len(points) > _STEPPED and min(above[-_STEPPED:]) > _STEP:
            for _ in range(len(points) - _STEPPED):
                points.popleft()
        line, slope = self._line(points)
        mean = sum(y - line(x) for x, y in points) / len(points)
        std = math.hypot(1.5 * mean / math.sqrt(len(points)), _RESOLUTION)
        delay = self._sum / self._count - line(now - 0.5 * _SPAN)
        span = points[-1][0] - points[0][0]
        self.state = ClockState(zero + line(now), std, slope, 2.0 * std / span, max(delay, 0.0))

    @staticmethod
    def _line(points: Sequence[Point]) -> tuple[Callable[[float], float], float]:
        """The line closest under all points, and its slope."""
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
