"""What the reader of the log had to leave out or repair."""

from __future__ import annotations

from collections.abc import Iterator

from rotorid.logs.flight import Flight
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals


def reader_notes(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """The reader's notes, but for gaps, which have their own check."""
    for note in flight.notes:
        if "no samples of" not in note:
            yield Finding("reading", Severity.NOTE, note)
