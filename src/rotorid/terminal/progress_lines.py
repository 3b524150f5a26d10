"""Progress for programs: a JSON line on stderr for each report, where the environment variable ROTORID_PROGRESS is json.

    {"stage": "Fitting", "done": 3, "total": 20}

total is 0 where the number of steps is unknown. At most ten lines a second are written for one stage. Where nothing is
reported, the last line is repeated each second, so that a program sees that the work goes on.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rotorid.progress import Progress

VARIABLE: Final = "ROTORID_PROGRESS"
VALUE: Final = "json"
"""Of the variable."""

_PERIOD: Final = 0.1  # s
_REPEAT: Final = 1.0  # s


@contextmanager
def progress_lines(stage: str, total: int = 0) -> Iterator[Progress | None]:
    """A callback that writes the lines; None where they are not asked for. stage, total: reported at the start."""
    if os.environ.get(VARIABLE) != VALUE:
        yield None
        return
    lines, end = _Lines(), threading.Event()

    def repeat() -> None:
        while not end.wait(lines.pause()):
            lines.repeat()

    lines.report(stage, 0, total)
    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield lines.report
    finally:
        end.set()
        thread.join()


class _Lines:
    """Writes a line a report, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stage, self._written, self._line = "", 0.0, ""

    def report(self, stage: str, done: int, total: int) -> None:
        """Write a line, but for one that follows soon upon another of the same stage."""
        now = time.monotonic()
        with self._lock:
            line = json.dumps({"stage": stage, "done": done, "total": total}, ensure_ascii=False)
            is_early = stage == self._stage and done != total and now < self._written + _PERIOD
            self._stage, self._line = stage, line
            if not is_early:
                self._write(now)

    def pause(self) -> float:
        """Time until the last line is to be repeated, s."""
        return max(self._written + _REPEAT - time.monotonic(), 0.01)

    def repeat(self) -> None:
        """Write the latest report again where nothing was written for a second."""
        now = time.monotonic()
        with self._lock:
            if now >= self._written + _REPEAT:
                self._write(now)

    def _write(self, now: float) -> None:
        self._written = now
        print(self._line, file=sys.stderr, flush=True)
