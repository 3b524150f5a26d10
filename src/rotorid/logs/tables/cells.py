"""Tables of numbers in text: CSV to columns of float64, an empty cell to NaN; a cell may hold a list of numbers."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError, SignalError

if TYPE_CHECKING:
    import pyarrow as pa

_EMPTY: Final = ["", "nan", "NaN", "NA", "null"]
MOST_COLUMNS: Final = 10_000
"""Columns of a table, at most."""
_MOST_IN_LIST: Final = 64  # numbers in a cell that is a list: components, or rotors


@dataclasses.dataclass(frozen=True)
class Cells:
    """columns: name -> values. comments: lines before the header, without #. notes: what was left out. lists: name -> values
    of the columns whose cells are lists, a row each."""

    columns: dict[str, np.ndarray]
    comments: list[str]
    notes: list[str]
    lists: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Header:
    """names of the columns; comments before; skip: bytes up to the first row; line: its number."""

    names: list[str]
    comments: list[str]
    skip: int
    line: int


def read_header(path: Path, buffer: bytes, delimiter: str = ",") -> Header:
    """The names in the first line of a CSV that is no comment. Raises LogFormatError for a line that is no header."""
    position, line, comments = 0, 0, []
    names: list[str] = []
    while position < len(buffer) and not names:
        stop = buffer.find(b"\n", position)
        stop = len(buffer) if stop < 0 else stop + 1
        text = buffer[position:stop].decode("utf-8-sig", "replace").strip()
        position, line = stop, line + 1
        if text.startswith("#"):
            comments.append(text[1:].strip())
        elif text:
            try:
                names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter))]
            except csv.Error as error:
                raise LogFormatError(f"{path}: its header is no line of a CSV ({error})") from None
            if len(names) > MOST_COLUMNS:
                raise LogFormatError(
                    f"{path}: {len(names)} columns; a table has at most {MOST_COLUMNS}, export those that are needed"
                )
    return Header(names, comments, position, line + 1)


def read_cells(
    path: Path,
    buffer: bytes,
    selected: Collection[str] | None = None,
    delimiter: str = ",",
    lists: Collection[str] = (),
) -> Cells:
    """The named columns of a CSV (all where None). lists: those of them whose cells are lists of numbers."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    header = read_header(path, buffer, delimiter)
    names = header.names
    if len(set(names)) < len(names):
        duplicate = next(name for name, count in Counter(names).items() if count > 1)
        raise SignalError(
            f"{path}: column {duplicate!r} stands twice in the header; give each column its own name"
        )
    selected = [n for n in names if selected is None or n in selected]
    notes: list[str] = []
    end = buffer.rfind(b"\n") + 1
    if end < len(buffer):
        notes.append("the last line has no end and may be cut; it was left out")
    body = _as_utf8(buffer[header.skip : end])
    if not body.strip():
        raise LogFormatError(f"{path}: has a header but no whole row; export the log again")
    ragged: list[Any] = []

    def note_odd_row(row: Any) -> str:
        ragged.append(row)
        return "skip"

    try:
        table = arrow_csv.read_csv(
            _arrow_reader(body),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, invalid_row_handler=note_odd_row, newlines_in_values=bool(lists)
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={n: pa.string() if n in lists else pa.float64() for n in names},
                include_columns=selected,
                null_values=_EMPTY,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        numbers = [n for n in selected if n not in lists]
        place = _first_bad_cell(body, header, numbers, delimiter)
        raise LogFormatError(f"{path}: {place or str(error).splitlines()[0]}") from None
    if ragged:
        first = ragged[0]
        notes.append(
            f"{len(ragged)} lines left out, they do not have {first.expected_columns} cells "
            f"(the first has {first.actual_columns})"
        )
    columns = {n: floats_of(table[n]) for n in selected if n not in lists}
    values = {n: numbers_of_lists(path, n, table[n].to_pylist()) for n in selected if n in lists}
    return Cells(columns, header.comments, notes, values)


def floats_of(column: pa.ChunkedArray) -> Float64[np.ndarray, " n"]:
    """The numbers of a column of float64, NaN where it has none.

    From Arrow's buffers: its conversion imports pandas if that is installed, which takes longer than to read most logs.
    """
    found = []
    for chunk in column.chunks:
        valid, numbers = chunk.buffers()
        place = slice(chunk.offset, chunk.offset + len(chunk))
        values = np.frombuffer(numbers or b"", np.float64)[place]
        if chunk.null_count:
            is_valid = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little").view(bool)[place]
            found.append(np.where(is_valid, values, np.nan))
        else:
            found.append(values.copy())
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0), *found])


def numbers_of_lists(path: Path, name: str, cells: Sequence[Any]) -> Float64[np.ndarray, "n k"]:
    """The numbers of cells that are lists: "[0.1, 0.2]", "(0.1, 0.2)", "0.1 0.2", or Python's. An empty one is a row of NaN.

    Raises:
        LogFormatError: a cell has something else than numbers, or not as many as the others.
    """
    rows: list[list[float] | None] = []
    width = 0
    for number, cell in enumerate(cells, 1):
        values = _list_values(cell)
        if isinstance(values, str):
            raise LogFormatError(
                f"{path}: row {number}, column {name!r}: {values[:40]!r} is not a number in a list of numbers; "
                "leave a cell empty where missing"
            )
        width = width or len(values or ())
        if width > _MOST_IN_LIST:
            raise LogFormatError(
                f"{path}: row {number}, column {name!r}: a list of {width} numbers, at most {_MOST_IN_LIST} are read"
            )
        if values is not None and len(values) != width:
            raise LogFormatError(
                f"{path}: row {number}, column {name!r}: a list of {len(values)} numbers, where the first has {width}"
            )
        rows.append(values)
    missing = [float("nan")] * width
    return np.array([missing if row is None else row for row in rows], np.float64).reshape(len(rows), width)


def _list_values(cell: Any) -> list[float] | str | None:
    """The numbers of a cell; None for an empty one; what is not a number in it."""
    if cell is None:
        return None
    if isinstance(cell, str):
        text = cell.strip().removeprefix("array(").strip("[]() \t\n")
        cell = text.replace(",", " ").replace(";", " ").split()
    values: list[float] = []
    for part in cell:
        if part is None or part in _EMPTY:
            values.append(float("nan"))
            continue
        try:
            values.append(float(part))
        except (TypeError, ValueError):
            return str(part)
    return values or None


def _first_bad_cell(body: bytes, header: Header, selected: list[str], delimiter: str) -> str:
    """Where the first cell is that is no number, in words; "" where all are numbers."""
    rows = csv.reader(io.StringIO(body.decode("utf-8", "replace"), newline=""), delimiter=delimiter)
    try:
        for line, row in enumerate(rows, header.line):
            for name, cell in zip(header.names, row, strict=False):
                if name in selected and not _is_number(cell):
                    place = f"line {line}, column {name!r}"
                    return f"{place}: {cell[:40]!r} is not a number; leave a cell empty where missing"
    except csv.Error as error:
        return f"no table that can be read: {error}"
    return ""


def _is_number(cell: str) -> bool:
    if cell.strip() in _EMPTY:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _as_utf8(content: bytes) -> bytes:
    """The content with a replacement character for what is not UTF-8: Arrow prints a traceback where it reports such a row."""
    return content if content.isascii() else content.decode("utf-8", "replace").encode()


def _arrow_reader(content: bytes) -> Any:
    """A reader of a copy in Arrow's memory: a thread of Arrow that releases Python's while Python ends aborts the process."""
    import pyarrow as pa

    copy = pa.BufferOutputStream()
    copy.write(content)
    return pa.BufferReader(copy.getvalue())
