"""Rotor commands that were logged rarely."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.slow_commands import command_steps, interpolate_commands


def held(t: np.ndarray, u: np.ndarray, at: np.ndarray) -> np.ndarray:
    return u[np.searchsorted(t, at, side="right") - 1]


def test_the_mean_over_any_row_is_that_of_a_straight_line() -> None:
    t = np.array([0.0, 0.1, 0.21, 0.3])
    fine, u = interpolate_commands(t, np.column_stack([3.0 * t, 1.0 - t]))
    steps = np.diff(fine)
    for start, end in itertools.pairwise(t):
        inside = (fine[:-1] >= start - 1e-9) & (fine[:-1] < end - 1e-9)
        assert steps[inside].sum() == pytest.approx(end - start)
        middle = 0.5 * (start + end)
        mean = np.average(u[:-1][inside], axis=0, weights=steps[inside])
        np.testing.assert_allclose(mean, [3.0 * middle, 1.0 - middle], atol=1e-12)


def test_what_was_given_is_followed_where_it_was_not_logged() -> None:
    """Held, a slow wave is late by half a period of the log: by some 0.05 s here."""
    t, at = np.arange(0.0, 6.0, 0.1), np.arange(0.1, 5.8, 0.0101)
    wave = np.sin(2.0 * t)[:, None]
    left = [held(*rows, at)[:, 0] - np.sin(2.0 * at) for rows in (interpolate_commands(t, wave), (t, wave))]
    assert np.abs(left[0]).max() < 0.015
    assert np.sqrt(np.mean(left[0] ** 2)) < 0.1 * np.sqrt(np.mean(left[1] ** 2))


def test_nothing_is_known_across_a_gap_and_of_two_rows() -> None:
    t, u = np.array([0.0, 0.1, 0.2, 1.2, 1.3]), np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    fine, filled = interpolate_commands(t, u)
    assert not filled[fine < 1.2 - 1e-9].any()
    assert interpolate_commands(t[:2], u[:2])[0] is not None
    np.testing.assert_array_equal(interpolate_commands(t[:2], u[:2])[1], u[:2])


@pytest.mark.parametrize(
    ("form", "parameters", "rate", "every"),
    [
        ("ardupilot-bin", {"SCHED_LOOP_RATE": 400.0}, 400.0, True),
        ("mavlink-tlog", {"SCHED_LOOP_RATE": 400.0}, 50.0, False),
        ("ardupilot-bin", {"SCHED_LOOP_RATE": 100.0}, 100.0, True),
        ("px4-ulog", {"IMU_GYRO_RATEMAX": 400.0}, 250.0, True),  # its gyroscope gives no more
        ("px4-ulog", {"IMU_GYRO_RATEMAX": 400.0}, 200.0, False),
        ("px4-ulog", {}, 250.0, True),
        ("crazyflie-usd", {}, 1000.0, True),
        ("crazyflie-usd", {}, 250.0, False),
        ("mapped-csv", {}, 100.0, False),
        ("simulation", {}, 50.0, True),
        ("simulation", {}, 10.0, False),
    ],
)
def test_rows_are_held_where_the_log_has_every_command(form, parameters, rate, every) -> None:
    """Elsewhere it leaves out every other one at least."""
    t = np.arange(40) / rate
    signal = Signal("rotor_command", t, np.sin(t)[:, None], "made")
    flight = Flight({"rotor_command": signal}, Path("made"), form, parameters=parameters)
    times, values = command_steps(flight, signal)
    at = t[:-1] + 0.5 / rate
    middle = np.array(
        [values[(times >= a - 1e-9) & (times < b - 1e-9)].mean() for a, b in itertools.pairwise(t)]
    )
    np.testing.assert_allclose(middle, np.sin(t[:-1]) if every else np.interp(at, t, np.sin(t)), atol=1e-9)
