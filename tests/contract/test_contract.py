"""What every estimator owes on every System."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.base import AbstractEstimator, Health
from rotorid.estimators.run import run
from rotorid.models.joint import Joint
from rotorid.results.track import ESTIMATORS
from tests.systems import SYSTEMS, matched

EVERY = [
    pytest.param(make, system, id=f"{name}-{kind}")
    for name, make in ESTIMATORS.items()
    for kind, system in SYSTEMS.items()
]


@pytest.mark.parametrize(("make", "system"), EVERY)
def test_finds_the_truth_within_its_own_bounds(make, system):
    estimator: AbstractEstimator = make(system)
    samples, truth = matched(estimator, seed=7, steps=600)
    found = run(estimator, samples)
    joint = Joint(system)
    states = system.states.size
    true_values = jax.vmap(
        lambda z: jnp.concatenate(
            [jnp.ravel(v) for n, v in joint.parameters(z, estimator.tuning.values).items() if system.parameter(n).tracked]
        )
    )(jnp.asarray(truth))
    error = np.abs(np.asarray(found.value - true_values)) / np.asarray(found.std)
    assert found.state.shape == (600, states)
    assert np.mean(error[100:] < 3.0) > 0.95
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found))
    assert bool(jnp.all(found.std > 0))
    assert set(np.asarray(found.health).tolist()) <= {int(h) for h in Health}


@pytest.mark.parametrize(("make", "system"), EVERY)
def test_is_pure(make, system):
    """The same data give the same bits, and a state can be used twice."""
    estimator = make(system)
    samples, _ = matched(estimator, seed=8, steps=30)
    first = jax.tree.map(lambda leaf: leaf[0], samples)
    state = estimator.init(first, jax.random.key(0))
    after = [estimator.update(estimator.predict(state, first.u, jnp.asarray(0.01)), first) for _ in range(2)]
    for a, b in zip(*map(jax.tree.leaves, after), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(*(jax.tree.leaves(run(estimator, samples)) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("make", "system"), EVERY)
def test_without_measurements_it_only_grows_less_sure(make, system):
    estimator = make(system)
    samples, _ = matched(estimator, seed=9, steps=60)
    blind = samples.mask.at[30:].set(False)
    found = run(estimator, type(samples)(samples.t, samples.dt, samples.u, samples.y, blind))
    coordinate_std = found.std[30:] / jnp.maximum(jnp.abs(found.value[30:]), 1e-12)
    drifting = np.asarray(estimator.tuning.drift) > 0
    assert np.all(np.diff(np.asarray(coordinate_std)[:, drifting], axis=0) >= -1e-12)
    np.testing.assert_allclose(found.value[30:], jnp.broadcast_to(found.value[29], found.value[30:].shape), rtol=1e-2, atol=1e-2)
