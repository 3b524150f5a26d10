"""The JSON of a flight table that was written, by `rotorid convert` or `rotorid simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rotorid.logs.flight import KINDS, Flight
from rotorid.logs.write import check_ending, table_columns
from rotorid.workflows.inspect.summary import summarise_signal


def summarise_table(flight: Flight, path: Path) -> dict[str, Any]:
    """A flight table as plain data.

    Args:
        flight: as it was written.
        path: of the table.
    Returns:
        `file`, `format`; `duration` and `time_origin`, s; `rows`, `columns`: of the table; `signals`: as `rotorid inspect
        --json` has them; `missing`: the signals that the flight does not have; `notes` of its reader.
    """
    columns = table_columns(flight)
    return {
        "file": str(path),
        "format": check_ending(path).removeprefix("."),
        "vehicle": flight.vehicle,
        "time_origin": flight.time_origin,
        "duration": round(flight.duration, 6),
        "rows": len(columns["t"]),
        "columns": list(columns),
        "signals": [summarise_signal(signal) for signal in flight.signals.values()],
        "missing": missing_signals(flight),
        "notes": list(flight.notes),
    }


def missing_signals(flight: Flight) -> list[str]:
    """Names of the signals that a log may have and this flight does not."""
    return [name for name in KINDS if name not in flight and not name.startswith("true_")]
