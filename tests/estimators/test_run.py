"""A log, a stream, a batch and single precision give the same numbers, and gradients pass through."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream, run, run_many, stack, stack_tunings
from rotorid.estimators.ukf import ukf
from tests.systems import SYSTEMS, Cart, Pendulum, matched

MAKERS = pytest.mark.parametrize("make", [ekf, ukf])


def rows(samples):
    return [jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), samples) for i in range(len(samples.t))]


@MAKERS
@pytest.mark.parametrize("name", ["pendulum", "bare"])
def test_stream_equals_run(make, name):
    filter_ = make(SYSTEMS[name])
    samples, _ = matched(filter_, seed=3, steps=120)
    replayed = run(filter_, samples)
    stream = Stream(filter_)
    streamed = jax.tree.map(lambda *leaves: np.stack(leaves), *[stream.step(row) for row in rows(samples)])
    for a, b in zip(jax.tree.leaves(streamed), jax.tree.leaves(replayed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@MAKERS
def test_a_batch_equals_single_runs_whatever_the_lengths(make):
    filter_ = make(SYSTEMS["bare"])
    flights = [matched(filter_, seed, steps)[0] for seed, steps in ((0, 90), (1, 150), (2, 40))]
    batch = run_many(filter_, stack(flights))
    for i, flight in enumerate(flights):
        alone = run(filter_, flight)
        n = len(flight.t)
        np.testing.assert_allclose(batch.value[i, :n], alone.value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(batch.std[i, :n], alone.std, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            batch.value[i, n:], jnp.broadcast_to(alone.value[-1], batch.value[i, n:].shape)
        )


@MAKERS
def test_a_batch_of_tunings_equals_single_runs(make):
    system = Pendulum()
    filters = [make(system, priors={"length": system.parameters[0].with_prior(v)}) for v in (0.8, 1.3)]
    samples, _ = matched(filters[0], seed=5, steps=100)
    batch = run_many(stack_tunings(filters), stack([samples, samples]), tunings=True)
    for i, filter_ in enumerate(filters):
        np.testing.assert_allclose(batch.value[i], run(filter_, samples).value, rtol=1e-9)


def test_estimators_of_different_systems_do_not_stack():
    with pytest.raises(SettingError, match="more than their tunings"):
        stack_tunings([ekf(Pendulum()), ekf(Cart())])
    with pytest.raises(SettingError, match="no flights"):
        stack([])


@MAKERS
@pytest.mark.parametrize("name", ["pendulum", "bare"])
def test_single_precision_agrees(make, name):
    double = make(SYSTEMS[name])
    samples, _ = matched(double, seed=4, steps=1000)

    def single(leaf):
        return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    a = run(double, samples)
    b = run(jax.tree.map(single, double), jax.tree.map(single, samples))
    assert b.value.dtype == jnp.float32
    settled = slice(300, None)
    np.testing.assert_allclose(b.value[settled], a.value[settled], atol=0.1 * float(a.std[settled].min()))
    np.testing.assert_allclose(b.std[settled], a.std[settled], rtol=0.02)


@MAKERS
def test_gradients_are_finite_and_match_differences(make):
    filter_ = make(Pendulum())
    samples, truth = matched(filter_, seed=6, steps=200)
    true_length = jnp.exp(truth[:, 2])

    def loss(log_noise):
        tuned = eqx.tree_at(lambda f: f.tuning.measurement_noise, filter_, jnp.exp(log_noise))
        return jnp.mean((run(tuned, samples).value[:, 0] - true_length) ** 2)

    at = jnp.log(filter_.tuning.measurement_noise)
    gradient = jax.grad(loss)(at)
    h = 1e-5
    difference = (loss(at + h) - loss(at - h)) / (2 * h)
    assert jnp.all(jnp.isfinite(gradient))
    np.testing.assert_allclose(gradient[0], difference, rtol=1e-4)


def test_gradients_of_an_estimate_flow_into_every_tuning():
    filter_ = ekf(SYSTEMS["bare"])
    samples, _ = matched(filter_, seed=6, steps=100)
    gradients = eqx.filter_grad(lambda f: run(f, samples).value[-1, 0])(filter_)
    assert all(bool(jnp.all(jnp.isfinite(g))) for g in jax.tree.leaves(gradients))


def test_a_prior_for_an_unknown_parameter_is_named():
    with pytest.raises(SettingError, match="no parameter 'width'"):
        ekf(Pendulum(), priors={"width": dataclasses.replace(Pendulum.parameters[0], name="width")})
    with pytest.raises(SettingError, match="no output 'height'"):
        ekf(Pendulum(), measurement_noise={"height": 1.0})
