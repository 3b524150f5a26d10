"""Tables in text: flight tables as CSV, and any other CSV with a mapping. Anything else is refused here by what it is."""

from __future__ import annotations

import re
from typing import Final

from rotorid.errors import LogFormatError
from rotorid.logs.flight import Flight, split_column
from rotorid.logs.read import format_list
from rotorid.logs.reader_base import HEAD, LogFile
from rotorid.logs.tables.cells import read_header
from rotorid.logs.tables.mapped import read_mapped
from rotorid.logs.tables.table import read_table_csv

_OTHER_FILES: Final = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file; export it as CSV",
    b"FMT, 128": "an ArduPilot log as text; give the .BIN that it was made from",
}
_QUOTED: Final = re.compile(rb'"[^"]*"')
_TRUTH_COLUMNS: Final = frozenset(("t_log_s", "mass_kg", "mass", "wind_n", "wind_e"))


def read_text_table(file: LogFile) -> Flight:
    """The flight in a CSV. Raises LogError or LogFormatError for a file that is no table, SignalError for a wrong mapping."""
    names = _header_names(file)
    if file.mapping is not None:
        return read_mapped(file.path, file.content, file.mapping)
    if not any(split_column(name) for name in names):
        if _TRUTH_COLUMNS & set(names):
            raise LogFormatError(
                f"{file.path}: a table of truth, not a log; give the log here and this file as its truth"
            )
        raise LogFormatError(
            f"{file.path}: a table with none of the columns of a flight table; give a mapping (TOML) that "
            f"says what {', '.join(names)[:80]} are"
        )
    return read_table_csv(file.path, file.content)


def _header_names(file: LogFile) -> list[str]:
    """The column names of a table in text."""
    content, path = file.content, file.path
    for magic, description in _OTHER_FILES.items():
        if content.startswith(magic):
            raise LogFormatError(f"{path}: is {description}; rotorid reads {format_list()}")
    head = content[:HEAD]
    if b"\x00" in head or _is_undecodable(head):
        raise LogFormatError(
            f"{path}: unknown log format, or damaged at its start; rotorid reads {format_list()}"
        )
    header = read_header(path, content)
    rows = _QUOTED.sub(b"", content[header.skip : header.skip + HEAD]).splitlines()
    separators = max(_QUOTED.sub(b"", content[: header.skip]).rsplit(b"\n", 2)[-2:], key=len, default=b"")
    delimiter = next((d for d in (b",", b";", b"\t") if d in separators), None)
    if delimiter is None or not rows or rows[0].count(delimiter) != separators.count(delimiter):
        raise LogFormatError(f"{path}: is text, but neither a log nor a table; rotorid reads {format_list()}")
    return header.names


def _is_undecodable(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end < len(head) - 4
    return False
