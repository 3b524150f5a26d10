"""PX4 logs: frames, units and times of each signal, and rotors of all generations."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.logs.px4.reader import TOPICS as PX4_TOPICS
from rotorid.logs.px4.rotors import add_rotors
from rotorid.logs.px4.ulog import read_ulog
from rotorid.logs.reader_base import Collector
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


OUTPUTS = "uint64_t timestamp;uint32_t noutputs;float[16] output;"
ORDER = {1: 103, 2: 101, 4: 104, 5: 102}  # function by output
ROTORS = {f"FUNC{n}": function for n, function in ORDER.items()}


def driver(first: float, step: float) -> list[bytes]:
    """Rows of an output driver whose output n is first + 10 n + step k in row k."""
    return [
        struct.pack(
            "<QI16f", 5_000_000 + 10_000 * k, 8, *[first + 10 * n + step * k for n in range(1, 9)], *[0.0] * 8
        )
        for k in range(50)
    ]


def functions(group: str) -> dict[str, float | int]:
    return {f"{group}_{name}": value for name, value in ROTORS.items()}


def test_parameters_name_the_driver_and_the_order_of_the_motors(tmp_path: Path):
    """Motors 1 to 4 are outputs 2, 5, 1, 4: of CAN in instance 1, of PWM_AUX in instance 2."""
    topics = [
        ("actuator_outputs", 0, OUTPUTS, driver(1000.0, 0.0)),
        ("actuator_outputs", 1, OUTPUTS, driver(4000.0, 1.0)),
        ("actuator_outputs", 2, OUTPUTS, driver(1400.0, 1.0)),
    ]
    can = functions("UAVCAN_EC") | {"UAVCAN_ENABLE": 3} | {f"UAVCAN_EC_MIN{n}": 1 for n in range(1, 9)}
    flight = read(write(tmp_path, ulog(topics, can)))
    np.testing.assert_allclose(
        flight["rotor_command"].values[0], (np.array([4020.0, 4050, 4010, 4040]) - 1) / 8190, rtol=1e-6
    )
    assert "actuator_outputs[1].output[1, 4, 0, 3]" in flight["rotor_command"].source
    assert "UAVCAN_EC_FUNCn" in flight["rotor_command"].source

    aux = {"PWM_AUX_MIN": 1000, "PWM_AUX_MAX": 2000, **functions("PWM_AUX")}
    for parameters in (aux, aux | can | {"UAVCAN_ENABLE": 1}):
        flight = read(write(tmp_path, ulog(topics[::2], parameters)))
        np.testing.assert_allclose(flight["rotor_command"].values[0], [0.42, 0.45, 0.41, 0.44], rtol=1e-6)
        assert "actuator_outputs[2].output[1, 4, 0, 3], PWM 1000 to 2000 us" in flight["rotor_command"].source
    both = read(write(tmp_path, ulog(topics, aux | can)))
    assert "(CAN)" in both["rotor_command"].source


def test_motors_that_are_split_over_two_drivers_are_not_read(tmp_path: Path):
    topics = [("actuator_outputs", i, OUTPUTS, driver(1400.0, 1.0)) for i in (0, 1)]
    parameters = {
        "MAV_TYPE": 2,
        "PWM_MAIN_FUNC1": 101,
        "PWM_MAIN_FUNC2": 102,
        "PWM_AUX_FUNC1": 103,
        "PWM_AUX_FUNC2": 104,
    }
    attitude = [struct.pack("<Q4f", 5_000_000 + 10_000 * i, 1, 0, 0, 0) for i in range(20)]
    topics.append(("vehicle_attitude", 0, "uint64_t timestamp;float[4] q;", attitude))
    flight = read(write(tmp_path, ulog(topics, parameters)))
    assert "rotor_command" not in flight
    assert any("split over PWM_MAIN, PWM_AUX; log actuator_motors" in n for n in flight.notes)


def test_motors_that_never_vary_are_said(tmp_path: Path):
    topics = [("actuator_outputs", 0, OUTPUTS, driver(1400.0, 0.0))]
    flight = read(write(tmp_path, ulog(topics, {"MAV_TYPE": 2, **functions("PWM_MAIN")})))
    assert any("no instance in which all motors of PWM_MAIN_FUNCn vary" in n for n in flight.notes)


def esc_log(functions: list[int], parameters: dict[str, float | int], instance: int = 0) -> bytes:
    """ESCs that turn at 600 n rpm in report n, and a silent first instance where theirs is another."""
    fields = "uint64_t timestamp;uint8_t esc_count;esc_report[8] esc;"
    reports = b"".join(
        struct.pack("<iB", 600 * (i + 1) if f >= 0 else 0, max(f, 0)) for i, f in enumerate(functions)
    )
    rows = [struct.pack("<QB", 5_000_000 + 10_000 * i, 4) + reports for i in range(20)]
    silent = [struct.pack("<QB", 5_000_000 + 10_000 * i, 4) + bytes(40) for i in range(20)]
    topics = [("esc_status", i, fields, rows if i == instance else silent) for i in range(instance + 1)]
    return ulog([*topics, ("esc_report", 0, "int32_t esc_rpm;uint8_t actuator_function;", [])], parameters)


@pytest.mark.parametrize("instance", [0, 1])
def test_esc_speeds_of_scattered_outputs(tmp_path: Path, instance: int):
    """By the function of each report, although there are reports beyond the number of ESCs; else by the parameters."""
    by_function = esc_log([103, 101, -1, 104, 102, -1, -1, -1], {}, instance)
    by_parameters = esc_log([0, 0, -1, 0, 0, -1, -1, -1], functions("UAVCAN_EC"), instance)
    for log in (by_function, by_parameters):
        speed = read(write(tmp_path, log))["rotor_speed"]
        np.testing.assert_allclose(speed.values[0], np.array([1200, 3000, 600, 2400]) * 2 * np.pi / 60)


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


@pytest.mark.parametrize(
    ("name", "source", "largest"),
    [
        ("px4_faults/ekf_failure.ulg", "output[2, 0, 3, 1] from 109 to 1999 (DShot)", 0.001),
        ("px4_faults/battery_brownout.ulg", "output[0..3], PWM 1100 to 1900 us", 0.002),
    ],
)
def test_outputs_of_real_logs_are_the_commands(flights: Path, name: str, source: str, largest: float):
    """Logs with both topics: outputs in the order and range of the parameters give `actuator_motors`."""
    path = flights / name
    contents = read_ulog(path.read_bytes(), PX4_TOPICS)
    assert contents is not None
    topics = {key: rows for key, rows in contents.topics.items() if key[0] != "actuator_motors"}
    commands = []
    for log in (contents, dataclasses.replace(contents, topics=topics)):
        collector = Collector(path, "px4-ulog", contents.start / 1e6)
        add_rotors(collector, log)
        commands.append(collector.signals["rotor_command"])
    motors, outputs = commands
    assert motors.source.startswith("actuator_motors")
    assert source in outputs.source
    logged = np.stack([np.interp(outputs.times, motors.times, u) for u in motors.values.T], axis=1)
    assert np.median(np.abs(logged - outputs.values), axis=0).max() < largest


def test_set_points_of_the_body_rate(tmp_path: Path):
    fields = "uint64_t timestamp;float roll;float pitch;float yaw;float[3] thrust_body;"
    rows = [struct.pack("<Q6f", 5_000_000 + 10_000 * i, 0.5, -0.25, 1.0, 0, 0, -0.5) for i in range(20)]
    flight = read(write(tmp_path, ulog([("vehicle_rates_setpoint", 0, fields, rows)])))
    np.testing.assert_allclose(flight["body_rate_setpoint"].values[3], [0.5, 0.25, -1.0])
