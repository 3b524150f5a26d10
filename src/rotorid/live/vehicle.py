"""One vehicle of a link: which frames are its own, which came twice, and how many are missing.

Sequence numbers count the frames of one component modulo 256. A frame that arrives late fills its gap again, so that
what counts is the span of numbers seen less the frames that came."""

from __future__ import annotations

from collections import deque
from typing import Final

from rotorid.logs.mavlink_frames import Frame, decode
from rotorid.logs.mavlink_vehicle import ARDUPILOT, MULTIROTORS, NO_AUTOPILOT, OTHERS, PX4
from rotorid.logs.mavlink_vehicle import Vehicle as About

_REMEMBERED: Final = 200  # frames in which a second copy is recognised: fewer than sequence numbers have
_HEARTBEAT: Final = 0
_NAMES: Final = {ARDUPILOT: "ArduPilot", PX4: "PX4"}


class Vehicle:
    """Follows the first multirotor that an autopilot announces, or the one with `system_id`.

    system, component: of it, 0 before it was found. words: "PX4 quadrotor, system 1". about: what its messages told
    of it. armed: as its last heartbeat says. received, lost, duplicates: its frames. refused: autopilots that were
    heard and are not followed, in words, by system id."""

    def __init__(self, system_id: int | None = None) -> None:
        self._wanted = system_id
        self.system = self.component = 0
        self.about = About()
        self.armed = False
        self.words = ""
        self.received = self.duplicates = 0
        self.refused: dict[int, str] = {}
        self._forgotten = 0
        self._first = -1
        self.restart()

    def restart(self) -> None:
        """Begin to count anew: after a reboot sequence numbers begin at 0."""
        self._forgotten = self.lost
        self._first = self._highest = -1
        self._counted = 0
        self._recent: deque[bytes] = deque()
        self._known: set[bytes] = set()

    @property
    def lost(self) -> int:
        """Frames that never came."""
        if self._first < 0:
            return self._forgotten
        return self._forgotten + max(self._highest - self._first + 1 - self._counted, 0)

    def takes(self, buffer: bytes, frame: Frame) -> bool:
        """Whether a frame in these bytes is the vehicle's and new."""
        if frame.message == _HEARTBEAT:
            self._hear(buffer, frame)
        if frame.system != self.system or frame.component != self.component or not self.system:
            return False
        whole = buffer[frame.start : frame.payload + frame.length + 2]
        if whole in self._known:
            self.duplicates += 1
            return False
        self._remember(whole)
        self._count(frame.sequence)
        return True

    def _hear(self, buffer: bytes, frame: Frame) -> None:
        found = decode(buffer, frame)
        assert found is not None
        kind, autopilot = int(found[1]["type"][0]), int(found[1]["autopilot"][0])
        if autopilot == NO_AUTOPILOT:
            return
        if frame.system == self.system and frame.component == self.component:
            self.armed = bool(found[1]["base_mode"][0] & 128)
        if self.system:
            if frame.system != self.system and len(self.refused) < 50:
                self.refused.setdefault(frame.system, "another vehicle")
            return
        name = _NAMES.get(autopilot, f"autopilot {autopilot}")
        if kind not in MULTIROTORS:
            self.refused[frame.system] = f"{OTHERS.get(kind, f'vehicle of type {kind}')} ({name})"
        elif self._wanted is not None and frame.system != self._wanted:
            self.refused[frame.system] = "another vehicle"
        else:
            self.system, self.component = frame.system, frame.component
            self.armed = bool(found[1]["base_mode"][0] & 128)
            self.words = f"{name} {MULTIROTORS[kind]}, system {frame.system}"

    def _remember(self, whole: bytes) -> None:
        self._known.add(whole)
        self._recent.append(whole)
        if len(self._recent) > _REMEMBERED:
            self._known.discard(self._recent.popleft())

    def _count(self, sequence: int) -> None:
        self.received += 1
        if self._first < 0:
            self._first = self._highest = sequence
            self._counted = 1
            return
        ahead = (sequence - self._highest + 128) % 256 - 128
        if self._highest + ahead >= self._first:  # one from before the first counts for nothing
            self._counted += 1
        self._highest = max(self._highest, self._highest + ahead)
