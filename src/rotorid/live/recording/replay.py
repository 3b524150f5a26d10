"""A recording of a session, or a .tlog of a ground station, as a link: in real time or faster."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from rotorid.errors import LogFormatError, SettingError
from rotorid.live.link.link import Link
from rotorid.live.recording.recording import Recording
from rotorid.logs.mavlink.frames import STAMP_BYTES, walk
from rotorid.logs.read import is_tlog
from rotorid.logs.reader_base import read_bytes

_MAX_PAUSE: Final = 60.0  # s: longer pauses are shortened to this


class Replay(Link):
    """Recorded packets at their recorded times. Sent bytes are discarded.

    Args:
        address: name for messages.
        packets: arrival time, ns since 1970, and bytes.
        speed: 1 for real time, 10 for ten times as fast, 0 for no waiting.
        skipped: ranges of packets that the estimators did not use, by number.

    has_ended: whether all packets were read.
    """

    datagrams: ClassVar[bool] = True

    def __init__(
        self,
        address: str,
        packets: Iterator[tuple[int, bytes]],
        speed: float = 1.0,
        skipped: Iterable[range] = (),
    ) -> None:
        super().__init__(address)
        if not 0.0 <= speed < math.inf:
            raise SettingError(f"the replay speed {speed:g} must be positive, or 0 for no waiting")
        self.has_ended = False
        self._skipped, self._skipped_range = iter(skipped), range(0)
        self._packets, self._speed = packets, speed
        self._next = next(packets, None)
        self._first = 0 if self._next is None else self._next[0]
        self._start: float | None = None

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        if self._next is None:
            self.has_ended = True
            return None
        if self._speed > 0.0:
            now = time.monotonic()
            if self._start is None:
                self._start = now
            due = self._start + (self._next[0] - self._first) * 1e-9 / self._speed
            if due > now + _MAX_PAUSE:
                self._start -= due - now
            elif due > now:
                time.sleep(min(due - now, timeout))
                if due > now + timeout:
                    return None
        packet = self._next
        self._next = next(self._packets, None)
        return packet

    def is_skipped(self, number: int) -> bool:
        """Whether the estimators did not use a packet when it was recorded. number: from 0, not decreasing."""
        while number >= self._skipped_range.stop:
            self._skipped_range = next(self._skipped, range(sys.maxsize, sys.maxsize))
        return number in self._skipped_range

    def send(self, data: bytes) -> None:
        del data

    def close(self) -> None:
        self._next = None


class StreamReplay(Replay):
    """The same for a byte stream, whose messages may extend over several packets."""

    datagrams: ClassVar[bool] = False


def tlog_packets(path: Path) -> Iterator[tuple[int, bytes]]:
    """Arrival time (ns since 1970) and bytes of each frame of a .tlog, in order. Raises LogError, LogFormatError."""
    buffer = read_bytes(path)
    scan = walk(buffer, stamped=True, complete=True) if is_tlog(buffer) else None
    if scan is None or not scan.frames:
        raise LogFormatError(
            f"{path}: contains no MAVLink messages; a .tlog file of a ground station is expected"
        )

    def packets() -> Iterator[tuple[int, bytes]]:
        ends = [f.start for f in scan.frames[1:]] + [len(buffer)]
        for frame, end in zip(scan.frames, ends, strict=True):
            yield frame.arrival * 1000, buffer[frame.start + STAMP_BYTES : end]

    return packets()


def open_recording(recording: Recording, speed: float = 1.0) -> Replay:
    """A recording as a link. speed: as of `Replay`."""
    kind = Replay if recording.settings.get("datagrams", "yes") == "yes" else StreamReplay
    return kind(str(recording.path), recording.packets(), speed, recording.skipped())
