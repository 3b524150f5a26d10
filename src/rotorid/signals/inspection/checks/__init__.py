"""Checks at the door: each compares what a log says with what it must say, and answers in words.

acceleration.py  Specific force against velocity
agreement.py     Two ways to measure the same three axes
channels.py      Channels that are clipped, frozen, or out of any sensible range
clock.py         Clocks
delay.py         Delays
gravity.py       An accelerometer at rest or in hover measures g, upward
jumps.py         Jumps
reader.py        What the reader of the log had to leave out or repair
rotation.py      Body rate against attitude
translation.py   Velocity against position
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks.acceleration import acceleration
from rotorid.signals.inspection.checks.channels import battery, frozen, saturation
from rotorid.signals.inspection.checks.clock import gaps, order, regularity
from rotorid.signals.inspection.checks.delay import delays
from rotorid.signals.inspection.checks.gravity import gravity
from rotorid.signals.inspection.checks.jumps import jumps
from rotorid.signals.inspection.checks.reader import reader_notes
from rotorid.signals.inspection.checks.rotation import quaternion_norm, rotation
from rotorid.signals.inspection.checks.translation import translation
from rotorid.signals.inspection.findings import Finding, worst_first
from rotorid.signals.series import Intervals

Check = Callable[[Flight, Intervals], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    gravity,
    translation,
    rotation,
    acceleration,
    quaternion_norm,
    order,
    gaps,
    regularity,
    jumps,
    saturation,
    frozen,
    delays,
    battery,
    reader_notes,
)
"""Every check. Each takes the flight and when it is in the air, and yields its findings."""


def check(flight: Flight, flying: Intervals | None = None) -> list[Finding]:
    """What all the checks found, worst first. flying: when the vehicle flies, s; found if not given."""
    flying = airborne_intervals(flight) if flying is None else flying
    if any(len(s.times) > 1 and (s.times[1:] <= s.times[:-1]).any() for s in flight.signals.values()):
        return list(order(flight, flying))  # nothing else can be computed
    return worst_first([finding for one in CHECKS for finding in one(flight, flying)])


__all__ = ["CHECKS", "Check", "check"]
