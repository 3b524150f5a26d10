"""Truth beside a log: on the flight's clock, stepwise, and refused where it belongs to another log."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.errors import LogError
from rotorid.logs import Signal, attach_truth


@pytest.fixture
def flight() -> Flight:
    position = Signal("position", np.arange(0.0, 11.0), np.zeros((11, 3)), "made")
    return Flight({"position": position}, Path("made.ulg"), "simulation", time_origin=100.0)


def test_steps_are_steps_however_they_are_read(tmp_path: Path, flight: Flight):
    (tmp_path / "truth.csv").write_text("t_log_s,mass_kg\n0,1.0\n104.5,1.5\n108,1.2\n108,1.3\n")
    mass = attach_truth(flight, tmp_path / "truth.csv")["true_mass"]
    assert (mass.times[0], mass.times[-1]) == (0.0, 10.0)
    assert (np.diff(mass.times) > 0).all()
    at = np.array([0.0, 4.4, 4.6, 7.9, 8.1, 10.0])
    expected = [1.0, 1.0, 1.5, 1.5, 1.3, 1.3]
    np.testing.assert_allclose(np.interp(at, mass.times, mass.values[:, 0]), expected)
    np.testing.assert_allclose(mass.values[np.searchsorted(mass.times, at, "right") - 1, 0], expected)


def test_forces_torques_and_wind_come_into_our_frames(tmp_path: Path, flight: Flight):
    text = "t,mass,fx,fy,fz,qx,qy,qz,wind_n,wind_e,wind_d\n99,3,1,2,3,4,5,6,7,8,9\n111,3,1,2,3,4,5,6,7,8,9\n"
    (tmp_path / "truth.csv.gz").write_bytes(gzip.compress(text.encode()))
    known = attach_truth(flight, tmp_path / "truth.csv.gz")
    np.testing.assert_array_equal(known["true_force"].values[0], [2, 1, -3])
    np.testing.assert_array_equal(known["true_torque"].values[0], [4, -5, -6])
    np.testing.assert_array_equal(known["true_wind"].values[0], [8, 7, -9])
    assert any("truth from" in n for n in known.notes)


def test_wind_parameters_of_px4_are_the_negative_of_the_wind(tmp_path: Path, flight: Flight):
    (tmp_path / "truth.csv").write_text("t_log_s,mass_kg,wind_param_n_mps,wind_param_e_mps\n0,1,2.5,2\n")
    wind = attach_truth(flight, tmp_path / "truth.csv")["true_wind"]
    np.testing.assert_array_equal(wind.values[0], [-2, -2.5, 0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "no truth table"),
        ("t,mass\n500,1\n600,1\n", "do not overlap"),
        ("t,mass\n0,1\n5,1\n", "do not overlap"),
        ("t,mass\n105,1\n103,1\n", "never decrease"),
        ("t,mass\n105,\n106,1\n", "a number in each row"),
        ("t,mass\n105,heavy\n", "'heavy' is not a number"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, flight: Flight, text: str, said: str):
    (tmp_path / "truth.csv").write_text(text)
    with pytest.raises(LogError) as caught:
        attach_truth(flight, tmp_path / "truth.csv")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_gzip(tmp_path: Path, flight: Flight):
    (tmp_path / "truth.csv.gz").write_bytes(gzip.compress(b"t,mass\n101,1\n")[:-6])
    with pytest.raises(LogError, match="cut or damaged"):
        attach_truth(flight, tmp_path / "truth.csv.gz")


def test_real_truth(flights: Path):
    flight = read(flights / "px4_sih" / "default_logging.ulg")
    known = attach_truth(flight, flights / "px4_sih" / "default_logging_truth.csv")
    mass = known["true_mass"]
    at = np.array([43.5, 43.6, 62.6, 62.7]) - flight.time_origin
    np.testing.assert_allclose(np.interp(at, mass.times, mass.values[:, 0]), [1.0, 1.2, 1.2, 1.0])
    flight = read(flights / "ardupilot_sitl" / "dev.BIN")
    known = attach_truth(flight, flights / "ardupilot_sitl" / "dev_truth.csv.gz")
    assert set(np.unique(known["true_mass"].values)) == {3.0, 4.0}
    assert np.abs(known["true_force"].values).max() == 0.0
