"""How many messages come in a second, over the last seconds."""

from __future__ import annotations

from collections import deque
from typing import Final

_OVER: Final = 3.0  # s
_EVERY: Final = 0.1  # s


class Rate:
    """Of a count that grows."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def now(self, t: float, count: int) -> float:
        """Rate in 1/s at t, s, when it was `count`."""
        counts = self._counts
        if not counts or t > counts[-1][0] + _EVERY:
            counts.append((t, count))
            while t > counts[0][0] + _OVER:
                counts.popleft()
        start, before = counts[0]
        return (count - before) / (t - start) if t > start else 0.0
