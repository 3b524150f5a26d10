"""Settings of a mapping for logs other than tables: which vehicle, which topic.

[mavlink]                        # recordings
system = 2
[ros]                            # bags
definitions = "px4_msgs/msg"     # a folder of .msg files, where the bag has no definitions
logging = "crazyflies.yaml"      # a configuration of crazyswarm or crazyswarm2, which names the variables of log blocks
robot = "cf1"                    # the vehicle of a swarm: topics of the others are not read
[log_blocks]                     # bags; the variables of log blocks of Crazyflies, by topic
"/cf1/log1" = ["gyro.x", "gyro.y", "gyro.z"]
[topics]                         # bags; a topic for each signal
position = "/vicon/drone/odom"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rotorid.documents import parse_toml, read_text
from rotorid.errors import LogError, LogFormatError, SignalError
from rotorid.logs.flight import KINDS
from rotorid.logs.tables.table import close_matches

_KEYS: Final[Mapping[str, tuple[str, ...] | None]] = {
    "mavlink": ("system",),
    "ros": ("definitions", "logging", "robot"),
    "topics": tuple(KINDS),
    "log_blocks": None,
}
"""By table: its keys; None: any."""


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

    def lists(self, table: str) -> dict[str, tuple[str, ...]]:
        """The entries of a table, each a list of texts."""
        for key, value in self.tables.get(table, {}).items():
            if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
                raise SignalError(
                    f'{self.path}: [{table}] "{key}" must be a list of texts in quotes, not {value!r}'
                )
        return {key: tuple(value) for key, value in self.tables.get(table, {}).items()}


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
            like = f", with keys like {', '.join(keys[:3])}" if (keys := _KEYS[name]) else ""
            raise SignalError(f"{path}: [{name}] must be a table{like}")
        known = _KEYS[name]
        for key in entry:
            if known is not None and key not in known:
                raise SignalError(
                    f"{path}: [{name}] has an unknown key {key!r}{close_matches(key, list(known))}"
                )
    return Options(path, content)


def load_toml(path: Path) -> dict[str, Any]:
    """The content of a mapping."""
    try:
        return parse_toml(read_text(path))
    except OSError as error:
        raise LogError(f"{path}: the mapping cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LogFormatError(f"{path}: the mapping is no TOML: {error}") from None
