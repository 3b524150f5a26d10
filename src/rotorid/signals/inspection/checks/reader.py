"""Notes of the reader of a log: what it left out or repaired."""

from __future__ import annotations

from collections.abc import Iterator

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals


def reader_notes(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """The reader's notes, except for those on gaps, which have their own check."""
    for note in flight.notes:
        if "no samples of" not in note:
            is_fault = bool(flight.estimator_faults) and "estimator reported faults" in note
            severity = Severity.WARNING if is_fault else Severity.NOTE
            yield Finding("reader_note", severity, {"note": note})
