"""The flight table: one row per time stamp, one column per scalar, as CSV or Parquet.

The column `t` is the time in s; every other column is one of a signal (see `KINDS`), and an empty cell is a
missing measurement. CSV carries the log's own clock at t = 0, and the vehicle, as comments before the header
(`# time_origin: 12.264`, `# vehicle: ...`); Parquet as metadata of the schema under the same names.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError, SignalError
from rotorid.logs.flight import KINDS, Flight, split_column
from rotorid.logs.reader_base import Collector, LogFile
from rotorid.logs.tables.cells import read_cells

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET_MAGIC = b"PAR1"


def read_table_csv(path: Path, buffer: bytes) -> Flight:
    """The flight in a flight table as CSV."""
    cells = read_cells(path, buffer)
    comments = (c.partition(":") for c in cells.comments)
    metadata = {key.strip(): value.strip() for key, _, value in comments}
    return _flight(path, "table-csv", cells.columns, metadata, cells.notes)


def read_table_parquet(file: LogFile) -> Flight:
    """The flight in a Parquet table: a flight table, or any other with a mapping. Raises LogFormatError or SignalError."""
    path = file.path
    if file.mapping is not None:
        from rotorid.logs.tables.mapped import read_mapped

        return read_mapped(path, file.content, file.mapping)
    table = parquet_table(path, file.content)
    columns = numbers_of(path, table, table.column_names)
    metadata = {
        k.decode("utf-8", "replace"): v.decode("utf-8", "replace")
        for k, v in (table.schema.metadata or {}).items()
    }
    return _flight(path, "table-parquet", columns, metadata, [])


def close_matches(name: str, known: list[str]) -> str:
    """Known names that resemble a wrong one, in words."""
    matches = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f" (close: {', '.join(matches)})" if matches else ""


def known_columns() -> list[str]:
    """Every column that a flight table may have, rotors as those of an octocopter."""
    ends = {n: k.suffixes or tuple(f"_{i}" for i in range(8)) for n, k in KINDS.items()}
    return ["t", *(name + end for name, suffixes in ends.items() for end in suffixes)]


def _flight(
    path: Path, format: str, columns: Mapping[str, np.ndarray], metadata: Mapping[str, str], notes: list[str]
) -> Flight:
    if "t" not in columns:
        raise SignalError(
            f"{path}: a flight table needs the column t (time in s); it has {', '.join(columns)[:200]}"
        )
    parts: dict[str, dict[int, str]] = {}
    for column in columns:
        if column == "t":
            continue
        if (place := split_column(column)) is None:
            hint = close_matches(column, known_columns())
            raise SignalError(
                f"{path}: unknown column {column!r}{hint}; rename it or read the file with a mapping"
            )
        parts.setdefault(place[0], {})[place[1]] = column
    origin = _time_origin(path, metadata)
    collector = Collector(path, format, clock=origin)
    for note in notes:
        collector.note(note)
    for name, places in parts.items():
        suffixes = KINDS[name].suffixes
        expected = len(suffixes) if suffixes is not None else max(places) + 1
        if len(places) < expected:
            columns_present = ", ".join(places.values())
            collector.note(f"{name}: not read, of its {expected} columns only {columns_present} is there")
            continue
        values = np.stack([columns[places[i]] for i in range(expected)], axis=1)
        is_measured = ~np.isnan(values).all(axis=1)
        collector.add(
            name,
            columns["t"][is_measured],
            values[is_measured],
            f"column {places[0]}" + " ..." * (expected > 1),
        )
    return collector.flight(vehicle=metadata.get("vehicle", ""), shift=False)


def _time_origin(path: Path, metadata: Mapping[str, str]) -> float:
    text = metadata.get("time_origin", "0")
    try:
        origin = float(text)
    except ValueError:
        origin = math.nan
    if not math.isfinite(origin):
        raise SignalError(f"{path}: time_origin {text!r} is not a number of seconds")
    return origin


def parquet_table(path: Path, buffer: bytes) -> pa.Table:
    """The table of a Parquet file. Raises LogFormatError where it is cut or damaged.

    It is read in this thread alone: a thread of Arrow that releases the buffer while Python ends aborts the process.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        return parquet.ParquetFile(pa.BufferReader(buffer), pre_buffer=False).read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise LogFormatError(
            f"{path}: a Parquet file that is cut or damaged ({reason}); write it again"
        ) from None


def numbers_of(path: Path, table: pa.Table, names: Sequence[str]) -> dict[str, Float64[np.ndarray, " n"]]:
    """Columns of a table. Raises SignalError for one that stands twice or holds no numbers."""
    import pyarrow as pa

    result, all_names = {}, table.column_names
    for name in names:
        if all_names.count(name) > 1:
            raise SignalError(f"{path}: column {name!r} stands twice; give each column its own name")
        kind = table.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise SignalError(
                f"{path}: column {name!r} holds {kind}, not numbers; leave it out or convert it"
            )
        result[name] = table[name].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return result
