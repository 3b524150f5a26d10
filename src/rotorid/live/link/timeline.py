"""Session time of messages that arrive out of order, from the time stamps of the vehicle's clock.

Let W be the latest time stamp received. The lateness of a message is how far its time stamp is behind W when it arrives. A
row of the grid at time t is closed when W > t + `wait`, where `wait` is the 99.5 % quantile of the lateness of recent
messages: some milliseconds on a wire, more where datagrams overtake each other, at most `LONGEST_WAIT`.

A time stamp far behind or far ahead of W is accepted only after several consecutive ones agree. If they are behind, the
vehicle has rebooted and its clock was reset. If they are ahead, the link was interrupted; the vehicle has rebooted meanwhile if
its clock advanced by another time than the arrivals.

A message without a time stamp is assigned the latest time stamp.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from rotorid.logs.mavlink.losses import LONGEST_LATE

LONGEST_WAIT: Final = LONGEST_LATE
"""s of the vehicle's clock."""

_QUANTILE: Final = 0.995  # share of the messages that arrive before their row is closed
_MEMORY: Final = 1000  # messages
_UPDATE_INTERVAL: Final = 50  # messages between two updates of `wait`
_MAX_BEHIND: Final = 3.0  # s: more than any message is late
_MAX_AHEAD: Final = 5.0  # s
_CONFIRMATIONS: Final = 5  # consecutive messages that confirm a jump in time
_CONFIRMATION_TIME: Final = 0.5  # s between two messages that confirm it as well, if their clocks agree
_CLOCK_ERROR: Final = 2.0  # s by which the vehicle's clock and the arrivals may differ over an interruption
_RELATIVE_CLOCK_ERROR: Final = 0.05  # the same, relative to its duration


class Timeline:
    """Session time from time stamps.

    latest: W, session time, s; -inf before the first message. wait: delay for late messages, s. boots: reboots of the
    vehicle. gaps: number of interruptions. gap: start and end of the latest one, session time, s.
    """

    def __init__(self) -> None:
        self.latest = -math.inf
        self.wait = 0.0
        self.boots = 0
        self.gaps = 0
        self.gap = (0.0, 0.0)
        self._zero = math.nan  # time stamp at session time 0, of this boot
        self._latest_arrival = 0.0
        self._start = (0.0, 0.0)  # session time and arrival of the first message of this boot, s
        self._lateness: deque[float] = deque(maxlen=_MEMORY)
        self._count = 0
        self._unconfirmed: list[tuple[float, float]] = []  # time stamp and arrival, s

    @property
    def stamp(self) -> float:
        """The latest time stamp, s by the vehicle's clock; nan before the first."""
        return self._zero + self.latest if math.isfinite(self.latest) else math.nan

    @property
    def event_time(self) -> float:
        """The session time of an event that happens now, s: 0 before the first message."""
        return max(self.latest, 0.0)

    def add(self, stamp: float, arrival: float, *, is_unambiguous: bool = True) -> float | None:
        """Add a message, and compute its session time. `boots` is incremented when a reboot is detected.

        Args:
            stamp: time stamp, s of the vehicle's clock.
            arrival: arrival time, s of this computer's clock.
            is_unambiguous: whether the time stamp can tell of a jump in time; one that wraps around cannot.
        Returns:
            Session time, s; None while a jump of the time stamps is not confirmed.
        """
        if math.isnan(self._zero):
            self._zero = stamp
            self.latest, self._latest_arrival = 0.0, arrival
            self._start = 0.0, arrival
            return 0.0
        t = stamp - self._zero
        lateness = self.latest - t
        if lateness > _MAX_BEHIND or lateness < -_MAX_AHEAD:
            if not is_unambiguous:
                return None
            t = self._confirm_jump(stamp, t, arrival)
            if math.isnan(t):
                return None
            lateness = 0.0
        elif self._unconfirmed:
            self._unconfirmed.clear()
        if t > self.latest:
            self.latest, self._latest_arrival = t, arrival
        self._update_wait(max(lateness, 0.0))
        return t

    def _confirm_jump(self, stamp: float, t: float, arrival: float) -> float:
        """Session time of a message far from the latest; nan until enough messages agree."""
        if self._unconfirmed and abs(stamp - self._unconfirmed[-1][0]) > _MAX_BEHIND:
            self._unconfirmed.clear()
        self._unconfirmed.append((stamp, arrival))
        if not self._is_confirmed():
            return math.nan
        if t < self.latest or self._has_other_clock(t, arrival):
            gap = max(arrival - self._latest_arrival, 0.0)
            self._zero = min(s for s, _ in self._unconfirmed) - self.latest - max(gap, 1e-3)
            self.boots += 1
            self._lateness.clear()
            self.wait = 0.0
            self._start = stamp - self._zero, arrival
        else:
            self.gaps, self.gap = self.gaps + 1, (self.latest, t)
        self._unconfirmed.clear()
        return stamp - self._zero

    def _is_confirmed(self) -> bool:
        """Whether enough messages agree: several, or two that are as far apart by both clocks."""
        (first, first_arrival), (last, last_arrival) = self._unconfirmed[0], self._unconfirmed[-1]
        elapsed = last_arrival - first_arrival
        agree = elapsed >= _CONFIRMATION_TIME and abs(last - first - elapsed) < 0.5 * _CONFIRMATION_TIME
        return agree or len(self._unconfirmed) >= _CONFIRMATIONS

    def _has_other_clock(self, t: float, arrival: float) -> bool:
        """Whether the vehicle's clock advanced during an interruption by another time than it does between arrivals."""
        start, first_arrival = self._start
        if self._latest_arrival < first_arrival + _MAX_AHEAD:
            return False
        speed = (self.latest - start) / (self._latest_arrival - first_arrival)
        expected = speed * (arrival - self._latest_arrival)
        return abs(t - self.latest - expected) > max(_CLOCK_ERROR, _RELATIVE_CLOCK_ERROR * expected)

    def _update_wait(self, lateness: float) -> None:
        self._lateness.append(min(lateness, LONGEST_WAIT))
        self._count += 1
        if self._count % _UPDATE_INTERVAL == 0:
            rank = min(int(_QUANTILE * len(self._lateness)), len(self._lateness) - 1)
            self.wait = float(np.partition(np.array(self._lateness), rank)[rank])
