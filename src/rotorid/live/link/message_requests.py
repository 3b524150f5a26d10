"""Requests to the vehicle: the messages that estimators need, at their rates, and the parameters of its outputs.

A heartbeat each second makes the vehicle send to this address. MAV_CMD_SET_MESSAGE_INTERVAL is sent for each message that does
not arrive at about its rate, again and again with growing intervals: an autopilot that reboots sends its default messages only,
and requests can be lost. After a reboot, or when messages stop, the intervals start again.
https://mavlink.io/en/services/command.html
"""

from __future__ import annotations

from typing import Final

from rotorid.live.link.message_reader import MessageReader
from rotorid.live.link.message_sender import MessageSender
from rotorid.logs.mavlink.messages import MESSAGES
from rotorid.logs.mavlink.vehicle import ARDUPILOT

_HEARTBEAT_INTERVAL: Final = 1.0  # s
_CHECK_INTERVAL: Final = 1.0  # s in which rates are measured
_FIRST_REPEAT: Final = 1.5  # s until a request is repeated
_REPEAT_GROWTH: Final = 1.5
_LONGEST_REPEAT: Final = 30.0  # s
_MIN_RATE: Final = 0.6  # share of the requested rate that is enough
_MISSES: Final = 2  # checks in succession that a message must fail
_PARAMETER_ATTEMPTS: Final = 6  # a vehicle does not answer for names that it does not have
_REPORTED_ATTEMPTS: Final = 5  # requests after which missing messages are reported
_ALIVE: Final = 3.0  # s after a heartbeat in which the vehicle is asked
_SET_INTERVAL: Final = 511

_FAST: Final = (
    "ATTITUDE_QUATERNION", "LOCAL_POSITION_NED", "HIGHRES_IMU", "ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW",
)  # fmt: skip
_FAST_ARDUPILOT: Final = (
    "ATTITUDE",
    "ATTITUDE_QUATERNION",
    "LOCAL_POSITION_NED",
    "RAW_IMU",
    "SERVO_OUTPUT_RAW",
)
_SLOW: Final = ("BATTERY_STATUS", "SYS_STATUS", "EXTENDED_SYS_STATE", "SYSTEM_TIME")
_SLOW_RATE: Final = 2.0  # Hz
_PX4_PARAMETERS: Final = tuple(f"PWM_MAIN_{k}{n}" for n in range(1, 9) for k in ("FUNC", "MIN", "MAX"))
_ARDUPILOT_PARAMETERS: Final = ("MOT_PWM_MIN", "MOT_PWM_MAX", *(f"SERVO{n}_FUNCTION" for n in range(1, 13)))


class _Request:
    """The request of one message.

    rate: Hz. attempts: since it last arrived at about this rate. is_arriving: whether it does now. has_arrived: whether it did
    before.
    """

    def __init__(self, name: str, rate: float) -> None:
        self.name, self.rate, self.number = name, rate, MESSAGES[name].number
        self.has_arrived = False
        self._count = 0
        self.restart()

    def restart(self) -> None:
        """Send it again at once."""
        self.attempts, self._misses, self._next, self.is_arriving = 0, 0, -1e9, False

    def check(self, count: int, elapsed: float) -> None:
        """Compare the messages that arrived with the requested rate. count: so far. elapsed: since the last check, s."""
        arrived, self._count = count - self._count, count
        if arrived and arrived + 1 >= _MIN_RATE * self.rate * elapsed:
            self.restart()
            self.is_arriving = self.has_arrived = True
            return
        self._misses += 1
        if self._misses >= _MISSES:
            self.is_arriving = False

    def is_due(self, now: float) -> bool:
        """Whether it is to be sent now, s."""
        return not self.is_arriving and now >= self._next

    def note_sent(self, now: float) -> None:
        """Note that it was sent now, s."""
        self._next = now + min(_FIRST_REPEAT * _REPEAT_GROWTH**self.attempts, _LONGEST_REPEAT)
        self.attempts += 1


class MessageRequests:
    """Sends the requests of one session. rate: of the fast messages, Hz."""

    def __init__(self, reader: MessageReader, sender: MessageSender, rate: float) -> None:
        self._reader, self._sender, self._rate = reader, sender, rate
        self._requests: list[_Request] = []
        self._parameters = _Request("PARAM_VALUE", 0.0)
        self._last_heartbeat = self._last_check = self._last_alive = self._last_restart = -1e9
        self._heartbeats = self._boots = 0
        self._has_reported_missing = False

    def update(self, now: float) -> None:
        """Send the requests that are due, and report in events what is missing and what is requested again.

        Args:
            now: time of a monotonic clock, s.
        """
        if now >= self._last_heartbeat + _HEARTBEAT_INTERVAL:
            self._last_heartbeat = now
            self._sender.heartbeat()
        vehicle = self._reader.vehicle
        if not vehicle.system:
            return
        if not self._requests:
            self._prepare(now)
        self._check_life(now)
        if now > self._last_alive + _ALIVE:
            return
        if now >= self._last_check + _CHECK_INTERVAL:
            self._check_rates(now)
        self._send(now)

    def _prepare(self, now: float) -> None:
        self._last_check = now
        is_ardupilot = self._reader.vehicle.properties.autopilot == ARDUPILOT
        fast = _FAST_ARDUPILOT if is_ardupilot else _FAST
        status = "EKF_STATUS_REPORT" if is_ardupilot else "ESTIMATOR_STATUS"
        rates = dict.fromkeys(fast, self._rate) | dict.fromkeys((*_SLOW, status), _SLOW_RATE)
        self._requests = [_Request(name, rate) for name, rate in rates.items()]

    def _check_life(self, now: float) -> None:
        """Start the requests again after a reboot, and after a time without heartbeats."""
        heartbeats, boots = self._reader.vehicle.heartbeats, self._reader.timeline.boots
        if heartbeats != self._heartbeats:
            was_silent = now > self._last_alive + _ALIVE
            self._heartbeats, self._last_alive = heartbeats, now
            if was_silent:
                self._restart(now)
        if boots != self._boots:
            self._boots = boots
            self._restart(now)

    def _restart(self, now: float) -> None:
        if now < self._last_restart + _FIRST_REPEAT:  # a reboot is noticed in two ways
            return
        self._last_restart = now
        for request in (*self._requests, self._parameters):
            request.restart()

    def _check_rates(self, now: float) -> None:
        elapsed, self._last_check = min(now - self._last_check, 2.0 * _CHECK_INTERVAL), now
        for request in self._requests:
            request.check(self._reader.counts.get(request.number, 0), elapsed)
        missing = self._reader.missing_signals()
        if not missing:
            self._has_reported_missing = False
        elif not self._has_reported_missing and self._attempts(missing) >= _REPORTED_ATTEMPTS:
            self._has_reported_missing = True
            self._reader.events.add("messages_missing", missing=missing, requests=_REPORTED_ATTEMPTS)

    def _attempts(self, missing: dict[str, tuple[str, ...]]) -> int:
        """Requests so far of the messages that contain the missing signals."""
        names = {name for messages in missing.values() for name in messages}
        return max((r.attempts for r in self._requests if r.name in names), default=_REPORTED_ATTEMPTS)

    def _send(self, now: float) -> None:
        vehicle, send = self._reader.vehicle, self._sender
        due = [request for request in self._requests if request.is_due(now)]
        again = [request.name for request in due if request.has_arrived and not request.attempts]
        for request in due:
            request.note_sent(now)
            interval = 1e6 / request.rate
            send.command(vehicle.system, vehicle.component, _SET_INTERVAL, request.number, interval)
        if again:
            self._reader.events.add_limited("messages_requested_again", messages=again)
        if self._parameters.is_due(now) and self._parameters.attempts < _PARAMETER_ATTEMPTS:
            self._parameters.note_sent(now)
            is_ardupilot = vehicle.properties.autopilot == ARDUPILOT
            for name in _ARDUPILOT_PARAMETERS if is_ardupilot else _PX4_PARAMETERS:
                if name not in vehicle.properties.parameters:
                    send.request_parameter(vehicle.system, vehicle.component, name)
