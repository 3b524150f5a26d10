"""What a live session asks of the vehicle: messages at the rates that estimates need, and the parameters that tell its
outputs.

A heartbeat each second makes a vehicle send to this address at all. MAV_CMD_SET_MESSAGE_INTERVAL is repeated for
messages that do not come, and given up after some tries: `Session.missing` says by name what is not there.
https://mavlink.io/en/services/command.html
"""

from __future__ import annotations

from typing import Final

from rotorid.live.moment import Event
from rotorid.live.outgoing import Sender
from rotorid.live.session import Session
from rotorid.logs.mavlink_messages import MESSAGES
from rotorid.logs.mavlink_vehicle import ARDUPILOT

_HEARTBEAT: Final = 1.0  # s
_AGAIN: Final = 2.0  # s
_TRIES: Final = 5
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
_PX4_PARAMETERS: Final = tuple(f"PWM_MAIN_{k}{n}" for n in range(1, 9) for k in ("FUNC", "MIN", "MAX"))
_ARDUPILOT_PARAMETERS: Final = ("MOT_PWM_MIN", "MOT_PWM_MAX", *(f"SERVO{n}_FUNCTION" for n in range(1, 13)))


class Requests:
    """Asks, from time to time. rate: of the fast messages, Hz."""

    def __init__(self, session: Session, sender: Sender, rate: float) -> None:
        self._session, self._sender, self._rate = session, sender, rate
        self._beat = self._asked = -1e9
        self._tries = 0

    def tick(self, now: float) -> list[Event]:
        """Send what is due, and say what was asked for in vain. now: s, by any clock that runs on."""
        session, vehicle = self._session, self._session.vehicle
        if now >= self._beat + _HEARTBEAT:
            self._beat = now
            self._sender.heartbeat()
        if not vehicle.system or now < self._asked + _AGAIN or self._tries > _TRIES:
            return []
        missing = session.missing()
        if self._tries and not missing:
            return []
        self._tries += 1
        if self._tries > _TRIES:
            t = max(session.timeline.latest, 0.0)
            return [
                Event(t, "link", f"asked {_TRIES} times, and the vehicle sends no {', no '.join(missing)}")
            ]
        self._asked = now
        self._ask()
        return []

    def _ask(self) -> None:
        vehicle, send = self._session.vehicle, self._sender
        ardupilot = vehicle.about.autopilot == ARDUPILOT
        fast = _FAST_ARDUPILOT if ardupilot else _FAST
        for name, rate in (dict.fromkeys(fast, self._rate) | dict.fromkeys(_SLOW, 2.0)).items():
            send.command(vehicle.system, vehicle.component, _SET_INTERVAL, MESSAGES[name].number, 1e6 / rate)
        for name in _ARDUPILOT_PARAMETERS if ardupilot else _PX4_PARAMETERS:
            if name not in vehicle.about.parameters:
                send.ask_parameter(vehicle.system, vehicle.component, name)
