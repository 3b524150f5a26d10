"""Everything that can be said of a log before anything is estimated from it."""

from __future__ import annotations

import dataclasses
from typing import Any

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks import check
from rotorid.signals.inspection.checks.clock import signal_gaps
from rotorid.signals.inspection.findings import Finding
from rotorid.signals.inspection.identifiability import Identifiability, assess_identifiability
from rotorid.signals.series import Intervals, total_length


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A flight, when it was in the air (s), what the checks found, and what can be identified from it."""

    flight: Flight
    flying: Intervals
    findings: list[Finding]
    identifiability: list[Identifiability]

    @property
    def airborne_share(self) -> float:
        """Part of the log in the air, 0 to 1."""
        return total_length(self.flying) / self.flight.duration if self.flight.duration > 0.0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "file": str(self.flight.source),
            "format": self.flight.format,
            "vehicle": self.flight.vehicle,
            "time_origin": self.flight.time_origin,
            "duration": round(self.flight.duration, 6),
            "airborne": [[round(a, 6), round(b, 6)] for a, b in self.flying],
            "signals": [_signal(s) for s in self.flight.signals.values()],
            "findings": [dataclasses.asdict(f) | {"severity": f.severity.word} for f in self.findings],
            "identifiability": [
                dataclasses.asdict(a) | {"verdict": a.verdict.value} for a in self.identifiability
            ],
        }


def inspect_flight(flight: Flight) -> Inspection:
    """Detect when a flight was in the air, check it, and assess what can be identified from it.

    Args:
        flight: the log.
    Returns:
        Airborne intervals (s), findings of the checks, and the identifiability of each quantity.
    """
    flying = airborne_intervals(flight)
    return Inspection(flight, flying, check(flight, flying), assess_identifiability(flight, flying))


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "name": signal.name,
        "unit": signal.kind.unit,
        "frame": signal.kind.frame,
        "columns": list(signal.columns),
        "rate": round(signal.rate, 3),
        "samples": len(signal.times),
        "start": round(float(signal.times[0]), 6) if len(signal.times) else None,
        "end": round(float(signal.times[-1]), 6) if len(signal.times) else None,
        "gaps": [[round(a, 6), round(b, 6)] for a, b in signal_gaps(signal)],
        "source": signal.source,
    }
