"""Records of the logger "rotorid" on stderr: `rotorid -v`.

    12:01:07.214 Fitting: 3.20 s, 5.91 s of processor time

Every stage of a command is a record when it ends, with its duration and the processor time of all threads (see
`rotorid.terminal.console`); with -vv, also when it begins. A program that uses the package as a library configures the logger
as any other.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TextIO

from rotorid.progress import Progress

_LOGGER: Final = logging.getLogger("rotorid")
_LEVELS: Final = (logging.INFO, logging.DEBUG)
_FORMAT: Final = "%(asctime)s.%(msecs)03d %(message)s"


class _ToStderr(logging.StreamHandler):
    """Writes to what `sys.stderr` is at that time: rich replaces it while it shows progress."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """`StreamHandler.__init__` sets it."""


_handler = _ToStderr()
_handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%H:%M:%S"))


def log_to_stderr(verbosity: int) -> None:
    """Show the records of the package. verbosity: 0 none, 1 from INFO, 2 from DEBUG."""
    _LOGGER.removeHandler(_handler)
    if verbosity:
        _LOGGER.addHandler(_handler)
    _LOGGER.setLevel(_LEVELS[min(verbosity, len(_LEVELS)) - 1] if verbosity else logging.NOTSET)


@contextmanager
def logged_stages(stage: str) -> Iterator[Progress]:
    """A callback that logs each stage when the next one is reported, the last one at the end of the block.

    stage: the first.
    """
    name, start = stage, _Times.now()
    _LOGGER.debug("%s ...", name)

    def report(stage: str, done: int, total: int) -> None:
        nonlocal name, start
        if stage != name:
            _log_end(name, start)
            name, start = stage, _Times.now()
            _LOGGER.debug("%s ...", name)

    try:
        yield report
    except BaseException:
        _LOGGER.info("%s: failed after %.2f s", name, time.monotonic() - start.wall)
        raise
    _log_end(name, start)


class _Times(NamedTuple):
    """Wall and processor time, s."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> _Times:
        return cls(time.monotonic(), time.process_time())


def _log_end(name: str, start: _Times) -> None:
    end = _Times.now()
    taken = end.wall - start.wall, end.processor - start.processor
    _LOGGER.info("%s: %.2f s, %.2f s of processor time", name, *taken)
