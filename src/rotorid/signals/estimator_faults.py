"""Faults of the autopilot's estimator within a flight: its velocity and attitude, which are measurements here, may be wrong."""

from __future__ import annotations

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals


def estimator_findings(flight: Flight, parts: Intervals) -> list[Finding]:
    """A warning where the autopilot's estimator reported faults within these parts of the flight, start and end in s."""
    overlaps = [
        (max(a, start), min(b, end))
        for a, b in flight.estimator_faults
        for start, end in parts
        if a < end and b > start
    ]
    if not overlaps:
        return []
    values = {
        "flight": flight.source.name,
        "times": tuple(overlaps),
        "duration": sum(b - a for a, b in overlaps),
    }
    return [Finding("estimator_faults", Severity.WARNING, values, ("velocity", "attitude"))]
