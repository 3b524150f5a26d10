"""Lost messages of a vehicle, counted by their sequence numbers (modulo 256).

Frames that arrive out of order by more than 128 would look like losses, so sequence numbers are followed in the order of the
vehicle's stamps. Frames without a stamp keep their position between stamped ones.
"""

from __future__ import annotations

import heapq
from typing import Final

LONGEST_LATE: Final = 1.0
"""The longest delay by which frames are expected out of order, s of the vehicle's clock."""

_MOST: Final = 20_000  # frames that wait


class Losses:
    """received, lost: numbers of frames."""

    def __init__(self) -> None:
        self.received = 0
        self._before = 0  # lost before the last restart
        self._begin()

    def restart(self) -> None:
        """Restart the count after a boot of the vehicle, which starts at 0."""
        self.end()
        self._before = self.lost
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[tuple[float, int]] = []
        self._frames = self._stamped = self._before_first = self._since_last = 0
        self._first: int | None = None
        self._last = self._highest = 0

    def came(self) -> None:
        """Count a frame on arrival, before its stamp is known."""
        self.received += 1
        self._frames += 1
        self._since_last += 1

    def stamped(self, t: float, sequence: int, deadline: float) -> None:
        """Add the stamp of a counted frame, s, and the time before which no frame is expected any more."""
        if not self._stamped:
            self._before_first = self._frames - 1
        self._stamped += 1
        self._since_last = 0
        heapq.heappush(self._waiting, (t, sequence))
        while self._waiting and (self._waiting[0][0] <= deadline or len(self._waiting) > _MOST):
            self._follow(heapq.heappop(self._waiting)[1])

    def end(self) -> None:
        """End the count: no frame is expected any more."""
        while self._waiting:
            self._follow(heapq.heappop(self._waiting)[1])

    def _follow(self, sequence: int) -> None:
        if self._first is None:
            self._first = self._last = self._highest = sequence
            return
        self._last += (sequence - self._last + 128) % 256 - 128
        self._highest = max(self._highest, self._last)

    @property
    def lost(self) -> int:
        """Number of lost frames, from the sequence numbers of received ones."""
        if self._first is None:
            return self._before
        expected = self._frames - self._before_first - self._since_last
        pending = len(self._waiting) * expected / self._stamped
        return self._before + max(round(self._highest - self._first + 1 - (expected - pending)), 0)
