"""Completion of values in the shell: names of tables, one or several with commas, and airframes.

The shell completes file names where nothing else fits. A table in a module that takes time to import is named
"module:ATTRIBUTE", and imported only when such a value is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

Completion = Callable[[str], list[str]]
"""From the start of a value to the values that begin so."""


def one_of(names: Iterable[str] | str) -> Completion:
    """Completes one name. names: a table, or where it is."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in _table(names) if name.startswith(incomplete)]

    return complete


def list_of(names: Iterable[str] | str) -> Completion:
    """Completes the last of several names with commas between them. names: a table, or where it is."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        rest = [name for name in _table(names) if name not in before.split(",")]
        return [f"{before}{comma}{name}" for name in rest if name.startswith(last)]

    return complete


def shipped_airframe(incomplete: str) -> list[str]:
    """Completes the name of an airframe that comes with rotorid."""
    from rotorid.models.airframe.shipped_names import airframe_names

    return one_of(airframe_names())(incomplete)


def airframe(incomplete: str) -> list[str]:
    """Completes the name of an airframe that comes with rotorid, or a TOML file."""
    folder, slash, start = incomplete.rpartition("/")
    files: list[str] = []
    with suppress(OSError):
        place = Path(folder or slash or ".")
        files = sorted(f"{folder}{slash}{path.name}" for path in place.iterdir() if path.suffix == ".toml")
    return [
        *shipped_airframe(incomplete),
        *(name for name in files if name.startswith(f"{folder}{slash}{start}")),
    ]


def _table(names: Iterable[str] | str) -> Iterable[str]:
    if not isinstance(names, str):
        return names
    module, _, attribute = names.partition(":")
    return getattr(import_module(module), attribute)
