"""A simulated autopilot with a virtual clock: it streams, stores parameters, answers requests, restarts and loses its link.

`World` connects it with a publisher and gives it estimates as a session would. `trace` has every value that the vehicle had.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Callable
from typing import Final

from pymavlink.dialects.v20 import ardupilotmega as dialect

from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter.followed import parse_parameter
from rotorid.live.parameter.store import stored_values
from rotorid.live.publisher import Publisher
from rotorid.live.recording.replay import Replay
from rotorid.live.session import Session
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session

PX4_PARAMETERS: Final = {"MPC_THR_HOVER": 0.49, "THR_MDL_FAC": 0.0, "MC_BAT_SCALE_EN": 0.0}
STEP: Final = 0.1  # s


def float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def autopilot_version(send: simulated_flight.Sender, uid: int) -> bytes:
    return send("AUTOPILOT_VERSION", 0, 0, 0, 0, 0, *[[0] * 8] * 3, 0, 0, uid, [0] * 18)


class Autopilot:
    """The vehicle. now: set by the world, s. stubborn: keeps its values. deaf: answers nothing. uid: of AUTOPILOT_VERSION, 0
    for none. reply_delay: s. sets: time and value of every PARAM_SET; values: the same of every change."""

    def __init__(
        self, parameters: dict[str, float], *, autopilot: int = 12, uid: int = 0xABC, boot: float = -20.0
    ) -> None:
        self.parameters = {name: float32(value) for name, value in parameters.items()}
        self.send = simulated_flight.Sender()
        self.autopilot, self.uid, self.boot = autopilot, uid, boot
        self.now = 0.0
        self.stubborn = self.deaf = False
        self.reply_delay = 0.0
        self.lose: Callable[[str], bool] = lambda _: False
        self.sets: list[tuple[float, str, float]] = []
        self._outbox: list[tuple[float, bytes]] = []
        self._has_begun = False

    def restart(self) -> None:
        """Boot again: the clock begins at zero; parameters are stored."""
        self.boot, self._outbox = self.now, []

    def packets(self) -> list[bytes]:
        """What it sends until now."""
        ms, k = round(1e3 * (self.now - self.boot)), round(self.now / STEP)
        if k % 2 == 0:
            self._post(self.send("ATTITUDE_QUATERNION", ms, 1, 0, 0, 0, 0, 0, 0))
        if k % 10 == 2 or not self._has_begun:
            self._has_begun = True
            self._post(simulated_flight.heartbeat(self.send, autopilot=self.autopilot))
            self._post(self.send("GLOBAL_POSITION_INT", ms, 0, 0, 500_000, 0, 0, 0, 0, 0))
        due = [data for at, data in self._outbox if at <= self.now]
        self._outbox = [(at, data) for at, data in self._outbox if at > self.now]
        return due

    def receive(self, data: bytes) -> None:
        """Process what rotorid sends."""
        for message in dialect.MAVLink(None).parse_buffer(bytearray(data)) or []:
            name = message.get_type()
            if self.deaf or self.lose(name):
                continue
            if name == "COMMAND_LONG" and message.command == 512 and self.uid:
                self._post(autopilot_version(self.send, self.uid))
            if name in ("PARAM_SET", "PARAM_REQUEST_READ") and message.param_id in self.parameters:
                if name == "PARAM_SET":
                    self.sets.append((self.now, message.param_id, message.param_value))
                    if not self.stubborn:
                        self.parameters[message.param_id] = message.param_value
                self._post(self.value(message.param_id), self.reply_delay)

    def value(self, name: str) -> bytes:
        """PARAM_VALUE of a parameter."""
        return self.send("PARAM_VALUE", name.encode(), self.parameters[name], 9, 900, 0)

    def _post(self, data: bytes, delay: float = 0.0) -> None:
        self._outbox.append((self.now + delay, data))


class _Wire(Replay):
    """The link: bytes reach the autopilot while it is up. kept: bytes that wait in it; None if none wait."""

    def __init__(self, autopilot: Autopilot) -> None:
        super().__init__("made", iter(()))
        self.autopilot, self.is_up = autopilot, True
        self.names: list[str] = []
        self.kept: list[bytes] | None = None

    def send(self, data: bytes) -> None:
        for message in dialect.MAVLink(None).parse_buffer(bytearray(data)) or []:
            name = message.get_type()
            self.names.append(name if name != "NAMED_VALUE_FLOAT" else message.name)
        if self.kept is not None:
            self.kept.append(data)
        elif self.is_up:
            self.autopilot.receive(data)


@dataclasses.dataclass
class World:
    """An autopilot, a publisher and the estimates of a flight. trace: time, value and target at each step."""

    autopilot: Autopilot
    wire: _Wire
    session: Session
    publisher: Publisher
    name: str
    start: float
    now: float
    first_set: int
    forge: Callable[[], list[bytes]] = list
    events: list[Event] = dataclasses.field(default_factory=list)
    trace: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def fly(
        self,
        seconds: float,
        mass: float | Callable[[float], float] | None,
        std: float = 0.01,
        health: str = "ok",
    ) -> None:
        """Fly with these estimates; mass: kg, None: no estimate."""
        for _ in range(round(seconds / STEP)):
            self.now = self.autopilot.now = self.now + STEP
            packets = self.autopilot.packets()
            for data in [*self.forge(), *(packets if self.wire.is_up else [])]:
                self.session.reader.read(simulated_flight.EPOCH + round(self.now * 1e9), data)
            kg = mass(self.now) if callable(mass) else mass
            has_estimate = kg is not None and self.wire.is_up
            readings = (
                {} if not has_estimate else {"mass": Reading(kg, std, "kg"), "drag": Reading(0.5, 0.1, "")}
            )
            attitude = (1.0, 0.0, 0.0, 0.0) if has_estimate else None
            self.publisher.show(
                Snapshot(self.now, readings, health, attitude, None, (), LinkState(0, 0, 0.0, 0.0), "made")
            )
            self.events += self.session.events.take()
            self.trace.append((self.now, self.value))

    def end(self, seconds: float = 40.0) -> None:
        """End the session as the runner does."""
        self.publisher.restore()
        until = self.now + seconds
        while not self.publisher.is_done and self.now < until:
            self.fly(STEP, None)
        self.publisher.close()

    @property
    def value(self) -> float:
        return self.autopilot.parameters[self.name]

    @property
    def codes(self) -> list[str]:
        return [event.code for event in self.events if event.code.startswith("parameter_")]

    @property
    def writes(self) -> list[tuple[float, float]]:
        return [(t, value) for t, _, value in self.autopilot.sets[self.first_set :]]


def world(
    airframe: Airframe,
    text: str = "MPC_THR_HOVER",
    autopilot: Autopilot | None = None,
) -> World:
    """A session that begins."""
    autopilot = autopilot or Autopilot(PX4_PARAMETERS)
    wire, made = _Wire(autopilot), session(airframe)
    name = text.partition("=")[0]
    publisher = Publisher(made, MessageSender(wire), lambda: found.now, parse_parameter(text, airframe))
    start, now, sets = autopilot.parameters.get(name, 0.0), autopilot.now, len(autopilot.sets)
    found = World(autopilot, wire, made, publisher, name, start, now, sets)
    return found


def check_writes(made: World, pilot: float | None = None) -> None:
    """What holds in every case: the value changes slowly, stays within its limits, and is restored or known on disk.

    made: a world whose session has ended. pilot: the pilot's value; default: that at the start.
    """
    pilot = made.start if pilot is None else pilot
    tolerance = 1e-5 * pilot
    points = [(-1e9, made.start), *made.writes]
    for k, (t, value) in enumerate(points):
        assert 0.5 * pilot - tolerance <= value <= 1.5 * pilot + tolerance
        for s, later in points[k + 1 :]:
            allowed = 0.05 * pilot * max(s - t, 0.5)
            assert abs(later - value) <= allowed + tolerance, (t, value, s, later)
    for (_, before), (_, after) in itertools.pairwise(points):
        assert abs(after - before) <= 0.025 * pilot + tolerance
    values = [value for _, value in made.trace]
    assert all(abs(b - a) <= 0.025 * pilot + tolerance for a, b in itertools.pairwise(values))
    stored = [s for s in stored_values() if s.parameter == made.name]
    assert made.value == float32(pilot) or (stored and stored[0].pilot == float32(pilot))
