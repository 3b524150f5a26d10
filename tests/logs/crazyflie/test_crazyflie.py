"""Crazyflie logs: units, both versions of the format, the compressed quaternion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid import read
from rotorid.geometry.rotation_rows import multiply
from tests.logs.make import crazyflie_hover, usd


def write(folder: Path, content: bytes) -> Path:
    path = folder / "log"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("version", [1, 2])
def test_units_and_clocks(tmp_path: Path, version: int):
    flight = read(write(tmp_path, crazyflie_hover(version=version)))
    assert flight.time_origin == pytest.approx(20.0)
    np.testing.assert_allclose(
        flight["specific_force"].values[0], np.array([0.1, -0.2, 1.0]) * 9.81, rtol=1e-6
    )
    np.testing.assert_allclose(flight["body_rate"].values[0], np.radians([10, 20, -30]), rtol=1e-6)
    np.testing.assert_allclose(flight["rotor_command"].values, 0.5, atol=1e-4)
    assert flight["body_rate"].rate == pytest.approx(500)
    assert flight["battery_voltage"].rate == pytest.approx(10)
    assert not flight.notes


def compress(q: np.ndarray) -> int:
    """Of x y z w the index of the largest, and sign and 9 bits of each other, from x on."""
    largest = int(np.argmax(np.abs(q)))
    packed = largest
    for i in range(4):
        if i != largest:
            negative = (q[i] < 0) != (q[largest] < 0)
            packed = packed << 10 | int(negative) << 9 | round(511 * abs(q[i]) * np.sqrt(2))
    return packed


def test_compressed_quaternions(tmp_path: Path):
    rng = np.random.default_rng(0)
    q = rng.normal(size=(200, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    rows = [(1000 * i, compress(one)) for i, one in enumerate(q)]
    flight = read(write(tmp_path, usd([("fixedFrequency", ["stateEstimateZ.quat(I)"], rows)])))
    overlap = np.abs((flight["attitude"].values * q[:, [3, 0, 1, 2]]).sum(axis=1))
    assert overlap.min() > 1 - 1e-5


def test_pitch_of_the_state_estimate_is_negated(tmp_path: Path):
    variables = ["stateEstimate.roll(f)", "stateEstimate.pitch(f)", "stateEstimate.yaw(f)"]
    flight = read(
        write(tmp_path, usd([("fixedFrequency", variables, [(1000 * i, 0, 10, 0) for i in range(9)])]))
    )
    np.testing.assert_allclose(
        flight["attitude"].values[0], [np.cos(np.radians(5)), 0, -np.sin(np.radians(5)), 0], atol=1e-7
    )


def test_flying_bit(tmp_path: Path):
    rows = [(1000 * i, 0b10011 if i > 4 else 0b11) for i in range(9)]
    flight = read(write(tmp_path, usd([("fixedFrequency", ["supervisor.info(H)"], rows)])))
    np.testing.assert_array_equal(flight["airborne"].values[:, 0], [0] * 5 + [1] * 4)


def test_a_wrong_checksum_is_said(tmp_path: Path):
    content = bytearray(crazyflie_hover())
    content[-20] ^= 1
    assert any("CRC" in n for n in read(write(tmp_path, bytes(content))).notes)


@pytest.mark.parametrize("number", [146, 148, 150, 158, 162, 170, 180, 201, 202, 204, 206])
def test_real_flights_with_a_controller_that_logs_thrust(flights: Path, number: int):
    flight = read(flights / "crazyflie_crazyswarm2" / f"log{number}")
    assert flight["thrust"].rate == pytest.approx(252, abs=1)
    assert set(flight.signals) >= {"position", "velocity", "attitude", "body_rate", "thrust"}
    assert ("specific_force" in flight) == (number > 200)
    assert 0.28 < np.median(flight["thrust"].values) < 0.42
    q, times = flight["attitude"].values, flight["attitude"].times
    whole = times[8:] - times[:-8] < 0.05
    turned = (
        2 * multiply(q[:-8] * np.array([1, -1, -1, -1]), q[8:])[:, 1:] / (times[8:] - times[:-8])[:, None]
    )
    fast = flight["body_rate"].values[4:-4]
    axis = int(np.argmax(fast[whole].std(axis=0)))
    assert np.polyfit(fast[whole, axis], turned[whole, axis], 1)[0] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("number", [10, 15, 16])
def test_real_flights_of_imu_and_motors(flights: Path, number: int):
    flight = read(flights / "crazyflie_arpl" / f"log{number}")
    assert set(flight.signals) == {"body_rate", "specific_force", "rotor_command"}
    assert flight["rotor_command"].rate == pytest.approx(1011, abs=2)
    flying = flight["rotor_command"].values.min(axis=1) > 0.3
    assert np.median(flight["specific_force"].values[flying, 2]) == pytest.approx(10.0, abs=0.4)


def test_set_points_of_the_body_rate(tmp_path: Path):
    variables = [f"controller.{axis}Rate(f)" for axis in ("roll", "pitch", "yaw")]
    rows = [(1000 * i, 10.0, 20.0, 30.0) for i in range(9)]
    flight = read(write(tmp_path, usd([("fixedFrequency", variables, rows)])))
    np.testing.assert_allclose(flight["body_rate_setpoint"].values[0], np.radians([10.0, -20.0, 30.0]))
