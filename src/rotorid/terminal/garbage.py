"""Garbage collection of a command: less often than Python's, and not at its end.

What a command imports and traces are hundreds of thousands of objects that live until its end. Python's collector looks through
all of them several times while they are made, and again at the exit: a tenth of the time of a short command.
"""

from __future__ import annotations

import atexit
import gc
from typing import Final

_YOUNG: Final = 100_000  # new objects from which the young generation is collected; a few tens of MB
_USUAL: Final = gc.get_threshold()
_OLDER: Final = 20  # collections of a generation from which the next one is collected too


def collect_rarely() -> None:
    """Collect garbage after many new objects only, and not at the exit of this process."""
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
    atexit.register(gc.freeze)


def collect_as_usual() -> None:
    """Collect garbage as often as Python does, in commands that run for hours."""
    gc.set_threshold(*_USUAL)
