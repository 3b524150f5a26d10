"""The log-likelihood of long series, whose covariances settle: equal to the sum of those of the rows."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.dlm import likelihood as dlm_likelihood
from rotorid.estimators.dlm.filter import dlm_filter, dlm_simulate
from rotorid.estimators.dlm.likelihood import dlm_log_likelihood
from rotorid.models.dlm.model import Dlm, dlm
from rotorid.models.dlm.terms import arma, seasonal, trend

ROWS = 525  # eight blocks and a part of one


def seasons(v: jax.Array) -> Dlm:
    return trend(1, dV=v[0], dW=v[1:2], C0=1e6) + seasonal(4, dV=0.0, dW=[0.05, 0.0, 0.0], C0=1e6)


def coupled(v: jax.Array) -> Dlm:
    G = jnp.array([[0.9, 0.1, 0.0], [-0.2, 0.7, 0.3], [0.0, 0.1, 0.5]])
    F = jnp.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]])
    return dlm([1.0, 0.0, -1.0], 10.0 * jnp.eye(3), F, v[0] * jnp.eye(2) + 0.1, G, v[1] * jnp.eye(3))


def slow(v: jax.Array) -> Dlm:
    """Its covariance falls as one over the time."""
    return trend(1, dV=v[0], dW=0.0 * v[1:2], C0=10.0)


def noiseless(v: jax.Array) -> Dlm:
    return arma([0.7, 0.1], [0.4], v[0], stationary=True)


MODELS = pytest.mark.parametrize("build", [seasons, coupled, slow, noiseless])
POINT = jnp.array([1.2, 0.3])


def data(build: Callable[[jax.Array], Dlm], gaps: bool = False) -> np.ndarray:
    y = np.array(dlm_simulate(build(POINT), ROWS, jax.random.key(4))[1])
    if gaps:
        y[20:24] = np.nan
        y[130, 0] = np.nan
    return y


def by_rows(model: Dlm, y: np.ndarray) -> jax.Array:
    return jnp.sum(dlm_filter(model, y).log_likelihood)


@MODELS
def test_value_and_slopes_are_those_of_all_rows(build: Callable) -> None:
    def of_rows(v, y):
        return by_rows(build(v), y)

    def of_blocks(v, y):
        return dlm_log_likelihood(build(v), y)

    wanted, *found = (
        jax.jit(f)
        for f in (jax.value_and_grad(of_rows), jax.value_and_grad(of_blocks), with_forward_slope(of_blocks))
    )
    for y in (data(build), data(build, gaps=True)):
        value, slope = wanted(POINT, y)
        for one in found:
            assert float(one(POINT, y)[0]) == pytest.approx(float(value), rel=1e-10)
            np.testing.assert_allclose(one(POINT, y)[1], slope, rtol=1e-7, atol=1e-7)


def with_forward_slope(f: Callable) -> Callable:
    return lambda v, y: jax.jacfwd(lambda v: (f(v, y),) * 2, has_aux=True)(v)[::-1]


def test_second_derivatives_are_those_of_all_rows() -> None:
    y = data(coupled)
    wanted = jax.jit(jax.jacfwd(jax.jacfwd(lambda v: by_rows(coupled(v), y))))(POINT)
    found = jax.jit(jax.hessian(lambda v: dlm_log_likelihood(coupled(v), y)))(POINT)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_rows_after_the_covariance_has_settled_are_not_filtered_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their covariance is not computed again: a wrong update of it has no effect."""
    settled = []
    steady_block = dlm_likelihood._steady_block

    def counted(*arguments):
        jax.debug.callback(lambda: settled.append(1))
        return steady_block(*arguments)

    monkeypatch.setattr(dlm_likelihood, "_steady_block", counted)
    whole, with_gap = data(coupled), data(coupled)
    with_gap[130] = np.nan
    for y, most in ((whole, 8), (with_gap, 6)):
        settled.clear()
        dlm_likelihood._by_blocks.clear_cache()
        dlm_log_likelihood(coupled(POINT), y).block_until_ready()
        jax.effects_barrier()
        assert most - 3 <= len(settled) <= most
    dlm_likelihood._by_blocks.clear_cache()


def test_many_models_at_once() -> None:
    y = data(seasons)
    points = POINT * jnp.array([[1.0], [0.5], [2.0]])
    found = jax.jit(jax.vmap(lambda v: dlm_log_likelihood(seasons(v), y)))(points)
    np.testing.assert_allclose(found, [by_rows(seasons(v), y) for v in points], rtol=1e-10)


def test_single_precision() -> None:
    y = data(seasons)
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), seasons(POINT))
    found = dlm_log_likelihood(model, y)
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(float(by_rows(seasons(POINT), y)), rel=1e-3)


def test_a_contradiction_after_the_covariance_has_settled_is_impossible() -> None:
    """Two exact measurements of one state that differ, in the last block."""
    model = dlm(np.zeros(1), np.eye(1), np.ones((2, 1)), np.zeros((2, 2)), 0.5 * np.eye(1), np.eye(1))
    y = np.repeat(np.array(dlm_simulate(model, ROWS, jax.random.key(1))[1])[:, :1], 2, axis=1)
    assert np.isfinite(float(dlm_log_likelihood(model, y)))
    assert float(dlm_log_likelihood(model, y)) == pytest.approx(float(by_rows(model, y)), rel=1e-10)
    y[-2, 1] += 0.1
    assert float(dlm_log_likelihood(model, y)) == -np.inf
