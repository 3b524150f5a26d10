"""From signals on their own clocks to samples on one grid."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.measurement_noise import coloured_noise, measured_noise
from rotorid.signals.sampling import (
    MAX_RATE,
    command_steps,
    grid_rate,
    interpolate_commands,
    interpolate_to_slowest,
    sample,
    sample_at_clock,
    truth_at,
    with_reconstructed_commands,
)
from rotorid.signals.series import white_noise

INPUTS = Space.of(thrust=Scalar("N"), body_rate=Vector(3, "rad/s"))
OUTPUTS = Space.of(attitude=Rotation(noise=0.01), velocity=Vector(3, "m/s", noise=0.1))


def signal(name, times, values):
    values = np.asarray(values, dtype=float)
    return Signal(name, np.asarray(times, dtype=float), values.reshape(len(times), -1), "made")


def flight(**over):
    t = np.arange(0.0, 4.0, 0.01)
    signals = {
        "thrust": signal("thrust", t, 10.0 + t),
        "body_rate": signal("body_rate", t, np.tile([0.1, 0.2, 0.3], (len(t), 1))),
        "velocity": signal("velocity", t[::5], np.column_stack([t, 2 * t, 3 * t])[::5]),
        "attitude": signal("attitude", t[::2], np.tile([1.0, 0.0, 0.0, 0.0], (len(t[::2]), 1))),
    } | over
    return Flight(
        {k: v for k, v in signals.items() if v is not None}, source=Path("made.csv"), format="table-csv"
    )


def test_commands_act_until_the_next_and_rates_until_their_stamp():
    s = sample(flight(), INPUTS, OUTPUTS)
    np.testing.assert_allclose(s.dt[1:], 0.01, rtol=1e-6)
    assert float(s.dt[0]) == 0.0
    np.testing.assert_allclose(s.u[:, 0], 10.0 + s.t - 0.01, atol=1e-6)
    np.testing.assert_allclose(s.u[:, 1:], np.tile([0.1, 0.2, 0.3], (len(s.t), 1)), rtol=1e-6)


def test_measurements_go_to_the_nearest_row_and_are_masked_elsewhere():
    s = sample(flight(), INPUTS, OUTPUTS)
    seen = np.asarray(s.mask[:, 3])
    assert 0.19 < seen.mean() < 0.21
    np.testing.assert_allclose(np.asarray(s.y)[seen, 4], np.asarray(s.t)[seen], atol=1e-5)
    assert np.isfinite(np.asarray(s.y)).all()


def test_fast_measurements_are_averaged_on_a_slow_grid():
    t = np.arange(0.0, 4.0, 0.001)
    fast = signal("velocity", t, np.column_stack([t, t, np.sin(2 * np.pi * 500 * t)]))
    s = sample(flight(velocity=fast), INPUTS, OUTPUTS, rate=50.0)
    middle = slice(2, -2)
    np.testing.assert_allclose(np.asarray(s.y)[middle, 4], np.asarray(s.t)[middle], atol=1e-3)
    assert np.abs(np.asarray(s.y)[middle, 6]).max() < 0.1
    assert grid_rate(flight(velocity=fast), INPUTS, OUTPUTS) == MAX_RATE


def test_rows_without_inputs_are_left_out_and_extend_dt():
    t = np.arange(0.0, 4.0, 0.01)
    t = t[(t < 1.0) | (t > 2.5)]
    s = sample(flight(thrust=signal("thrust", t, np.full(len(t), 10.0))), INPUTS, OUTPUTS)
    assert 1.2 < float(np.max(s.dt)) < 1.5
    gap = int(np.argmax(s.dt))
    assert float(s.t[gap]) == pytest.approx(2.5, abs=0.03)


def test_spans_limit_the_rows():
    s = sample(flight(), INPUTS, OUTPUTS, spans=[(1.0, 1.5), (3.0, 3.5)])
    t = np.asarray(s.t)
    assert ((t <= 1.5) | (t >= 3.0)).all()
    assert t.min() >= 1.0
    assert t.max() <= 3.5
    with pytest.raises(ExcitationError, match=r"made\.csv: the vehicle is never in the air"):
        sample(flight(), INPUTS, OUTPUTS, spans=[])


def test_errors_name_missing_entries():
    with pytest.raises(SignalError, match=r"made\.csv: no thrust in this log"):
        sample(flight(thrust=None), INPUTS, OUTPUTS)
    with pytest.raises(SignalError, match="none of attitude, velocity"):
        sample(flight(attitude=None, velocity=None), INPUTS, OUTPUTS)


def test_slow_motors_follow_a_fast_collective():
    t = np.arange(0.0, 20.0, 0.02)
    collective = 0.5 + 0.1 * np.sin(3.0 * t)
    offsets = np.array([0.02, -0.02, 0.01, -0.01])
    rotors = collective[:, None] + offsets
    made = flight(
        rotor_command=signal("rotor_command", t[::5], rotors[::5]),
        collective_command=signal("collective_command", t, collective),
    )
    found = with_reconstructed_commands(made)["rotor_command"]
    inside = np.isin(t, found.times)
    np.testing.assert_allclose(found.values, rotors[inside], atol=1e-6)
    alone = flight(rotor_command=made["rotor_command"])
    assert with_reconstructed_commands(alone) is alone


def test_motors_that_do_not_follow_the_collective_are_unchanged():
    t = np.arange(0.0, 20.0, 0.02)
    rng = np.random.default_rng(0)
    made = flight(
        rotor_command=signal("rotor_command", t[::5], rng.uniform(0.2, 0.8, (200, 4))),
        collective_command=signal("collective_command", t, 0.5 + 0.1 * np.sin(t)),
    )
    assert with_reconstructed_commands(made) is made


def test_truth_is_held_until_the_next_row():
    made = flight(true_mass=signal("true_mass", [0.0, 2.0], [1.0, 0.8]))
    np.testing.assert_array_equal(
        truth_at(made, "true_mass", np.array([1.0, 1.999, 2.0, 3.0]))[:, 0], [1.0, 1.0, 0.8, 0.8]
    )
    assert truth_at(made, "true_force", np.array([1.0])) is None


def test_white_noise_with_motion_steps_and_outliers():
    rng = np.random.default_rng(1)
    t = np.arange(4000) * 0.01
    y = np.sin(2.0 * t) + (t > 20.0) + rng.normal(0.0, 0.05, len(t))
    y[::500] += 30.0
    np.testing.assert_allclose(white_noise(y[:, None]), [0.05], rtol=0.1)


def test_noise_is_never_lowered():
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 4.0, 0.01)
    for std, expected in ((0.5, 0.5), (0.001, 0.1)):
        shaking = signal("velocity", t, rng.normal(0.0, std, (len(t), 3)))
        found = measured_noise(sample(flight(velocity=shaking), INPUTS, OUTPUTS), OUTPUTS)
        np.testing.assert_allclose(found["velocity"], expected, rtol=0.15)
        assert "attitude" not in found


def test_noise_that_is_not_white_counts_by_its_means():
    """Autoregressive noise of variance s^2, correlation c between rows: means as of white noise of s^2 (1 + c) / (1 - c)."""
    rng, c = np.random.default_rng(3), 0.8
    t = np.arange(20000) * 0.01
    shaking = lfilter([np.sqrt(1.0 - c**2)], [1.0, -c], rng.normal(0.0, 0.4, (len(t), 2)), axis=0)
    slow = np.column_stack([np.sin(0.5 * t), t > 30.0])
    found = coloured_noise(t, shaking + slow)
    np.testing.assert_allclose(found, 0.4 * np.sqrt((1.0 + c) / (1.0 - c)), rtol=0.3)
    np.testing.assert_allclose(coloured_noise(t, rng.normal(0.0, 0.4, (len(t), 2))), 0.4, rtol=0.3)
    np.testing.assert_array_equal(coloured_noise(t[:100], shaking[:100]), 0.0)


def test_white_noise_of_unevenly_spaced_samples_excludes_motion():
    """Pairs of rows 80 and 120 ms apart: as if evenly apart, a line would look like noise."""
    rng = np.random.default_rng(1)
    t = np.cumsum(np.tile([0.08, 0.12], 1000))
    noise = rng.normal(0.0, 0.01, len(t))
    y = np.column_stack([5.0 * t + noise, t**2 + noise])
    np.testing.assert_allclose(white_noise(y, t), [0.01, 0.01], rtol=0.1)
    assert white_noise(y)[0] > 0.04
    even = np.arange(len(t)) * 0.1
    np.testing.assert_allclose(white_noise(y, even), white_noise(y), rtol=1e-6)


def two_clocks(rate: float, other: float) -> Flight:
    """Both signals are straight lines of time, on clocks that never meet."""
    t, s = np.arange(0.0, 2.0, 1.0 / rate), np.arange(0.0013, 2.0, 1.0 / other)
    return Flight(
        {
            "body_rate": Signal("body_rate", t, np.outer(t, [1.0, 2.0, 3.0]), "made"),
            "velocity": Signal("velocity", s, np.outer(s, [-1.0, 5.0, 0.5]), "made"),
        },
        Path("made"),
        "simulation",
    )


MEASURED = Space.of(body_rate=Vector(3, "rad/s"), velocity=Vector(3, "m/s"))


def test_samples_keep_their_time_stamps() -> None:
    t, y, mask = sample_at_clock(two_clocks(250.0, 50.0), "body_rate", MEASURED, [(0.5, 1.5)])
    assert t[0] >= 0.5
    assert t[-1] <= 1.5
    np.testing.assert_allclose(y[:, :3], np.outer(t, [1.0, 2.0, 3.0]))
    seen = mask[:, 3]
    assert abs(seen.sum() - 50) <= 1  # each sample once
    np.testing.assert_allclose(y[seen, 3:], np.outer(t[seen], [-1.0, 5.0, 0.5]), atol=1e-12)


def test_fast_signals_are_averaged_over_a_row() -> None:
    t, y, mask = sample_at_clock(two_clocks(1000.0, 1000.0), "body_rate", MEASURED, [(0.0, 2.0)])
    np.testing.assert_allclose(np.diff(t), 0.004)
    np.testing.assert_allclose(y[:, :3], np.outer(t, [1.0, 2.0, 3.0]), atol=1e-9)
    np.testing.assert_allclose(y[2:-2, 3:], np.outer(t[2:-2], [-1.0, 5.0, 0.5]), atol=5e-3)
    assert mask[2:-2].all()


def test_no_interpolation_across_a_gap() -> None:
    whole = two_clocks(250.0, 50.0)
    v = whole["velocity"]
    kept = (v.times < 0.8) | (v.times > 1.2)
    holed = whole.with_signals(Signal("velocity", v.times[kept], v.values[kept], "made"))
    t, _, mask = sample_at_clock(holed, "body_rate", MEASURED, [(0.0, 2.0)])
    assert not mask[(t > 0.82) & (t < 1.18), 3].any()


ROWS = np.arange(0.0, 4.0, 0.004)


def attitude_and_velocity(phase: float) -> Flight:
    t, s = np.arange(0.0, 4.0, 0.01) + phase, np.arange(0.0, 4.0, 0.02)
    t = t[(t < 2.0) | (t > 2.3)]  # a gap
    half = 0.5 * (0.3 + 0.5 * t)
    q = np.stack([np.cos(half), 0.0 * t, 0.0 * t, np.sin(half)], axis=1)
    q[::3] *= -1.0  # the same attitudes
    signals = {
        "attitude": Signal("attitude", t, q, "a"),
        "velocity": Signal("velocity", s, np.ones((len(s), 3)), "v"),
    }
    return Flight(signals, Path("x"), "simulation")


def test_the_faster_signal_is_interpolated_to_the_slower_except_in_gaps() -> None:
    found = interpolate_to_slowest(attitude_and_velocity(0.005), ("attitude", "velocity"), ROWS)
    attitude = found["attitude"]
    assert set(attitude.times) < set(found["velocity"].times)
    assert not np.any((attitude.times > 2.01) & (attitude.times < 2.29))
    assert len(attitude.times) == pytest.approx(185, abs=2)
    angle = 2.0 * np.arctan2(attitude.values[:, 3], attitude.values[:, 0])
    error = np.angle(np.exp(1j * (angle - 0.3 - 0.5 * attitude.times)))
    assert np.abs(error).max() < 1e-5
    assert np.linalg.norm(attitude.values, axis=1) == pytest.approx(1.0)
    assert "slower" in found.notes[-1]


def test_neighbouring_samples_are_not_on_one_row() -> None:
    """Samples 1.5 ms apart, of which each but one is nearest to a row of its own."""
    flight, names = attitude_and_velocity(0.0015), ("attitude", "velocity")
    assert interpolate_to_slowest(flight, names, ROWS) is flight
    assert interpolate_to_slowest(flight, names, ROWS + 0.0027) is not flight


def test_signals_on_common_rows_are_unchanged() -> None:
    for flight, names in (
        (attitude_and_velocity(0.0), ("attitude", "velocity")),
        (attitude_and_velocity(0.005), ("attitude", "position")),
    ):
        assert interpolate_to_slowest(flight, names, ROWS) is flight


def held(t: np.ndarray, u: np.ndarray, at: np.ndarray) -> np.ndarray:
    return u[np.searchsorted(t, at, side="right") - 1]


def test_mean_command_over_a_row_is_that_of_a_straight_line() -> None:
    t = np.array([0.0, 0.1, 0.21, 0.3])
    fine, u = interpolate_commands(t, np.column_stack([3.0 * t, 1.0 - t]))
    steps = np.diff(fine)
    for start, end in itertools.pairwise(t):
        inside = (fine[:-1] >= start - 1e-9) & (fine[:-1] < end - 1e-9)
        assert steps[inside].sum() == pytest.approx(end - start)
        middle = 0.5 * (start + end)
        mean = np.average(u[:-1][inside], axis=0, weights=steps[inside])
        np.testing.assert_allclose(mean, [3.0 * middle, 1.0 - middle], atol=1e-12)


def test_unlogged_commands_are_interpolated() -> None:
    """Held, a slow wave is late by half a period of the log: by some 0.05 s here."""
    t, at = np.arange(0.0, 6.0, 0.1), np.arange(0.1, 5.8, 0.0101)
    wave = np.sin(2.0 * t)[:, None]
    left = [held(*rows, at)[:, 0] - np.sin(2.0 * at) for rows in (interpolate_commands(t, wave), (t, wave))]
    assert np.abs(left[0]).max() < 0.015
    assert np.sqrt(np.mean(left[0] ** 2)) < 0.1 * np.sqrt(np.mean(left[1] ** 2))


def test_interpolated_commands_keep_the_amplitude_of_a_sine_with_four_rows_a_period() -> None:
    t, at = np.arange(0.0, 8.0, 0.1), np.arange(1.0, 7.0, 0.001)
    for phase in (0.0, 0.4, np.pi / 4):
        sine = np.sin(2.0 * np.pi * 2.5 * t + phase)
        true = np.sin(2.0 * np.pi * 2.5 * at + phase)
        spline = held(*interpolate_commands(t, sine[:, None]), at)[:, 0]
        assert np.dot(spline, true) / np.dot(true, true) == pytest.approx(0.94, abs=0.01)
        assert np.dot(np.interp(at, t, sine), true) / np.dot(true, true) == pytest.approx(0.81, abs=0.01)


def test_commands_are_held_across_a_gap_and_in_two_rows() -> None:
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
    wanted = np.sin(t[:-1]) if every else np.sin(at)
    np.testing.assert_allclose(middle, wanted, atol=1e-9 if every else 0.02 / rate)
