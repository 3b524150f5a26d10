"""A filter's own uncertainty is right: NEES in its band over many seeds, and it stays positive definite."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import stack
from rotorid.estimators.ukf import ukf
from rotorid.models.multirotor.bare import BareMultirotor
from tests.systems import SYSTEMS, matched

SEEDS = 100
LONG_RUN = {"xla_backend_optimization_level": 1}
"""Options of a program that runs for much longer than its compilation takes."""


def nees(filter_, samples, truth):
    """Normalised estimation error squared of the joint point at each row of each flight."""
    space = filter_.joint.space

    def one(samples, truth):
        first = jax.tree.map(lambda leaf: leaf[0], samples)

        def step(state, row):
            sample, z = row
            state = filter_.update(filter_.predict(state, sample.u, sample.dt), sample)
            error = space.minus(z, state.z)
            return state, error @ jnp.linalg.solve(filter_._covariance(state.uncertainty), error)

        return jax.lax.scan(step, filter_.init(first, None), (samples, truth))[1]

    return np.asarray(jax.jit(jax.vmap(one))(samples, truth))


@pytest.mark.parametrize("make", [ekf, ukf])
def test_nees_lies_in_its_band_on_a_matched_multirotor(make):
    filter_ = make(BareMultirotor())
    data = [matched(filter_, seed, steps=300) for seed in range(SEEDS)]
    found = nees(
        filter_, stack([samples for samples, _ in data]), jnp.stack([jnp.asarray(z) for _, z in data])
    )
    dim = filter_.joint.space.dim
    low, high = chi2.ppf([0.025, 0.975], SEEDS * dim) / SEEDS
    mean = found[:, 20:].mean(axis=0)
    assert low < mean.mean() < high
    assert np.mean((low < mean) & (mean < high)) > 0.9


@pytest.mark.parametrize("make", [ekf, ukf])
@pytest.mark.parametrize("name", ["pendulum", "bare"])
def test_a_million_steps_stay_positive_definite(make, name):
    """The same 1000 samples again and again: the covariance must neither lose its sign nor its symmetry."""
    filter_ = make(SYSTEMS[name])
    samples, _ = matched(filter_, seed=1, steps=1000)
    repeats = 1000 if name == "pendulum" else 100
    first = jax.tree.map(lambda leaf: leaf[0], samples)

    @partial(jax.jit, compiler_options=LONG_RUN)
    def many(state):
        def step(state, sample):
            return filter_.update(filter_.predict(state, sample.u, sample.dt), sample), None

        return jax.lax.fori_loop(0, repeats, lambda _, s: jax.lax.scan(step, s, samples)[0], state)

    P = np.asarray(filter_._covariance(many(filter_.init(first, None)).uncertainty))
    np.testing.assert_allclose(P, P.T, atol=1e-15)
    assert np.linalg.eigvalsh(P).min() > 0
