"""Search for logs in folders, and the file of records of a fleet.

A file is a log by its first bytes or by its suffix, so that a damaged log is reported and not skipped; a CSV file by its
header, or if there is a mapping. A folder with a ROS 2 bag is one log. A folder with results of rotorid is skipped.

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
from rotorid.logs.flight import split_column
from rotorid.logs.read import FORMATS, is_tlog
from rotorid.logs.tables.cells import read_header
from rotorid.logs.write import write_whole
from rotorid.results.files import REPORT, SUMMARY

PROGRESS: Final = "progress.jsonl"
"""File of the records, in the folder of the results."""

_SUFFIXES: Final = frozenset(suffix for entry in FORMATS for suffix in entry.suffixes)
_STARTS: Final = (b"ULog", b"#ROSBAG V2.0", b"\x89MCAP", b"PAR1")
_TRUTH: Final = frozenset(("t_log_s", "mass_kg"))
_GLOB: Final = re.compile(r"[*?\[]")


class Found(NamedTuple):
    """Logs by name, sorted, and the number of other files."""

    logs: dict[str, Path]
    others: int


def find_logs(sources: Iterable[str | Path], mapped: bool = False) -> Found:
    """Find the logs of folders, files and patterns like `flights/**/*.ulg`. mapped: whether any CSV file may be a log.

    The name of a log is its path relative to the folder, or to the part of the pattern without wildcards. Raises LogError if
    there is none.
    """
    logs: dict[str, Path] = {}
    others = 0
    for source in map(str, sources):
        root, paths, asked = _files(source)
        for path in paths:
            if asked or is_log(path, mapped):
                name = path.relative_to(root).as_posix()
                logs[path.as_posix() if logs.get(name, path) != path else name] = path
            else:
                others += 1
    if not logs:
        raise LogError(
            f"{', '.join(map(str, sources))}: no log found in {others} files; give a folder with logs"
        )
    return Found(dict(sorted(logs.items(), key=lambda entry: natural(entry[0]))), others)


def _files(source: str) -> tuple[Path, list[Path], bool]:
    """The root of the names, the files, and whether the source is a single file."""
    path = Path(source)
    if path.is_dir():
        return path, list(_walk(path)), False
    if path.exists():
        return path.parent, [path], True
    if _GLOB.search(source):
        plain = next(i for i, part in enumerate(path.parts) if _GLOB.search(part))
        fixed = Path(*path.parts[:plain])
        found = [Path(p) for p in glob.glob(source, recursive=True)]
        return fixed, [p for p in found if p.is_file() or _is_bag(p)], False
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


def is_log(path: Path, mapped: bool = False) -> bool:
    """Whether a file is a log, intact or damaged. mapped: whether any CSV file may be a log."""
    if path.is_dir() or path.suffix.lower() in _SUFFIXES:
        return True
    try:
        with path.open("rb") as file:
            head = file.read(65536)
    except OSError:
        return False
    if head.startswith(_STARTS) or is_tlog(head) or b"\xa3\x95\x80" in head[:4096]:
        return True
    if len(head) > 8 and head[0] == 0xBC and head[1:3] in (b"\1\0", b"\2\0"):
        return True
    if path.suffix.lower() != ".csv" or b"\0" in head:
        return False
    try:
        names = read_header(head).names
    except LogFormatError:
        return False
    return any(split_column(name) for name in names) or (mapped and not _TRUTH & set(names))


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that orders log2 before log10."""
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", name) if p)


class ProgressFile:
    """The records of a folder by flight name; `add` writes a record at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS
        self.records: dict[str, dict[str, Any]] = {}
        try:
            folder.mkdir(exist_ok=True)
            lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
            for line in lines:
                self._take(line)
            self._compact()
            self._file = self.path.open("ab")
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be used: {error.strerror or error}") from None

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            self.records[record["flight"]] = record
        except (ValueError, KeyError, TypeError):
            return  # incomplete or foreign line: the flight is analysed again

    def _compact(self) -> None:
        write_whole(self.path, b"".join(_line(record) for record in self.records.values()))

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record at once."""
        self.records[record["flight"]] = dict(record)
        try:
            self._file.write(_line(record))
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self.path}: could not be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Flush all records to disk."""
        os.fsync(self._file.fileno())
        self._file.close()


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, allow_nan=False).encode() + b"\n"
