"""ArduPilot logs: frames, units and rotor order, and decoding against pymavlink."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.logs.ardupilot.dataflash import read_dataflash
from tests.logs.make import ARDUPILOT_FORMATS, ardupilot_hover, dataflash


@pytest.fixture
def hover(tmp_path: Path) -> Flight:
    path = tmp_path / "log"
    path.write_bytes(ardupilot_hover())
    return read(path)


def test_signals_are_in_our_frames(hover: Flight):
    np.testing.assert_allclose(hover["attitude"].values[0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-7)
    np.testing.assert_allclose(hover["position"].values[10], [2, 0.1, 3], atol=1e-6)
    np.testing.assert_allclose(hover["velocity"].values[0], [0, 1, 0])
    np.testing.assert_allclose(hover["body_rate"].values[0], [0.1, -0.2, -0.3], rtol=1e-6)
    np.testing.assert_allclose(hover["specific_force"].values[0], [0.5, 0.25, 9.81], rtol=1e-6)
    assert hover.time_origin == 20.0
    assert hover.vehicle == "ArduCopter V4.6.3 (test), QUAD/X"


def test_rotors_are_in_the_order_of_motor_numbers(hover: Flight):
    np.testing.assert_allclose(hover["rotor_command"].values[0], [0.1, 0.2, 0.3, 0.4])
    assert "1000 to 2000" in hover["rotor_command"].source
    turn = 2 * np.pi / 60
    np.testing.assert_allclose(hover["rotor_speed"].values[5], np.array([2000, 1000, 3000, 4000]) * turn)


def test_airborne_is_between_take_off_and_landing(hover: Flight):
    airborne = hover["airborne"]
    np.testing.assert_allclose(airborne.times, [0.0, 0.1, 1.0], atol=1e-5)
    np.testing.assert_array_equal(airborne.values[:, 0], [0, 1, 0])


def test_further_instances_are_said(hover: Flight):
    assert any(n.startswith("IMU: 2 instances") for n in hover.notes)


def test_outputs_that_no_parameter_names_are_not_guessed(tmp_path: Path):
    rows = [("RCOU", 1000 * i, 1100, 1100, 1100, 1100) for i in range(10)]
    rows += [("ATT", 1000 * i, 0.0, 0.0, 0.0) for i in range(10)]
    (tmp_path / "log").write_bytes(dataflash(ARDUPILOT_FORMATS, rows))
    flight = read(tmp_path / "log")
    assert "rotor_command" not in flight
    assert any("SERVOn_FUNCTION" in n for n in flight.notes)


@pytest.mark.parametrize("name", ["ardupilot_delorean/00000003.BIN", "ardupilot_delorean/00000006.BIN"])
@pytest.mark.filterwarnings("ignore")
def test_decoding_equals_pymavlink(flights: Path, name: str):
    reader = pytest.importorskip("pymavlink.DFReader").DFReader_binary(str(flights / name))
    names = ["ATT", "IMU", "XKF1", "RCOU", "BAT", "EV", "PARM"]
    reference: dict[str, list] = {n: [] for n in names}
    while (message := reader.recv_match(type=names)) is not None:
        reference[message.get_type()].append(message)
    reader.filehandle.close()
    contents = read_dataflash((flights / name).read_bytes(), frozenset(names))
    for kind, expected in reference.items():
        messages = contents.messages[kind]
        assert len(messages) == len(expected)
        for column in messages.records.dtype.names or ():
            values = [getattr(m, column) for m in expected]
            if values and not isinstance(values[0], str):
                np.testing.assert_allclose(messages.values(column)[:, 0], values, rtol=1e-12)


def test_real_log_of_a_known_body(flights: Path):
    flight = read(flights / "ardupilot_sitl" / "dev.BIN")
    assert flight.rotors == 4
    assert flight["body_rate"].rate == pytest.approx(25.0, abs=0.1)
    assert flight["rotor_command"].rate == pytest.approx(10.0, abs=0.1)
    assert flight.parameters["MOT_SPIN_MIN"] == pytest.approx(0.15)
    airborne = flight["airborne"]
    np.testing.assert_array_equal(airborne.values[:, 0], [0, 1, 0, 0])
    flying = (flight["specific_force"].times > 30) & (flight["specific_force"].times < 160)
    assert np.median(flight["specific_force"].values[flying, 2]) == pytest.approx(9.81, abs=0.05)
    # In hover at 3 kg the known thrust curve of the body, c = (command - 0.15) / 0.8, carries the weight.
    hover = (flight["rotor_command"].times > 16) & (flight["rotor_command"].times < 20)
    c = np.clip((flight["rotor_command"].values[hover] - 0.15) / 0.8, 0, 1)
    thrust = 75.436 / 4 * (0.35 * c + 0.65 * c**2).sum(axis=1)
    assert np.median(thrust) == pytest.approx(3.0 * 9.81, rel=0.005)


def test_set_points_of_the_body_rate(tmp_path: Path):
    formats = {"RATE": ("Qffffff", "TimeUS,RDes,R,PDes,P,YDes,Y")}
    rows = [("RATE", 1000 * i, 10.0, 9.0, -20.0, -19.0, 30.0, 29.0) for i in range(20)]
    (tmp_path / "log").write_bytes(dataflash(formats, rows))
    flight = read(tmp_path / "log")
    np.testing.assert_allclose(flight["body_rate_setpoint"].values[0], np.radians([10.0, 20.0, -30.0]))
    np.testing.assert_allclose(flight["body_rate"].values[0], np.radians([9.0, 19.0, -29.0]))
