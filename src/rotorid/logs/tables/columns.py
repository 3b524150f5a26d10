"""Columns of any table of numbers, by name: CSV (comma, semicolon or tab) or Parquet. An empty cell is NaN."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from rotorid.errors import LogFormatError, SignalError
from rotorid.logs.flight import KINDS, split_column
from rotorid.logs.reader_base import read_bytes
from rotorid.logs.tables.cells import read_cells, read_header
from rotorid.logs.tables.table import PARQUET_MAGIC, close_matches, numbers_of, open_parquet


@dataclasses.dataclass(frozen=True)
class Columns:
    """values: by name, of equal length. known: every column that the table has. notes: what was left out."""

    values: dict[str, Float[np.ndarray, " n"]]
    known: tuple[str, ...]
    notes: tuple[str, ...]


def read_columns(path: str | Path, required: Sequence[str], optional: Sequence[str] = ()) -> Columns:
    """The wanted columns of a table, and those of `optional` that it has.

    Raises LogError where the file cannot be read or is no table, SignalError where a column is missing or not of numbers,
    LogFormatError where a cell is no number.
    """
    path = Path(path)
    buffer = read_bytes(path)
    if buffer.startswith(PARQUET_MAGIC):
        return _parquet(path, buffer, required, optional)
    if b"\x00" in buffer[:65536]:
        raise LogFormatError(f"{path}: is no table; give CSV or Parquet")
    delimiter = max(",;\t", key=lambda d: len(read_header(path, buffer, d).names))
    names = read_header(path, buffer, delimiter).names
    _require(path, required, names)
    cells = read_cells(path, buffer, {*required, *optional}, delimiter)
    return Columns(cells.columns, tuple(names), tuple(cells.notes))


def unit_of(column: str) -> str:
    """The unit of a column of a flight table; "1" of another."""
    place = split_column(column)
    return KINDS[place[0]].unit if place is not None else "1"


def _parquet(path: Path, buffer: bytes, required: Sequence[str], optional: Sequence[str]) -> Columns:
    table = open_parquet(path, buffer)
    names = tuple(table.schema_arrow.names)
    _require(path, required, names)
    selected = dict.fromkeys([*required, *(n for n in optional if n in names)])
    return Columns(numbers_of(path, table, tuple(selected)), names, ())


def _require(path: Path, required: Sequence[str], names: Sequence[str]) -> None:
    for name in required:
        if name not in names:
            hint = close_matches(name, list(names)) or f" (it has {', '.join(names)[:120]})"
            raise SignalError(f"{path}: no column {name!r}{hint}")
