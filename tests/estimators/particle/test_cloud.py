"""What is done to particles in C is what JAX does: each of its parts, whole filters, and who is left to JAX."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.particle.auxiliary import auxiliary_filter
from rotorid.estimators.particle.base import particle_tuning
from rotorid.estimators.particle.bootstrap import bootstrap_filter
from rotorid.estimators.particle.engine import PLACES
from rotorid.estimators.particle.state_kernels import KalmanStates
from rotorid.estimators.run import Stream, run
from rotorid.models.joint import Joint
from rotorid.numerics.draws import stream
from tests.estimators.particle.test_particles import ALPHA, Autoregression, kalman, observed

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")

N = 45
"""Not a multiple of the particles that C takes at a time."""


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def both(function, *arguments):
    """What a function of a place gives in either, with all arguments under one more axis of `vmap`."""
    found = [jax.jit(jax.vmap(lambda *a, p=place: function(p, *a)))(*arguments) for place in PLACES.values()]
    return [list(map(np.asarray, jax.tree.leaves(one))) for one in found]


def test_the_numbers_drawn_are_the_same_to_the_last_bit():
    sources = jax.vmap(stream)(jax.random.split(jax.random.key(1), 3))
    (ours,), (c,) = both(lambda p, s: p.normals(s, (2, N)), sources)
    np.testing.assert_array_equal(c, ours)
    assert np.std(c) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("scheme", ["systematic", "residual"])
def test_resampling(scheme):
    rng = np.random.default_rng(0)
    w = rng.uniform(size=(4, N)) ** 4 * (rng.uniform(size=(4, N)) > 0.3)
    w[3] = np.eye(N)[7]
    w /= w.sum(axis=1, keepdims=True)
    where, sources = (
        np.array([True, False, True, True]),
        jax.vmap(stream)(jax.random.split(jax.random.key(2), 4)),
    )
    ours, c = both(lambda p, *of: p.resample(of[0], scheme, *of[1:]), where, sources, w, np.sqrt(w))
    for a, b in zip(ours, c, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-14)
    np.testing.assert_array_equal(c[0][1], np.arange(N))
    assert set(c[0][3]) == {7}


def test_weight_update():
    """With a weight of 0, a density that is no number, and no weight at all."""
    rng = np.random.default_rng(7)
    w = rng.uniform(size=(3, N))
    w /= w.sum(axis=1, keepdims=True)
    w[:, 3], density = 0.0, 30.0 * rng.normal(size=(3, N))
    density[0, 5:7], density[2] = (np.nan, np.inf), -np.inf
    with np.errstate(divide="ignore"):
        ours, c = both(lambda p, *of: p.weigh(*of), w, np.log(w), density)
    for a, b in zip(ours, c, strict=True):
        np.testing.assert_allclose(np.where(np.isfinite(a), b, a), a, rtol=1e-12)
    np.testing.assert_allclose(c[0][:2].sum(axis=1), 1.0)
    np.testing.assert_array_equal(c[0][2], w[2])
    assert list(c[3]) == [True, True, False]


@pytest.mark.parametrize("n", [N, 1200])
def test_moments(n):
    rng = np.random.default_rng(3)
    x, w = rng.normal(1e3, 1.0, size=(2, 3, n)), rng.uniform(size=(2, n))
    w /= w.sum(axis=1, keepdims=True)
    _, (mean, covariance) = both(lambda p, *of: p.moments(*of), x, w)
    for k in range(2):
        np.testing.assert_allclose(mean[k], np.average(x[k], axis=1, weights=w[k]), rtol=1e-14)
        np.testing.assert_allclose(covariance[k], np.cov(x[k], aweights=w[k], ddof=0), atol=1e-12)


def test_a_function_of_each_particle():
    """With numbers of the trace around it, ancestors, and numbers that are drawn in one of two filters."""
    rng = np.random.default_rng(4)
    x, z, u = rng.normal(size=(2, 2, N)), rng.normal(size=(2, N)), rng.normal(size=(2, 2))
    ancestors = np.sort(rng.integers(N, size=(2, N)), axis=1).astype(np.int32)
    sources, where = jax.vmap(stream)(jax.random.split(jax.random.key(5), 2)), np.array([True, False])

    def calculated(place, x, z, u, ancestors, source, where):
        def one(e, x, z):
            return jnp.outer(u, x) + z, jnp.sin(z) * e[1] + jnp.array([1.0, 2.0]) @ x, z > 0, x[0] + e

        return place.map_particles(
            one, z, inherited=(x,), ancestors=ancestors, normal_draws=(source, 3), condition=where
        )

    ours, c = both(calculated, x, z, u, ancestors, sources, where)
    for a, b in zip(ours, c, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=1e-13, atol=1e-14)
    assert np.all(c[3][1] == x[1, 0, ancestors[1]])


def test_calls_are_named_by_their_code():
    """JAX keeps programs by their text for later processes, in which the functions may come in another order."""

    def name(factor):
        program = jax.jit(lambda a: PLACES["c"].map_particles(lambda x: (factor * x,), a)).lower(np.ones(3))
        return re.findall(r"rotorid_cloud_[0-9a-f]{32}", program.as_text())[0]

    assert name(2.0) == name(2.0) != name(3.0)


def test_quick_functions_are_those_of_numpy():
    rng = np.random.default_rng(6)
    a = np.concatenate(
        [
            rng.uniform(-10.0, 10.0, 3000),
            rng.uniform(-2e5, 2e5, 300),
            10.0 ** rng.uniform(-300, 300, 300),
            [0.0, -1.0, 700.5, -720.0, -750.0, np.inf, -np.inf, np.nan],
        ]
    )
    functions = jnp.sin, jnp.cos, jnp.exp, jnp.log
    found = jax.jit(lambda a: PLACES["c"].map_particles(lambda x: tuple(f(x) for f in functions), a))(a)
    with np.errstate(all="ignore"):
        for c, f in zip(found, (np.sin, np.cos, np.exp, np.log), strict=True):
            expected = f(a)
            np.testing.assert_allclose(
                c, expected, rtol=1e-15, atol=2e-16 if f in (np.sin, np.cos) else 1e-307
            )


@pytest.fixture
def samples(wide):
    return observed(np.full(12, ALPHA), 4, missing=(5,))


def test_a_filter_alone_and_by_steps(samples):
    """With a sample that no particle explains: at it, an innovation's deviation is the rounding of large numbers."""
    filter_ = bootstrap_filter(
        Autoregression(("alpha", "V"), 0.01), 50, method="euler", start="measured", gate=6.0
    )
    samples = eqx.tree_at(lambda s: s.y, samples, samples.y.at[8].set(1e200))
    expected, found = (run(filter_, samples, engine=engine) for engine in ("jax", "c"))
    is_finite = np.isfinite(found.innovation_std[8]).all()
    assert found.health[8] == (Health.RECOVERING if is_finite else Health.DIVERGED)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(np.delete(b, 8, 0), np.delete(a, 8, 0), rtol=1e-8, atol=1e-10)
    stream_ = Stream(filter_, engine="c")
    last = [stream_.step(jax.tree.map(lambda leaf, k=k: leaf[k], samples)) for k in range(12)][-1]
    assert stream_.engine == "c"
    np.testing.assert_allclose(last.value, found.value[-1], rtol=1e-12)


def test_a_guided_filter_equals_the_exact_posterior_within_monte_carlo_error(samples):
    count = 2000
    found = run(auxiliary_filter(Autoregression(), count, method="euler"), samples, engine="c")
    m, P, _ = kalman(samples, np.float64(ALPHA))
    off = (np.asarray(found.state[:, 0]) - m) / np.sqrt(P)
    assert np.sqrt(np.mean(off**2)) < 2.5 / np.sqrt(count)
    np.testing.assert_allclose(found.state_std[:, 0], np.sqrt(P), rtol=0.12)


def test_kalman_filters_of_particles(samples):
    joint = Joint(Autoregression(("alpha", "V")), "euler")
    tuning, row = particle_tuning(joint, N), jax.tree.map(lambda leaf: leaf[0], samples)

    def absorbed(place, alpha):
        particles = KalmanStates(joint, tuning, place)
        psi = jnp.stack([alpha, 1.0 + alpha])
        found = particles.predict(particles.prior(None, N), psi, row.u, row.dt, row, None)
        return particles.log_likelihood(found, row.mask), particles.measurement_update(found, row.mask)

    ours, c = both(absorbed, np.linspace(0.5, 1.0, 2 * N).reshape(2, N))
    for a, b in zip(ours, c, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)
    assert np.std(c[0]) > 0.0


@dataclasses.dataclass(frozen=True)
class _Odd(Autoregression):
    def observe(self, x, u, p):
        return {"y": x["theta"] + 0.0 * jnp.linalg.eigh(jnp.eye(2) * x["theta"])[0][0]}


def test_filters_without_a_c_form_run_in_jax(samples):
    filter_ = bootstrap_filter(_Odd(), 2500, method="euler")
    samples = jax.tree.map(lambda leaf: leaf[:2], samples)
    assert np.all(np.isfinite(run(filter_, samples).state))
    with pytest.raises(SettingError, match="no C form here: the JAX primitive"):
        run(filter_, samples, engine="c")
