"""Blackbox logs: every frame is decoded, units and signs are ours, and damage costs only the frames up to the next I frame."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid import read
from rotorid.cli import app
from rotorid.errors import LogFormatError
from rotorid.geometry.gravity import GRAVITY
from rotorid.logs.blackbox import frames
from tests.logs.blackbox.make_blackbox import END, FIELDS, HEADERS, blackbox_hover, session, table
from tests.logs.test_read import flight_or_line


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.bbl"


def columns(rows: np.ndarray, name: str) -> np.ndarray:
    return rows[:, [i for i, field in enumerate(FIELDS) if field.startswith(name)]]


def test_every_frame_is_decoded():
    rows = table(500)
    (found,) = frames.read_sessions(session(rows))
    decoded = frames.decode(found)
    assert decoded.names == FIELDS
    assert (decoded.skipped, decoded.is_complete) == (0, True)
    np.testing.assert_array_equal(decoded.values, rows)


def test_units_and_frames(log: Path):
    rows = table(100)
    log.write_bytes(session(rows))
    flight = read(log)
    assert (flight.format, flight.vehicle) == ("blackbox", "Bench, Betaflight 4.4.2 (abc) TEST")
    assert not flight.notes
    assert flight.time_origin == 5.0
    assert flight.utc == 1714564800.0  # 2024-05-01 12:00 UTC
    assert flight["body_rate"].rate == pytest.approx(500.0)
    np.testing.assert_allclose(flight["body_rate"].values, np.radians(columns(rows, "gyro")))
    np.testing.assert_allclose(flight["specific_force"].values, columns(rows, "acc") / 2048 * GRAVITY)
    np.testing.assert_allclose(flight["rotor_command"].values, (columns(rows, "motor") - 158) / (2047 - 158))
    np.testing.assert_allclose(
        flight["rotor_speed"].values, columns(rows, "eRPM") * 100 / 7 * 2 * math.pi / 60
    )
    np.testing.assert_allclose(flight["battery_voltage"].values, columns(rows, "vbat") * 0.01)
    np.testing.assert_allclose(flight["collective_command"].values, 0.4)
    assert flight.parameters["motor_poles"] == 14
    assert [flight.parameters[f"rollPID[{i}]"] for i in range(3)] == [45, 80, 40]


@pytest.mark.parametrize(
    ("headers", "signal", "factor"),
    [
        ({"blackbox_high_resolution": "1"}, "body_rate", 0.1),
        ({"gyro_scale": "0x3f000000"}, "body_rate", 0.5),
        ({"Firmware revision": "Betaflight 3.1.3 (x) Y"}, "battery_voltage", 10.0),
        ({"motor_poles": "28"}, "rotor_speed", 0.5),
        ({"acc_1G": "4096"}, "specific_force", 0.5),
    ],
)
def test_scales_of_the_header(log: Path, headers: dict[str, str], signal: str, factor: float):
    log.write_bytes(blackbox_hover(60))
    usual = read(log)[signal].values
    log.write_bytes(session(table(60), headers))
    np.testing.assert_allclose(read(log)[signal].values, factor * usual, rtol=1e-12)


@pytest.mark.parametrize(
    ("headers", "signal", "note"),
    [
        ({"acc_1G": "0"}, "specific_force", "the accelerometer is off"),
        ({"motor_poles": "0"}, "rotor_speed", "no number of motor poles"),
        ({"motorOutput": "158,158", "maxthrottle": "0"}, "rotor_command", "no range of the motor outputs"),
    ],
)
def test_a_signal_without_its_scale_is_left_out(log: Path, headers: dict[str, str], signal: str, note: str):
    log.write_bytes(session(table(60), headers))
    flight = read(log)
    assert signal not in flight
    assert any(signal in n and note in n for n in flight.notes)


def test_the_longest_of_several_sessions(log: Path):
    log.write_bytes(
        session(table(50)) + session(table(120, 1)) + b"H Product:Blackbox\n" + session(table(30))
    )
    flight = read(log)
    assert len(flight["body_rate"].times) == 120
    assert any("3 flights" in note and "number 2" in note for note in flight.notes)


def test_groups_of_bits():
    three, four = frames._three, frames._four
    assert three(bytes([0b00_01_10_11]), 0, False) == ([1, -2, -1], 1)
    assert three(bytes([0b01_00_0111, 0b1000_1111]), 0, False) == ([7, -8, -1], 2)
    assert three(bytes([0b10_011111, 0b00_100000, 0b11_111111]), 0, False) == ([31, -32, -1], 3)
    assert three(bytes([0b11_10_01_00, 5, 0xFE, 0xFF, 1, 2, 0x80]), 0, False) == ([5, -2, -0x7FFDFF], 7)
    assert three(bytes([0b01_01111_1, 0b0000_1000]), 0, True) == ([15, -16, -8], 2)
    assert three(bytes([0b10_011111, 0b11_100000, 0b0_1111111]), 0, True) == ([127, -64, -1], 3)
    assert four(bytes([0b01_00_10_01, 0x7F, 0xE8]), 0) == ([7, -2, 0, -8], 3)
    assert four(bytes([0b11_00_00_01, 0x71, 0x23, 0x40]), 0) == ([7, 0, 0, 0x1234], 4)
    assert frames._old_four(bytes([0b10_01_01_00, 0x8F, 0xFE]), 0) == ([0, -1, -8, -2], 3)


def test_damage_costs_the_frames_up_to_the_next_complete_one(log: Path):
    rows = table(400)
    whole = session(rows)
    rng = np.random.default_rng(1)
    start = whole.rindex(b"\nH ") + 200
    for _ in range(40):
        place = int(rng.integers(start, len(whole) - 500))
        garbage = rng.integers(0, 256, 60, dtype=np.uint8).tobytes()
        (found,) = frames.read_sessions(whole[:place] + garbage + whole[place + int(rng.integers(0, 90)) :])
        decoded = frames.decode(found)
        assert decoded.skipped > 0
        assert len(decoded.values) > len(rows) - 16
        known = {tuple(row) for row in rows.tolist()}
        strange = sum(tuple(row) not in known for row in decoded.values.tolist())
        assert strange <= 2  # damaged bytes that happen to form a frame


def test_a_cut_log(log: Path):
    whole = blackbox_hover(200)
    rows = []
    for share in (0.4, 0.6, 0.9):
        log.write_bytes(whole[: int(share * len(whole))])
        flight = read(log)
        assert len(flight.notes) == 1
        assert "cut" in flight.cut
        rows.append(len(flight["body_rate"].times))
    assert 30 < rows[0] < rows[1] < rows[2] < 200
    log.write_bytes(whole[: -len(END)])
    assert len(read(log)["body_rate"].times) == 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"H Product:Blackbox flight data recorder\n", "header is cut or damaged"),
        (blackbox_hover(20)[:400], "header is cut or damaged"),
        (session(table(0)), "without a whole frame"),
        (
            session(table(20), {"Field P encoding": HEADERS["Field P encoding"].replace("7", "77")}),
            "header is cut",
        ),
    ],
)
def test_logs_without_a_flight(log: Path, content: bytes, said: str):
    log.write_bytes(content)
    with pytest.raises(LogFormatError, match=said):
        read(log)
    result = CliRunner().invoke(app, ["inspect", str(log)])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_no_bytes_give_anything_but_a_flight_or_one_line(log: Path):
    whole = blackbox_hover(40)
    rng = np.random.default_rng(2)
    for _ in range(150):
        content = bytearray(whole[: rng.integers(20, len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(20, len(content), size=rng.integers(1, 20)):
            content[place] = rng.integers(256)
        log.write_bytes(content)
        flight = flight_or_line(log)
        if isinstance(flight, str):
            assert "\n" not in flight
            assert str(log) in flight
        else:
            assert all(
                np.isfinite(s.values).all() and (np.diff(s.times) > 0).all() for s in flight.signals.values()
            )


@pytest.mark.parametrize(
    ("name", "rows", "rate", "has_force"),
    [("Hiro_highP_lowD.BFL", 81940, 929.0, False), ("LOG00001.BFL", 40177, 1727.0, True)],
)
def test_logs_of_real_flights(flights: Path, name: str, rows: int, rate: float, has_force: bool):
    path = flights / "betaflight" / name
    (found,) = frames.read_sessions(path.read_bytes())
    decoded = frames.decode(found)
    assert (len(decoded.values), decoded.skipped, decoded.is_complete) == (rows, 0, True)
    assert len(set(np.diff(decoded.values[:, 0]))) == 1  # no iteration is missing
    flight = read(path)
    assert ("specific_force" in flight) == has_force
    rates, commands = flight["body_rate"], flight["rotor_command"]
    assert rates.rate == pytest.approx(rate, abs=1.0)
    # Betaflight's quadrotor in X: torques about x, y, z of FLU by the motors rear right, front right, rear left, front left
    mixer = np.array([[-1, -1, 1, 1], [1, -1, 1, -1], [1, -1, -1, 1]])
    smooth = np.ones(8) / 8
    for axis, signs in enumerate(mixer):
        torque = np.convolve(commands.values @ signs, smooth, "same")
        turning = np.gradient(np.convolve(rates.values[:, axis], smooth, "same"), rates.times)
        best = max(np.corrcoef(torque[: len(torque) - lag], turning[lag:])[0, 1] for lag in (8, 16, 28))
        assert best > 0.35
    if has_force:
        assert flight["specific_force"].values[rates.times < 1.0, 2].mean() == pytest.approx(9.0, abs=0.3)


@pytest.mark.parametrize("command", ["track", "identify"])
def test_the_signals_that_a_command_lacks_are_named_in_one_line(flights: Path, tmp_path: Path, command: str):
    log = flights / "betaflight" / "Hiro_highP_lowD.BFL"
    result = CliRunner().invoke(app, [command, str(log), "-a", "crazyflie-2.1", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert f"{log}: no" in result.stderr
    assert "specific_force" in result.stderr
