"""The tables of a fleet, as Parquet files.

`flights.parquet`: a row for each flight and parameter; a failed flight has one row without a parameter, whose verdict is the
error. `changes.parquet`: a row for each change. Times are UTC, null if the log has none; `number` is the position of a flight
in the history of its vehicle, from 1, null for a failed flight.
"""

from __future__ import annotations

import io
import math
from typing import Any, Final

from rotorid.workflows.fleet.fleet import Fleet
from rotorid.workflows.fleet.text import change_text

FLIGHTS, CHANGES = "flights.parquet", "changes.parquet"

_FLIGHT_COLUMNS: Final = (
    ("vehicle", "string"), ("airframe", "string"), ("flight", "string"), ("number", "int64"), ("time", "time"),
    ("duration", "double"), ("parameter", "string"), ("value", "double"), ("std", "double"), ("unit", "string"),
    ("informed", "bool"), ("code", "string"), ("verdict", "string"), ("sha256", "string"),
)  # fmt: skip
_CHANGE_COLUMNS: Final = (
    ("vehicle", "string"), ("airframe", "string"), ("kind", "string"), ("flight", "string"), ("number", "int64"),
    ("earliest", "int64"), ("latest", "int64"), ("time", "time"), ("parameter", "string"), ("size", "double"),
    ("std", "double"), ("unit", "string"), ("relative_size", "double"), ("z", "double"), ("alternatives", "string"),
    ("text", "string"),
)  # fmt: skip

_PARAMETER_COLUMNS: Final = ("value", "std", "unit", "informed", "code", "verdict")


def fleet_files(fleet: Fleet) -> dict[str, bytes]:
    """Both tables by file name."""
    return {
        FLIGHTS: _parquet(_FLIGHT_COLUMNS, _flight_rows(fleet)),
        CHANGES: _parquet(_CHANGE_COLUMNS, _change_rows(fleet)),
    }


def _flight_rows(fleet: Fleet) -> list[dict[str, Any]]:
    rows = []
    for vehicle in fleet.vehicles:
        for number, record in enumerate(vehicle.records, 1):
            flight = {
                "vehicle": vehicle.name,
                "airframe": vehicle.airframe or None,
                "flight": record["flight"],
                "number": number,
                "time": _microseconds(record.get("utc")),
                "duration": record["duration"],
                "sha256": record["sha256"],
            }
            rows += [
                {**flight, "parameter": p["name"], **{name: p[name] for name in _PARAMETER_COLUMNS}}
                for p in record["parameters"]
            ]
        for record in vehicle.failures:
            rows.append(
                {
                    "vehicle": vehicle.name,
                    "airframe": vehicle.airframe or None,
                    "flight": record["flight"],
                    "time": _microseconds(record.get("utc")),
                    "duration": record.get("duration"),
                    "informed": False,
                    "code": "failed",
                    "verdict": record["error"],
                    "sha256": record.get("sha256"),
                }
            )
    return rows


def _change_rows(fleet: Fleet) -> list[dict[str, Any]]:
    return [
        {
            "vehicle": vehicle.name,
            "airframe": vehicle.airframe or None,
            "kind": c.kind,
            "flight": c.flight,
            "number": c.number,
            "earliest": c.number_range[0],
            "latest": c.number_range[1],
            "time": _microseconds(c.utc),
            "parameter": c.parameter,
            "size": c.size,
            "std": c.std,
            "unit": c.unit,
            "relative_size": c.relative_size if math.isfinite(c.relative_size) else None,
            "z": c.z,
            "alternatives": ", ".join(c.alternatives),
            "text": change_text(c),
        }
        for vehicle in fleet.vehicles
        for c in vehicle.changes
    ]


def _microseconds(utc: float | None) -> int | None:
    return None if utc is None or not math.isfinite(utc) else round(utc * 1e6)


def _parquet(columns: tuple[tuple[str, str], ...], rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    types = {
        "string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in columns])
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], types[kind]) for name, kind in columns}, schema
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
