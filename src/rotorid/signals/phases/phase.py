"""Names of the phases of a flight, the rows that they are detected from, and changes between them."""

from __future__ import annotations

import enum
import math
from typing import Final, NamedTuple

_UNSEEN: Final = 0.2  # s before a gap, in which a contact may not have been detected yet


class Phase(enum.Enum):
    """Phase of a flight.

    GROUND: the vehicle stands on the ground, whether its rotors turn or not. TAKE_OFF: in the air, within the ground effect of
    the surface. FLIGHT: in the air. LANDING: on its way down within the ground effect. CONTACT: the ground or an object carries
    a part of the weight while the rotors turn. CRASH: it lies on its side or tumbles on the ground.
    """

    GROUND = "ground"
    TAKE_OFF = "take_off"
    FLIGHT = "flight"
    LANDING = "landing"
    CONTACT = "contact"
    CRASH = "crash"

    @property
    def is_airborne(self) -> bool:
        """Whether the rotors carry the vehicle."""
        return self in (Phase.TAKE_OFF, Phase.FLIGHT, Phase.LANDING)


class PhaseRow(NamedTuple):
    """What is known at one time; None or nan where it is not known.

    t: s. thrusts: commanded thrust of each rotor, or of all together, over the nominal weight. specific_force: m/s^2, body
    FLU. body_rate: its magnitude, rad/s. height: m above any level. climb_rate: m/s. speed: horizontal, m/s. airborne: by the
    autopilot's landing detection.
    """

    t: float
    thrusts: tuple[float, ...]
    specific_force: tuple[float, float, float] | None = None
    body_rate: float = math.nan
    height: float = math.nan
    climb_rate: float = math.nan
    speed: float = math.nan
    airborne: bool | None = None


class PhaseChange(NamedTuple):
    """A phase begins.

    start: s, when it began; the middle of a gap in which it began. detected: s, the row at which that is known. gap: s, start
    and end of a gap of the rows in which it may have begun, or shortly before; None without one. start_std: s, by this gap.
    """

    phase: Phase
    start: float
    detected: float
    gap: tuple[float, float] | None = None

    @property
    def start_std(self) -> float:
        if self.gap is None:
            return 0.0
        first, last = self.gap
        by_gap = (last - first) / math.sqrt(12.0) if self.start <= last else 0.5 * (self.start - first)
        return math.hypot(by_gap, _UNSEEN)
