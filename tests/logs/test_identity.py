"""Which vehicle flew, and when: serial numbers of autopilots and the time of their GPS receivers."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.logs.reader_base import Collector
from tests.logs.make import ARDUPILOT_FORMATS, dataflash, ulog, ulog_message

BOOT = 1_700_000_000.0
"""Unix time at which the clocks of these vehicles read 0, s."""


def read_bytes(tmp_path: Path, content: bytes) -> Flight:
    path = tmp_path / "log"
    path.write_bytes(content)
    return read(path)


def test_px4(tmp_path: Path) -> None:
    stamps = [5_000_000 + 10_000 * i for i in range(20)]
    rates = [struct.pack("<Q3f", t, 0.1, 0.2, 0.3) for t in stamps]
    utc = [struct.pack("<QQ", t, round(BOOT * 1e6) + t if t > 5_100_000 else 0) for t in stamps]
    log = ulog(
        [
            ("vehicle_angular_velocity", 0, "uint64_t timestamp;float[3] xyz;", rates),
            ("sensor_gps", 0, "uint64_t timestamp;uint64_t time_utc_usec;", utc),
        ]
    )
    serial = b"char[8] sys_uuid"
    flight = read_bytes(tmp_path, log + ulog_message("I", bytes([len(serial)]) + serial + b"00A51B2C"))
    assert flight.identity == "00A51B2C"
    assert flight.utc == pytest.approx(BOOT + 5.0, abs=1e-3)


def test_ardupilot(tmp_path: Path) -> None:
    formats = ARDUPILOT_FORMATS | {"GPS": ("QBLH", "TimeUS,Status,GMS,GWk")}
    week, seconds = divmod(BOOT + 20.0 - 315_964_800 + 18.0, 604_800.0)
    rows = [
        ("MSG", 20_000_000, b"CubeOrange 003C0037 3036510C 31393637"),
        ("ATT", 20_000_000, 0.0, 0.0, 0.0),
        ("ATT", 20_100_000, 0.0, 0.0, 0.0),
        ("GPS", 20_000_000, 3, round(1e3 * seconds), int(week)),
    ]
    flight = read_bytes(tmp_path, dataflash(formats, rows))
    assert flight.identity == "003C00373036510C31393637"
    assert flight.utc == pytest.approx(BOOT + 20.0, abs=1e-3)


def test_a_serial_number_of_zeros_is_none_and_a_clock_of_unix_time_tells_the_time(tmp_path: Path) -> None:
    for clock, utc in ((BOOT, BOOT + 1.0), (12.0, math.nan)):
        collector = Collector(tmp_path, "test", clock)
        collector.add("thrust", np.array([1.0, 2.0]), np.ones((2, 1)), "made")
        flight = collector.flight(identity="0000")
        assert flight.identity == ""
        assert flight.utc == pytest.approx(utc, nan_ok=True)
