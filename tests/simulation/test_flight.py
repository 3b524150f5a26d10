"""Simulated flights obey their own physics, are reproducible to the bit, and stay on their references."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import SettingError
from rotorid.simulation.flight import MAXIMUM_THRUST, simulate, simulate_truth
from rotorid.simulation.plant import Plant
from rotorid.simulation.profiles import MASS_PROFILES
from rotorid.simulation.sensors import Sensors
from rotorid.simulation.spraying import simulate_spraying
from rotorid.simulation.trajectories import TRAJECTORIES, reference

GRAVITY = np.array([0.0, 0.0, -9.81])
REAL = Plant(motor_time_constant=0.05, drag=0.3, wind=(4.0, 2.0, 0.0))


def flown(trajectory="lemniscate", profile="sine", seed=1, duration=4.0, plant=Plant(), sensors=Sensors()):  # noqa: B008
    return simulate_truth(trajectory, profile, seed, duration=duration, sensors=sensors, plant=plant)[0]


def same(a, b):
    return list(a.signals) == list(b.signals) and all(
        np.array_equal(a[n].values, b[n].values) and np.array_equal(a[n].times, b[n].times) for n in a.signals
    )


@pytest.mark.parametrize("profile", MASS_PROFILES)
@pytest.mark.parametrize("trajectory", TRAJECTORIES)
def test_every_cell_stays_on_its_reference(trajectory, profile):
    """Five seconds cover the hover, the start with a mass up to 30 % off, and half of the ramp of a curve."""
    f = flown(trajectory, profile, seed=4, duration=5.0)
    error = f.states[:, 4:7] - reference(trajectory, 4, 5.0).position
    assert f.failures == 0
    assert np.linalg.norm(error, axis=1).max() < 0.25
    assert f.mass.min() > 0.0


def test_the_aggressive_one_reaches_the_limit_and_is_flown():
    f = flown("lemniscate", "steps", seed=7, duration=15.0)
    error = f.states[:, 4:7] - reference("lemniscate", 7, 15.0).position
    assert np.mean(f.inputs[:, 0] > 0.99 * MAXIMUM_THRUST) > 0.05
    assert np.linalg.norm(error, axis=1).max() < 0.5


def test_a_heavy_vehicle_flies_low_and_a_light_one_high():
    f = flown("square", "step", seed=5, duration=8.0)
    height = f.states[:, 6] - reference("square", 5, 8.0).position[:, 2]
    late = np.abs(np.arange(len(height)) % 200 - 150) < 50
    heavy = f.mass > 1.05
    assert np.median(height[heavy & late]) < -0.01
    assert np.median(height[~heavy & late]) > 0.01


def test_velocity_changes_by_thrust_over_mass_and_gravity():
    f = flown()
    attitude = Rotation.from_quat(f.states[:, :4], scalar_first=True)
    middle = attitude * Rotation.from_rotvec(0.005 * f.inputs[:, 1:])
    mass = np.append((f.mass[1:] + f.mass[:-1]) / 2.0, f.mass[-1])
    wanted = middle.apply(np.outer(f.inputs[:, 0] / mass, [0.0, 0.0, 1.0])) + GRAVITY
    np.testing.assert_allclose(np.diff(f.states[:, 7:10], axis=0) / 0.01, wanted[:-1], atol=2e-2)


def test_attitude_turns_by_the_body_rate_and_position_moves_by_the_velocity():
    f = flown()
    attitude = Rotation.from_quat(f.states[:, :4], scalar_first=True)
    turn = (attitude[:-1].inv() * attitude[1:]).as_rotvec()
    np.testing.assert_allclose(turn, 0.01 * f.inputs[:-1, 1:], atol=1e-12)
    v = f.states[:, 7:10]
    np.testing.assert_allclose(np.diff(f.states[:, 4:7], axis=0), 0.005 * (v[1:] + v[:-1]), atol=1e-5)


def test_power_of_the_thrust_is_the_gain_of_energy():
    f = flown(profile="step", seed=2, duration=2.0)  # before the step
    assert np.ptp(f.mass[:60]) == 0.0
    q, p, v = f.states[:60, :4], f.states[:60, 4:7], f.states[:60, 7:10]
    energy = f.mass[:60] * (0.5 * np.sum(v * v, axis=1) + 9.81 * p[:, 2])
    force = Rotation.from_quat(q, scalar_first=True).apply(np.outer(f.inputs[:60, 0], [0.0, 0.0, 1.0]))
    work = np.sum(force[:-1] * np.diff(p, axis=0), axis=1)
    np.testing.assert_allclose(np.diff(energy), work, atol=2e-4)


def test_motor_lag_drag_and_wind():
    f = flown(plant=REAL)
    thrust = f.states[:, 10]
    after = f.inputs[:, 0] + (thrust - f.inputs[:, 0]) * np.exp(-0.01 / 0.05)
    np.testing.assert_allclose(thrust[1:], after[:-1], atol=1e-8)
    v, mass = f.states[:, 7:10], f.mass[:, None]
    along_z = Rotation.from_quat(f.states[:, :4], scalar_first=True).apply(np.outer(thrust, [0.0, 0.0, 1.0]))
    acceleration = (along_z + 0.3 * (np.array([4.0, 2.0, 0.0]) - v)) / mass + GRAVITY
    mean = (acceleration[1:] + acceleration[:-1]) / 2.0
    np.testing.assert_allclose(np.diff(v, axis=0) / 0.01, mean, atol=5e-2)


def test_gusts_act_by_drag_and_are_told():
    plant = Plant(drag=0.3, wind=(3.0, 0.0, 0.0), gusts=(1.0, 1.0, 0.5), gust_times=(2.0, 2.0, 0.5))
    f = flown(plant=plant)
    log = simulate("lemniscate", "sine", 1, duration=4.0, plant=plant)
    np.testing.assert_array_equal(log["true_wind"].values, f.wind)
    np.testing.assert_allclose(log["true_force"].values, 0.3 * (f.wind - f.states[:, 7:10]), atol=1e-12)
    assert np.ptp(f.wind, axis=0).min() > 0.5
    v, mass = f.states[:, 7:10], f.mass[:, None]
    along_z = Rotation.from_quat(f.states[:, :4], scalar_first=True).apply(
        np.outer(f.inputs[:, 0], [0.0, 0.0, 1.0])
    )
    acceleration = (along_z + 0.3 * (f.wind - v)) / mass + GRAVITY
    turning = (
        np.abs(np.diff(f.inputs[:, 0])) > 0.05
    )  # where the thrust jumps, the mean of two rows is not the one held
    mean = (acceleration[1:] + acceleration[:-1]) / 2.0
    np.testing.assert_allclose((np.diff(v, axis=0) / 0.01)[~turning], mean[~turning], atol=5e-2)
    assert "true_wind" not in simulate("loop", duration=0.5, plant=Plant(wind=(3.0, 0.0, 0.0)))


def test_rotors_deliver_what_they_can_of_the_commanded_thrust():
    limits = (5.0, 11.0)
    at_once = Plant(thrust_limits=limits)
    f = flown(plant=at_once)
    assert f.inputs[:, 0].max() > 12.0
    log = simulate(
        "lemniscate", "sine", 1, duration=4.0, plant=at_once, sensors=Sensors(specific_force_noise=0.0)
    )
    delivered = np.clip(np.concatenate([f.inputs[:1, 0], f.inputs[:-1, 0]]), *limits)
    np.testing.assert_allclose(log["specific_force"].values[:, 2], delivered / f.mass, atol=1e-9)
    np.testing.assert_array_equal(log["thrust"].values[:, 0], f.inputs[:, 0])
    slow = flown(plant=Plant(thrust_limits=limits, motor_time_constant=0.05))
    thrust, wanted = slow.states[:, 10], np.clip(slow.inputs[:, 0], *limits)
    after = wanted + (thrust - wanted) * np.exp(-0.01 / 0.05)
    np.testing.assert_allclose(thrust[1:], after[:-1], atol=1e-8)


def test_equal_arguments_give_equal_bits_whatever_jax_is_set_to():
    a = simulate("random", "steps", 7, duration=2.0)
    with jax.enable_x64(True):
        b = simulate("random", "steps", 7, duration=2.0)
    assert same(a, b)
    assert all(s.values.dtype == np.float64 for s in a.signals.values())
    assert not same(a, simulate("random", "steps", 8, duration=2.0))


def test_the_log_has_its_signals_with_the_noise_asked_for():
    log, truth = simulate("loop", "linear", 2, duration=6.0), flown("loop", "linear", 2, duration=6.0)
    assert set(log.signals) == {"attitude", "position", "velocity", "body_rate", "thrust", "true_mass"}
    assert log.format == "simulation"
    assert log.parameters["nominal_mass"] == 1.0
    for name, part, std in (("position", slice(4, 7), 0.01), ("velocity", slice(7, 10), 0.03)):
        assert np.std(log[name].values - truth.states[:, part]) == pytest.approx(std, rel=0.08)
    measured, attitude = (
        Rotation.from_quat(q, scalar_first=True) for q in (log["attitude"].values, truth.states[:, :4])
    )
    assert np.std((attitude.inv() * measured).as_rotvec()) == pytest.approx(0.01, rel=0.08)
    np.testing.assert_array_equal(log["thrust"].values[:, 0], truth.inputs[:, 0])
    np.testing.assert_array_equal(log["body_rate"].values[1:], truth.inputs[:-1, 1:])
    np.testing.assert_array_equal(log["true_mass"].values[:, 0], truth.mass)


def test_more_sensors_leave_the_flight_as_it_is():
    plain = simulate("square", "sine", 3, duration=3.0, plant=REAL)
    sensors = Sensors(specific_force_noise=0.1, body_rate_noise=0.02, rotor_command=True)
    full = simulate("square", "sine", 3, duration=3.0, plant=REAL, sensors=sensors)
    for name in ("position", "thrust", "true_mass", "true_force"):
        np.testing.assert_array_equal(plain[name].values, full[name].values)
    assert full["rotor_command"].values.shape == (301, 4)
    np.testing.assert_allclose(20.0 * full["rotor_command"].values[:, 2], full["thrust"].values[:, 0])
    gyroscope = full["body_rate"].values - plain["body_rate"].values
    assert np.std(gyroscope) == pytest.approx(0.02, rel=0.1)
    truth = flown("square", "sine", 3, duration=3.0, plant=REAL)
    body = Rotation.from_quat(truth.states[:, :4], scalar_first=True).inv().apply(full["true_force"].values)
    expected = (np.outer(truth.states[:, 10], [0.0, 0.0, 1.0]) + body) / truth.mass[:, None]
    assert np.std(full["specific_force"].values - expected) == pytest.approx(0.1, rel=0.1)


def test_delay_and_dropout_act_on_the_log_only():
    plain = simulate("zigzag", "step", 3, duration=3.0)
    late = simulate("zigzag", "step", 3, duration=3.0, sensors=Sensors(delay=3))
    np.testing.assert_array_equal(late["velocity"].values, plain["velocity"].values[:-3])
    np.testing.assert_array_equal(late["velocity"].times, plain["velocity"].times[3:])
    np.testing.assert_array_equal(late["thrust"].values, plain["thrust"].values)
    gappy = simulate("zigzag", "step", 3, duration=3.0, sensors=Sensors(dropout=0.3))
    assert 0.6 < len(gappy["position"].times) / 301 < 0.8
    assert not np.array_equal(gappy["position"].times, gappy["velocity"].times)
    kept = np.isin(plain["position"].times, gappy["position"].times)
    np.testing.assert_array_equal(gappy["position"].values, plain["position"].values[kept])


def test_a_sprayer_loses_mass_along_its_rows_only():
    log = simulate_spraying(2, duration=12.0)
    mass, speed = log["true_mass"].values[:, 0], np.abs(log["velocity"].values[:, 0])
    loss = -np.diff(mass)
    assert (loss >= 0.0).all()
    assert 1.2 <= mass[0] <= 1.3
    assert 0.75 <= mass[-1] <= 0.86
    assert np.unique(np.round(loss[loss > 0.0], 9)).size == 1
    assert speed[:-1][loss > 0.0].min() > 2.0
    assert same(log, simulate_spraying(2, duration=12.0))


def test_wrong_settings_are_named():
    with pytest.raises(SettingError, match="no trajectory 'spin'"):
        simulate("spin")
    with pytest.raises(SettingError, match="no mass profile 'none'"):
        simulate("loop", "none")
    with pytest.raises(SettingError, match="duration must be positive"):
        simulate(duration=0.0)
    with pytest.raises(SettingError, match="dropout"):
        Sensors(dropout=1.0)
    with pytest.raises(SettingError, match="motor_time_constant"):
        Plant(motor_time_constant=0.001)
    with pytest.raises(SettingError, match="gusts"):
        Plant(gust_times=(1.0, 0.0, 1.0))
    with pytest.raises(SettingError, match="thrust_limits"):
        Plant(thrust_limits=(18.0, 1.0))
