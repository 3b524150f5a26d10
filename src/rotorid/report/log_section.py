"""The section of a page that says what was read from a log."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence

from rotorid.logs.flight import Flight
from rotorid.report.html import Page, notes_list, table
from rotorid.results.words import label, unit_text


def what_was_read(page: Page, flight: Flight, notes: Sequence[str]) -> None:
    """The section that lists the signals of a log, and what its reader noted."""
    page.section("What was read")
    if notes:
        page.add(notes_list(notes))
    rows = [
        [
            label(s.name),
            f"{s.rate:.0f} Hz" if s.rate >= 1.0 and not s.name.startswith("true_") else "–",
            f"{len(s.times)}",
            unit_text(s.kind.unit) or "–",
            s.kind.frame,
            s.source,
        ]
        for s in flight.signals.values()
    ]
    kinds = {"signal": "word", "rate": "number", "samples": "number", "frame": "word", "read from": "long"}
    page.add(table(["signal", "rate", "samples", "unit", "frame", "read from"], rows, kinds))
