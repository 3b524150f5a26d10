"""Estimators with JAX's 64-bit numbers off, as on a GPU: in JAX, the same masses as in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream, run_many, stack
from rotorid.estimators.ukf import ukf
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.signals.samples import Samples
from tests.systems import matched

SYSTEM = BareMultirotor()
ROWS = 300


@pytest.fixture(scope="module")
def flights() -> Samples:
    """Two flights of 3 s, as arrays of numpy in float64."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, stack([matched(ekf(SYSTEM), seed, ROWS)[0] for seed in (0, 1)]))


def in_float32(samples: Samples) -> Samples:
    return jax.tree.map(jnp.asarray, samples)


@pytest.mark.parametrize("make", [ekf, ukf])
def test_masses_of_many_flights(make: Callable[..., Any], flights: Samples) -> None:
    with jax.enable_x64(True):
        double = run_many(make(SYSTEM), jax.tree.map(jnp.asarray, flights))
    with jax.enable_x64(False):
        estimator, samples = make(SYSTEM), in_float32(flights)
        single = run_many(estimator, samples, engine="jax")
        by_default = run_many(estimator, samples)
        with pytest.raises(SettingError, match="float64"):
            run_many(estimator, samples, engine="c")
    assert single.value.dtype == single.covariance.dtype == jnp.float32
    np.testing.assert_array_equal(by_default.value, single.value)
    assert np.max(np.abs(np.asarray(single.value) - double.value) / double.std) < 0.02
    np.testing.assert_allclose(single.std, double.std, rtol=1e-3)
    np.testing.assert_array_equal(single.health, double.health)


def test_a_stream(flights: Samples) -> None:
    with jax.enable_x64(False):
        estimates, stream = run_many(ekf(SYSTEM), in_float32(flights), engine="jax"), Stream(ekf(SYSTEM))
        for k in range(20):
            estimate = stream.step(jax.tree.map(lambda leaf, k=k: leaf[0, k], flights))
        assert stream.engine == "jax"
        assert estimate.value.dtype == np.float32
        np.testing.assert_allclose(estimate.value, estimates.value[0, 19], rtol=1e-4)


def test_products_are_not_rounded_on_a_gpu(flights: Samples) -> None:
    """JAX's default there is TensorFloat-32, which the CPU does not have."""
    with jax.enable_x64(False):
        program = jax.make_jaxpr(lambda s: run_many(ekf(SYSTEM), s, engine="jax"))(in_float32(flights))
    products = [line for line in str(program).splitlines() if "precision=" in line]
    assert products
    assert all("Precision.HIGHEST" in line for line in products)
