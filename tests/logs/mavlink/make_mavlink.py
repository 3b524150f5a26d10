"""MAVLink recordings written with pymavlink, and nothing of the readers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pymavlink.dialects.v20 import ardupilotmega as v2
from pymavlink.generator.mavcrc import x25crc

PX4, ARDUPILOT = 12, 3
ARRIVAL = 1_795_258_000_000_000
ARDUPILOT_OUTPUTS = {
    "SERVO1_FUNCTION": 34,
    "SERVO2_FUNCTION": 33,
    "SERVO3_FUNCTION": 35,
    "SERVO4_FUNCTION": 36,
}
ARDUPILOT_OUTPUTS |= {"MOT_PWM_MIN": 1000, "MOT_PWM_MAX": 2000}


class Recording:
    """A recording in the making. dialect: v1 or v2, whose messages are `recording.message(name, ...)`."""

    def __init__(self, dialect=v2, system: int = 1, component: int = 1):
        self.dialect = dialect
        self.mav = dialect.MAVLink(None, srcSystem=system, srcComponent=component)
        self.frames: list[tuple[int, bytes]] = []

    def send(self, arrival: int, name: str, *fields) -> None:
        """Write a message that arrives `arrival` us after the recording began."""
        message = getattr(self.dialect, f"MAVLink_{name.lower()}_message")(*fields)
        self.frames.append((arrival, bytes(message.pack(self.mav))))
        self.mav.seq = (self.mav.seq + 1) % 256

    def send_raw(self, arrival: int, number: int, crc_extra: int, payload: bytes) -> None:
        """Write a message of version 2 that pymavlink does not know."""
        payload = payload.rstrip(b"\0") or b"\0"
        head = struct.pack(
            "<BBBBBB", len(payload), 0, 0, self.mav.seq, self.mav.srcSystem, self.mav.srcComponent
        )
        body = head + number.to_bytes(3, "little") + payload
        crc = x25crc(body + bytes([crc_extra])).crc
        self.frames.append((arrival, b"\xfd" + body + struct.pack("<H", crc)))
        self.mav.seq = (self.mav.seq + 1) % 256


def tlog(*recordings: Recording) -> bytes:
    """The recordings in one file, in the order of arrival."""
    frames = sorted((f for r in recordings for f in r.frames), key=lambda f: f[0])
    return b"".join(struct.pack(">Q", ARRIVAL + arrival) + frame for arrival, frame in frames)


def heartbeat(recording: Recording, arrival: int, kind: int = 2, autopilot: int = ARDUPILOT) -> None:
    recording.send(arrival, "HEARTBEAT", kind, autopilot, 0, 0, 4, 3)


def parameters(recording: Recording, values: dict[str, float]) -> None:
    """As ArduPilot sends them: values, whatever their type."""
    for name, value in values.items():
        recording.send(0, "PARAM_VALUE", name.encode(), float(value), 4, len(values), 65535)


def hover_recording(
    n: int = 200, rate: float = 100.0, boot: int = 20_000_000, dialect=v2, system: int = 1, kind: int = 2
) -> Recording:
    """A quadrotor of ArduPilot that hovers level, nose north, moving north at 1 m/s; output 1 drives motor 2 and so on."""
    out = Recording(dialect, system)
    heartbeat(out, 0, kind)
    parameters(out, ARDUPILOT_OUTPUTS)
    for i in range(n):
        us = boot + round(i * 1e6 / rate)
        ms, at = us // 1000, 1000 + round(i * 1e6 / rate)
        out.send(at, "ATTITUDE_QUATERNION", ms, 1, 0, 0, 0, 0.1, 0.2, 0.3)
        out.send(at, "RAW_IMU", us, 51, -25, -1000, 100, 200, 300, 0, 0, 0)
        out.send(at, "LOCAL_POSITION_NED", ms, i / rate, 2, -3, 1, 0, 0)
        out.send(at, "SERVO_OUTPUT_RAW", us % 2**32, 0, 1200, 1100, 1300, 1400, 0, 0, 0, 0)
        if i % 20 == 0:
            out.send(at, "SYS_STATUS", 0, 0, 0, 0, 12500, 0, 0, 0, 0, 0, 0, 0, 0)
    return out


def tlog_hover(n: int = 200) -> bytes:
    return tlog(hover_recording(n))


def px4_recording(rows: Sequence[tuple[int, tuple[float, ...]]]) -> Recording:
    """A PX4 quadrotor; rows are (us since boot, outputs in us of PWM)."""
    out = Recording()
    heartbeat(out, 0, autopilot=PX4)
    for name, value in {
        "PWM_MAIN_FUNC1": 102,
        "PWM_MAIN_FUNC2": 101,
        "PWM_MAIN_FUNC3": 103,
        "PWM_MAIN_FUNC4": 104,
    }.items():
        (as_float,) = struct.unpack("<f", struct.pack("<i", value))
        out.send(0, "PARAM_VALUE", name.encode(), as_float, 6, 4, 65535)
    for us, pwm in rows:
        out.send(us, "ACTUATOR_OUTPUT_STATUS", us, 16, [*pwm, *[0.0] * (32 - len(pwm))])
    return out
