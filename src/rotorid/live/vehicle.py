"""One vehicle of a link: which frames are its own, and which came twice."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

import numpy as np

from rotorid.logs.mavlink_frames import Frame, decode
from rotorid.logs.mavlink_losses import Losses
from rotorid.logs.mavlink_vehicle import ARDUPILOT, MULTIROTORS, NO_AUTOPILOT, OTHERS, PX4
from rotorid.logs.mavlink_vehicle import Vehicle as About

_REMEMBERED: Final = 200  # frames in which a second copy is recognised: fewer than sequence numbers have
_HEARTBEAT: Final = 0
_FUNCTION: Final = re.compile(r"PWM_(MAIN|AUX)_FUNC\d+|SERVO\d+_FUNCTION")
_MOTORS: Final = (*range(101, 113), *range(33, 41), *range(82, 86))  # functions of outputs: PX4, ArduPilot
_NAMES: Final = {ARDUPILOT: "ArduPilot", PX4: "PX4"}


class Vehicle:
    """Follows the first multirotor that an autopilot announces, or the one with `system_id`. rotors: of its airframe.

    system, component: of it, 0 before it was found. words: "PX4 quadrotor, system 1". about: what its messages told
    of it. armed: as its last heartbeat says. losses: of its frames. duplicates: frames that came twice. refused:
    autopilots that were heard and are not followed, in words, by system id."""

    def __init__(self, system_id: int | None = None, rotors: int = 4) -> None:
        self._wanted, self._rotors = system_id, rotors
        self._functions: dict[str, np.ndarray] = {}
        self.system = self.component = 0
        self.about = About()
        self.armed = False
        self.words = ""
        self.duplicates = 0
        self.refused: dict[int, str] = {}
        self.losses = Losses()
        self.restart()

    def restart(self) -> None:
        """Begin to count anew: after a reboot sequence numbers begin at 0."""
        self.losses.restart()
        self._recent: deque[bytes] = deque()
        self._known: set[bytes] = set()

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
        self.losses.came()
        return True

    def learn(self, name: str, rows: np.ndarray) -> None:
        """Take what a message tells of the vehicle. The parameters that say which outputs drive rotors count once
        they say it of all: on a link that loses some, half of them mislead."""
        if name != "PARAM_VALUE":
            self.about.learn(name, rows)
            return
        function = bytes(rows["param_id"][0]).rstrip(b"\0").decode("ascii", "replace")
        if not _FUNCTION.fullmatch(function):
            self.about.learn(name, rows)
            return
        self._functions[function] = rows
        told = About()
        told.autopilot, told.kind = self.about.autopilot, self.about.kind
        for row in self._functions.values():
            told.learn("PARAM_VALUE", row)
        if sum(value in _MOTORS for value in told.parameters.values()) == self._rotors:
            for row in self._functions.values():
                self.about.learn("PARAM_VALUE", row)

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
            self.refused[frame.system] = f"{OTHERS.get(kind, f'vehicle of type {kind}')}, {name}"
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
