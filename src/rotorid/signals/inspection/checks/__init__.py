"""Checks at the door: each compares what a log says with what it must say, and answers in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne
from rotorid.signals.checks.acceleration import acceleration
from rotorid.signals.checks.channels import battery, frozen, saturation
from rotorid.signals.checks.clock import gaps, order, regularity
from rotorid.signals.checks.delay import delays
from rotorid.signals.checks.gravity import gravity
from rotorid.signals.checks.jumps import jumps
from rotorid.signals.checks.reader import reader_notes
from rotorid.signals.checks.rotation import quaternion_norm, rotation
from rotorid.signals.checks.translation import translation
from rotorid.signals.findings import Finding, worst_first
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
    flying = airborne(flight) if flying is None else flying
    if any(len(s.times) > 1 and (s.times[1:] <= s.times[:-1]).any() for s in flight.signals.values()):
        return list(order(flight, flying))  # nothing else can be computed
    return worst_first([finding for one in CHECKS for finding in one(flight, flying)])


__all__ = ["CHECKS", "Check", "check"]
