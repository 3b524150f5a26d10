"""A recorded link as a link: a ground station's .tlog, or a recording of a session, at the speed that it was flown or
faster."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from rotorid.errors import LogFormatError, SettingError
from rotorid.live.link import Link
from rotorid.live.recording import Recorded
from rotorid.logs.mavlink_frames import STAMP_BYTES, walk
from rotorid.logs.read import is_tlog, read_bytes

_LONGEST: Final = 60.0  # s that a replay waits for what came next


class Replay(Link):
    """Bytes at the times at which they arrived once, `speed` times as fast; 0: without waiting. What is sent is lost.

    ended: whether all was read. pieces: of `tlog_pieces` or `Recorded.received`. skipped: of `Recorded.skipped`.
    """

    datagrams: ClassVar[bool] = True

    def __init__(
        self,
        address: str,
        pieces: Iterator[tuple[int, bytes]],
        speed: float = 1.0,
        skipped: Iterable[range] = (),
    ) -> None:
        super().__init__(address)
        if not 0.0 <= speed < math.inf:
            raise SettingError(f"the speed {speed:g} of a replay must be positive, or 0 to wait for nothing")
        self.ended = False
        self._skipped, self._skip = iter(skipped), range(0)
        self._pieces, self._speed = pieces, speed
        self._ahead = next(pieces, None)
        self._first = 0 if self._ahead is None else self._ahead[0]
        self._began: float | None = None

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        if self._ahead is None:
            self.ended = True
            return None
        if self._speed > 0.0:
            now = time.monotonic()
            if self._began is None:
                self._began = now
            due = self._began + (self._ahead[0] - self._first) * 1e-9 / self._speed
            if due > now + _LONGEST:
                self._began -= due - now
            elif due > now:
                time.sleep(min(due - now, timeout))
                if due > now + timeout:
                    return None
        found = self._ahead
        self._ahead = next(self._pieces, None)
        return found

    def skips(self, number: int) -> bool:
        """Whether a piece was not estimated with when it was recorded. number: from 0, never less than the time before."""
        while number >= self._skip.stop:
            self._skip = next(self._skipped, range(sys.maxsize, sys.maxsize))
        return number in self._skip

    def send(self, data: bytes) -> None:
        del data

    def close(self) -> None:
        self._ahead = None


class ByteReplay(Replay):
    """The same of a link whose messages reach from one piece of bytes into the next."""

    datagrams: ClassVar[bool] = False


def tlog_pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """The frames of a .tlog in their order, and when they arrived, ns since 1970. Raises LogError, LogFormatError."""
    buffer = read_bytes(path)
    found = walk(buffer, stamped=True, complete=True) if is_tlog(buffer) else None
    if found is None or not found.frames:
        raise LogFormatError(f"{path}: no MAVLink messages in it; a .tlog is what a ground station writes")

    def pieces() -> Iterator[tuple[int, bytes]]:
        ends = [f.start for f in found.frames[1:]] + [len(buffer)]
        for frame, end in zip(found.frames, ends, strict=True):
            yield frame.arrival * 1000, buffer[frame.start + STAMP_BYTES : end]

    return pieces()


def recorded_link(recorded: Recorded, speed: float = 1.0) -> Replay:
    """The link of a recording."""
    kind = Replay if recorded.settings.get("datagrams", "yes") == "yes" else ByteReplay
    return kind(str(recorded.path), recorded.received(), speed, recorded.skipped())
