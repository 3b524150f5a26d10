"""Work that is done while no messages wait, so that it does not delay estimates."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rotorid.live.recording.recorder import Recorder
from rotorid.live.session import Session
from rotorid.live.snapshot import Snapshot
from rotorid.live.team import Team

_MAX_DELAY: Final = 0.02  # s until a snapshot is recorded
_YOUNG_OBJECTS: Final = 2_000  # new objects from which the young generation is collected
_OLDER_COLLECTIONS: Final = 20  # collections of the young generation after which all are collected
_MAX_OBJECTS: Final = 100_000  # new objects from which garbage is collected even while messages wait


class DeferredWork:
    """Deferred work of the session, records of snapshots and, within `collecting_garbage`, garbage collection."""

    def __init__(self, session: Session | Team, recorder: Recorder | None) -> None:
        self._session, self._recorder = session, recorder
        self._snapshots: deque[tuple[float, int, Snapshot]] = deque()
        self._collects_garbage = False

    @contextmanager
    def collecting_garbage(self) -> Iterator[None]:
        """Disable automatic garbage collection; it is then done here only."""
        self.freeze()
        was_enabled = gc.isenabled()
        gc.disable()
        self._collects_garbage = True
        try:
            yield
        finally:
            self._collects_garbage = False
            if was_enabled:
                gc.enable()

    def freeze(self) -> None:
        """Take the objects made so far as permanent: they are excluded from later collections."""
        gc.collect()
        gc.freeze()

    def record(self, arrival: int, snapshot: Snapshot) -> None:
        """Queue a snapshot for the recording. arrival: of the packet that it follows from, ns since 1970."""
        if self._recorder is not None:
            self._snapshots.append((time.monotonic(), arrival, snapshot))

    def do_one(self) -> bool:
        """Do one task of at most a few ms. Returns whether there was any."""
        if self._session.do_deferred_work() or self._write():
            return True
        young, older, _ = gc.get_count()
        if not self._collects_garbage or young < _YOUNG_OBJECTS:
            return False
        gc.collect(2 if older > _OLDER_COLLECTIONS else 0)
        return True

    def _write(self) -> bool:
        if self._recorder is None or not self._snapshots:
            return False
        _, arrival, snapshot = self._snapshots.popleft()
        self._recorder.add_snapshot(arrival, snapshot)
        return True

    def do_overdue(self) -> None:
        """Do the tasks that cannot wait any longer, although messages wait."""
        while self._snapshots and time.monotonic() > self._snapshots[0][0] + _MAX_DELAY:
            self._write()
        if self._collects_garbage and gc.get_count()[0] > _MAX_OBJECTS:
            gc.collect(1)

    def do_all(self) -> None:
        """Do all tasks."""
        while self.do_one():
            pass
