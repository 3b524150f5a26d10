"""The flights of the benchmarks: reading, frames, order and direction of the rotors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from rotorid.errors import LogFormatError, SignalError
from rotorid.geometry.rotation_rows import rotate
from rotorid.progress import Stage, no_progress
from rotorid.studies.benchmarks import neurobem
from rotorid.studies.benchmarks.nanodrone import (
    flight_paths,
    prior_airframe,
    read_nanodrone,
    rotor_speed_delay,
)
from rotorid.studies.benchmarks.neurobem_flights import as_flight, read_neurobem


def test_a_nano_drone_flight_is_read_with_its_units(flights: Path) -> None:
    flight = read_nanodrone(flights / "nanodrone" / "multisine_20251017_run1.parquet")
    assert np.allclose(np.linalg.norm(flight["attitude"].values, axis=1), 1.0)
    assert np.median(flight["rotor_speed"].values) == pytest.approx(1740, abs=20)
    assert flight["rotor_speed"].values.max() < 3000  # two spikes of over 30,000 rad/s are left out
    assert len(flight["rotor_speed"].times) < len(flight["body_rate"].times)
    force, attitude = flight["specific_force"].values, flight["attitude"].values
    assert np.mean(rotate(attitude, force)[:, 2]) == pytest.approx(9.8, abs=0.1)
    assert np.std(force[:, :2]) < 0.5 * np.std(rotate(attitude, force)[:, :2])  # along the rotors' axes


def test_rotors_of_the_nano_drone(flights: Path) -> None:
    """Positions and directions of the airframe: the torque of the rotors goes with the angular acceleration."""
    airframe = prior_airframe()
    flight = read_nanodrone(flights / "nanodrone" / "square_20251017_run1.parquet")
    square, omega = flight["rotor_speed"].values ** 2, flight["body_rate"].values
    acceleration = np.gradient(omega, 0.01, axis=0)[2:]
    x, y = (np.array([rotor.position[k] for rotor in airframe.rotors]) for k in (0, 1))
    spin = np.array([-1.0 if rotor.direction == "ccw" else 1.0 for rotor in airframe.rotors])
    for axis, arm in enumerate((y, -x, spin)):
        assert np.corrcoef((square @ arm)[:-2], acceleration[:, axis])[0, 1] > 0.2
    livelier = read_nanodrone(flights / "nanodrone" / "random1_20251017_run1.parquet")
    assert 0.0 < rotor_speed_delay([flight, livelier], airframe) <= 0.03


def test_the_split_of_the_nano_drone(flights: Path) -> None:
    training, tests = flight_paths(flights / "nanodrone")
    assert (len(training), len(tests)) == (16, 3)


def test_a_neurobem_flight_is_a_flight_of_rotorid(flights: Path) -> None:
    path = flights / "neurobem" / "20210223172724seg2.mat"
    data = read_neurobem(path)
    flight = as_flight(path, data)
    position, velocity = flight["position"], flight["velocity"]
    slope = np.gradient(position.values, position.times, axis=0)
    assert np.abs(slope - velocity.values).mean() < 0.05
    assert flight["battery_voltage"].values.mean() == pytest.approx(15.0, abs=0.5)


def test_a_file_that_is_no_neurobem_flight(tmp_path: Path) -> None:
    savemat(tmp_path / "other.mat", {"a": np.zeros((5, 3))})
    with pytest.raises(LogFormatError, match="has no matrix of 41 columns"):
        read_neurobem(tmp_path / "other.mat")
    with pytest.raises(SignalError, match=r"0 \.mat files; 3 or more"):
        neurobem.neurobem(tmp_path / "nothing", 1, Stage(no_progress, "", 1))


def test_neurobem_flights_that_a_model_has_not_seen(flights: Path) -> None:
    """NeuroBEM's own errors as published for these flights; ours below them, with bands that hold."""
    names, predictions = neurobem.neurobem(flights / "neurobem", 10, Stage(no_progress, "", 3))
    assert len(names) == 6
    published = neurobem.rmse(predictions["NeuroBEM"].error)
    assert published["force"] == pytest.approx(0.606, abs=0.003)
    assert published["horizontal force"] == pytest.approx(0.263, abs=0.003)
    seen = neurobem.rmse(predictions["rotorid, grey box and residual"].error)
    motion = neurobem.rmse(predictions["rotorid, residual that sees the motion"].error)
    assert motion["force"] < published["force"]
    assert seen["force"] < 0.80
    assert seen["torque"] < 0.0100 < published["torque"]
    for name in neurobem.MODELS:
        inside = predictions[name].inside
        assert inside is not None
        assert (inside.mean(axis=0) > 0.90).all()
        assert (inside.mean(axis=0) < 0.98).all()
