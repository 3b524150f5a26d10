"""A vehicle at the other end of a link, on a virtual clock: it flies, answers requests, restarts, and loses what it is sent.

The intervals of the messages are those of recordings of PX4 1.17 (`px4_sih/dev.tlog`) and ArduCopter 4.6.3
(`ardupilot_sitl/dev.tlog`), the messages after a boot those of the sources of PX4 (`mavlink_main.cpp`, mode onboard) and of
ArduCopter without stream rates (SRx_*).
"""

from __future__ import annotations

import heapq
import itertools
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from pymavlink.dialects.v20 import ardupilotmega, common

from rotorid.errors import LinkError
from rotorid.live.link.link import Link
from tests.live.simulated_flight import DRAG, EPOCH, MASS, MAX_THRUST, Sender, _attitude, _rate, _turned

_G: Final = 9.81
_HEIGHT, _RADIUS, _TURN = 3.0, 2.0, 1.2  # m, m, rad/s
_LAG: Final = 0.05  # s, time constant of the rotors
_H, _LEAD = 1e-3, 0.01  # s, of differences, and of the change of the thrust

PX4, ARDUPILOT = 12, 3

_STEPS: Final = {
    PX4: {"HIGHRES_IMU": (8, 12), "ATTITUDE": (4, 16, 4, 12, 12, 12, 8, 12), "LOCAL_POSITION_NED": (16, 24, 24, 16)},
    ARDUPILOT: {},
}  # fmt: skip
"""Steps between the time stamps of messages in ms, where they are not equal; scaled to the rate."""

_DEFAULT_RATES: Final = {
    PX4: {
        "HIGHRES_IMU": 50.0, "LOCAL_POSITION_NED": 30.0, "ATTITUDE": 100.0, "ATTITUDE_QUATERNION": 50.0,
        "SERVO_OUTPUT_RAW": 10.0, "ATTITUDE_TARGET": 10.0, "EXTENDED_SYS_STATE": 5.0, "SYSTEM_TIME": 1.0,
    },
    ARDUPILOT: {},
}  # fmt: skip
"""Rates after a boot, Hz."""


class Flight(NamedTuple):
    """Take-off and landing, s of the virtual clock. Both last two seconds. mass: kg."""

    start: float
    end: float
    mass: float = MASS


class ScriptedVehicle(Link):
    """A link to a simulated vehicle.

    Args:
        autopilot: MAV_AUTOPILOT.
        flights: in order.
        until: end of the link, s.
        restarts: times of restarts of the autopilot, and how long each takes, s.
        outages: start and end of interruptions of the link, s.
        origin: time from which the EKF of the autopilot has an origin, s: before, it sends no velocity.
        limits: changes of the rate that the autopilot can send, as (s, Hz).
        lost: by message or parameter, the numbers of its requests that are lost, from 1.
        system: MAVLink system id.
        parameters: besides those of the outputs.

    now: virtual clock, s. requests: message names that were requested, with their times. parameters: values now.
    writes: times and values of PARAM_SET.
    """

    datagrams = True

    def __init__(
        self,
        autopilot: int,
        flights: Sequence[Flight],
        until: float,
        *,
        restarts: Sequence[tuple[float, float]] = (),
        outages: Sequence[tuple[float, float]] = (),
        origin: float = 0.0,
        limits: Sequence[tuple[float, float]] = (),
        lost: Mapping[str, Sequence[int]] = MappingProxyType({}),
        system: int = 1,
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__("scripted")
        self.parameters, self._system = dict(parameters or {}), system
        self.autopilot, self.flights, self.until, self.origin = autopilot, flights, until, origin
        self.outages, self._limits, self._lost = outages, limits, lost
        self.now = 0.0
        self.requests: list[tuple[float, str]] = []
        self.writes: list[tuple[float, float]] = []
        self._requested: Counter[str] = Counter()
        self._noise = np.random.default_rng(system)
        self._sender, self._parser = Sender(system), common.MAVLink(None)
        self._boot = -20.0
        self._state: tuple[float, dict[str, Any]] = (math.nan, {})
        self._restarts = list(restarts)
        self._rates: dict[str, float] = {}
        self._queue: list[tuple[float, int, str, bytes]] = []
        self._number = itertools.count()
        self._steps: dict[str, itertools.cycle] = {}
        self._begin(0.0)

    @property
    def nanoseconds(self) -> int:
        """The virtual clock as an arrival time, ns since 1970."""
        return EPOCH + round(self.now * 1e9)

    # The link

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        end = self.now + timeout
        while self._queue and self._queue[0][0] <= max(end, self.now):
            t, _, name, data = heapq.heappop(self._queue)
            if t >= self.until:
                raise LinkError("the script is over")
            if self._restarts and t >= self._restarts[0][0]:
                self._restart()
                continue
            self.now = max(self.now, t)
            if name:
                data = self._message(name, t)
                self._schedule(name, t)
            if data and not any(a <= t < b for a, b in self.outages):
                return EPOCH + round(t * 1e9), data
        self.now = max(self.now, end)
        return None

    def send(self, data: bytes) -> None:
        if any(a <= self.now < b for a, b in self.outages) or self.now < self._boot + 1.0:
            return
        message: Any
        for message in self._parser.parse_buffer(bytearray(data)) or []:
            kind = message.get_type()
            if getattr(message, "target_system", self._system) != self._system:
                continue
            if kind == "COMMAND_LONG" and message.command == 512:
                self.push(
                    self.now + 0.02,
                    self._sender("AUTOPILOT_VERSION", *[0] * 5, *[[0] * 8] * 3, 0, 0, 0xABC, [0] * 18),
                )
            elif kind == "COMMAND_LONG":
                name = ardupilotmega.mavlink_map[int(message.param1)].msgname
                if not self._is_lost(name):
                    self.requests.append((self.now, name))
                    self._set_rate(name, 1e6 / message.param2)
            elif kind == "PARAM_SET" and message.param_id in self.parameters:
                self.writes.append((self.now, message.param_value))
                self.parameters[message.param_id] = message.param_value
                self._answer(message.param_id)
            elif kind == "PARAM_REQUEST_READ" and not self._is_lost(message.param_id):
                self._answer(message.param_id)

    def _is_lost(self, name: str) -> bool:
        """Whether a further request of a message or parameter is lost."""
        self._requested[name] += 1
        return self._requested[name] in self._lost.get(name, ())

    def close(self) -> None:
        self._queue.clear()

    # The autopilot

    def _begin(self, t: float) -> None:
        self._rates.clear()
        self._sender.mav.seq = 0
        self._set_rate("HEARTBEAT", 1.0, t)
        for name, rate in _DEFAULT_RATES[self.autopilot].items():
            self._set_rate(name, rate, t + 0.2)

    def _restart(self) -> None:
        start, duration = self._restarts.pop(0)
        self._queue.clear()
        self._boot = start + 0.5 * duration
        self._begin(start + duration)

    def _set_rate(self, name: str, rate: float, start: float | None = None) -> None:
        is_new = name not in self._rates
        self._rates[name] = rate
        if is_new and _maker(name) is not None:
            heapq.heappush(
                self._queue, (self.now + 0.02 if start is None else start, next(self._number), name, b"")
            )

    def _schedule(self, name: str, t: float) -> None:
        steps = _STEPS[self.autopilot].get(name, (10,))
        cycle = self._steps.setdefault(name, itertools.cycle(steps))
        limit = next((hz for at, hz in reversed(self._limits) if t >= at), math.inf)
        rate = min(self._rates[name], limit)
        mean = sum(steps) / len(steps)
        step = 1.0 / rate if rate <= 5.0 else next(cycle) / mean / rate
        heapq.heappush(self._queue, (t + step, next(self._number), name, b""))

    def _answer(self, name: str) -> None:
        values: dict[str, float] = {f"PWM_MAIN_FUNC{k}": 100 + k for k in range(1, 5)}
        if self.autopilot == ARDUPILOT:
            values = {f"SERVO{k}_FUNCTION": 32.0 + k for k in range(1, 5)}
            values |= {"MOT_PWM_MIN": 1000.0, "MOT_PWM_MAX": 2000.0}
        values |= self.parameters
        if name in values:
            self.push(self.now + 0.02, self.parameter(name, values[name]))

    def parameter(self, name: str, value: float) -> bytes:
        """PARAM_VALUE; PX4 sends the bytes of an integer."""
        kind = 9
        if isinstance(value, int):
            (value,), kind = struct.unpack("<f", struct.pack("<i", value)), 6
        return self._sender("PARAM_VALUE", name.encode(), value, kind, 900, 0)

    def request(self, name: str, rate: float) -> None:
        """Set the rate of a message, Hz."""
        self._set_rate(name, rate)

    def push(self, t: float, data: bytes) -> None:
        """Add bytes that arrive at t, s."""
        heapq.heappush(self._queue, (t, next(self._number), "", data))

    def _message(self, name: str, t: float) -> bytes:
        if name == "LOCAL_POSITION_NED" and t < self.origin:
            return b""
        maker = _maker(name)
        assert maker is not None
        state = self.state(t)
        return self._sender(name, *maker(self, t - self._boot, state))

    # The motion

    def position(self, t: float) -> np.ndarray:
        """Position, m, NED: up, circles that begin and end smoothly, down."""
        f = self.flight(t)
        if f is None:
            return np.zeros(3)
        rise = _smooth((t - f.start) / 2.0) * _smooth((f.end - t) / 2.0)
        share = _smooth((t - f.start - 2.0) / 2.0) * _smooth((f.end - 2.0 - t) / 2.0)
        angle = _TURN * (t - f.start)
        along, across = 1.0 - math.cos(angle), math.sin(angle)
        return np.array([share * _RADIUS * along, share * _RADIUS * across, -rise * _HEIGHT])

    def flight(self, t: float) -> Flight | None:
        """The flight at t, s; None on the ground."""
        return next((f for f in self.flights if f.start <= t < f.end), None)

    def _motion(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity, acceleration and thrust of the rotors (N) at t, s; NED."""
        before, now, after = (self.position(t + k * _H) for k in (-1, 0, 1))
        v, a = (after - before) / (2 * _H), (after - 2 * now + before) / _H**2
        flight = self.flight(t)
        if flight is None:
            return now, v, a, np.array([0.0, 0.0, -1.0])
        return now, v, a, flight.mass * (a - np.array([0.0, 0.0, _G])) + DRAG * v

    def turning(self, t: float) -> np.ndarray:
        """Commands of the rotors at t, s, over their mean: the motors do not turn this vehicle."""
        del t
        return np.zeros(4)

    def state(self, t: float) -> dict[str, Any]:
        """Motion and commands at t, s."""
        if self._state[0] != t:
            self._state = t, self._compute_state(t)
        return self._state[1]

    def _compute_state(self, t: float) -> dict[str, Any]:
        if self.flight(t) is None:
            q, command, rate = np.array([1.0, 0.0, 0.0, 0.0]), 1.0 / MAX_THRUST, np.zeros(3)
            p, v, a = np.zeros((3, 3))
        else:
            p, v, a, force = self._motion(t)
            thrust = float(np.linalg.norm(force))
            later = float(np.linalg.norm(self._motion(t + _LEAD)[3]))
            q, command = _attitude(force), thrust / MAX_THRUST
            rate = np.zeros(3)
            if self.flight(t - _H) is not None:
                rate = _rate(_attitude(self._motion(t - _H)[3]), q) / _H
            if self.flight(t + _LEAD) is not None:
                command += _LAG * (later - thrust) / _LEAD / MAX_THRUST
        noise = self._noise.normal(size=9)
        return {
            "position": p,
            "velocity": v + 0.03 * noise[:3],
            "attitude": q,
            "rate": rate + 0.005 * noise[3:6],
            "felt": _turned(q, a - np.array([0.0, 0.0, _G])) + 0.1 * noise[6:],
            "command": min(max(command, 0.0), 1.0),
            "rotor_commands": np.clip(command + self.turning(t), 0.0, 1.0),
            "is_flying": self.flight(t) is not None,
        }


def _smooth(x: float) -> float:
    s = min(max(x, 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def _ms(t: float) -> int:
    return round(t * 1e3)


def _us(t: float) -> int:
    return round(t * 1e6)


def _euler(q: np.ndarray) -> tuple[float, float, float]:
    w, x, y, z = q.tolist()
    return (
        math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        math.asin(2 * (w * y - z * x)),
        math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )


def _pwm(s: dict) -> list[float]:
    return (1000.0 + 1000.0 * s["rotor_commands"]).tolist()


def _milli(values: np.ndarray, unit: float) -> list[int]:
    return [round(v) for v in (values / unit * 1e3).tolist()]


_Maker = Callable[[ScriptedVehicle, float, dict], tuple]
_MAKERS: Final[dict[str, _Maker]] = {
    "HEARTBEAT": lambda v, t, s: (2, v.autopilot, 128 * s["is_flying"], 0, 4, 3),
    "SYSTEM_TIME": lambda v, t, s: (0, _ms(t)),
    "HIGHRES_IMU": lambda v, t, s: (_us(t), *s["felt"], *s["rate"], 0, 0, 0, 0, 0, 0, 0, 63),
    "RAW_IMU": lambda v, t, s: (_us(t), *_milli(s["felt"], 9.80665), *_milli(s["rate"], 1.0), 0, 0, 0),
    "ATTITUDE": lambda v, t, s: (_ms(t), *_euler(s["attitude"]), *s["rate"]),
    "ATTITUDE_QUATERNION": lambda v, t, s: (_ms(t), *s["attitude"], *s["rate"]),
    "LOCAL_POSITION_NED": lambda v, t, s: (_ms(t), *s["position"], *s["velocity"]),
    "ATTITUDE_TARGET": lambda v, t, s: (_ms(t), 0, [1.0, 0, 0, 0], 0, 0, 0, s["command"]),
    "ACTUATOR_OUTPUT_STATUS": lambda v, t, s: (_us(t), 16, _pwm(s) + [0.0] * 28),
    "SERVO_OUTPUT_RAW": lambda v, t, s: (_us(t) % 2**32, 0, *map(round, _pwm(s)), 0, 0, 0, 0),
    "EXTENDED_SYS_STATE": lambda v, t, s: (0, 2 if s["is_flying"] else 1),
}
"""Fields by message. t: s since the boot."""


def _maker(name: str) -> _Maker | None:
    return _MAKERS.get(name)
