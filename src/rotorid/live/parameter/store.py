"""The pilot's value of a parameter on disk, from before the first write until it is restored.

One file per vehicle and parameter, in `parameters` of rotorid's state folder. A session that was killed leaves its file, and
the next one recognises by it which value is the pilot's and which was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rotorid.cache import state_folder
from rotorid.logs.write import write_whole

_FOLDER: Final = "parameters"
_MAX_BYTES: Final = 100_000  # of a file that is read
_MAX_FILES: Final = 1000


@dataclasses.dataclass(frozen=True)
class StoredValue:
    """The pilot's value of a parameter that was written.

    parameter: its name. pilot: the pilot's value. written: all values that were written to the vehicle. uid: serial number of
    the autopilot, "" if unknown. system: MAVLink id. vehicle: in words. time: of the first write, ISO 8601, UTC.
    """

    parameter: str
    pilot: float
    written: tuple[float, ...]
    uid: str
    system: int
    vehicle: str
    time: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))

    def belongs_to(self, parameter: str, uid: str, system: int) -> bool:
        """Whether it is of this parameter and vehicle: by serial number; by system number if one has no serial number."""
        if parameter != self.parameter:
            return False
        return uid == self.uid if uid and self.uid else system == self.system

    @property
    def path(self) -> Path:
        """Its file."""
        vehicle = f"uid-{self.uid}" if self.uid else f"system-{self.system}"
        return folder() / f"{re.sub(r'[^A-Za-z0-9_-]', '_', f'{vehicle}-{self.parameter}')}.json"

    def save(self) -> None:
        """Write the file, and wait until it is on the disk. Raises OutputError."""
        write_whole(self.path, json.dumps(dataclasses.asdict(self), indent=1).encode(), sync=True)

    def remove(self) -> None:
        """Remove the file, as far as that is possible: without it the vehicle has the pilot's value."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def folder() -> Path:
    """The folder of the files."""
    return state_folder() / _FOLDER


def stored_values() -> list[StoredValue]:
    """All values that were not restored; files that cannot be read are left out."""
    return list(_read_all())


def find_stored(parameter: str, uid: str, system: int) -> StoredValue | None:
    """The stored value of a parameter of a vehicle, None if there is none; that with the same serial number is preferred."""
    found = [s for s in stored_values() if s.belongs_to(parameter, uid, system)]
    return max(found, key=lambda s: (s.uid == uid, s.time), default=None)


def _read_all() -> Iterator[StoredValue]:
    try:
        paths = sorted(folder().glob("*.json"))[:_MAX_FILES]
    except OSError:
        return
    for path in paths:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            if path.stat().st_size <= _MAX_BYTES:
                yield _parse(json.loads(path.read_text("utf-8")))


def _parse(content: Any) -> StoredValue:
    """A file's content as a value. Raises ValueError, TypeError or KeyError if it has another form."""
    written = tuple(float(w) for w in content["written"])
    numbers = (float(content["pilot"]), *written)
    if not all(math.isfinite(n) for n in numbers):
        raise ValueError("not finite")
    texts = [str(content[name]) for name in ("parameter", "uid", "vehicle", "time")]
    return StoredValue(texts[0], numbers[0], written, texts[1], int(content["system"]), texts[2], texts[3])
