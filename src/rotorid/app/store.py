"""The folder of the app: logs, airframes and results, with a record of each.

    logs/NAME/LOG                 a log as it was dropped, and its record, record.json
    logs/NAME/inspect/            what `rotorid inspect -o` leaves
    logs/NAME/airframe.toml       what `rotorid airframe -o` leaves
    airframes/NAME.toml           an airframe that was dropped
    results/N-COMMAND-NAME/       what a command leaves
    results/N-COMMAND-NAME.json   its record

Names of files are made of letters, digits and `._+-` only. The folder may come from others: entries with other names, symbolic
links and records that are not valid are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rotorid.documents import parse_json, read_at_most
from rotorid.errors import OutputError
from rotorid.logs.write import write_whole

MAX_LOG: Final = 2 * 1024**3  # bytes
MAX_AIRFRAME: Final = 1024**2

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")
_RESULT: Final = re.compile(r"([0-9]{1,18})-[A-Za-z0-9._+-]+")
_MOST_RECORD: Final = 100_000_000  # bytes
_LONGEST: Final = 80
_RECORD: Final = "record.json"
_OWN_NAMES: Final = (_RECORD, "inspect", "airframe.toml")  # of the folder of a log


def safe_name(name: str) -> str:
    """The name of a file without folders, odd characters and leading dots; "log" where nothing remains."""
    last = _UNSAFE.sub("_", re.split(r"[/\\]", name)[-1]).lstrip(".-_")
    stem, dot, ending = last.rpartition(".")
    if not dot:
        return last[:_LONGEST] or "log"
    return f"{stem[:_LONGEST]}.{ending[:10]}" if stem else ending[:10] or "log"


class Store:
    """The folder. Raises OutputError where it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        parts = [self.folder / part for part in ("logs", "airframes", "results")]
        try:
            for part in parts:
                part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror}; name another folder with -o") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: no permission to write; name another folder with -o")
        if link := next((part for part in parts if part.is_symlink()), None):
            raise OutputError(
                f"{link}: is a symbolic link, which is not followed; name another folder with -o"
            )
        for part in self.folder.glob(".upload-*"):
            with contextlib.suppress(OSError):
                part.unlink()

    @contextlib.contextmanager
    def upload(self) -> Iterator[Path]:
        """A file for an upload, which is removed at the end where it was not moved."""
        handle, name = tempfile.mkstemp(prefix=".upload-", dir=self.folder)
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def add_log(self, file: Path, name: str) -> str:
        """Keep an uploaded log. Returns its id, the name of its folder."""
        name = safe_name(name)
        if name.lower() in _OWN_NAMES:
            name = f"log-{name}"
        folder = _new(self.folder / "logs", name.partition(".")[0] or "log")
        folder.mkdir()
        os.replace(file, folder / name)
        (folder / name).chmod(0o644)
        return folder.name

    def add_airframe(self, file: Path, name: str) -> str:
        """Keep an uploaded airframe. Returns its id, the name of its file without .toml."""
        path = _new(self.folder / "airframes", Path(safe_name(name)).stem, ".toml")
        os.replace(file, path)
        path.chmod(0o644)
        return path.stem

    def airframe(self, name: str) -> Path:
        """The file of an airframe that was dropped."""
        return self.folder / "airframes" / f"{name}.toml"

    def airframes(self) -> list[str]:
        """The ids of the airframes that were dropped."""
        return sorted(path.stem for path in (self.folder / "airframes").glob("*.toml") if _is_own_file(path))

    def log_folder(self, log: str) -> Path:
        """The folder of a log."""
        return self.folder / "logs" / log

    def log_file(self, log: str) -> Path:
        """A log."""
        folder = self.log_folder(log)
        return next(
            p for p in folder.iterdir() if _is_own_file(p) and p.name not in (_RECORD, "airframe.toml")
        )

    def logs(self) -> dict[str, dict[str, Any]]:
        """The records of the logs by id; empty for one without a record."""
        found = {}
        for folder in sorted((self.folder / "logs").iterdir()):
            if _UNSAFE.search(folder.name) or any(p.is_symlink() for p in (folder, folder / "inspect")):
                continue
            with contextlib.suppress(OSError, StopIteration):
                self.log_file(folder.name)
                found[folder.name] = _read(folder / _RECORD)
        return found

    def save_log(self, log: str, record: dict[str, Any]) -> None:
        """Write the record of a log."""
        write_whole(self.log_folder(log) / _RECORD, json.dumps(record).encode())

    def remove_log(self, log: str) -> None:
        """Remove a log and what was read from it."""
        shutil.rmtree(self.log_folder(log))

    def new_result(self, command: str, log: str) -> str:
        """The id of a new result."""
        entries = (_RESULT.match(path.name) for path in (self.folder / "results").iterdir())
        return f"{max((int(e[1]) for e in entries if e), default=0) + 1}-{command}-{log}"

    def result_folder(self, job: str) -> Path:
        """The folder of a result."""
        return self.folder / "results" / job

    def results(self) -> dict[str, dict[str, Any]]:
        """The records of the jobs by id, in order."""
        records = {}
        for path in (self.folder / "results").glob("*.json"):
            entry = _RESULT.fullmatch(path.stem)
            if entry and not path.with_suffix("").is_symlink():
                records[int(entry[1]), path.stem] = _read(path)
        return {name: record for (_, name), record in sorted(records.items())}

    def save_result(self, job: str, record: dict[str, Any]) -> None:
        """Write the record of a job."""
        write_whole(self.folder / "results" / f"{job}.json", json.dumps(record).encode())

    def remove_result(self, job: str) -> None:
        """Remove the files and the record of a job."""
        shutil.rmtree(self.result_folder(job), ignore_errors=True)
        (self.folder / "results" / f"{job}.json").unlink(missing_ok=True)


def files_of(folder: Path) -> dict[str, int]:
    """The files of a folder, sizes in bytes by name; empty where it does not exist."""
    if not folder.is_dir():
        return {}
    paths = sorted(p for p in folder.iterdir() if p.is_file() and not p.is_symlink())
    return {p.name: p.stat().st_size for p in paths}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that a command left; empty where it cannot be read."""
    return _read(path)


def _read(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty where it has none, or one that cannot be written again."""
    if not _is_own_file(path):
        return {}
    try:
        content = parse_json(read_at_most(path, _MOST_RECORD))
        json.dumps(content, allow_nan=False, ensure_ascii=False).encode()
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_own_file(path: Path) -> bool:
    """Whether a path is a file with a plain name, and no symbolic link."""
    return not _UNSAFE.search(path.name) and path.is_file() and not path.is_symlink()


def _new(parent: Path, stem: str, ending: str = "") -> Path:
    """A path in a folder that does not exist yet: the stem, else the stem with a number."""
    path, number = parent / f"{stem}{ending}", 1
    while path.exists():
        number += 1
        path = parent / f"{stem}-{number}{ending}"
    return path
