"""Whether the vehicle flies free of the ground, told as it flies: `signals.airborne` does it for a log, which knows
the end.

The vehicle flies once its rotors pull, it is well above the level that it stood on, and its autopilot, where that
says anything, agrees; `MARGIN` s later the first row counts. It is on the ground again once it is back on that level,
or the rotors have hardly pulled for a second, or the autopilot says so. A session that begins in flight knows no
level: the autopilot's word or a second of rotors that carry is enough."""

from __future__ import annotations

import math
from typing import Final

from rotorid.signals.airborne import MARGIN

_POWERED: Final = 0.4  # of what hover takes, by the airframe
_LIFTING: Final = 0.6
_PAUSE: Final = 1.0  # s
_CLEAR: Final = 0.5  # m above the ground
_BACK: Final = 0.15  # m above it


class Flying:
    """A state machine over the rows of one session. flies: as of the last row."""

    def __init__(self) -> None:
        self.flies = False
        self._ground: float | None = None
        self._lifted: float | None = None
        self._carried: float | None = None
        self._pulled = -math.inf

    def restart(self) -> None:
        """After a reboot: heights have another zero."""
        self._ground = self._lifted = None
        self.flies = False

    def row(self, t: float, pull: float, height: float | None, aloft: bool | None) -> bool:
        """Whether the row at t (s) counts. pull: collective thrust over the nominal weight. height: m over any level,
        aloft: the autopilot's opinion; None where it is not told."""
        if pull > _POWERED:
            self._pulled = t
        if self._lifted is None:
            self._take_off(t, pull, height, aloft)
        elif self._down(t, height, aloft):
            self._lifted = None
            if height is not None:
                self._ground = height
        was, self.flies = self.flies, self._lifted is not None and t >= self._lifted + MARGIN
        return was and self.flies

    def _take_off(self, t: float, pull: float, height: float | None, aloft: bool | None) -> None:
        if (pull < _POWERED or aloft is False) and height is not None:
            self._ground = height
        if pull <= _LIFTING or aloft is False:
            self._carried = None
            return
        if self._carried is None:
            self._carried = t
        if height is not None and self._ground is not None:
            if height > self._ground + _CLEAR:
                self._lifted = t
        elif aloft or t > self._carried + _PAUSE:
            self._lifted = t

    def _down(self, t: float, height: float | None, aloft: bool | None) -> bool:
        if aloft is False or t > self._pulled + _PAUSE:
            return True
        return height is not None and self._ground is not None and height < self._ground + _BACK
