"""The registry of checks. Each check takes a flight and its airborne intervals, and yields findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rotorid.findings import Finding, worst_first
from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks.acceleration import check_acceleration
from rotorid.signals.inspection.checks.channels import check_battery, check_constant, check_saturation
from rotorid.signals.inspection.checks.clock import check_gaps, check_regularity, check_time_order
from rotorid.signals.inspection.checks.delay import check_delays
from rotorid.signals.inspection.checks.gravity import check_gravity
from rotorid.signals.inspection.checks.jumps import check_jumps
from rotorid.signals.inspection.checks.reader import reader_notes
from rotorid.signals.inspection.checks.rotation import check_quaternion_norm, check_rotation
from rotorid.signals.inspection.checks.rotor_speeds import check_rotor_speeds
from rotorid.signals.inspection.checks.translation import check_translation
from rotorid.signals.series import Intervals

Check = Callable[[Flight, Intervals], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    check_gravity,
    check_translation,
    check_rotation,
    check_acceleration,
    check_quaternion_norm,
    check_time_order,
    check_gaps,
    check_regularity,
    check_jumps,
    check_saturation,
    check_constant,
    check_rotor_speeds,
    check_delays,
    check_battery,
    reader_notes,
)
"""All checks, in the order in which findings of equal severity are reported."""


def check_flight(flight: Flight, flying: Intervals | None = None) -> list[Finding]:
    """Run all checks. If time stamps do not increase, only their order is checked, since no other check is valid then.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s; None: determined by `airborne_intervals`.
    Returns:
        The findings, the most severe first.
    """
    flying = airborne_intervals(flight) if flying is None else flying
    if any(len(s.times) > 1 and (s.times[1:] <= s.times[:-1]).any() for s in flight.signals.values()):
        return list(check_time_order(flight, flying))
    return worst_first([finding for check in CHECKS for finding in check(flight, flying)])
