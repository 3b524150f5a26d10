"""Current and remaining charge of the battery: units, signs and values that mean "unknown" of each format."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from rotorid import read
from tests.logs.make import ulog
from tests.logs.mavlink.make_mavlink import Recording, hover_recording, tlog


def test_current_and_remaining_charge_of_px4(tmp_path: Path) -> None:
    rows = [struct.pack("<Q3f", 5_000_000 + 100_000 * i, 15.0, i - 1.0, 0.9) for i in range(20)]
    fields = "uint64_t timestamp;float voltage_v;float current_a;float remaining;"
    (tmp_path / "log").write_bytes(ulog([("battery_status", 0, fields, rows)]))
    flight = read(tmp_path / "log")
    np.testing.assert_allclose(flight["battery_current"].values[:, 0], np.arange(19.0))  # -1 A is no sensor
    np.testing.assert_allclose(flight["battery_remaining"].values, 0.9, rtol=1e-6)


@pytest.mark.parametrize("message", ["SYS_STATUS", "BATTERY_STATUS"])
def test_current_and_remaining_charge_of_mavlink(tmp_path: Path, message: str) -> None:
    recording: Recording = hover_recording(20)
    for k, (current, remaining) in enumerate([(-1, -1), (1250, 80), (1300, 79)]):
        if message == "SYS_STATUS":
            fields = (0, 0, 0, 0, 12500, current, remaining, 0, 0, 0, 0, 0, 0)
        else:
            fields = (0, 0, 0, 0, [4000] * 3 + [65535] * 7, current, 0, 0, remaining)
        at = 300_000 + 100_000 * k
        recording.send(at, "ATTITUDE_QUATERNION", 20_000 + at // 1000, 1, 0, 0, 0, 0.1, 0.2, 0.3)
        recording.send(at, message, *fields)
    (tmp_path / "log.tlog").write_bytes(tlog(recording))
    flight = read(tmp_path / "log.tlog")
    np.testing.assert_allclose(flight["battery_current"].values[-2:, 0], [12.5, 13.0])
    np.testing.assert_allclose(flight["battery_remaining"].values[-2:, 0], [0.8, 0.79])


@pytest.mark.parametrize(
    ("name", "most"), [("ardupilot_propeller/good_hover_1.BIN", 15.62), ("betaflight/LOG00001.BFL", 0.4)]
)
def test_current_of_real_logs(flights: Path, name: str, most: float) -> None:
    assert read(flights / name)["battery_current"].values.max() == pytest.approx(most, abs=0.01)
