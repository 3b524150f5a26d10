"""Messages per second, over the last seconds."""

from __future__ import annotations

from collections import deque
from typing import Final

_WINDOW: Final = 3.0  # s
_INTERVAL: Final = 0.1  # s between two samples of the count


class MessageRate:
    """Rate of a count that only grows."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def update(self, t: float, count: int) -> float:
        """Add the count at time t, and compute the rate over the last seconds.

        Args:
            t: time, s.
            count: messages received until then.
        Returns:
            Rate, 1/s; 0 for the first count.
        """
        counts = self._counts
        if not counts or t > counts[-1][0] + _INTERVAL:
            counts.append((t, count))
            while t > counts[0][0] + _WINDOW:
                counts.popleft()
        start, before = counts[0]
        return (count - before) / (t - start) if t > start else 0.0
