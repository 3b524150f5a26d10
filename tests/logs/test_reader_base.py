"""What is left out of a signal, and that it is always said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import LogFormatError
from rotorid.logs.flight import KINDS
from rotorid.logs.reader_base import Collector


def collected(name: str, times: object, values: object) -> tuple[np.ndarray, np.ndarray, str]:
    collector = Collector(Path("some.log"), "simulation")
    collector.add(name, np.array(times, np.float64), np.array(values, np.float64), "test")
    flight = collector.flight(shift=False)
    return flight[name].times, flight[name].values, " / ".join(flight.notes)


def test_missing_values_are_left_out_and_said():
    times, values, notes = collected("battery_voltage", [0, 1, 2], [12.0, np.nan, 11.0])
    np.testing.assert_array_equal(times, [0, 2])
    np.testing.assert_array_equal(values, [[12.0], [11.0]])
    assert "1 of 3 rows" in notes


def test_repeated_stamps_are_left_out_and_said():
    times, values, notes = collected("battery_voltage", [0, 1, 1, 2], [1, 2, 3, 4])
    np.testing.assert_array_equal(times, [0, 1, 2])
    np.testing.assert_array_equal(values[:, 0], [1, 2, 4])
    assert "repeat a time stamp" in notes


def test_one_wrong_stamp_costs_one_row():
    stamps = np.arange(100.0)
    stamps[40] = 5000.0
    times, _, notes = collected("battery_voltage", stamps, np.ones(100))
    assert len(times) == 99
    assert "1 of 100 rows left out, their time runs backwards" in notes


def test_of_a_clock_that_starts_again_the_longer_part_is_kept():
    stamps = np.concatenate([np.arange(30.0), np.arange(70.0)])
    times, _, notes = collected("battery_voltage", stamps, np.ones(100))
    assert len(times) == 70
    assert "time runs backwards" in notes


def test_a_stamp_days_away_is_left_out():
    times, _, notes = collected("battery_voltage", [0, 1, 2, 1e9], np.ones(4))
    np.testing.assert_array_equal(times, [0, 1, 2])
    assert "more than a day" in notes


def test_quaternions_of_zeros_are_left_out_and_signs_do_not_flip():
    q = [[1, 0, 0, 0], [0, 0, 0, 0], [-1, 0, 0, 0], [1.05, 0, 0, 0], [1e300, 1e300, 0, 0]]
    times, values, notes = collected("attitude", range(5), q)
    np.testing.assert_array_equal(times, [0, 2, 3])
    np.testing.assert_allclose(values[:, 0], 1.0)
    assert "no rotation" in notes
    assert "were normalised" in notes


def test_gaps_are_said_once_for_all_signals_that_share_them():
    collector = Collector(Path("some.log"), "simulation", clock=100.0)
    times = np.concatenate([np.arange(0, 1, 0.01), np.arange(3, 4, 0.01)]) + 7.0
    for name in ("position", "velocity"):
        collector.add(name, times, np.zeros((200, 3)), "test")
    gaps = [n for n in collector.flight().notes if "no samples" in n]
    assert len(gaps) == 1
    assert "position, velocity" in gaps[0]
    assert "2.0 s from 1.0 s on" in gaps[0]


def test_times_in_notes_are_those_of_the_flight():
    collector = Collector(Path("some.log"), "simulation", clock=100.0)
    collector.add("velocity", np.arange(7.0, 9.0, 0.01), np.zeros((200, 3)), "test")
    collector.note_times("reset at {times} s", np.array([7.25, 8.0]))
    collector.note_times("lost at {times} s", np.arange(7.0, 12.0))
    assert collector.flight().notes == ("reset at 0.25, 1.00 s", "lost at 0.00, 1.00, 2.00, 3.00, ... s")


def test_time_starts_at_the_first_sample_of_motion_and_states_are_held():
    collector = Collector(Path("some.log"), "simulation", clock=10.0)
    collector.add("airborne", np.array([-5.0, 1.0, 8.0]), np.array([[0.0], [1.0], [0.0]]), "test")
    collector.add("battery_voltage", np.array([0.0, 5.0]), np.array([[12.0], [11.0]]), "test")
    collector.add("position", np.arange(2.0, 9.0), np.zeros((7, 3)), "test")
    flight = collector.flight()
    assert flight.time_origin == 12.0
    assert flight["position"].times[0] == 0.0
    np.testing.assert_array_equal(flight["airborne"].times, [0.0, 6.0])
    np.testing.assert_array_equal(flight["airborne"].values[:, 0], [1.0, 0.0])
    np.testing.assert_array_equal(flight["battery_voltage"].times, [3.0])


def test_a_log_without_any_signal_is_an_error():
    with pytest.raises(LogFormatError, match="no signal"):
        Collector(Path("some.log"), "simulation").flight()


def test_rows_that_no_sensor_measures_are_left_out_with_a_note(tmp_path: Path):
    collector = Collector(tmp_path / "log", "table-csv")
    times = np.arange(5.0)
    rates = np.array(
        [[0.1, 0.2, 0.3], [1e9, 0.0, 0.0], [0.0, -1e38, 0.0], [0.0, 0.0, 501.0], [499.0, 0.0, 0.0]]
    )
    collector.add("body_rate", times, rates, "gyro")
    collector.add("thrust", times, np.array([1.0, -1e9, 1e38, 2.0, 3.0]), "thrust")
    flight = collector.flight(shift=False)
    assert flight["body_rate"].times.tolist() == [0.0, 4.0]
    assert flight["thrust"].values[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert flight.notes == (
        "body_rate: 3 of 5 rows left out, their values are beyond 500 rad/s, which no sensor measures",
        "thrust: 2 of 5 rows left out, their values are beyond 100000 N, which no sensor measures",
    )


def test_every_measured_kind_has_a_limit():
    without = [name for name, kind in KINDS.items() if not np.isfinite(kind.limit)]
    assert without == ["attitude", "airborne"]  # a unit quaternion, which has its own check, and a state
