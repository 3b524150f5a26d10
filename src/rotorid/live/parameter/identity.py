"""Who the vehicle is, and whether a second one uses its system number on the same link.

The identity is the autopilot's serial number (AUTOPILOT_VERSION). Two vehicles behind one address are recognised by different
serial numbers, or by time stamps that alternate between two clocks: after a reboot the earlier clock does not come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

_ATTEMPTS: Final = 5
_INTERVAL: Final = 1.0  # s
_SAME_CLOCK: Final = 3.0  # s
_ALTERNATIONS: Final = 3
_PERIOD: Final = 30.0  # s


class VehicleIdentity:
    """Serial number of the vehicle. request: asks for AUTOPILOT_VERSION.

    uid: "" if unknown. is_settled: whether it is known, or the vehicle does not send it. is_lost: whether it was known, and is
    not sent any more. has_second_sender: see the module.
    """

    def __init__(self, request: Callable[[], None]) -> None:
        self._request = request
        self.uid = ""
        self._attempts = 0
        self._asked_at = -math.inf
        self._has_other_uid = self._must_confirm = False
        self._clock = ClockCheck()

    @property
    def is_settled(self) -> bool:
        """Whether the serial number is known, or the vehicle does not send it."""
        return not self._must_confirm if self.uid else self._attempts > _ATTEMPTS

    @property
    def is_lost(self) -> bool:
        """Whether the serial number was known, and is not sent any more."""
        return self._must_confirm and self._attempts > _ATTEMPTS

    @property
    def has_second_sender(self) -> bool:
        """Whether two vehicles use this system number."""
        return self._has_other_uid or self._clock.is_contradictory

    def update(self, now: float) -> None:
        """Send the request that is due. now: time of a monotonic clock, s."""
        if not self.is_settled and now >= self._asked_at + _INTERVAL:
            self._attempts += 1
            self._asked_at = now
            if self._attempts <= _ATTEMPTS:
                self._request()

    def add_uid(self, uid: str) -> None:
        """Process an AUTOPILOT_VERSION. uid: "" if it has none."""
        if not uid:
            return
        if self.uid and uid != self.uid:
            self._has_other_uid = True
        self.uid, self._must_confirm = self.uid or uid, False

    def check(self) -> None:
        """Ask for the serial number again, if it is known: it may be another vehicle now."""
        if self.uid and not self._must_confirm:
            self._must_confirm, self._attempts = True, 0

    def add_stamp(self, stamp: float, now: float) -> None:
        """Process a time stamp. stamp: s since the boot of its sender. now: time of a monotonic clock, s."""
        self._clock.add(stamp, now)


class ClockCheck:
    """Whether time stamps alternate between two clocks."""

    def __init__(self) -> None:
        self._clock = self._other = math.nan
        self._seen_at = -math.inf
        self._is_other = False
        self._alternations: list[float] = []

    @property
    def is_contradictory(self) -> bool:
        """Whether the time stamps came back to the earlier clock several times."""
        return len(self._alternations) >= _ALTERNATIONS

    def add(self, stamp: float, now: float) -> None:
        """Add a time stamp. stamp: s since boot. now: s of a monotonic clock."""
        if self.is_contradictory:
            return
        if math.isnan(self._clock) or abs(stamp - self._clock) <= _SAME_CLOCK:
            if self._is_other:
                self._is_other = False
                self._alternations = [t for t in self._alternations if t > now - _PERIOD] + [now]
            self._clock, self._seen_at = stamp, now
            return
        self._is_other = True
        if now > self._seen_at + _SAME_CLOCK:  # a reboot, or an interruption of the link
            self._clock, self._seen_at, self._is_other = stamp, now, False
