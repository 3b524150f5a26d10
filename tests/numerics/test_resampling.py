"""Resampling: right in the mean, noise no greater than theory allows, and what there is to know where no weight is left."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rotorid.numerics import draws, resampling

N = 77
RUNS = 2000


@functools.cache
def copies(name: str, count: int | None = None) -> np.ndarray:
    """How often each particle was taken, in each of many runs."""
    m = count or N

    def one(key):
        ancestors, _ = resampling.SCHEMES[name](key, log_weights(), count)
        return jnp.zeros(N).at[ancestors].add(1.0), jnp.all(jnp.diff(ancestors) >= 0)

    found, sorted_ = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), RUNS))
    assert bool(jnp.all(sorted_))
    np.testing.assert_array_equal(found.sum(1), m)
    return np.asarray(found)


@functools.partial(jax.jit, static_argnums=0)
def drawn(name: str, l: jax.Array) -> resampling.Resampled:  # noqa: E741
    return resampling.SCHEMES[name](jax.random.key(1), l)


def log_weights() -> jax.Array:
    one = (
        1.5 * jax.random.normal(jax.random.key(0), (N,)) - 900.0
    )  # as numbers, not logarithms, all would be 0
    return one.at[jnp.array([0, 10, N - 1])].set(-jnp.inf)


@pytest.mark.parametrize("name", resampling.SCHEMES)
def test_copies_are_right_in_the_mean(name):
    weights = np.asarray(resampling.normalise(log_weights()).weights)
    found = copies(name)
    bound = 4.5 * np.sqrt(N * weights / RUNS) + 1e-12
    assert np.all(np.abs(found.mean(0) - N * weights) <= bound)
    assert np.all(found[:, [0, 10, N - 1]] == 0)


def test_systematic_counts_are_the_floor_or_one_more():
    expected = N * np.asarray(resampling.normalise(log_weights()).weights)
    found = copies("systematic")
    assert np.all(found >= np.floor(expected - 1e-9))
    assert np.all(found <= np.ceil(expected + 1e-9))
    assert np.all(copies("residual") >= np.floor(expected - 1e-9))


def test_variances_of_schemes_agree_with_theory():
    """Multinomial copies are binomial; the others are less noisy (Douc, Cappé, Moulines 2005)."""
    weights = np.asarray(resampling.normalise(log_weights()).weights)
    value = np.sin(np.arange(N))
    variance = {name: np.var(copies(name) @ value / N) for name in resampling.SCHEMES}
    binomial = (weights @ value**2 - (weights @ value) ** 2) / N
    assert abs(variance["multinomial"] / binomial - 1.0) < 5.0 * np.sqrt(2.0 / RUNS)
    assert variance["stratified"] < binomial
    assert variance["residual"] < binomial


def test_fewer_ancestors_than_particles():
    weights = np.asarray(resampling.normalise(log_weights()).weights)
    found = copies("systematic", 20)
    assert np.all(np.abs(found.mean(0) - 20 * weights) <= 4.5 * np.sqrt(20 * weights / RUNS) + 1e-12)


@pytest.mark.parametrize("name", resampling.SCHEMES)
def test_without_weight_all_particles_are_kept(name):
    found, alive = drawn(name, jnp.full(N, -jnp.inf))
    assert not bool(alive)
    if name in ("systematic", "stratified", "residual"):
        np.testing.assert_array_equal(found, np.arange(N))
    assert bool(jnp.all((found >= 0) & (found < N)))
    weights, log_sum, alive = resampling.normalise(jnp.array([-jnp.inf, jnp.nan, jnp.inf]))
    np.testing.assert_allclose(weights, 1 / 3)
    assert not bool(alive)
    assert float(log_sum) == -np.inf


@pytest.mark.parametrize("name", resampling.SCHEMES)
def test_one_particle_with_all_weight_is_the_only_ancestor(name):
    single = jnp.full(N, -jnp.inf).at[40].set(-1e5)
    found, alive = drawn(name, single)
    assert bool(alive)
    np.testing.assert_array_equal(found, 40)


def test_effective_sample_size():
    assert float(resampling.effective_sample_size(jnp.full(50, -3.0))) == pytest.approx(50)
    assert float(resampling.effective_sample_size(jnp.full(50, -jnp.inf).at[3].set(0.0))) == pytest.approx(1)
    halves = jnp.concatenate([jnp.zeros(20), jnp.full(30, -2000.0)])
    assert float(resampling.effective_sample_size(halves)) == pytest.approx(20)


@pytest.mark.parametrize("n", [1, 65, 10_000])
def test_prefix_sum(n):
    x = jax.random.uniform(jax.random.key(n), (n,))
    np.testing.assert_allclose(resampling.prefix_sum(x), np.cumsum(x), rtol=1e-13)


def test_distributions_of_normals_and_uniforms():
    """Distribution, and no correlation of neighbours, of draws by successive keys, or of two halves."""
    keys = jax.random.split(jax.random.key(5), 40)
    z = np.asarray(jax.vmap(lambda k: draws.normals(k, (2, 2500)))(keys))
    assert z.dtype == np.float64
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    assert abs(stats.kurtosis(z.ravel())) < 4 * np.sqrt(24 / z.size)
    for a, b in ((z[:, :, 1:], z[:, :, :-1]), (z[1:], z[:-1]), (z[:, 0], z[:, 1])):
        assert abs(np.mean(a * b)) < 4 / np.sqrt(a.size)
        assert abs(np.mean(a**2 * b**2) - 1.0) < 4 * np.sqrt(8 / a.size)
    one = draws.normals(keys[7], (2, 2500))
    np.testing.assert_array_equal(one, z[7])
    u = np.asarray(draws.uniforms(jax.random.key(0), (100_000,)))
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    with jax.enable_x64(False):
        assert draws.normals(jax.random.key(0), (3,)).dtype == jnp.float32
        assert draws.uniforms(jax.random.key(0), (3,)).dtype == jnp.float32
