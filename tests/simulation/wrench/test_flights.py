"""Flights under wrench pulses obey Newton and Euler, keep their bounds and references, and are the same to the bit."""

import functools

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rotorid.errors import AirframeError, SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rotors import allocation
from rotorid.simulation.wrench.flapping import Flapping
from rotorid.simulation.wrench.flights import (
    SCENARIOS,
    LogNoise,
    evaluation_flights,
    simulate_wrench_flight,
    training_flights,
    wrench_flight_truth,
)
from rotorid.simulation.wrench.pulses import PULSE_SHAPES, Pulse, draw_pulses, sum_pulses

HEXAROTOR = load_airframe("fully-actuated-hexarotor")
MASS, J = 2.81, np.diag([0.115, 0.114, 0.194])
C_F, C_D = 11.75e-4, 0.0203
HOVER = MASS * 9.81 / (6 * np.cos(np.radians(20.0)))
STATES = ("attitude", "position", "velocity", "body_rate")


@functools.cache
def flown(scenario="free-flight-wrench", seed=1, duration=6.0, **settings):
    return wrench_flight_truth(HEXAROTOR, scenario, seed, duration=duration, **settings)


def turned(f):
    return Rotation.from_quat(f.states[:, :4], scalar_first=True)


def rotor_wrench(speed):
    with jax.enable_x64(True):
        G = np.asarray(allocation(HEXAROTOR.rotors, C_D))
    wrench = (C_F * speed**2) @ G.T
    return wrench[:, :3], wrench[:, 3:]


def same(a, b):
    return list(a.signals) == list(b.signals) and all(
        np.array_equal(a[n].values, b[n].values) and np.array_equal(a[n].times, b[n].times) for n in a.signals
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("rate", [100.0, 250.0])
def test_momentum_changes_by_the_known_and_the_external_wrench(scenario, rate):
    f = flown(scenario, rate=rate)
    h, R = 1.0 / rate, turned(f)
    force, torque = rotor_wrench(f.speed)

    def mean(body):  # of a body vector that is held over a row, seen from the world
        return 0.5 * (R[:-1].apply(body[:-1]) + R[1:].apply(body[:-1]))

    weight = np.array([0.0, 0.0, MASS * 9.81])
    wanted = h * (mean(force) + f.wrench[:-1, :3] - weight)
    np.testing.assert_allclose(MASS * np.diff(f.states[:, 7:10], axis=0), wanted, atol=20.0 * h**3)
    spin = R.apply(f.states[:, 10:] @ J)  # angular momentum, world
    np.testing.assert_allclose(np.diff(spin, axis=0), h * mean(torque + f.wrench[:, 3:]), atol=20.0 * h**3)


def test_position_moves_by_the_velocity_and_attitude_turns_by_the_body_rate():
    f = flown()
    v, w, h = f.states[:, 7:10], f.states[:, 10:], 0.004
    np.testing.assert_allclose(np.diff(f.states[:, 4:7], axis=0), 0.5 * h * (v[1:] + v[:-1]), atol=1e-6)
    R = turned(f)
    turn = (R[:-1].inv() * R[1:]).as_rotvec()
    np.testing.assert_allclose(turn, 0.5 * h * (w[1:] + w[:-1]), atol=2e-5)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_thrusts_and_their_rates_stay_within_bounds(scenario):
    f = flown(scenario)
    part = f.thrust / HOVER
    assert part.min() >= 0.25 - 1e-9
    assert part.max() <= 2.0 + 1e-9
    assert np.abs(np.diff(part, axis=0)).max() <= 10.0 * 0.004 + 1e-9
    np.testing.assert_allclose(C_F * f.speed**2, f.thrust, rtol=1e-12)
    assert np.mean((part < 0.2501) | (part > 1.9999)) < 0.05
    assert f.failures == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_lemniscates_are_tracked_and_hover_comes_to_rest(seed):
    f = flown("free-flight", seed)
    late = f.times > 4.0
    assert np.abs(f.states[late, 4:7] - f.reference.position[late]).max() < 0.003
    turn = turned(f).inv() * Rotation.from_quat(f.reference.attitude, scalar_first=True)
    assert turn[late].magnitude().max() < 0.003
    still = flown("hover", seed)
    assert np.ptp(still.reference.position, axis=0).max() == 0.0
    assert np.ptp(still.reference.attitude, axis=0).max() == 0.0
    assert not still.reference.velocity.any()
    assert np.abs(still.states[0, 4:7] - still.reference.position[0]).max() > 0.01  # it starts off it
    assert np.abs(still.states[late, 4:7] - still.reference.position[late]).max() < 1e-3
    assert np.abs(still.states[late, 7:]).max() < 1e-3


@pytest.mark.parametrize("seed", [1, 2])
def test_a_pushed_vehicle_gives_way_and_comes_back(seed):
    f = flown("hover-wrench", seed, duration=12.0)
    off = np.linalg.norm(f.states[:, 4:7] - f.reference.position, axis=1)
    assert off.max() < 0.4
    assert off[f.times > 2.0].max() > 0.01
    assert off[-1] < 0.01


@pytest.mark.parametrize("seed", range(12))
def test_pulses_are_as_said(seed):
    pulses = draw_pulses(20.0, np.random.default_rng(seed))
    sizes = np.array([[np.linalg.norm(p.wrench[:3]), np.linalg.norm(p.wrench[3:])] for p in pulses])
    np.testing.assert_allclose([p.start for p in pulses], [5.0, 10.0, 15.0], atol=0.4)
    assert all(1.5 <= p.length <= 3.0 for p in pulses)
    acts = sizes > 0
    assert acts.any(axis=1).all()
    assert (acts == acts[0]).all()
    assert np.all(np.where(acts, (sizes >= [1.5, 0.15]) & (sizes <= [5.0, 0.5]), True))


def test_some_pulses_push_some_twist_and_some_do_both():
    kinds = {
        tuple(np.abs(draw_pulses(20.0, np.random.default_rng(seed))[0].wrench).reshape(2, 3).sum(axis=1) > 0)
        for seed in range(30)
    }
    assert kinds == {(True, False), (False, True), (True, True)}


def test_a_pulse_has_its_height_and_its_impulse():
    height = np.arange(1.0, 7.0)
    t = np.arange(0.0, 5.0, 1e-3)
    rectangular, smooth = (sum_pulses([Pulse(1.0, 3.0, height)], t, shape) for shape in PULSE_SHAPES)
    inside = (t >= 1.0) & (t < 4.0)
    np.testing.assert_array_equal(rectangular, inside[:, None] * height)
    np.testing.assert_allclose(smooth.max(axis=0), height)
    assert not smooth[~inside].any()
    assert np.abs(np.diff(smooth, axis=0)).max() < 0.011
    np.testing.assert_allclose(1e-3 * rectangular.sum(axis=0), 3.0 * height, rtol=1e-3)
    np.testing.assert_allclose(1e-3 * smooth.sum(axis=0), 2.0 * height, rtol=1e-3)
    with pytest.raises(SettingError, match="no pulse shape 'round'"):
        sum_pulses([], t, "round")


def test_the_wrench_is_there_where_the_scenario_says():
    for scenario in SCENARIOS:
        acts = flown(scenario).wrench.any(axis=1)
        assert acts.any() == scenario.endswith("wrench")
        assert not acts[0]
        assert not acts[-1]


def test_an_exact_log_is_the_truth():
    f, log = flown(), simulate_wrench_flight(HEXAROTOR, "free-flight-wrench", 1, duration=6.0)
    assert log.format == "simulation"
    assert set(log.signals) == {
        *STATES,
        "specific_force",
        "rotor_speed",
        "true_force",
        "true_torque",
        "true_mass",
    }
    for name, place in zip(STATES, (slice(4), slice(4, 7), slice(7, 10), slice(10, 13)), strict=True):
        np.testing.assert_array_equal(log[name].values, f.states[:, place])
    np.testing.assert_array_equal(log["rotor_speed"].values, f.speed)
    np.testing.assert_array_equal(log["true_force"].values, f.wrench[:, :3])
    np.testing.assert_array_equal(log["true_torque"].values, f.wrench[:, 3:])
    np.testing.assert_array_equal(log["true_mass"].values, MASS)
    assert all(s.rate == pytest.approx(250.0) for s in log.signals.values())
    force, _ = rotor_wrench(f.speed)
    expected = (force[:-1] + turned(f)[1:].inv().apply(f.wrench[:-1, :3])) / MASS
    np.testing.assert_allclose(log["specific_force"].values[1:], expected, atol=1e-9)


def test_noise_is_as_large_as_said_and_leaves_the_flight_as_it_is():
    exact, noisy = (
        simulate_wrench_flight(HEXAROTOR, "free-flight-wrench", 1, duration=6.0, noise=n)
        for n in (None, LogNoise())
    )
    for name in ("true_force", "true_torque", "true_mass"):
        np.testing.assert_array_equal(noisy[name].values, exact[name].values)
    for name, std in (
        ("position", 0.002),
        ("velocity", 0.02),
        ("body_rate", 0.01),
        ("specific_force", 0.1),
    ):
        assert np.std(noisy[name].values - exact[name].values) == pytest.approx(std, rel=0.05)
    turn = Rotation.from_quat(exact["attitude"].values, scalar_first=True).inv() * Rotation.from_quat(
        noisy["attitude"].values, scalar_first=True
    )
    assert np.std(turn.as_rotvec()) == pytest.approx(np.radians(0.3), rel=0.05)
    ratio = noisy["rotor_speed"].values / exact["rotor_speed"].values
    assert np.std(ratio) == pytest.approx(0.003, rel=0.05)


def test_delay_shifts_what_is_measured_but_not_the_rotor_speed():
    plain, late = (
        simulate_wrench_flight(HEXAROTOR, "free-flight", 2, duration=2.0, delay=d) for d in (0.0, 0.02)
    )
    for name in (*STATES, "specific_force"):
        np.testing.assert_array_equal(late[name].values, plain[name].values[:-5])
        np.testing.assert_array_equal(late[name].times, plain[name].times[5:])
    for name in ("rotor_speed", "true_force", "true_torque", "true_mass"):
        np.testing.assert_array_equal(late[name].values, plain[name].values)


def test_equal_arguments_give_equal_bits_whatever_jax_is_set_to():
    settings = {"duration": 2.0, "noise": LogNoise()}
    a = simulate_wrench_flight(HEXAROTOR, "hover-wrench", 5, **settings)
    with jax.enable_x64(True):
        b = simulate_wrench_flight(HEXAROTOR, "hover-wrench", 5, **settings)
    assert same(a, b)
    assert all(s.values.dtype == np.float64 for s in a.signals.values())
    assert not same(a, simulate_wrench_flight(HEXAROTOR, "hover-wrench", 6, **settings))


def test_rotors_may_lag_and_the_plant_may_differ():
    lagging = flown(motor_time_constant=0.05)
    delivered = C_F * lagging.speed**2
    expected = lagging.thrust[1:] + np.exp(-0.004 / 0.05) * (delivered[:-1] - lagging.thrust[1:])
    np.testing.assert_allclose(delivered[1:], expected, atol=1e-9)
    with jax.enable_x64(True):
        f = wrench_flight_truth(
            HEXAROTOR, "free-flight", 1, duration=6.0, parameters={"drag": 0.5, "mass": 3.0}
        )
    R, v = turned(f), f.states[:, 7:10]
    force, _ = rotor_wrench(f.speed)
    outer = 0.5 * (R[:-1].apply(force[:-1]) + R[1:].apply(force[:-1])) - 0.25 * (v[:-1] + v[1:])
    wanted = 0.004 * (outer / 3.0 - [0.0, 0.0, 9.81])
    np.testing.assert_allclose(np.diff(v, axis=0), wanted, atol=1e-6)
    log = simulate_wrench_flight(HEXAROTOR, "hover", 1, duration=0.2, parameters={"mass": 3.0})
    np.testing.assert_array_equal(log["true_mass"].values, 3.0)


def test_the_sets_of_flights_are_the_seeds_and_share_none():
    training = training_flights(HEXAROTOR, 0, duration=0.2)
    assert [f.source.name.rsplit("-", 1)[0] for f in training] == ["hover"] * 2 + ["free-flight"] * 7
    assert not any(f["true_force"].values.any() for f in training)
    evaluation = evaluation_flights(HEXAROTOR, 0, 2, duration=0.2)
    assert {s: len(flights) for s, flights in evaluation.items()} == dict.fromkeys(SCENARIOS, 2)
    every = [*training, *(f for flights in evaluation.values() for f in flights)]
    assert len({f["position"].values.tobytes() for f in every}) == 9 + 8
    again = evaluation_flights(HEXAROTOR, 0, 1, duration=0.2)["free-flight-wrench"][0]
    assert same(again, evaluation["free-flight-wrench"][0])
    assert not same(again, evaluation_flights(HEXAROTOR, 1, 1, duration=0.2)["free-flight-wrench"][0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scenario": "landing"}, "no scenario 'landing'"),
        ({"seed": -1}, "seed -1"),
        ({"duration": 0.0}, "a flight of 0 s"),
        ({"duration": 121.0}, "at most 120 s"),
        ({"rate": 10.0}, "a rate of 10 Hz"),
        ({"delay": 0.003}, "a whole number of rows"),
        ({"delay": 2.0}, "a delay of 2 s in a flight of 1 s"),
        ({"pulse_shape": "round"}, "no pulse shape 'round'"),
        ({"motor_time_constant": -0.1}, "motor_time_constant of -0.1 s"),
        ({"parameters": {"weight": 3.0}}, "no parameter 'weight'"),
        ({"parameters": {"force": (1.0, 0.0, 0.0)}}, "'force' is the external wrench"),
        ({"parameters": {"inertia": 0.1}}, "'inertia' needs 3 numbers"),
        ({"parameters": {"mass": float("nan")}}, "'mass' is nan"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message) as raised:
        simulate_wrench_flight(HEXAROTOR, **{"duration": 1.0, **settings})
    assert "\n" not in str(raised.value)


def test_wrong_sets_noises_and_airframes_are_named():
    with pytest.raises(SettingError, match="0 flights per scenario"):
        evaluation_flights(HEXAROTOR, 0, 0)
    with pytest.raises(SettingError, match="seed -1"):
        training_flights(HEXAROTOR, -1)
    with pytest.raises(SettingError, match="standard deviations must be 0 or more"):
        LogNoise(position=-0.1)
    with pytest.raises(AirframeError, match="not fully actuated"):
        simulate_wrench_flight(load_airframe("quadrotor-x"))


def test_flapping_has_hysteresis_and_dissipates() -> None:
    flapping, z = Flapping(), np.zeros(2)
    v = 0.8 * np.sin(np.linspace(0.0, 6.0 * np.pi, 3001))
    force, last = [], 0.0
    for value in v:
        z, last = flapping.step(z, np.array([value - last, 0.0])), value
        force.append(flapping.wrench(z, np.eye(3)))
    F = np.array(force)
    rows = slice(1000, 3000)  # two cycles after the first
    rises = np.diff(v, prepend=v[0]) > 0
    at_zero = np.abs(v) < 0.02
    up, down = (F[rows][(at_zero & which)[rows], 0] for which in (rises, ~rises))
    assert up.max() < -0.2 * flapping.force  # two forces at one velocity
    assert down.min() > 0.2 * flapping.force
    assert np.mean(F[rows, 0] * v[rows]) < 0.0
    assert np.abs(F[:, 0]).max() <= flapping.force
    np.testing.assert_allclose(F[:, 4], flapping.height * F[:, 0])
    assert not F[:, [1, 2, 3, 5]].any()


def test_flapping_acts_on_the_vehicle_and_is_not_in_the_true_wrench() -> None:
    flapping = Flapping()
    f = flown("free-flight", duration=3.0, flapping=flapping)
    h, R = 1.0 / 250.0, turned(f)
    body = R.inv().apply(f.states[:, 7:10])
    z, forces = np.zeros(2), [np.zeros(3)]
    for change in np.diff(body[:, :2], axis=0):
        z = flapping.step(z, change)
        forces.append(flapping.wrench(z, np.eye(3))[:3])
    force = rotor_wrench(f.speed)[0] + np.array(forces)
    world = 0.5 * (R[:-1].apply(force[:-1]) + R[1:].apply(force[:-1])) - [0.0, 0.0, MASS * 9.81]
    rate = MASS * np.diff(f.states[:, 7:10], axis=0) / h
    assert np.abs(rate - world).max() < 0.05
    assert np.abs(forces).max() > 0.5
    assert not f.wrench.any()
