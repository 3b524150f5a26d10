"""Settings of a mapping for logs other than tables: which vehicle, which topic.

[mavlink]                        # recordings
system = 2
[ros]                            # bags
definitions = "px4_msgs/msg"     # a folder of .msg files, where the bag has no definitions
[topics]                         # bags; a topic for each signal
position = "/vicon/drone/odom"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rotorid.errors import LogError, LogFormatError, SignalError
from rotorid.logs.flight import KINDS
from rotorid.logs.tables.table import close_matches

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "mavlink": ("system",),
    "ros": ("definitions",),
    "topics": tuple(KINDS),
}


class Options:
    """The content of a mapping file."""

    def __init__(self, path: Path, tables: Mapping[str, Mapping[str, Any]]):
        self.path, self.tables = path, tables

    def integer(self, table: str, key: str) -> int | None:
        """A whole number; None where it is not given."""
        value = self.tables.get(table, {}).get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise SignalError(f"{self.path}: [{table}] {key} must be a whole number, not {value!r}")
        return value

    def text(self, table: str, key: str) -> str | None:
        """A text; None where it is not given."""
        value = self.tables.get(table, {}).get(key)
        if value is not None and not isinstance(value, str):
            raise SignalError(f"{self.path}: [{table}] {key} must be a text in quotes, not {value!r}")
        return value


def read_options(path: Path, tables: tuple[str, ...]) -> Options:
    """The mapping in a file. tables: those that apply to the format of the log."""
    if not tables:
        raise SignalError(f"{path}: this log format takes no mapping; leave it out")
    content = load_toml(path)
    for name, entry in content.items():
        if name not in tables:
            names = ", ".join(f"[{t}]" for t in tables)
            raise SignalError(f"{path}: [{name}] does not apply to this log format, which takes {names}")
        if not isinstance(entry, dict):
            raise SignalError(
                f"{path}: [{name}] must be a table, with keys like {', '.join(_KEYS[name][:3])}"
            )
        for key in entry:
            if key not in _KEYS[name]:
                raise SignalError(
                    f"{path}: [{name}] has an unknown key {key!r}{close_matches(key, list(_KEYS[name]))}"
                )
    return Options(path, content)


def load_toml(path: Path) -> dict[str, Any]:
    """The content of a mapping."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise LogError(f"{path}: the mapping cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LogFormatError(f"{path}: the mapping is no TOML: {error}") from None
