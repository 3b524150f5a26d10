"""A log file as readers take it: its path, its first bytes, its content, and the mapping that was given with it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rotorid.errors import LogError, LogFormatError

if TYPE_CHECKING:
    from rotorid.logs.options import Options

HEAD: Final = 65536
"""Bytes of `LogFile.head`."""


class LogFile:
    """A file, or the folder of a ROS bag, that `read` was given. It is read once, and only as far as it is needed.

    path: of the file. mapping: of the TOML file beside it, None without one.
    """

    def __init__(self, path: Path, mapping: Path | None = None) -> None:
        self.path = path
        self.mapping = mapping

    @functools.cached_property
    def content(self) -> bytes:
        """All bytes. Raises LogError or LogFormatError where there are none."""
        return read_bytes(self.path)

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes; none of a folder, or of a file that cannot be opened."""
        if not self.path.is_file():  # a pipe can be read only once
            return b"" if self.path.is_dir() or not self.path.exists() else self.content[:HEAD]
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD)
        except OSError:
            return b""

    def options(self, *tables: str) -> Options | None:
        """The mapping's settings for a log that is no table. tables: those that it may have.

        Raises SignalError, LogError or LogFormatError for a mapping that does not fit.
        """
        if self.mapping is None:
            return None
        from rotorid.logs.options import read_options

        return read_options(self.mapping, tables)

    def refuse_mapping(self) -> None:
        """Raise LogFormatError if a mapping was given."""
        if self.mapping is not None:
            raise LogFormatError(f"{self.path}: a log that needs no mapping; leave the mapping out")


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        LogError: it cannot be read.
        LogFormatError: it is empty.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise LogError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise LogError(f"{path}: is a folder; name one log file in it") from None
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not content:
        raise LogFormatError(f"{path}: is empty; fetch it again from the vehicle")
    return content
