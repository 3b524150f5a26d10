"""PX4 logs: frames, units and times of each signal, and rotors of all generations."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.logs.px4.ulog import read_ulog
from tests.logs.make import px4_hover, ulog


def write(folder: Path, content: bytes) -> Path:
    path = folder / "log"
    path.write_bytes(content)
    return path


@pytest.fixture
def hover(tmp_path: Path) -> Flight:
    return read(write(tmp_path, px4_hover()))


def test_signals_are_in_our_frames(hover: Flight):
    np.testing.assert_allclose(hover["attitude"].values[0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-7)
    np.testing.assert_allclose(hover["position"].values[10], [2, 0.1, 3], atol=1e-6)
    np.testing.assert_allclose(hover["velocity"].values[0], [0, 1, 0])
    np.testing.assert_allclose(hover["body_rate"].values[0], [0.1, -0.2, -0.3], rtol=1e-6)
    np.testing.assert_allclose(hover["specific_force"].values[0], [0.5, 0.25, 9.81], rtol=1e-6)
    np.testing.assert_allclose(hover["rotor_command"].values[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)


def test_measurements_carry_sample_times_and_commands_their_own(hover: Flight):
    assert hover.time_origin == 5.0
    assert hover["attitude"].times[0] == 0.0
    assert hover["specific_force"].times[0] == pytest.approx(1e-3)
    assert hover["rotor_command"].times[0] == pytest.approx(1e-4)
    np.testing.assert_array_equal(hover["airborne"].values[:, 0], [0, 1])


def test_the_vehicle_and_its_parameters(hover: Flight):
    assert hover.vehicle == "PX4 TEST"
    assert hover.format == "px4-ulog"
    assert hover.parameters == {"MAV_TYPE": 2, "MPC_THR_HOVER": 0.5}
    assert hover.rotors == 4


def outputs(values: list[float], parameters: dict[str, float | int]) -> bytes:
    rows = [
        struct.pack("<QI16f", 5_000_000 + 10_000 * i, 8, *values, *[0.0] * (16 - len(values)))
        for i in range(50)
    ]
    return ulog(
        [("actuator_outputs", 0, "uint64_t timestamp;uint32_t noutputs;float[16] output;", rows)], parameters
    )


def test_pwm_outputs_of_old_firmware(tmp_path: Path):
    log = outputs([900.0, 1075.0, 1512.5, 1950.0, 1500.0], {"MAV_TYPE": 2, "PWM_MIN": 1075, "PWM_MAX": 1950})
    command = read(write(tmp_path, log))["rotor_command"]
    np.testing.assert_allclose(command.values[0], [0.0, 0.0, 0.5, 1.0])
    assert "1075 to 1950" in command.source


def test_pwm_range_of_each_output(tmp_path: Path):
    parameters = {
        "MAV_TYPE": 2,
        "PWM_MAIN_MIN": 1000,
        "PWM_MAIN_MAX": 2000,
        "PWM_MAIN_MIN2": 1200,
        "PWM_MAIN_MAX3": -1,
    }
    command = read(write(tmp_path, outputs([1500.0, 1600.0, 1500.0, 2000.0], parameters)))["rotor_command"]
    np.testing.assert_allclose(command.values[0], [0.5, 0.5, 0.5, 1.0])


def test_a_pwm_range_that_is_assumed_is_said(tmp_path: Path):
    flight = read(write(tmp_path, outputs([1500.0] * 4, {"MAV_TYPE": 2})))
    np.testing.assert_allclose(flight["rotor_command"].values[0], 0.5)
    assert any("no PWM range" in n for n in flight.notes)


def test_outputs_of_can_escs_are_in_another_instance(tmp_path: Path):
    fields = "uint64_t timestamp;uint32_t noutputs;float[16] output;"
    stamps = [5_000_000 + 10_000 * i for i in range(50)]
    zero = [struct.pack("<QI16f", t, 8, *[0.0] * 16) for t in stamps]
    can = [
        struct.pack("<QI16f", t, 6, *[4000.0 + i] * 4, *[4095.5] * 2, *[0.0] * 10)
        for i, t in enumerate(stamps)
    ]
    log = ulog([("actuator_outputs", 0, fields, zero), ("actuator_outputs", 1, fields, can)], {"MAV_TYPE": 2})
    flight = read(write(tmp_path, log))
    np.testing.assert_allclose(flight["rotor_command"].values[:, 3], (4000.0 + np.arange(50)) / 8191.0)
    assert any("instance 1 is read" in n for n in flight.notes)


def test_normalised_outputs(tmp_path: Path):
    command = read(write(tmp_path, outputs([0.25] * 4, {"MAV_TYPE": 2})))["rotor_command"]
    np.testing.assert_allclose(command.values[0], 0.25)


def test_esc_speeds_come_in_rotor_order(tmp_path: Path):
    fields = "uint64_t timestamp;uint8_t esc_count;esc_report[8] esc;"
    reports = b"".join(struct.pack("<iB", 600 * (i + 1), 104 - i) for i in range(4)) + bytes(20)
    rows = [struct.pack("<QB", 5_000_000 + 10_000 * i, 4) + reports for i in range(20)]
    log = ulog(
        [("esc_status", 0, fields, rows), ("esc_report", 0, "int32_t esc_rpm;uint8_t actuator_function;", [])]
    )
    speed = read(write(tmp_path, log))["rotor_speed"]
    np.testing.assert_allclose(speed.values[0], np.array([2400, 1800, 1200, 600]) * 2 * np.pi / 60)


def test_ground_truth_is_no_measurement(tmp_path: Path):
    rows = [struct.pack("<Q4f", 5_000_000 + 10_000 * i, 1, 0, 0, 0) for i in range(20)]
    topics = [
        (f"vehicle_attitude{end}", 0, "uint64_t timestamp;float[4] q;", rows) for end in ("", "_groundtruth")
    ]
    assert len(read(write(tmp_path, ulog(topics)))["attitude"].times) == 20


def test_first_instance_is_read_and_said(tmp_path: Path):
    def rows(voltage: float) -> list[bytes]:
        return [struct.pack("<Qf", 5_000_000 + 100_000 * i, voltage) for i in range(20)]

    fields = "uint64_t timestamp;float voltage_v;"
    log = ulog([("battery_status", 0, fields, rows(12.0)), ("battery_status", 1, fields, rows(50.0))])
    flight = read(write(tmp_path, log))
    np.testing.assert_allclose(flight["battery_voltage"].values, 12.0)
    assert any("2 instances" in n for n in flight.notes)


TOPICS = frozenset(
    {"vehicle_attitude", "vehicle_local_position", "sensor_combined", "actuator_motors", "esc_status"}
)


@pytest.mark.parametrize(
    "name",
    [
        "px4_samples/sample.ulg",
        "px4_samples/sample_appended_multiple.ulg",
        "px4_samples/sample_log_small.ulg",
        "px4_samples/sample_logging_tagged_and_default_params.ulg",
        "px4_samples/sample_px4_events.ulg",
        "px4_sih/default_logging.ulg",
    ],
)
def test_decoding_equals_pyulog(flights: Path, name: str):
    pyulog = pytest.importorskip("pyulog")
    contents = read_ulog((flights / name).read_bytes(), TOPICS)
    assert contents is not None
    reference = pyulog.ULog(str(flights / name), list(TOPICS))
    assert not contents.skipped
    assert len(reference.data_list) == sum(len(rows) > 0 for rows in contents.topics.values())
    assert contents.parameters == reference.initial_parameters
    for data in reference.data_list:
        rows = contents.topics[data.name, data.multi_id]
        for field, expected in data.data.items():
            np.testing.assert_array_equal(_leaf(rows, field), expected)


def _leaf(rows: np.ndarray, field: str) -> np.ndarray:
    for part in field.split("."):
        name, _, index = part.rstrip("]").partition("[")
        rows = rows[name]
        if index:
            rows = rows[:, int(index)]
    return rows


def test_real_log_of_a_known_body(flights: Path):
    flight = read(flights / "px4_sih" / "dev.ulg")
    assert flight.time_origin == pytest.approx(12.264)
    assert flight.duration == pytest.approx(204.8, abs=0.1)
    rates = {name: round(signal.rate) for name, signal in flight.signals.items()}
    assert rates["attitude"] == rates["body_rate"] == rates["specific_force"] == rates["rotor_command"] == 250
    assert rates["position"] == rates["velocity"] == 125
    assert flight.rotors == 4
    velocity, position = flight["velocity"], flight["position"]
    derivative = np.gradient(position.values, position.times, axis=0)
    moving = slice(5000, 20000)
    correlation = np.corrcoef(derivative[moving, 0], velocity.values[moving, 0])[0, 1]
    assert correlation > 0.95


def test_real_log_attitude_turns_as_the_gyro_says(flights: Path):
    flight = read(flights / "px4_sih" / "default_logging.ulg")
    q, times = flight["attitude"].values, flight["attitude"].times
    step = 10
    conjugate = q[:-step] * np.array([1, -1, -1, -1])
    from rotorid.geometry.rotation_rows import multiply

    turned = 2 * multiply(conjugate, q[step:])[:, 1:] / (times[step:] - times[:-step])[:, None]
    middle = (times[step:] + times[:-step]) / 2
    for axis in range(3):
        gyro = np.interp(middle, flight["body_rate"].times, flight["body_rate"].values[:, axis])
        assert np.polyfit(gyro, turned[:, axis], 1)[0] == pytest.approx(1.0, abs=0.05)


def test_real_log_rotors_carry_the_known_weight(flights: Path):
    flight = read(flights / "px4_sih" / "dev.ulg")
    clock = flight["rotor_command"].times + flight.time_origin
    hover = (clock > 22.0) & (clock < 24.0)  # at 1.0 kg; a full command is 5 N
    thrust = 5.0 * flight["rotor_command"].values[hover].sum(axis=1)
    assert np.mean(thrust) == pytest.approx(9.81, rel=0.01)


def test_set_points_of_the_body_rate(tmp_path: Path):
    fields = "uint64_t timestamp;float roll;float pitch;float yaw;float[3] thrust_body;"
    rows = [struct.pack("<Q6f", 5_000_000 + 10_000 * i, 0.5, -0.25, 1.0, 0, 0, -0.5) for i in range(20)]
    flight = read(write(tmp_path, ulog([("vehicle_rates_setpoint", 0, fields, rows)])))
    np.testing.assert_allclose(flight["body_rate_setpoint"].values[3], [0.5, 0.25, -1.0])
