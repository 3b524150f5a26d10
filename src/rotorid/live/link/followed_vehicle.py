"""The vehicle that a session follows: which frames of a link belong to it, and which are duplicates."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

import numpy as np

from rotorid.logs.mavlink.frames import Frame, decode
from rotorid.logs.mavlink.losses import Losses
from rotorid.logs.mavlink.vehicle import ARDUPILOT, MULTIROTORS, NO_AUTOPILOT, OTHERS, PX4
from rotorid.logs.mavlink.vehicle import Vehicle as VehicleProperties

_MEMORY: Final = 200  # frames in which a duplicate is recognised: fewer than there are sequence numbers
_MAX_IGNORED: Final = 50
_HEARTBEAT: Final = 0
_ARMED: Final = 128  # MAV_MODE_FLAG_SAFETY_ARMED
_FUNCTION: Final = re.compile(r"PWM_(MAIN|AUX)_FUNC\d+|SERVO\d+_FUNCTION")
_MOTORS: Final = (*range(101, 113), *range(33, 41), *range(82, 86))  # output functions of PX4 and ArduPilot
_NAMES: Final = {ARDUPILOT: "ArduPilot", PX4: "PX4"}


class FollowedVehicle:
    """The first multirotor with an autopilot on the link, or the one with `system_id`.

    Args:
        system_id: MAVLink system id to follow; None for the first multirotor.
        rotors: number of rotors of the airframe.

    system, component: its MAVLink ids, 0 before it is detected. description: e.g. "PX4 quadrotor, system 1". properties:
    from its messages. is_armed: from its latest heartbeat. losses: lost frames. duplicates: frames received twice. ignored:
    why other systems are not followed, by system id. others: their descriptions. other_multirotors: those of
    them that are multirotors. heartbeats: number of its heartbeats.
    """

    def __init__(self, system_id: int | None = None, rotors: int = 4) -> None:
        self._system_id, self._rotors = system_id, rotors
        self._output_functions: dict[str, np.ndarray] = {}
        self.system = self.component = 0
        self.properties = VehicleProperties()
        self.is_armed = False
        self.description = ""
        self.duplicates = 0
        self.ignored: dict[int, str] = {}
        self.others: dict[int, str] = {}
        self.other_multirotors: set[int] = set()
        self.heartbeats = 0
        self.losses = Losses()
        self.restart()

    def restart(self) -> None:
        """Reset the sequence numbers after a reboot of the vehicle."""
        self.losses.restart()
        self._recent: deque[bytes] = deque()
        self._known: set[bytes] = set()

    def accept(self, buffer: bytes, frame: Frame) -> bool:
        """Whether a frame of these bytes belongs to the vehicle and is not a duplicate."""
        if frame.message == _HEARTBEAT:
            self._read_heartbeat(buffer, frame)
        if frame.system != self.system or frame.component != self.component or not self.system:
            return False
        content = buffer[frame.start : frame.payload + frame.length + 2]
        if content in self._known:
            self.duplicates += 1
            return False
        self._remember(content)
        self.losses.came()
        return True

    def learn(self, name: str, rows: np.ndarray) -> None:
        """Read a message that describes the vehicle.

        The parameters that assign outputs to motors are used once all of them have arrived: on a lossy link, an
        incomplete set would be wrong.
        """
        if name == "HEARTBEAT" and int(rows["type"][0]) not in MULTIROTORS:
            return  # an autopilot that has just booted may not know its type yet
        if name != "PARAM_VALUE":
            self.properties.learn(name, rows)
            return
        function = bytes(rows["param_id"][0]).rstrip(b"\0").decode("ascii", "replace")
        if not _FUNCTION.fullmatch(function):
            self.properties.learn(name, rows)
            return
        self._output_functions[function] = rows
        trial = VehicleProperties()
        trial.autopilot, trial.kind = self.properties.autopilot, self.properties.kind
        for row in self._output_functions.values():
            trial.learn("PARAM_VALUE", row)
        if sum(value in _MOTORS for value in trial.parameters.values()) == self._rotors:
            for row in self._output_functions.values():
                self.properties.learn("PARAM_VALUE", row)

    def _read_heartbeat(self, buffer: bytes, frame: Frame) -> None:
        decoded = decode(buffer, frame)
        assert decoded is not None
        rows = decoded[1]
        kind, autopilot = int(rows["type"][0]), int(rows["autopilot"][0])
        if autopilot == NO_AUTOPILOT:
            return
        if frame.system == self.system and frame.component == self.component:
            self.is_armed = bool(rows["base_mode"][0] & _ARMED)
            self.heartbeats += 1
            return
        name = _NAMES.get(autopilot, f"autopilot {autopilot}")
        is_multirotor = kind in MULTIROTORS
        kind_name = MULTIROTORS[kind] if is_multirotor else OTHERS.get(kind, f"vehicle of type {kind}")
        description = f"{name} {kind_name}, system {frame.system}"
        if not self.system and is_multirotor and self._system_id in (None, frame.system):
            self.system, self.component = frame.system, frame.component
            self.is_armed = bool(rows["base_mode"][0] & _ARMED)
            self.heartbeats += 1
            self.description = description
            self.ignored.pop(frame.system, None)  # while it starts, an autopilot may send another type
            self.others.pop(frame.system, None)
        elif frame.system != self.system and len(self.ignored) < _MAX_IGNORED:
            if not self.system and not is_multirotor:
                self.ignored[frame.system] = f"{kind_name}, {name}"
            else:
                self.ignored.setdefault(frame.system, "another vehicle")
            self.others[frame.system] = description
            if is_multirotor:
                self.other_multirotors.add(frame.system)

    def _remember(self, content: bytes) -> None:
        self._known.add(content)
        self._recent.append(content)
        if len(self._recent) > _MEMORY:
            self._known.discard(self._recent.popleft())
