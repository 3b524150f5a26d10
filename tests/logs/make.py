"""Small logs written by code: the formats as their documents describe them, and nothing of the readers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

ULOG_SYNC = bytes([0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12])


def ulog_message(kind: str, payload: bytes) -> bytes:
    return struct.pack("<HB", len(payload), ord(kind)) + payload


def ulog(
    topics: Sequence[tuple[str, int, str, Sequence[bytes]]],
    parameters: Mapping[str, float | int] | None = None,
    start: int = 5_000_000,
) -> bytes:
    """A ULog file; each topic is (name, instance, fields, rows packed after the timestamp field's layout)."""
    out = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", start)
    out += ulog_message("B", bytes(40))
    for name, fields in {name: fields for name, _, fields, _ in topics}.items():
        out += ulog_message("F", f"{name}:{fields}".encode())
    for key, value in {"sys_name": "PX4", "ver_hw": "TEST"}.items():
        text = f"char[{len(value)}] {key}".encode()
        out += ulog_message("I", bytes([len(text)]) + text + value.encode())
    for key, value in (parameters or {}).items():
        kind, code = ("int32_t", "<i") if isinstance(value, int) else ("float", "<f")
        text = f"{kind} {key}".encode()
        out += ulog_message("P", bytes([len(text)]) + text + struct.pack(code, value))
    for identity, (name, instance, _, _) in enumerate(topics):
        out += ulog_message("A", struct.pack("<BH", instance, identity) + name.encode())
    rows = [
        (struct.unpack_from("<Q", row)[0], i, row) for i, (_, _, _, data) in enumerate(topics) for row in data
    ]
    for n, (_, identity, row) in enumerate(sorted(rows, key=lambda r: r[:2])):
        out += ulog_message("D", struct.pack("<H", identity) + row)
        if n % 50 == 49:
            out += ulog_message("S", ULOG_SYNC)
    return out


def px4_hover(n: int = 200, rate: float = 100.0, start: int = 5_000_000) -> bytes:
    """A quadrotor that hovers level, nose north, moving north at 1 m/s: a PX4 log of n rows a topic."""
    stamps = [start + round(i * 1e6 / rate) for i in range(n)]
    nan = [np.nan] * 8
    position_fields = (
        "uint64_t timestamp;uint64_t timestamp_sample;float x;float y;float z;float vx;float vy;float vz;"
        "bool xy_valid;bool z_valid;bool v_xy_valid;bool v_z_valid;uint8_t[4] _padding0;"
    )
    return ulog(
        [
            (
                "vehicle_attitude",
                0,
                "uint64_t timestamp;uint64_t timestamp_sample;float[4] q;",
                [struct.pack("<QQ4f", t + 100, t, 1, 0, 0, 0) for t in stamps],
            ),
            (
                "vehicle_local_position",
                0,
                position_fields,
                [
                    struct.pack("<QQ6f4B", t + 100, t, i / rate, 2, -3, 1, 0, 0, 1, 1, 1, 1)
                    for i, t in enumerate(stamps)
                ],
            ),
            (
                "vehicle_angular_velocity",
                0,
                "uint64_t timestamp;uint64_t timestamp_sample;float[3] xyz;",
                [struct.pack("<QQ3f", t + 100, t, 0.1, 0.2, 0.3) for t in stamps],
            ),
            (
                "sensor_combined",
                0,
                "uint64_t timestamp;float[3] accelerometer_m_s2;int32_t accelerometer_timestamp_relative;",
                [struct.pack("<Q3fi", t, 0.5, -0.25, -9.81, 1000) for t in stamps],
            ),
            (
                "actuator_motors",
                0,
                "uint64_t timestamp;uint64_t timestamp_sample;float[12] control;uint16_t reversible_flags;",
                [struct.pack("<QQ12fH", t + 100, t, 0.1, 0.2, 0.3, 0.4, *nan, 0) for t in stamps],
            ),
            (
                "vehicle_land_detected",
                0,
                "uint64_t timestamp;bool landed;",
                [struct.pack("<QB", stamps[i], i == 0) for i in (0, n // 2)],
            ),
        ],
        parameters={"MAV_TYPE": 2, "MPC_THR_HOVER": 0.5},
        start=start,
    )


_CODES = {
    "Q": "Q",
    "f": "f",
    "B": "B",
    "H": "H",
    "h": "h",
    "N": "16s",
    "Z": "64s",
    "c": "h",
    "C": "H",
    "L": "i",
}


def dataflash(formats: Mapping[str, tuple[str, str]], rows: Sequence[tuple]) -> bytes:
    """A DataFlash file; formats: name -> (codes, columns); each row is (name, values...)."""
    kinds = {name: 10 + i for i, name in enumerate(formats)}
    out = b"\xa3\x95\x80" + struct.pack(
        "<BB4s16s64s", 128, 89, b"FMT", b"BBnNZ", b"Type,Length,Name,Format,Columns"
    )
    for name, (codes, columns) in formats.items():
        length = 3 + struct.calcsize("<" + "".join(_CODES[c] for c in codes))
        fmt = struct.pack("<BB4s16s64s", kinds[name], length, name.encode(), codes.encode(), columns.encode())
        out += b"\xa3\x95\x80" + fmt
    for name, *values in rows:
        codes = "<" + "".join(_CODES[c] for c in formats[name][0])
        out += b"\xa3\x95" + bytes([kinds[name]]) + struct.pack(codes, *values)
    return out


ARDUPILOT_FORMATS = {
    "PARM": ("QNf", "TimeUS,Name,Value"),
    "MSG": ("QZ", "TimeUS,Message"),
    "EV": ("QB", "TimeUS,Id"),
    "ATT": ("Qfff", "TimeUS,Roll,Pitch,Yaw"),
    "IMU": ("QBffffff", "TimeUS,I,GyrX,GyrY,GyrZ,AccX,AccY,AccZ"),
    "XKF1": ("QBffffff", "TimeUS,C,VN,VE,VD,PN,PE,PD"),
    "RCOU": ("QHHHH", "TimeUS,C1,C2,C3,C4"),
    "BAT": ("QBf", "TimeUS,Inst,Volt"),
    "ESC": ("QBf", "TimeUS,Instance,RPM"),
}


def ardupilot_hover(n: int = 200, rate: float = 100.0, start: int = 20_000_000) -> bytes:
    """A quadrotor that hovers level, nose north, moving north at 1 m/s; output 1 drives motor 2 and so on."""
    rows: list[tuple] = [("MSG", start, b"ArduCopter V4.6.3 (test)"), ("MSG", start, b"Frame: QUAD/X")]
    settings = {"MOT_PWM_MIN": 1000.0, "MOT_PWM_MAX": 2000.0}
    settings |= {
        "SERVO1_FUNCTION": 34.0,
        "SERVO2_FUNCTION": 33.0,
        "SERVO3_FUNCTION": 35.0,
        "SERVO4_FUNCTION": 36.0,
    }
    rows += [("PARM", start, name.encode(), value) for name, value in settings.items()]
    for i in range(n):
        t = start + round(i * 1e6 / rate)
        rows.append(("ATT", t, 0.0, 0.0, 0.0))
        rows += [("IMU", t, instance, 0.1, 0.2, 0.3, 0.5, -0.25, -9.81 - instance) for instance in (0, 1)]
        rows.append(("XKF1", t, 0, 1.0, 0.0, 0.0, i / rate, 2.0, -3.0))
        rows.append(("RCOU", t, 1200, 1100, 1300, 1400))
        rows.append(("BAT", t, 0, 12.5))
        rows += [("ESC", t + 10 * e, e, 1000.0 * (e + 1)) for e in range(4)]
        if i in (10, n // 2):
            rows.append(("EV", t, 28 if i == 10 else 18))
    return dataflash(ARDUPILOT_FORMATS, rows)


def usd(events: Sequence[tuple[str, Sequence[str], Sequence[tuple]]], version: int = 2) -> bytes:
    """A Crazyflie log; each event type is (name, variables as "name(code)", rows of (time, values...))."""
    out = struct.pack("<BHH", 0xBC, version, len(events))
    for identity, (name, variables, _) in enumerate(events):
        out += struct.pack("<H", identity) + name.encode() + b"\0" + struct.pack("<H", len(variables))
        out += b"".join(v.encode() + b"\0" for v in variables)
    stamp = {1: "I", 2: "Q"}[version]
    rows = [(row[0], i, row) for i, (_, _, data) in enumerate(events) for row in data]
    for _, identity, row in sorted(rows, key=lambda r: r[:2]):
        codes = "".join(v[-2] for v in events[identity][1])
        out += struct.pack(f"<H{stamp}{codes}", identity, *row)
    return out + struct.pack("<I", zlib.crc32(out))


CRAZYFLIE_VARIABLES = [f"{group}.{axis}(f)" for group in ("acc", "gyro") for axis in "xyz"]
CRAZYFLIE_VARIABLES += [f"motor.m{i}(I)" for i in (1, 2, 3, 4)]


def crazyflie_hover(n: int = 200, version: int = 2) -> bytes:
    """Two event types on clocks of their own: IMU and motors at 500 Hz, the battery at 10 Hz."""
    tick = 1000 if version == 2 else 1
    values = (0.1, -0.2, 1.0, 10.0, 20.0, -30.0, *([32768] * 4))
    fast = [(20_000 * tick + 2 * tick * i, *values) for i in range(n)]
    slow = [(20_000 * tick + 100 * tick * i, 3.9) for i in range(max(2, n // 50))]
    return usd([("fixedFrequency", CRAZYFLIE_VARIABLES, fast), ("battery", ("pm.vbat(f)",), slow)], version)
