"""The files of a result: those that it was made from, its JSON, and how its folder is written, whole or not at all.

The same input gives the same bytes: no time of day, sorted keys.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rotorid.errors import OutputError, RotoridError
from rotorid.findings import Severity
from rotorid.uninterrupted import uninterrupted

ESTIMATES, SUMMARY, REPORT = "estimates.parquet", "summary.json", "report.html"
ESTIMATES_MCAP = "estimates.mcap"


@dataclasses.dataclass(frozen=True)
class Input:
    """A file that a result was made from.

    role: "log", "airframe", "truth", "mapping" or "model". name: of the file. sha256: of its content. bytes: its size.
    """

    role: str
    name: str
    sha256: str
    bytes: int


def file_input(role: str, path: Path) -> Input:
    """Describe an input file by its name and hash.

    Args:
        role: what the result uses it as, see `Input`.
        path: a file, or a folder (a ROS bag), whose files are hashed in the order of their names.
    Raises:
        RotoridError: the file cannot be read.
    """
    try:
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        content = b"".join(p.read_bytes() for p in files)
    except OSError as error:
        raise RotoridError(f"{path}: cannot be read ({error.strerror})") from None
    return Input(role, path.name, hashlib.sha256(content).hexdigest(), len(content))


_PLAIN: Final = frozenset((str, int, bool))


def to_plain(value: Any) -> Any:
    """Convert a value to what JSON can hold: dataclasses to objects, sequences to lists, nonfinite numbers
    to null, severities to words."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (dict, Mapping)):  # dict first, since most are
        return {str(k): to_plain(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    return value.word if isinstance(value, Severity) else value


def to_json(value: Any) -> str:
    """Write a value as a JSON document with sorted keys, see `to_plain`."""
    return json.dumps(to_plain(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def check_folder(folder: str | Path) -> None:
    """Check that results can be written into a folder, before any work is done.

    Raises:
        OutputError: the folder or one that it would be in is a file, or there is no permission to write.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: this is a file; name a folder for the results")
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not place.is_dir():
        raise OutputError(f"{folder}: {place} is a file; name another folder for the results")
    if not os.access(place, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: no permission to write in {place}; name another folder with -o")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, all of them or none.

    Args:
        folder: created where it does not exist, with those that it is in.
        files: contents by name. A name with slashes is in sub-folders; the first of these replaces an earlier one with its
            files. An `estimates.mcap` of an earlier run is removed if new estimates come without one.
    Raises:
        OutputError: the files cannot be written; the folder is then unchanged.
    """
    check_folder(folder)
    with uninterrupted(), _translated_errors(folder), _parents(folder), _temporary_folder(folder) as partial:
        for name, content in files.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(content)
        if not folder.is_dir():
            os.replace(partial, folder)
            return
        for name in sorted({name.partition("/")[0] for name in files}):
            if (partial / name).is_dir() and (folder / name).exists():
                os.replace(folder / name, partial / f"{name}.replaced")
            os.replace(partial / name, folder / name)
        if ESTIMATES in files and ESTIMATES_MCAP not in files:
            (folder / ESTIMATES_MCAP).unlink(missing_ok=True)


@contextlib.contextmanager
def _parents(folder: Path) -> Iterator[None]:
    """The folders that a folder is in, removed again after a failure where they did not exist."""
    missing = [p for p in folder.absolute().parents if not p.exists()]
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


@contextlib.contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder next to another one, or in it where its parent cannot be written."""
    parent = folder.absolute().parent
    place = parent if os.access(parent, os.W_OK | os.X_OK) else folder
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=place))
    try:
        partial.chmod(0o777 & ~_umask())
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _translated_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        raise OutputError(
            f"{folder}: the results could not be written, {reason}; nothing was changed"
        ) from error
