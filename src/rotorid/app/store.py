"""The folder of the app: logs, airframes and results, with a record of each.

    logs/NAME/LOG                 a log as it was dropped, and its record, record.json
    logs/NAME/inspect/            what `rotorid inspect -o` leaves
    logs/NAME/airframe.toml       what `rotorid airframe -o` leaves
    airframes/NAME.toml           an airframe that was dropped
    results/N-COMMAND-NAME/       what a command leaves
    results/N-COMMAND-NAME.json   its record

Names of files are made of letters, digits and `._+-` only.
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

from rotorid.errors import OutputError
from rotorid.logs.write import write_whole

MAX_LOG: Final = 2 * 1024**3  # bytes
MAX_AIRFRAME: Final = 1024**2

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")
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
        try:
            for part in ("logs", "airframes", "results"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror}; name another folder with -o") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: no permission to write; name another folder with -o")
        for part in self.folder.rglob(".upload-*"):
            part.unlink(missing_ok=True)

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
        return sorted(path.stem for path in (self.folder / "airframes").glob("*.toml"))

    def log_folder(self, log: str) -> Path:
        """The folder of a log."""
        return self.folder / "logs" / log

    def log_file(self, log: str) -> Path:
        """A log."""
        folder = self.log_folder(log)
        return next(p for p in folder.iterdir() if p.is_file() and p.name not in (_RECORD, "airframe.toml"))

    def logs(self) -> dict[str, dict[str, Any]]:
        """The records of the logs by id; empty for one without a record."""
        found = {}
        for folder in sorted((self.folder / "logs").iterdir()):
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
        numbers = [int(p.name.partition("-")[0]) for p in (self.folder / "results").glob("[0-9]*-*")]
        return f"{max(numbers, default=0) + 1}-{command}-{log}"

    def result_folder(self, job: str) -> Path:
        """The folder of a result."""
        return self.folder / "results" / job

    def results(self) -> dict[str, dict[str, Any]]:
        """The records of the jobs by id, in order."""
        records = {p.stem: _read(p) for p in (self.folder / "results").glob("[0-9]*-*.json")}
        return dict(sorted(records.items(), key=lambda item: int(item[0].partition("-")[0])))

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
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _new(parent: Path, stem: str, ending: str = "") -> Path:
    """A path in a folder that does not exist yet: the stem, else the stem with a number."""
    path, number = parent / f"{stem}{ending}", 1
    while path.exists():
        number += 1
        path = parent / f"{stem}-{number}{ending}"
    return path
