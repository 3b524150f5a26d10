"""JSON, TOML and small files that others may have written: read within bounds, every failure a ValueError or OSError."""

from __future__ import annotations

import errno
import json
import tomllib
from pathlib import Path
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is not valid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises tomllib.TOMLDecodeError if it is not valid or nested too deeply."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None


def read_at_most(path: Path, size: int) -> bytes:
    """The content of a file of at most `size` bytes. Raises OSError for a larger one, or if it cannot be read."""
    with path.open("rb") as file:
        content = file.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EFBIG, f"larger than {size / 1e6:.3g} MB")
    return content
