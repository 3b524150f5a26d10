"""A small blackbox log written by code: a quadrotor at 500 Hz whose signals are known, every second iteration logged."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

FIELDS = (
    "loopIteration", "time", "vbatLatest",
    *(f"{name}[{i}]" for name, count in (("gyroADC", 3), ("accSmooth", 3), ("debug", 4)) for i in range(count)),
    *(f"{name}[{i}]" for name in ("motor", "eRPM") for i in range(4)), "setpoint[3]",
)  # fmt: skip
SIGNED = [int(name.startswith(("gyro", "acc", "debug"))) for name in FIELDS]
INTRA = ([0] * 10 + [0] * 3 + [11, 5, 5, 5] + [0] * 5, [1, 1, 3] + [0] * 10 + [1, 0, 0, 0] + [1] * 5)
INTER = (
    [6, 2, 1] + [3] * 3 + [3] * 3 + [0] * 4 + [3] * 4 + [1] * 4 + [1],
    [9, 0, 6] + [7] * 3 + [10] * 3 + [8] * 4 + [0] * 4 + [6] * 5,
)  # fmt: skip
HEADERS = {
    "Product": "Blackbox flight data recorder by Nicholas Sherlock",
    "Data version": "2",
    "I interval": "8",
    "Field I name": ",".join(FIELDS),
    "Field I signed": ",".join(map(str, SIGNED)),
    "Field I predictor": ",".join(map(str, INTRA[0])),
    "Field I encoding": ",".join(map(str, INTRA[1])),
    "Field P predictor": ",".join(map(str, INTER[0])),
    "Field P encoding": ",".join(map(str, INTER[1])),
    "Field S name": "flightModeFlags,stateFlags,failsafePhase",
    "Field S signed": "0,0,0",
    "Field S predictor": "0,0,0",
    "Field S encoding": "1,1,1",
    "Firmware type": "Cleanflight",
    "Firmware revision": "Betaflight 4.4.2 (abc) TEST",
    "Craft name": "Bench",
    "Log start datetime": "2024-05-01T12:00:00.000+00:00",
    "P interval": "2",
    "minthrottle": "1070",
    "maxthrottle": "2000",
    "gyro_scale": "0x3f800000",
    "motorOutput": "158,2047",
    "acc_1G": "2048",
    "motor_poles": "14",
    "rollPID": "45,80,40",
}
END = b"E\xffEnd of log\0"


def unsigned(value: int) -> bytes:
    value &= 0xFFFFFFFF
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def signed(value: int) -> bytes:
    return unsigned(value << 1 ^ value >> 31)


def encode(values: Sequence[int], encodings: Sequence[int]) -> bytes:
    """The bytes of the differences from the predictions."""
    out, i = b"", 0
    while i < len(values):
        encoding, count = encodings[i], 1
        if encoding == 0:
            out += signed(values[i])
        elif encoding == 1:
            out += unsigned(values[i])
        elif encoding == 3:
            out += unsigned(-values[i] & 0x3FFF)
        elif encoding == 6:
            count = next((k for k, e in enumerate(encodings[i:]) if e != 6), len(encodings) - i)
            group = values[i : i + count]
            if count > 1:
                out += bytes([sum(1 << k for k, v in enumerate(group) if v)])
            out += b"".join(signed(v) for v in group if v or count == 1)
        elif encoding in (7, 10):
            count = 3
            out += b"\xd5" + b"".join(struct.pack("<h", v) for v in values[i : i + 3])
        elif encoding == 8:
            count = 4
            out += b"\xff" + b"".join(struct.pack(">h", v) for v in values[i : i + 4])
        i += count
    return out


def half(total: int) -> int:
    return int(total / 2)


def differences(
    row: Sequence[int], predictors: Sequence[int], one: Sequence[int], two: Sequence[int]
) -> list[int]:
    """Values of a row less their predictions from the row before and the one before that."""
    motor = row[FIELDS.index("motor[0]")]
    predictions = {
        0: lambda i: 0,
        1: lambda i: one[i],
        2: lambda i: 2 * one[i] - two[i],
        3: lambda i: half(one[i] + two[i]),
        5: lambda i: motor,
        6: lambda i: row[i],
        11: lambda i: 158,
    }
    return [value - predictions[p](i) for i, (value, p) in enumerate(zip(row, predictors, strict=True))]


def table(n: int, seed: int = 0) -> np.ndarray:
    """Rows of the fields: iterations in steps of 2, 1000 us each."""
    rng = np.random.default_rng(seed)
    k = np.arange(n)
    gyro = np.round(200 * np.sin(0.1 * k[:, None] + np.arange(3)) + rng.normal(0, 3, (n, 3)))
    force = np.round(np.array([0, 0, 2048]) + rng.normal(0, 20, (n, 3)))
    debug = rng.integers(-9000, 9000, (n, 4))
    motor = np.round(900 + 300 * np.sin(0.1 * k[:, None] + np.arange(4)))
    speed = np.round(700 + 100 * np.sin(0.1 * k[:, None] + np.arange(4)))
    head = np.stack([2 * k, 5_000_000 + 2000 * k, 1600 - k // 50], axis=1)
    throttle = np.full((n, 1), 400)
    return np.hstack([head, gyro, force, debug, motor, speed, throttle]).astype(np.int64)


def session(rows: np.ndarray, headers: Mapping[str, str] | None = None, end: bytes = END) -> bytes:
    """A session of a file. headers: other ones."""
    out = "".join(f"H {k}:{v}\n" for k, v in {**HEADERS, **(headers or {})}.items()).encode()
    out += b"S" + unsigned(1) + unsigned(0) + unsigned(0)
    one: list[int] = []
    two: list[int] = []
    for row in rows.tolist():
        if row[0] % 8 == 0:
            out += b"I" + encode(differences(row, INTRA[0], one, two), INTRA[1])
            one, two = row, row
        else:
            out += b"P" + encode(differences(row, INTER[0], one, two), INTER[1])
            one, two = row, one
        if row[0] % 100 == 0:
            out += b"E\x1e" + unsigned(1) + unsigned(0)
    return out + end


def blackbox_hover(n: int = 200) -> bytes:
    return session(table(n))
