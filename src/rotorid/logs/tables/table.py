"""The flight table: one row per time stamp, one column per scalar, as CSV or Parquet.

The column `t` is the time in s; every other column is one of a signal (see `KINDS`), and an empty cell is a
missing measurement. CSV carries the log's own clock at t = 0, and the vehicle, as comments before the header
(`# time_origin: 12.264`, `# vehicle: ...`); Parquet as metadata of the schema under the same names.
"""

from __future__ import annotations

import contextlib
import difflib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError, SignalError
from rotorid.logs.flight import KINDS, Flight, split_column
from rotorid.logs.reader_base import Collector, LogFile
from rotorid.logs.tables.cells import MOST_COLUMNS, floats_of, read_cells

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as parquet

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
    table = open_parquet(path, file.content)
    columns = numbers_of(path, table, table.schema_arrow.names)
    metadata = {
        k.decode("utf-8", "replace"): v.decode("utf-8", "replace")
        for k, v in (table.schema_arrow.metadata or {}).items()
    }
    return _flight(path, "table-parquet", columns, metadata, [])


def close_matches(name: str, known: list[str]) -> str:
    """Known names that resemble a wrong one, in words."""
    matches = difflib.get_close_matches(
        name[:100], known[:1000], n=3, cutoff=0.6
    )  # of a file: both may be long
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
                f"{path}: unknown column {column[:100]!r}{hint}; rename it or read the file with a mapping"
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
        parts_of_rows = [columns["t"], *(columns[places[i]] for i in range(expected))]
        is_measured = ~np.logical_and.reduce([np.isnan(part) for part in parts_of_rows[1:]])
        if not is_measured.all():
            rows = np.flatnonzero(is_measured)
            parts_of_rows = [part[rows] for part in parts_of_rows]
        times, *values = parts_of_rows
        source = f"column {places[0]}" + " ..." * (expected > 1)
        collector.add(name, times, np.stack(values, axis=1), source)
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


MOST_CELLS: Final = 20_000_000, 2.5
"""Cells of a Parquet table: so many in any case, and so many more for each byte of the file."""


def open_parquet(path: Path, buffer: bytes) -> parquet.ParquetFile:
    """An open Parquet file. Raises LogFormatError where it is cut or damaged, or has more than `MOST_CELLS` by its
    footer or by its pages."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with parquet_errors(path):
        file = parquet.ParquetFile(pa.BufferReader(buffer), pre_buffer=False)
        about = file.metadata
        if about.num_columns > MOST_COLUMNS or len(file.schema_arrow.names) > MOST_COLUMNS:
            raise LogFormatError(
                f"{path}: {about.num_columns} columns; a table has at most {MOST_COLUMNS}, export those that are needed"
            )
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        rows = max(about.num_rows, sum(max(0, group.num_rows) for group in groups))
        cells = max(rows * about.num_columns, count_values(about))
        size = max(sum(max(0, group.total_byte_size) for group in groups), unpacked_size(about, buffer))
        most = MOST_CELLS[0] + int(MOST_CELLS[1] * len(buffer))
        if max(cells, size // 8) > most:
            raise LogFormatError(
                f"{path}: {rows} rows of {about.num_columns} columns, {cells} cells, {size / 1e6:.0f} MB when unpacked; a file "
                f"of {len(buffer) / 1e6:.3g} MB may have {most} cells, write it again in parts"
            )
    return file


@contextlib.contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Errors of Arrow on damaged bytes as LogFormatError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LogFormatError(
            f"{path}: a Parquet file that is cut or damaged ({reason}); write it again"
        ) from None


def parquet_column(path: Path, file: parquet.ParquetFile, name: str) -> pa.ChunkedArray:
    """One column of a Parquet file. Raises LogFormatError where it is damaged.

    It is read in this thread alone: a thread of Arrow that releases the buffer while Python ends aborts the process.
    """
    with parquet_errors(path):
        return _read_column(file, name)


def _read_column(file: parquet.ParquetFile, name: str) -> pa.ChunkedArray:
    return file.read(columns=[name], use_threads=False).column(0)


def numbers_of(
    path: Path, file: parquet.ParquetFile, names: Sequence[str]
) -> dict[str, Float64[np.ndarray, " n"]]:
    """Columns of a Parquet file. Raises SignalError for one that stands twice or holds no numbers."""
    import pyarrow as pa

    schema = file.schema_arrow
    counts = Counter(schema.names)
    for name in names:
        if counts[name] > 1:
            raise SignalError(f"{path}: column {name!r} stands twice; give each column its own name")
        kind = schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise SignalError(
                f"{path}: column {name!r} holds {kind}, not numbers; leave it out or convert it"
            )
    result, number = {}, pa.float64()
    with parquet_errors(path):
        for name in names:
            column = _read_column(file, name)
            if column.type != number:
                column = column.cast(number, safe=False)
            result[name] = floats_of(column)
    if len(sizes := {len(column) for column in result.values()}) > 1:
        raise LogFormatError(
            f"{path}: columns of {min(sizes)} and {max(sizes)} rows; it is damaged, write it again"
        )
    return result


# The headers of pages say what Arrow unpacks, whatever the footer says. A page begins with a PageHeader of Thrift's compact
# protocol, whose fields 2 and 3 are the sizes of its unpacked and of its stored content in bytes. Reference:
# https://github.com/apache/parquet-format, parquet.thrift; Apache Thrift, compact protocol.

_UNPACKED, _STORED = 2, 3
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS: Final = (4, 5, 6)
_DEEPEST: Final = 8


def count_values(metadata: parquet.FileMetaData) -> int:
    """Values that the columns are said to have, of all row groups."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return sum(max(0, group.column(k).num_values) for group in groups for k in range(group.num_columns))


def unpacked_size(metadata: parquet.FileMetaData, content: bytes) -> int:
    """Bytes of all pages when they are unpacked.

    Args:
        metadata: of the file.
        content: bytes of the file.
    Raises:
        ValueError: a header of a page is damaged, or a page is outside of the file.
    """
    total = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for k in range(group.num_columns):
            column = group.column(k)
            start = column.data_page_offset
            if column.has_dictionary_page and 0 < (dictionary := column.dictionary_page_offset) < start:
                start = dictionary
            end = start + column.total_compressed_size
            if not 0 <= start <= end <= len(content):
                raise ValueError("a column is outside of the file")
            while start < end:
                start, unpacked = _page(content, start)
                total += unpacked
    return total


def _page(content: bytes, start: int) -> tuple[int, int]:
    """End of the page that starts there, and its unpacked size."""
    sizes: dict[int, int] = {}
    try:
        end = _struct(content, start, 0, sizes)
    except IndexError:
        raise ValueError("a header of a page is cut") from None
    if min(sizes.get(_UNPACKED, -1), sizes.get(_STORED, -1)) < 0:
        raise ValueError("a page has no size")
    return end + sizes[_STORED], sizes[_UNPACKED]


def _struct(content: bytes, at: int, depth: int, integers: dict[int, int]) -> int:
    """The end of a struct; its integers by field."""
    field = 0
    while (head := content[at]) != 0:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            field, at = _integer(content, at)
        if kind in _INTEGERS:
            integers[field], at = _integer(content, at)
        else:
            at = _skip(content, at, kind, depth + 1, is_field=True)
    return at + 1


def _skip(content: bytes, at: int, kind: int, depth: int, *, is_field: bool) -> int:
    """The end of a value."""
    if depth > _DEEPEST:
        raise ValueError("a header of a page is nested too deeply")
    if kind in (_TRUE, _FALSE):
        return at if is_field else at + 1
    if kind == _BYTE:
        return at + 1
    if kind in _INTEGERS:
        return _varint(content, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        size, at = _varint(content, at)
        return at + size
    if kind == _STRUCT:
        return _struct(content, at, depth, {})
    if kind in (_LIST, _SET):
        head = content[at]
        size, at = (head >> 4, at + 1) if head >> 4 < 15 else _varint(content, at + 1)
        kinds = [head & 15]
    elif kind == _MAP:
        size, at = _varint(content, at)
        head = content[at] if size else 0
        at, kinds = at + (size > 0), [head >> 4, head & 15]
    else:
        raise ValueError("a header of a page is damaged")
    for _ in range(size):
        for element in kinds:
            at = _skip(content, at, element, depth + 1, is_field=False)
            if at > len(content):
                raise IndexError
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """An unsigned integer, and its end."""
    byte, at = content[at], at + 1
    if byte < 128:  # most are that short
        return byte, at
    value = byte & 127
    for shift in range(7, 70, 7):
        byte, at = content[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a header of a page is damaged")


def _integer(content: bytes, at: int) -> tuple[int, int]:
    """A signed integer (zigzag), and its end."""
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at
