"""JSON, TOML and small files that others may have written: read within bounds, every failure a ValueError or OSError."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

MOST_TEXT: Final = 1_000_000
"""Bytes of a small file that is read as text, and characters of TOML, at most."""

_DEEP_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:"(?:[^"\\\n]|\\.){0,200}"|'[^'\n]{0,200}'|[\w-]+)[ \t]*\.[ \t]*){20}"""
)
"""A key of more parts than any file needs; reading it takes a time by the square of their number."""

_MOST_INTEGER: Final = 1 << 63


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is not valid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises tomllib.TOMLDecodeError if it is not valid, too long or nested too deeply, or has a
    whole number of more than 64 bits."""
    if len(text) > MOST_TEXT:
        raise tomllib.TOMLDecodeError(f"more than {MOST_TEXT} characters")
    if _DEEP_KEY.search(text):
        raise tomllib.TOMLDecodeError("nested too deeply")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # a number of thousands of digits, or a date that does not exist
        raise tomllib.TOMLDecodeError(str(error)) from None
    entries: list[Any] = [table]
    while entries:
        entry = entries.pop()
        if isinstance(entry, dict):
            entries += entry.values()
        elif isinstance(entry, list):
            entries += entry
        elif isinstance(entry, int) and not -_MOST_INTEGER <= entry < _MOST_INTEGER:
            raise tomllib.TOMLDecodeError("a whole number of more than 64 bits")
    return table


def read_text(path: Path) -> str:
    """The text of a small file, in UTF-8. Raises OSError if it is too large or cannot be read, and UnicodeDecodeError."""
    return read_at_most(path, MOST_TEXT).decode("utf-8").replace("\r\n", "\n")


def read_at_most(path: Path, size: int) -> bytes:
    """The content of a file of at most `size` bytes. Raises OSError for a larger one, or if it cannot be read."""
    with path.open("rb") as file:
        content = file.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EFBIG, f"larger than {size / 1e6:.3g} MB")
    return content


def file_sha256(path: Path) -> str:
    """SHA-256 of a file of any size, hexadecimal. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
