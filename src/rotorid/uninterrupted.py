"""Code blocks that Ctrl-C does not interrupt, for example while a file is written."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LONGEST: Final = 2.0
"""Time after the first Ctrl-C in a block after which another Ctrl-C interrupts the block, s."""

_open: set[object] = set()
_postponed: list[float] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Postpone Ctrl-C to the end of the block, if a command of rotorid runs.

    In a program that uses rotorid as a library, the signal handler of the program remains in effect.
    """
    block = object()
    _open.add(block)
    try:
        yield
    finally:
        _open.discard(block)
        if _postponed and not _open:
            _postponed.clear()
            signal.raise_signal(signal.SIGINT)


def postpone() -> bool:
    """Whether a handler of SIGINT must return now, since the signal is raised again at the end of the current block."""
    if not _open:
        return False
    _postponed.append(time.monotonic())
    return _postponed[-1] - _postponed[0] < _LONGEST
