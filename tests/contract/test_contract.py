"""What every estimator owes on every System."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.registry import ALL_ESTIMATORS, ESTIMATORS, WRENCH_OBSERVERS
from rotorid.estimators.run import run
from tests.systems import RIGID, SYSTEMS, matched

STEPS = 400
WRENCH = [name for name, entry in WRENCH_OBSERVERS.items() if not entry.needs_model]


@pytest.fixture(
    scope="module",
    params=[*((e, s) for e in ESTIMATORS for s in SYSTEMS), *((o, "rigid") for o in WRENCH)],
    ids=lambda pair: "-".join(pair),
)
def case(request):
    name, kind = request.param
    estimator = ALL_ESTIMATORS[name].build(RIGID if name in WRENCH else SYSTEMS[kind])
    samples, truth = matched(estimator, seed=9, steps=STEPS)
    return estimator, samples, truth, run(estimator, samples)


def test_finds_the_truth_within_its_own_bounds(case):
    estimator, _, truth, found = case
    joint = estimator.joint
    states = joint.system.states
    parameters = jax.vmap(lambda z: joint.parameters(z, estimator.tuning.values))(jnp.asarray(truth))
    true_values = np.concatenate(
        [np.asarray(parameters[p.name]).reshape(STEPS, -1) for p in joint.tracked], axis=1
    )
    assert found.state.shape == (STEPS, states.size)
    assert np.mean((np.abs(found.value - true_values) < 3.0 * found.std)[100:]) > 0.95
    error = jax.vmap(states.minus)(jnp.asarray(truth)[:, : states.size], found.state)
    assert np.mean((np.abs(error) < 3.0 * found.state_std)[100:]) > 0.95


def test_is_finite_sure_of_something_and_says_how_it_is(case):
    _, _, _, found = case
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found))
    assert bool(jnp.all(found.std > 0))
    assert bool(jnp.all(jnp.linalg.eigvalsh(found.covariance) > 0))
    assert set(np.asarray(found.health).tolist()) <= {int(h) for h in Health}


def test_is_pure(case):
    estimator, samples, _, found = case
    for a, b in zip(jax.tree.leaves(run(estimator, samples)), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_measurements_it_only_grows_less_sure(case):
    estimator, samples, _, _ = case
    half = STEPS // 2
    blind = samples.mask.at[half:].set(False)
    unmeasured = type(samples)(samples.t, samples.dt, samples.u, samples.y, blind)
    found = run(estimator, unmeasured)
    lost = found.std[half:] / found.std[half - 1]
    drifting = np.asarray(estimator.tuning.drift) > 0
    assert np.all(np.asarray(lost)[-1, drifting] > 1.0)
    moved = np.abs(np.asarray(found.value[half:] - found.value[half - 1]))
    still = 0.01 + 0.01 * np.abs(np.asarray(found.value[half - 1]))
    rates = bool(estimator.joint.rates)  # what moved steadily goes on, but for less than its band
    steady = 1.96 * np.asarray(found.std[half:]) if rates else 0.0
    assert np.all(moved <= still + steady)
    assert bool(jnp.all(found.nis_dof[half:] == 0))
