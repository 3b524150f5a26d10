"""Log formats of other packages, by entry points of the group `rotorid.log_formats`; each is a `LogFormat`.

They are loaded when a file is of none of the formats of rotorid but CSV. What fails in a package is one line that names it, and
leaves the other formats as they are.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import sys
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from rotorid.errors import LogFormatError, RotoridError
from rotorid.logs.flight import Flight
from rotorid.logs.reader_base import LogFile, LogFormat

GROUP: Final = "rotorid.log_formats"
"""Group of the entry points."""

_LOGGER: Final = logging.getLogger("rotorid")


def plugin_formats(taken: Collection[str]) -> tuple[LogFormat, ...]:
    """The log formats of installed packages, in the order of their names; those that cannot be loaded are named once by a
    warning of the logger "rotorid".

    Args:
        taken: values of `Flight.format` of other formats, which a package cannot have.
    """
    return _plugin_formats(tuple(sys.path), frozenset(taken))


@functools.cache
def _plugin_formats(_path: tuple[str, ...], taken: frozenset[str]) -> tuple[LogFormat, ...]:
    """_path: of the installed packages; they are searched again where it has changed."""
    formats: list[LogFormat] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        package = _package(point)
        try:
            log_format = _loaded(point, taken | {name for known in formats for name in known.names})
        except Exception as error:  # whatever the package raises
            _LOGGER.warning(
                "%s: its log format %r is not used: %s; update or uninstall the package",
                package,
                point.name,
                _one_line(error),
            )
            continue
        formats.append(_guarded(log_format, package))
    return tuple(formats)


def _loaded(point: EntryPoint, taken: Collection[str]) -> LogFormat:
    log_format = point.load()
    if not isinstance(log_format, LogFormat):
        raise TypeError(f"{point.value} is a {type(log_format).__name__}, not a rotorid.logs.LogFormat")
    if not log_format.names:
        raise ValueError("it has no names")
    if repeated := sorted(set(log_format.names) & set(taken)):
        raise ValueError(f"another format is named {repeated[0]!r} too")
    return log_format


def _guarded(log_format: LogFormat, package: str) -> LogFormat:
    """The format; an exception in it is a warning, or an error of the file, that names the package."""

    def recognise(file: LogFile) -> bool:
        try:
            return bool(log_format.recognise(file))
        except Exception as error:  # whatever the package raises
            _LOGGER.warning(
                "%s: %s of %s cannot examine it: %s", file.path, log_format.label, package, _one_line(error)
            )
            return False

    def read(file: LogFile) -> Flight:
        try:
            flight = log_format.read(file)
        except RotoridError:
            raise
        except Exception as error:  # whatever the package raises
            raise LogFormatError(
                f"{file.path}: {log_format.label} of {package} failed: {_one_line(error)}; report it to that package"
            ) from error
        if not isinstance(flight, Flight):
            raise LogFormatError(
                f"{file.path}: {log_format.label} of {package} gave a {type(flight).__name__}, not a Flight; report it to that "
                "package"
            )
        return flight

    return dataclasses.replace(log_format, recognise=recognise, reader=read)


def _package(point: EntryPoint) -> str:
    """Name and version of the package of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__
