"""Wrench observers against the wrench that a simulated vehicle was given."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen import native
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream, run, run_many, stack
from rotorid.estimators.wrench.gate import FEW
from rotorid.estimators.wrench.observers import acceleration_observer, momentum_observer
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.signals.samples import Samples
from tests.estimators.flown import flown, noisy

HEXAROTOR = rigid_multirotor(load_airframe("fully-actuated-hexarotor"), "rotor_speed")
PLACE = HEXAROTOR.outputs.tangent
WRENCH = np.array([2.0, -1.0, 3.0, 0.1, -0.2, 0.15])
GAINS = (5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
STEPS = 200
NOTHING = np.zeros((STEPS, 6))
STEP = np.where(np.arange(STEPS)[:, None] < 50, 0.0, WRENCH)
LOPSIDED = {
    "products_of_inertia": (0.012, -0.008, 0.005),
    "centre_of_mass": (0.03, -0.02, 0.015),
    "drag": 0.4,
}
MAKERS = pytest.mark.parametrize("make", [momentum_observer, acceleration_observer])


def seen_only(samples, **rows):
    """Samples in which some outputs are measured in some rows only."""
    mask = np.array(samples.mask)
    for name, kept in rows.items():
        mask[~kept, PLACE[name]] = False
    return eqx.tree_at(lambda s: s.mask, samples, jnp.asarray(mask))


def trouble(samples):
    """Noise, holes, a gap, and inputs that are no numbers."""
    n = len(samples.t)
    samples = noisy(samples, HEXAROTOR, jax.random.key(1))
    samples = seen_only(
        samples,
        velocity=np.arange(n) % 3 == 0,
        attitude=np.arange(n) % 4 != 1,
        body_rate=np.arange(n) % 5 > 0,
    )
    dt, u = samples.dt.at[n // 2].set(2.0), samples.u.at[3 * n // 4].set(jnp.nan)
    return eqx.tree_at(lambda s: (s.dt, s.u), samples, (dt, u))


@pytest.fixture(scope="module")
def step():
    with jax.enable_x64(True):
        return flown(HEXAROTOR, STEP)


@pytest.fixture(scope="module")
def calm():
    with jax.enable_x64(True):
        return flown(HEXAROTOR, NOTHING, sway=1.5)


@pytest.mark.parametrize("dt", [0.004, 0.02, 0.1])
def test_step_response_of_the_momentum_observer_is_a_first_order_lag_for_any_dt(dt):
    samples = flown(HEXAROTOR, STEP, dt)
    found = run(momentum_observer(HEXAROTOR, gain=GAINS), samples)
    t = dt * (np.arange(1, STEPS + 1) - 50)[:, None]
    exact = np.where(t > 0, WRENCH * -np.expm1(-np.array(GAINS) * np.maximum(t, 0.0)), 0.0)
    np.testing.assert_allclose(found.value, exact, atol=1e-6 if dt < 0.1 else 1e-3)


def test_momentum_observer_reaches_63_percent_after_its_time_constant(step):
    found = run(momentum_observer(HEXAROTOR, gain=GAINS), step)
    t = np.asarray(step.t) - 0.5
    for j, gain in enumerate(GAINS):
        share = np.asarray(found.value)[:, j] / WRENCH[j]
        np.testing.assert_allclose(np.interp(1.0 - np.exp(-1.0), share, t), 1.0 / gain, rtol=0.01)


@MAKERS
def test_no_wrench_is_estimated_at_rest(make):
    samples = flown(HEXAROTOR, NOTHING)
    assert np.abs(run(make(HEXAROTOR), samples).value).max() < 1e-12


@MAKERS
@pytest.mark.parametrize("parameters", [{}, LOPSIDED], ids=["plain", "lopsided"])
def test_with_the_true_model_the_wrench_is_estimated_in_flight(make, parameters):
    samples = flown(HEXAROTOR, STEP, sway=1.5, **parameters)
    priors = {n: HEXAROTOR.parameter(n).with_prior(v) for n, v in parameters.items()}
    found = run(make(HEXAROTOR, priors=priors), samples)
    assert np.abs(found.value[:49]).max() < 2e-4
    np.testing.assert_allclose(found.value[-1], WRENCH, atol=2e-4)


def test_a_stopped_rotor_is_accepted(step):
    still = eqx.tree_at(lambda s: s.u, step, step.u.at[:, 0].set(0.0))
    found = run(momentum_observer(HEXAROTOR), still)
    assert bool(jnp.all(jnp.isfinite(found.value)))
    assert float(found.value[40, 2]) > 4.0  # the 4.9 N that it did pull, along a tilted axis


@MAKERS
@pytest.mark.parametrize("holes", [False, True])
def test_covariance_agrees_with_many_flights(make, holes, calm):
    k = np.arange(200)
    samples = (
        seen_only(calm, velocity=k % 3 == 0, attitude=k % 2 == 0, body_rate=k % 5 > 0) if holes else calm
    )
    still = {n: HEXAROTOR.parameter(n).with_prior(drift=0.0) for n in ("force", "torque")}
    observer = make(HEXAROTOR, gain=GAINS, priors=still)
    keys = jax.random.split(jax.random.key(0), 300)
    flights = jax.vmap(lambda key: noisy(samples, HEXAROTOR, key))(keys)
    found = run_many(observer, flights)
    spread = np.asarray(found.value)[:, 150:].std(axis=0) / np.asarray(found.std)[0, 150:]
    np.testing.assert_allclose(spread.mean(axis=0), 1.0, atol=0.06)
    nis = float(jnp.sum(found.nis[:, 150:]) / jnp.sum(found.nis_dof[:, 150:]))
    np.testing.assert_allclose(nis, 1.0, atol=0.04)


def test_observers_and_the_kalman_filter_agree_on_a_slow_wrench():
    truth = WRENCH * np.sin(2.0 * 0.02 * np.arange(STEPS))[:, None]
    samples = noisy(flown(HEXAROTOR, truth, 0.02, sway=0.5), HEXAROTOR, jax.random.key(3))
    values, stds = [], []
    for observer in (momentum_observer(HEXAROTOR), acceleration_observer(HEXAROTOR), ekf(HEXAROTOR)):
        found = run(observer, samples)
        error = (np.asarray(found.value) - truth)[50:]
        scale = np.asarray(found.std)[50:]
        assert np.all(np.sqrt(np.mean(error**2, axis=0)) < [1.7, 1.7, 1.7, 0.1, 0.1, 0.11])
        assert np.mean(np.abs(error) < 3.0 * scale) > 0.98
        assert bool(jnp.all(found.informed[50:]))
        values.append(np.asarray(found.value)[50:])
        stds.append(scale)
    for value, std in zip(values[:-1], stds, strict=False):
        assert np.mean(np.abs(value - values[-1]) < 3.0 * np.hypot(std, stds[-1])) > 0.98


@pytest.mark.skipif(native.compiler() is None, reason="no C compiler on this machine")
@MAKERS
def test_run_run_many_stream_and_c_are_the_same(make, step):
    observer, samples = make(HEXAROTOR, gain=GAINS), trouble(step)
    in_c = run(observer, samples, engine="c")
    stream = Stream(observer, engine="c")
    rows = [jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), samples) for i in range(len(samples.t))]
    streamed = jax.tree.map(lambda *leaves: np.stack(leaves), *[stream.step(row) for row in rows])
    many = run_many(observer, stack([samples, step]), engine="c")
    for name, a in vars(in_c).items():
        np.testing.assert_array_equal(getattr(streamed, name), a, err_msg=name)
        np.testing.assert_array_equal(getattr(many, name)[0], a, err_msg=name)
    if make is momentum_observer:  # of which JAX takes long to compile; the other is little else
        for name, a in vars(run(observer, samples, engine="jax")).items():
            np.testing.assert_allclose(getattr(in_c, name), a, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_missing_velocity_defers_the_update(step):
    samples = step
    every = run(momentum_observer(HEXAROTOR, gain=GAINS), samples)
    kept = np.arange(STEPS) % 5 == 4
    some = run(momentum_observer(HEXAROTOR, gain=GAINS), seen_only(samples, velocity=kept))
    np.testing.assert_allclose(some.value[kept], every.value[kept], atol=1e-6)
    between = np.flatnonzero(~kept)[5:]
    np.testing.assert_array_equal(some.value[between, :3], some.value[between - 1, :3])


@MAKERS
def test_without_its_measurement_an_observer_keeps_its_estimate(make, step):
    never = np.zeros(STEPS, bool)
    for name in ("attitude", "velocity" if make is momentum_observer else "specific_force"):
        found = run(make(HEXAROTOR), seen_only(step, **{name: never}))
        np.testing.assert_array_equal(found.value[:, :3], 0.0)
        assert not bool(jnp.any(found.informed[:, :3]))
        assert set(np.asarray(found.health).tolist()) == {Health.NO_INFORMATION}


@MAKERS
def test_a_gap_and_invalid_numbers_restore_the_prior(make, step):
    observer, samples = make(HEXAROTOR), step
    gap = run(observer, eqx.tree_at(lambda s: s.dt, samples, samples.dt.at[100].set(2.0)))
    np.testing.assert_array_equal(gap.value[100], 0.0)
    assert gap.health[99] != Health.RECOVERING == gap.health[100]
    prior = observer.tuning.coordinate_std
    np.testing.assert_allclose(gap.std[100], prior)
    broken = run(observer, eqx.tree_at(lambda s: s.u, samples, samples.u.at[100].set(jnp.nan)))
    assert broken.health[100] == Health.DIVERGED
    assert bool(jnp.all(jnp.isfinite(broken.value)))
    for found in (gap, broken):
        np.testing.assert_allclose(found.value[-1], WRENCH, rtol=0.02)


def vertical(command):
    """A level quadrotor with lagging rotors that goes up and down by these commands, solved by hand."""
    system = rigid_multirotor(load_airframe("quadrotor-x"), "rotor_command")
    dt, m, tau, g = 0.01, 1.5, 0.04, 9.81
    thrust, speed, y = m * g / 4.0, 0.0, []
    for c in command:
        target = 2.0 * c + 8.0 * c**2
        impulse = target * dt + (thrust - target) * tau * -np.expm1(-dt / tau)
        thrust = target + (thrust - target) * np.exp(-dt / tau)
        speed += 4.0 * impulse / m - g * dt
        y.append([1, 0, 0, 0, 0, 0, 0, 0, 0, speed, 0, 0, 0, 0, 0, 4.0 * thrust / m])
    n = len(command)
    spans = np.full(n, dt)
    spans[0] = 0.0
    mask = np.ones((n, system.outputs.dim), bool)
    u = np.repeat(command[:, None], 4, axis=1)
    return system, Samples(*map(jnp.asarray, (dt * np.arange(1, n + 1), spans, u, np.array(y), mask)))


def test_motor_lag_is_modelled_and_saturated_rotors_give_no_update():
    command = 0.57 + 0.2 * np.sign(np.sin(0.09 * np.arange(STEPS)))
    system, samples = vertical(command)
    observer = momentum_observer(system)
    found = run(observer, samples)
    assert (
        np.abs(found.value[100:]).max() < 1e-3
    )  # the thrust at the start, which is not measured, is forgotten by then
    pinned = eqx.tree_at(lambda s: s.u, samples, samples.u.at[150:, 0].set(1.0))
    found = run(observer, pinned)
    assert set(np.asarray(found.health[150:]).tolist()) == {Health.OUT_OF_RANGE}
    np.testing.assert_array_equal(found.value[150:], jnp.tile(found.value[149], (50, 1)))


@MAKERS
def test_unsupported_systems_and_gains_raise(make):
    for gain in (0.0, (1.0, 2.0), (1.0,) * 5 + (float("nan"),)):
        with pytest.raises(SettingError, match="one positive gain in 1/s, or six"):
            make(HEXAROTOR, gain=gain)
    heavier = tuple(p.with_prior(std=0.3) if p.name == "mass" else p for p in HEXAROTOR.parameters)
    with pytest.raises(SettingError, match=r"tracks force_x.*mass; use ekf or ukf"):
        make(dataclasses.replace(HEXAROTOR, parameters=heavier))


def with_glitch(samples, row, **values):
    """Samples in which some outputs of one row are replaced."""
    y = np.array(samples.y)
    for name, value in values.items():
        y[row, HEXAROTOR.outputs.stored[name]] = value
    return eqx.tree_at(lambda s: s.y, samples, jnp.asarray(y))


GLITCHES = {
    "velocity": (5.0, 0.0, -3.0),
    "body_rate": (0.0, 30.0, 0.0),
    "attitude": (0.0, 1.0, 0.0, 0.0),
    "specific_force": (0.0, 0.0, 400.0),
}


@MAKERS
@pytest.mark.parametrize("name", GLITCHES)
def test_a_glitch_has_the_effect_of_a_missing_measurement(make, name, calm):
    observer, kept = make(HEXAROTOR), np.arange(STEPS) != 120
    glitch = run(observer, with_glitch(calm, 120, **{name: GLITCHES[name]}))
    missing = run(observer, seen_only(calm, **{name: kept}))
    np.testing.assert_array_equal(glitch.value, missing.value)
    np.testing.assert_array_equal(glitch.std, missing.std)
    assert np.flatnonzero(np.asarray(glitch.health) == Health.OUTLIER).tolist() == [120]


def test_an_impact_is_accepted_and_its_impulse_estimated():
    """600 N for 0.02 s: two rows of 214 m/s^2, which no wrench is expected to make.

    Taken over four rows at once it is (1 - d^4) / (4 - 4 d) of itself, d = exp(-K dt), as eq. 14 has it.
    """
    hit = np.zeros((STEPS, 6))
    hit[60:62, 0] = 600.0
    samples = flown(HEXAROTOR, hit)
    found = run(momentum_observer(HEXAROTOR, gain=10.0), samples)
    health = np.asarray(found.health)
    rejected = np.flatnonzero(health == Health.OUTLIER)
    assert 1 <= len(rejected) <= 2 * FEW
    assert rejected[0] == 60
    impulse = np.sum(np.asarray(found.value)[:, 0]) * 0.01
    d = np.exp(-10.0 * 0.01)
    np.testing.assert_allclose(impulse, 12.0 * (1.0 - d**4) / (4.0 - 4.0 * d), rtol=1e-3)
    before = run(momentum_observer(HEXAROTOR, gain=10.0), flown(HEXAROTOR, NOTHING))
    np.testing.assert_array_equal(found.value[:60], before.value[:60])


@MAKERS
def test_a_force_within_the_prior_is_never_rejected(make, step):
    assert Health.OUTLIER not in set(np.asarray(run(make(HEXAROTOR), step).health).tolist())
