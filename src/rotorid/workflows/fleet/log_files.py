"""Search for logs in folders, and the file of the records of a fleet.

A file is a log by its first bytes or by its suffix, so that a damaged log is reported and not skipped; a CSV file by its
header, or if there is a mapping; an archive by the files in it, a damaged one by the suffix before that of the archive
(`flight.ulg.gz`). A folder with a ROS 2 bag is one log. A folder with results of rotorid is skipped.

`progress.jsonl` has a line for each analysed flight, written at once. An incomplete line after an interruption is ignored; of
two lines of one flight the later one counts.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from rotorid.errors import LogError, LogFormatError, OutputError
from rotorid.logs.archives import ARCHIVES, is_archive, packed_files
from rotorid.logs.flight import split_column
from rotorid.logs.read import FORMATS, installed_formats, is_tlog
from rotorid.logs.reader_base import HEAD, LogFile
from rotorid.logs.tables.cells import read_header
from rotorid.logs.write import write_whole
from rotorid.results.files import REPORT, SUMMARY

PROGRESS: Final = "progress.jsonl"
"""File of the records, in the folder of the results."""

_FIRST_BYTES: Final = (b"ULog", b"#ROSBAG V2.0", b"\x89MCAP", b"PAR1", b"H Product:Blackbox")
_TRUTH_COLUMNS: Final = frozenset(("t_log_s", "mass_kg"))
_GLOB: Final = re.compile(r"[*?\[]")


class LogSearch(NamedTuple):
    """Result of a search. logs: paths by name, sorted. other_files: number of files that are not logs."""

    logs: dict[str, Path]
    other_files: int


def find_logs(sources: Iterable[str | Path], is_any_csv: bool = False) -> LogSearch:
    """Find the logs of folders, files and patterns like `flights/**/*.ulg`.

    The name of a log is its path relative to the folder, or to the part of the pattern without wildcards.

    Args:
        sources: folders, files and patterns.
        is_any_csv: whether any CSV file may be a log, since there is a mapping.
    Raises:
        LogError: there is no log.
    """
    logs: dict[str, Path] = {}
    other_files = 0
    for source in map(str, sources):
        root, paths, is_single_file = _files(source)
        for path in paths:
            if is_single_file or is_log(path, is_any_csv):
                name = path.relative_to(root).as_posix()
                logs[path.as_posix() if logs.get(name, path) != path else name] = path
            else:
                other_files += 1
    if not logs:
        raise LogError(
            f"{', '.join(map(str, sources))}: no log found in {other_files} files; give a folder with logs"
        )
    return LogSearch(dict(sorted(logs.items(), key=lambda entry: natural_key(entry[0]))), other_files)


def _files(source: str) -> tuple[Path, list[Path], bool]:
    """The root of the names, the files, and whether the source is a single file."""
    path = Path(source)
    if path.is_dir():
        return path, list(_walk(path)), False
    if path.exists():
        return path.parent, [path], True
    if _GLOB.search(source):
        depth = next(i for i, part in enumerate(path.parts) if _GLOB.search(part))
        root = Path(*path.parts[:depth])
        matches = [Path(p) for p in glob.glob(source, recursive=True)]
        return root, [p for p in matches if p.is_file() or _is_bag(p)], False
    raise LogError(f"{source}: there is no such file or folder")


def _walk(folder: Path) -> Iterable[Path]:
    if _is_bag(folder):
        yield folder
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise LogError(f"{folder}: cannot be read: {error.strerror or error}") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if not _is_result(entry):
                yield from _walk(entry)
        elif entry.is_file() or entry.is_symlink():  # a broken link is reported as a failed log
            yield entry


def _is_result(folder: Path) -> bool:
    """Whether the folder holds results of a command, or of an interrupted fleet."""
    return (folder / PROGRESS).is_file() or all((folder / name).is_file() for name in (SUMMARY, REPORT))


def _is_bag(folder: Path) -> bool:
    return (folder / "metadata.yaml").is_file()


def is_log(path: Path, is_any_csv: bool = False) -> bool:
    """Whether a file is a log, intact or damaged. is_any_csv: whether any CSV file may be a log."""
    suffixes = {suffix for entry in (*FORMATS, *installed_formats()) for suffix in entry.suffixes}
    if path.is_dir() or path.suffix.lower() in suffixes:
        return True
    if path.suffix.lower() in ARCHIVES and Path(path.stem).suffix.lower() in suffixes:
        return True
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    if is_archive(head):
        return any(
            Path(name).suffix.lower() in suffixes or _is_log_content(name, first, is_any_csv)
            for name, first in packed_files(path)
        )
    return _is_log_content(path.name, head, is_any_csv)


def _is_log_content(name: str, head: bytes, is_any_csv: bool) -> bool:
    """Whether a file is a log by its first bytes; only one that is called .csv may be a CSV."""
    if head.startswith(_FIRST_BYTES) or is_tlog(head) or b"\xa3\x95\x80" in head[:4096]:
        return True
    if len(head) > 8 and head[0] == 0xBC and head[1:3] in (b"\1\0", b"\2\0"):
        return True
    if any(entry.recognise(LogFile(Path(name), None, head)) for entry in installed_formats()):
        return True
    if not name.lower().endswith(".csv") or b"\0" in head:
        return False
    try:
        names = read_header(Path(name), head).names
    except LogFormatError:
        return False
    return any(split_column(name) for name in names) or (is_any_csv and not _TRUTH_COLUMNS & set(names))


def natural_key(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that orders log2 before log10."""
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", name) if p)


def record_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of the file of records."""
    return json.dumps(record, sort_keys=True, allow_nan=False).encode() + b"\n"


class RecordFile:
    """The records of a folder by flight name; `add` writes a record at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS
        self.records: dict[str, dict[str, Any]] = {}
        try:
            folder.mkdir(exist_ok=True)
            lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
            for line in lines:
                self._read(line)
            self._compact()
            self._file = self.path.open("ab")
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be used: {error.strerror or error}") from None

    def _read(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            self.records[record["flight"]] = record
        except (ValueError, KeyError, TypeError):
            return  # an incomplete or invalid line: the flight is analysed again

    def _compact(self) -> None:
        write_whole(self.path, b"".join(record_line(record) for record in self.records.values()))

    def add(self, line: bytes) -> None:
        """Write a record at once. line: as of `record_line`."""
        record = json.loads(line)
        self.records[record["flight"]] = record
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self.path}: could not be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Flush all records to disk."""
        os.fsync(self._file.fileno())
        self._file.close()
