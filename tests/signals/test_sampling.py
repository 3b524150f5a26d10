"""From signals on their own clocks to samples on one grid."""

from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import ExcitationError, SignalError
from rotorid.geometry.spaces import Rotation, Scalar, Space, Vector
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.noise import measured_noise, white_noise
from rotorid.signals.sampling import MAX_RATE, grid_rate, sample, truth_at, with_reconstructed_commands

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


def test_rows_without_inputs_are_left_out_and_leave_a_long_dt():
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
    with pytest.raises(ExcitationError, match=r"made\.csv: no part of this log is in the air"):
        sample(flight(), INPUTS, OUTPUTS, spans=[])


def test_what_is_missing_is_named():
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


def test_motors_that_do_not_follow_the_collective_are_left_alone():
    t = np.arange(0.0, 20.0, 0.02)
    rng = np.random.default_rng(0)
    made = flight(
        rotor_command=signal("rotor_command", t[::5], rng.uniform(0.2, 0.8, (200, 4))),
        collective_command=signal("collective_command", t, 0.5 + 0.1 * np.sin(t)),
    )
    assert with_reconstructed_commands(made) is made


def test_truth_holds_until_the_next_row():
    made = flight(true_mass=signal("true_mass", [0.0, 2.0], [1.0, 0.8]))
    np.testing.assert_array_equal(
        truth_at(made, "true_mass", np.array([1.0, 1.999, 2.0, 3.0]))[:, 0], [1.0, 1.0, 0.8, 0.8]
    )
    assert truth_at(made, "true_force", np.array([1.0])) is None


def test_white_noise_is_found_under_motion_steps_and_outliers():
    rng = np.random.default_rng(1)
    t = np.arange(4000) * 0.01
    y = np.sin(2.0 * t) + (t > 20.0) + rng.normal(0.0, 0.05, len(t))
    y[::500] += 30.0
    np.testing.assert_allclose(white_noise(y[:, None]), [0.05], rtol=0.1)


def test_noise_is_raised_never_lowered():
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 4.0, 0.01)
    for std, expected in ((0.5, 0.5), (0.001, 0.1)):
        shaking = signal("velocity", t, rng.normal(0.0, std, (len(t), 3)))
        found = measured_noise(sample(flight(velocity=shaking), INPUTS, OUTPUTS), OUTPUTS)
        np.testing.assert_allclose(found["velocity"], expected, rtol=0.15)
        assert "attitude" not in found


def test_white_noise_of_samples_that_are_not_evenly_apart_is_no_motion():
    """Pairs of rows 80 and 120 ms apart: as if evenly apart, a line would look like noise."""
    rng = np.random.default_rng(1)
    t = np.cumsum(np.tile([0.08, 0.12], 1000))
    noise = rng.normal(0.0, 0.01, len(t))
    y = np.column_stack([5.0 * t + noise, t**2 + noise])
    np.testing.assert_allclose(white_noise(y, t), [0.01, 0.01], rtol=0.1)
    assert white_noise(y)[0] > 0.04
    even = np.arange(len(t)) * 0.1
    np.testing.assert_allclose(white_noise(y, even), white_noise(y), rtol=1e-6)
