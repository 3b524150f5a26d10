"""What can wait until no message does, so that no estimate waits for it."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rotorid.live.moment import Moment
from rotorid.live.recording import Recorder
from rotorid.live.session import Session

_LONGEST: Final = 0.02  # s that a moment waits for the recording
_YOUNG: Final = 2_000  # objects, after which those that only hold each other are looked for
_OLDER: Final = 20  # times, after which this is done among older ones, too
_MOST: Final = 100_000  # objects, after which it is done whatever waits


class Rest:
    """What is put off: the session's own (`Session.rest`), the text of moments for the recording, and, within
    `collects`, the collection of garbage."""

    def __init__(self, session: Session, recorder: Recorder | None) -> None:
        self._session, self._recorder = session, recorder
        self._moments: deque[tuple[float, int, Moment]] = deque()
        self._collects = False

    @contextmanager
    def collects(self) -> Iterator[None]:
        """Collect garbage here, and nowhere else in this process."""
        gc.collect()
        gc.freeze()  # what was made so far stays: no collection is to go through all of it again
        by_itself = gc.isenabled()
        gc.disable()
        self._collects = True
        try:
            yield
        finally:
            self._collects = False
            if by_itself:
                gc.enable()

    def record(self, arrival: int, moment: Moment) -> None:
        """Put off a moment's way into the recording. arrival: of the bytes that it followed from, ns since 1970."""
        if self._recorder is not None:
            self._moments.append((time.monotonic(), arrival, moment))

    def do(self) -> bool:
        """Do one piece, of at most a few ms; whether there was any."""
        if self._session.rest() or self._write():
            return True
        young, older, _ = gc.get_count()
        if not self._collects or young < _YOUNG:
            return False
        gc.collect(int(older > _OLDER))
        return True

    def _write(self) -> bool:
        if self._recorder is None or not self._moments:
            return False
        _, arrival, moment = self._moments.popleft()
        self._recorder.moment(arrival, moment)
        return True

    def overdue(self) -> None:
        """Do what cannot wait any longer, though messages do."""
        while self._moments and time.monotonic() > self._moments[0][0] + _LONGEST:
            self._write()
        if self._collects and gc.get_count()[0] > _MOST:
            gc.collect(1)

    def end(self) -> None:
        """Do all of it."""
        while self.do():
            pass
