"""Failure is data: outliers, gaps, jumps and invalid numbers are survived and said."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import run
from rotorid.estimators.ukf import ukf
from tests.systems import SYSTEMS, matched

MAKERS = pytest.mark.parametrize("make", [ekf, ukf])


def hovering(make, seed=1, steps=800):
    filter_ = make(SYSTEMS["bare"])
    samples, truth = matched(filter_, seed, steps)
    return filter_, samples, np.exp(truth[:, 10])


@MAKERS
def test_an_outlier_is_rejected_and_reported(make):
    filter_, samples, _ = hovering(make)
    velocity = filter_.joint.system.outputs.stored["velocity"]
    y = samples.y.at[500, velocity].add(20.0)
    spoilt, clean = run(filter_, eqx.tree_at(lambda s: s.y, samples, y)), run(filter_, samples)
    assert int(spoilt.health[500]) == Health.OUTLIER
    assert abs(float(spoilt.value[500, 0] - clean.value[500, 0])) < 0.2 * float(clean.std[500, 0])
    assert int(spoilt.nis_dof[500]) == 6


@MAKERS
def test_a_gap_resets_the_states_and_keeps_the_mass(make):
    filter_, samples, mass = hovering(make)
    dt = samples.dt.at[500].set(5.0)
    space = filter_.joint.system.outputs
    far = jnp.where(jnp.arange(800)[:, None] >= 500, 1.0, 0.0) * jnp.zeros(space.size).at[
        space.stored["position"]
    ].set(50.0)
    gap = eqx.tree_at(lambda s: (s.dt, s.y), samples, (dt, samples.y + far))
    found = run(filter_, gap)
    assert int(found.health[500]) == Health.RECOVERING
    assert int(found.health[-1]) == Health.OK
    assert float(found.std[500, 0]) > float(found.std[499, 0])
    assert abs(float(found.value[-1, 0]) / mass[-1] - 1.0) < 0.05
    np.testing.assert_allclose(found.state[520, 4:7], gap.y[520, 4:7], atol=0.1)


@MAKERS
def test_a_dropped_load_is_detected_within_half_a_second(make):
    """A third of the mass is gone at 5 s: the same data, with twice the thrust asked for then, as of a heavier vehicle."""
    filter_, samples, mass = hovering(make, steps=1000)
    u = samples.u.at[500:, 0].multiply(1.5)
    found = run(filter_, eqx.tree_at(lambda s: s.u, samples, u))
    ratio = np.asarray(found.value[500:, 0]) / (1.5 * mass[500:])
    assert abs(ratio[50] - 1.0) < 0.1
    assert ratio.max() < 1.04
    assert int(jnp.max(found.health[500:560])) == Health.RECOVERING
    assert int(found.health[-1]) == Health.OK


@MAKERS
def test_a_bias_does_not_open_what_holds_at_the_start(make):
    """In the onset of a weighed mass a lost third of the thrust is found, but the mass stays what was weighed."""
    system = SYSTEMS["bare"]
    samples, _ = matched(make(system), 1, 800)
    weighed = dataclasses.replace(system.parameter("mass"), std=0.01, onset=60.0)
    u = samples.u.at[500:, 0].multiply(0.67)
    found = run(make(system, priors={"mass": weighed}), eqx.tree_at(lambda s: s.u, samples, u))
    assert int(jnp.max(found.health[500:560])) == Health.RECOVERING
    assert float(jnp.max(found.std[500:])) < 0.05
    assert float(jnp.max(jnp.abs(jnp.diff(found.value[500:, 0])))) < 0.02


STRONG_GUSTS = {"bias_gate": 6.0, "bias_memory": 1.0, "least_bias": 0.25}


def steady(make, **settings):
    """A filter of a vehicle whose mass hardly drifts."""
    mass = SYSTEMS["bare"].parameter("mass")
    return make(
        SYSTEMS["bare"], priors={"mass": dataclasses.replace(mass, drift=0.1 * mass.drift)}, **settings
    )


def lightened(make, share, steps):
    """Samples of such a vehicle that becomes lighter by a share at 4 s: the same data, with less thrust asked for."""
    samples, _ = matched(steady(make), 1, steps)
    return eqx.tree_at(lambda s: s.u, samples, samples.u.at[400:, 0].multiply(1.0 - share))


@MAKERS
def test_an_estimate_with_doubtful_bias_is_inconsistent_before_a_reset(make):
    """A mean over a second takes its time to reach the gate: meanwhile the mass is wrong, and said to be."""
    samples = lightened(make, 0.1, 600)
    sure = run(steady(make, **STRONG_GUSTS), samples)
    doubting = run(steady(make, **STRONG_GUSTS, doubtful_bias=3.0), samples)
    is_reset = np.asarray(sure.health) == Health.RECOVERING
    assert not is_reset[100:410].any()
    reset = int(np.argmax(is_reset[400:])) + 400
    np.testing.assert_array_equal(doubting.value[:reset], sure.value[:reset])
    assert bool(jnp.all(sure.health[400:reset] == Health.OK))
    assert bool(jnp.all(doubting.health[reset - 3 : reset] == Health.INCONSISTENT))
    assert float(jnp.mean(doubting.health[100:400] == Health.OK)) > 0.8


@MAKERS
def test_what_is_left_of_a_step_is_found_by_the_mean_over_some_seconds(make):
    samples = lightened(make, 0.03, 1200)
    settings = STRONG_GUSTS | {"bias_gate": 1e6}
    slow = run(steady(make, **settings), samples)
    found = run(steady(make, **settings, slow_bias_gate=3.3), samples)
    assert not bool(jnp.any(slow.health[100:] == Health.RECOVERING))
    is_reset = np.asarray(found.health) == Health.RECOVERING
    assert not is_reset[100:400].any()
    assert is_reset[400:800].any()


@MAKERS
def test_an_input_that_is_no_number_is_reported_and_forgotten(make):
    filter_, samples, mass = hovering(make)
    broken = eqx.tree_at(lambda s: s.u, samples, samples.u.at[400].set(jnp.nan))
    found = run(filter_, broken)
    assert int(found.health[400]) in (Health.OUT_OF_RANGE, Health.DIVERGED)
    assert bool(jnp.all(jnp.isfinite(found.value)))
    assert abs(float(found.value[-1, 0]) / mass[-1] - 1.0) < 0.05


@MAKERS
def test_missing_measurements_are_not_read(make):
    filter_, samples, _ = hovering(make, steps=100)
    mask = samples.mask.at[50].set(False)
    masked = eqx.tree_at(lambda s: s.mask, samples, mask)
    spoilt = eqx.tree_at(lambda s: s.y, masked, masked.y.at[50, 4:].set(1e9))
    np.testing.assert_array_equal(run(filter_, masked).value, run(filter_, spoilt).value)


@MAKERS
def test_data_without_information_are_reported(make):
    """In free fall without thrust the mass cannot be told."""
    filter_, samples, _ = hovering(make, steps=300)
    t = jnp.cumsum(samples.dt)
    falling = jnp.zeros_like(samples.y).at[:, 0].set(1.0)
    falling = falling.at[:, 6].set(-0.5 * 9.81 * t**2).at[:, 9].set(-9.81 * t)
    found = run(filter_, eqx.tree_at(lambda s: (s.u, s.y), samples, (jnp.zeros_like(samples.u), falling)))
    assert not bool(found.informed[-1, 0])
    assert int(found.health[-1]) == Health.NO_INFORMATION
    assert float(found.std[-1, 0]) > 0.25


def test_every_health_has_a_meaning():
    assert all(health.meaning for health in Health)
