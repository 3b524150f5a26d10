"""Requests to the vehicle: the messages that estimators need, at their rates, and the parameters of its outputs.

A heartbeat each second makes the vehicle send to this address. MAV_CMD_SET_MESSAGE_INTERVAL is repeated for messages that
do not arrive, `_MAX_ATTEMPTS` times at most. https://mavlink.io/en/services/command.html
"""

from __future__ import annotations

from typing import Final

from rotorid.live.link.message_reader import MessageReader
from rotorid.live.link.message_sender import MessageSender
from rotorid.logs.mavlink.messages import MESSAGES
from rotorid.logs.mavlink.vehicle import ARDUPILOT

_HEARTBEAT_INTERVAL: Final = 1.0  # s
_REPEAT_INTERVAL: Final = 2.0  # s
_MAX_ATTEMPTS: Final = 5
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


class MessageRequests:
    """Sends the requests of one session. rate: of the fast messages, Hz."""

    def __init__(self, reader: MessageReader, sender: MessageSender, rate: float) -> None:
        self._reader, self._sender, self._rate = reader, sender, rate
        self._last_heartbeat = self._last_request = -1e9
        self._attempts = 0

    def update(self, now: float) -> None:
        """Send the requests that are due. After the last attempt, an event reports the messages that are still missing.

        Args:
            now: time of a monotonic clock, s.
        """
        reader = self._reader
        if now >= self._last_heartbeat + _HEARTBEAT_INTERVAL:
            self._last_heartbeat = now
            self._sender.heartbeat()
        if (
            not reader.vehicle.system
            or now < self._last_request + _REPEAT_INTERVAL
            or self._attempts > _MAX_ATTEMPTS
        ):
            return
        missing = reader.missing_signals()
        if self._attempts and not missing:
            return
        self._attempts += 1
        if self._attempts > _MAX_ATTEMPTS:
            reader.events.add("messages_missing", missing=missing, requests=_MAX_ATTEMPTS)
            return
        self._last_request = now
        self._send_requests()

    def _send_requests(self) -> None:
        vehicle, send = self._reader.vehicle, self._sender
        is_ardupilot = vehicle.properties.autopilot == ARDUPILOT
        fast = _FAST_ARDUPILOT if is_ardupilot else _FAST
        for name, rate in (dict.fromkeys(fast, self._rate) | dict.fromkeys(_SLOW, _SLOW_RATE)).items():
            send.command(vehicle.system, vehicle.component, _SET_INTERVAL, MESSAGES[name].number, 1e6 / rate)
        for name in _ARDUPILOT_PARAMETERS if is_ardupilot else _PX4_PARAMETERS:
            if name not in vehicle.properties.parameters:
                send.request_parameter(vehicle.system, vehicle.component, name)
