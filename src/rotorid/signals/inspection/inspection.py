"""Inspection of a flight: airborne intervals, checks, and identifiability."""

from __future__ import annotations

import dataclasses

from rotorid.findings import Finding
from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks.registry import check_flight
from rotorid.signals.inspection.dynamics.assess import assess_dynamics
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.identifiability import Identifiability, assess_identifiability
from rotorid.signals.series import Intervals, total_length


@dataclasses.dataclass(frozen=True)
class Inspection:
    """Result of an inspection.

    flight: the log. flying: start and end of each airborne interval, s. findings: findings of the checks, the most severe
    first. identifiability: identifiability of each quantity. dynamics: noise, gain, lag and rate loop.
    """

    flight: Flight
    flying: Intervals
    findings: list[Finding]
    identifiability: list[Identifiability]
    dynamics: list[Estimate] = dataclasses.field(default_factory=list)

    @property
    def airborne_share(self) -> float:
        """Airborne time over the duration of the log, 0 to 1."""
        return total_length(self.flying) / self.flight.duration if self.flight.duration > 0.0 else 0.0


def inspect_flight(flight: Flight) -> Inspection:
    """Detect the airborne intervals of a flight, check it, assess what can be identified from it, and estimate its dynamics.

    Args:
        flight: the log.
    Returns:
        Airborne intervals (s), findings of the checks, the identifiability of each quantity, and the dynamics.
    """
    flying = airborne_intervals(flight)
    return Inspection(
        flight,
        flying,
        check_flight(flight, flying),
        assess_identifiability(flight, flying),
        assess_dynamics(flight, flying),
    )
