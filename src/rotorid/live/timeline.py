"""One time for all that a vehicle sends: stamps of its own clock, put in order as far as a short wait allows.

Messages overtake each other on a link, and each tells when it was measured. What counts is the latest stamp seen, W.
How far a message is behind it when it arrives is its lateness; a row of the grid at time t waits until W > t +
`wait`, the lateness that all but one in two hundred of the last messages kept to. On a wire that is some
milliseconds; where datagrams overtake each other it grows as much as is needed, up to `LONGEST_WAIT`.

A message far behind W, or far ahead of it, is believed only with others: where all of several in a row are behind,
the vehicle has booted anew and its clock with it; where they are ahead, the link was silent for a while.

A message without a stamp is taken to be as old as the latest one that has.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from rotorid.logs.mavlink_losses import LONGEST_LATE

LONGEST_WAIT: Final = LONGEST_LATE
"""s of the vehicle's clock."""

_KEPT: Final = 0.995  # share of the messages that are not too late
_MEMORY: Final = 1000  # messages
_EVERY: Final = 50  # messages between two looks at their lateness
_BEHIND: Final = 3.0  # s: more than any message is late
_AHEAD: Final = 5.0  # s
_AGREED: Final = 5  # messages in a row that move the time


class Timeline:
    """Session time of stamps. latest: W, s since the session's start; -inf before the first message. wait: see
    above."""

    def __init__(self) -> None:
        self.latest = -math.inf
        self.wait = 0.0
        self.boots = 0
        self.gaps: list[tuple[float, float]] = []
        self._zero = math.nan  # stamp at session time 0, of this boot
        self._arrival = 0.0
        self._lateness: deque[float] = deque(maxlen=_MEMORY)
        self._count = 0
        self._odd: list[float] = []

    @property
    def stamp(self) -> float:
        """The latest stamp, s by the vehicle's clock; nan before the first."""
        return self._zero + self.latest if math.isfinite(self.latest) else math.nan

    def place(self, stamp: float, arrival: float) -> float | None:
        """Session time of a message, s; None of one that cannot be believed yet. `boots` grows where the vehicle has
        booted anew: all that is kept of its time before is void then. stamp: s, by the vehicle's clock; arrival: s,
        by ours."""
        if math.isnan(self._zero):
            self._zero = stamp
            self.latest, self._arrival = 0.0, arrival
            return 0.0
        t = stamp - self._zero
        lateness = self.latest - t
        if lateness > _BEHIND or lateness < -_AHEAD:
            t = self._doubted(stamp, t, arrival)
            if math.isnan(t):
                return None
            lateness = 0.0
        elif self._odd:
            self._odd.clear()
        if t > self.latest:
            self.latest, self._arrival = t, arrival
        self._late(max(lateness, 0.0))
        return t

    def _doubted(self, stamp: float, t: float, arrival: float) -> float:
        """Session time of a message far from the latest; nan where others have to say so, too."""
        if self._odd and abs(stamp - self._odd[-1]) > _BEHIND:
            self._odd.clear()
        self._odd.append(stamp)
        if len(self._odd) < _AGREED:
            return math.nan
        if t < self.latest:
            gap = max(arrival - self._arrival, 0.0)
            self._zero = min(self._odd) - self.latest - max(gap, 1e-3)
            self.boots += 1
            self._lateness.clear()
            self.wait = 0.0
        else:
            self.gaps.append((self.latest, t))
        self._odd.clear()
        return stamp - self._zero

    def _late(self, lateness: float) -> None:
        self._lateness.append(min(lateness, LONGEST_WAIT))
        self._count += 1
        if self._count % _EVERY == 0:
            rank = min(int(_KEPT * len(self._lateness)), len(self._lateness) - 1)
            self.wait = float(np.partition(np.array(self._lateness), rank)[rank])
