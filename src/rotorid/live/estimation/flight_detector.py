"""Detects free flight while the vehicle flies: the online form of `signals.airborne`.

The vehicle is in free flight once its rotors produce thrust, it is well above the ground level, and the autopilot, if it
reports a landed state, agrees; rows are used from `MARGIN` s later. It has landed once it is back at ground level, or the
rotors have produced little thrust for a second, or the autopilot reports it. In a session that begins in flight the ground
level is unknown; then the autopilot's report, or one second of sufficient thrust, is enough.
"""

from __future__ import annotations

import math
from typing import Final

from rotorid.signals.airborne import MARGIN

_MIN_RATIO: Final = 0.4  # collective thrust over nominal weight
_TAKE_OFF_RATIO: Final = 0.6
_DURATION: Final = 1.0  # s
_TAKE_OFF_HEIGHT: Final = 0.5  # m above ground level
_LANDING_HEIGHT: Final = 0.15  # m above ground level


class FlightDetector:
    """A state machine over the rows of one session. is_flying: in free flight, as of the latest row."""

    def __init__(self) -> None:
        self.is_flying = False
        self._ground_level: float | None = None
        self._take_off_time: float | None = None
        self._lift_start: float | None = None
        self._last_thrust = -math.inf

    def restart(self) -> None:
        """Restart after a reboot of the vehicle, which resets its height."""
        self._ground_level = self._take_off_time = None
        self.is_flying = False

    def update(self, t: float, thrust_ratio: float, height: float | None, airborne: bool | None) -> bool:
        """Whether a row is in free flight and can be used.

        Args:
            t: session time of the row, s.
            thrust_ratio: collective thrust over nominal weight.
            height: m above any level; None if unknown.
            airborne: reported by the autopilot; None if unknown.
        """
        if thrust_ratio > _MIN_RATIO:
            self._last_thrust = t
        if self._take_off_time is None:
            self._detect_take_off(t, thrust_ratio, height, airborne)
        elif self._has_landed(t, height, airborne):
            self._take_off_time = None
            if height is not None:
                self._ground_level = height
        was_flying, self.is_flying = (
            self.is_flying,
            self._take_off_time is not None and t >= self._take_off_time + MARGIN,
        )
        return was_flying and self.is_flying

    def _detect_take_off(
        self, t: float, thrust_ratio: float, height: float | None, airborne: bool | None
    ) -> None:
        if (thrust_ratio < _MIN_RATIO or airborne is False) and height is not None:
            self._ground_level = height
        if thrust_ratio <= _TAKE_OFF_RATIO or airborne is False:
            self._lift_start = None
            return
        if self._lift_start is None:
            self._lift_start = t
        if height is not None and self._ground_level is not None:
            if height > self._ground_level + _TAKE_OFF_HEIGHT:
                self._take_off_time = t
        elif airborne or t > self._lift_start + _DURATION:
            self._take_off_time = t

    def _has_landed(self, t: float, height: float | None, airborne: bool | None) -> bool:
        if airborne is False or t > self._last_thrust + _DURATION:
            return True
        return (
            height is not None
            and self._ground_level is not None
            and height < self._ground_level + _LANDING_HEIGHT
        )
