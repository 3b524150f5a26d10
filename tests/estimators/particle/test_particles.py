"""Particle filters: the exact posterior of linear models, an unbiased likelihood, parameters static and changing, recovery."""

import dataclasses
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.ekf import ekf
from rotorid.estimators.particle.auxiliary import auxiliary_filter
from rotorid.estimators.particle.base import final_state, particle_log_likelihood
from rotorid.estimators.particle.bootstrap import bootstrap_filter
from rotorid.estimators.particle.changepoints import change_peaks, changes, hazard_of
from rotorid.estimators.particle.liu_west import LEAST_DRIFT, flight_filter, liu_west
from rotorid.estimators.run import Stream, run, run_many, stack
from rotorid.estimators.ukf import ukf
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.with_drag import Multirotor, multirotor
from rotorid.models.system import Parameter, System
from rotorid.signals.samples import Samples
from rotorid.studies.lpv.particles import simulate
from tests.systems import SYSTEMS, matched

ALPHA, V, W = 0.9, 2.0, 1.0
FLAT = {"alpha": "uniform"}
NORMAL = {"alpha": "normal"}


@dataclasses.dataclass(frozen=True)
class Autoregression(System):
    """Torren 2014, eqs. 4.1-4.3: theta_t = alpha theta_{t-1} + w, y = theta + v, by an Euler step of 1 s."""

    tracked: tuple[str, ...] = ()
    drift: float = 0.0
    w: float = W

    states = Space.of(theta=Scalar(std=math.sqrt(10.0)))
    inputs = Space.of()
    outputs = Space.of(y=Scalar())

    @property
    def parameters(self):
        std = {"alpha": math.sqrt(3.0) / 2.0, "V": 1.0, "W": 0.7}
        std = {n: s if n in self.tracked else 0.0 for n, s in std.items()}
        value = 1.5 if "alpha" in self.tracked else ALPHA
        return (
            Parameter("alpha", value, std=std["alpha"], bounds=(0.0, 3.0), drift=self.drift),
            Parameter("V", V, std=std["V"], bounds=(0.0, math.inf)),
            Parameter("W", self.w, std=std["W"], bounds=(0.0, math.inf)),
        )

    def dynamics(self, x, u, p):
        return {"theta": (p["alpha"] - 1.0) * x["theta"]}

    def observe(self, x, u, p):
        return {"y": x["theta"]}

    def process_noise(self, x, u, p):
        return {"theta": jnp.sqrt(p["W"])}

    def measurement_noise(self, x, u, p):
        return {"y": jnp.sqrt(p["V"])}


def observed(alpha, seed, w=W, missing=()) -> Samples:
    """Data of the model, one row a second. alpha: of every row."""
    mask = np.ones((len(alpha), 1), bool)
    mask[list(missing)] = False
    whole = simulate(alpha, seed, w)
    return dataclasses.replace(whole, y=jnp.where(mask, whole.y, 0.0), mask=jnp.asarray(mask))


def kalman(samples: Samples, alpha, v=V, w=W):
    """Means, variances and log-likelihood at every row, for any shape of parameters."""
    m, P, l = np.zeros_like(alpha * v * w), np.full_like(alpha * v * w, 10.0), np.zeros_like(alpha * v * w)  # noqa: E741
    found = []
    for y, seen in zip(np.asarray(samples.y)[:, 0], np.asarray(samples.mask)[:, 0], strict=True):
        m, P = alpha * m, alpha * alpha * P + w
        if seen:
            S = P + v
            l = l - 0.5 * ((y - m) ** 2 / S + np.log(2.0 * np.pi * S))  # noqa: E741
            m, P = m + P / S * (y - m), P - P * P / S
        found.append((m, P, l))
    return [np.array(part) for part in zip(*found, strict=True)]


COUNT, STEPS = 2000, 60
SAMPLES = functools.cache(lambda: observed(np.full(STEPS, ALPHA), 4, missing=(20, 21, 40)))
FILTERS = {
    "bootstrap": functools.cache(lambda: bootstrap_filter(Autoregression(), COUNT, method="euler")),
    "auxiliary": functools.cache(lambda: auxiliary_filter(Autoregression(), COUNT, method="euler")),
}


@pytest.mark.parametrize("name", FILTERS)
def test_equals_the_exact_posterior_within_monte_carlo_error(name):
    found = run(FILTERS[name](), SAMPLES())
    m, P, l = kalman(SAMPLES(), np.float64(ALPHA))  # noqa: E741
    off = (np.asarray(found.state[:, 0]) - m) / np.sqrt(P)
    assert np.sqrt(np.mean(off**2)) < 2.5 / np.sqrt(COUNT)
    np.testing.assert_allclose(found.state_std[:, 0], np.sqrt(P), rtol=0.12)
    assert abs(float(found.log_likelihood[-1]) - l[-1]) < 5.0 * np.sqrt(STEPS / COUNT)
    assert np.mean(np.asarray(found.health) == Health.OK) > 0.9
    innovation = np.asarray(found.innovation[:, 0])
    assert np.all((innovation == 0) == ~np.asarray(SAMPLES().mask)[:, 0])
    expected = np.sqrt(ALPHA**2 * P[18] + W + V)
    np.testing.assert_allclose(found.innovation_std[19, 0], expected, rtol=0.08)


@pytest.mark.parametrize("build", [bootstrap_filter, auxiliary_filter])
def test_likelihood_is_unbiased(build):
    """Mean of the estimated over the exact likelihood is 1, within 3 standard errors, with few particles."""
    samples = observed(np.full(15, ALPHA), 2)
    filter_ = build(Autoregression(), 60, method="euler")
    keys = jax.random.split(jax.random.key(0), 3000)
    found = jax.jit(jax.vmap(lambda key: particle_log_likelihood(filter_, samples, key)))(keys)
    ratio = np.exp(np.asarray(found) - kalman(samples, np.float64(ALPHA))[2][-1])
    assert abs(np.mean(ratio) - 1.0) < 3.0 * np.std(ratio) / np.sqrt(len(ratio))
    assert np.std(ratio) > 0.1


@pytest.fixture(scope="module")
def learned():
    """Alpha and both variances learned from 5 flights: Figure 4.4."""
    with jax.enable_x64(True):
        flights = [observed(np.full(200, ALPHA), 10 + seed) for seed in range(5)]
        filter_ = liu_west(
            Autoregression(("alpha", "V", "W")),
            3000,
            states="kalman",
            kernels=FLAT,
            priors_as=FLAT,
            method="euler",
        )
        return flights, run_many(filter_, stack(flights), workers=1)


def test_liu_west_equals_the_exact_posterior_of_alpha_and_the_variances(learned):
    """On a grid of Kalman likelihoods and priors."""
    flights, found = learned
    grid = np.linspace(0.4, 1.15, 41), np.exp(np.linspace(-1.2, 2.0, 30)), np.exp(np.linspace(-2.5, 1.8, 30))
    cells = np.stack([g.ravel() for g in np.meshgrid(*grid, indexing="ij")])

    def log_normal(x, mean, std):
        s2 = np.log1p((std / mean) ** 2)
        return -((np.log(x) - np.log(mean) + 0.5 * s2) ** 2) / (2.0 * s2)

    prior = log_normal(cells[1], V, 1.0) + log_normal(cells[2], W, 0.7)
    apart = []
    for flight, value, std in zip(flights, found.value[:, -1], found.std[:, -1], strict=True):
        density = kalman(flight, *cells)[2][-1] + prior
        weights = np.exp(density - density.max())
        weights /= weights.sum()
        mean = cells @ weights
        sd = np.sqrt(((cells - mean[:, None]) ** 2) @ weights)
        apart.append((np.asarray(value) - mean) / sd)
        assert np.all(np.abs(np.asarray(std) / sd - 1.0) < 0.4)
        assert np.all(np.abs(np.asarray(value) - np.array([ALPHA, V, W])) < 3.5 * np.asarray(std))
    assert np.max(np.abs(apart)) < 1.0
    assert np.sqrt(np.mean(np.square(apart))) < 0.45


def test_posterior_of_the_variances_is_correlated(learned):
    """More noise of the state is less noise of the measurement: kernels keep that."""
    covariance = np.asarray(learned[1].covariance[:, -1])
    correlation = covariance[:, 1, 2] / np.sqrt(covariance[:, 1, 1] * covariance[:, 2, 2])
    assert np.all(correlation < -0.2)
    assert bool(jnp.all(learned[1].informed[:, -1, 0]))


TIME = np.arange(200)
FORMS = {
    "ramp": 1.05 + 0.002 * TIME,
    "sine": 1.5 + 0.5 * np.sin(2.0 * np.pi * TIME / 120.0),
    "square": 1.5 + 0.3 * np.sign(np.sin(2.0 * np.pi * TIME / 80.0)),
    "often": 1.5 + 0.3 * np.sign(np.sin(2.0 * np.pi * TIME / 4.0 + 0.1)),
    "constant": np.full(200, 1.5),
}
"""Figures 4.8 to 4.12. They are above 1, where the state grows and every row tells alpha; under 1 the data do not."""


@functools.cache
def follow(ours: bool):
    """What is found of each form, two flights of each, and relative errors: by form, flight, row."""
    law = (
        changes("alpha", hazard=0.1, distribution="normal", spread=0.2, learn_hazard=True)
        if ours
        else changes("alpha", hazard=hazard_of(0.05, 1.0), distribution="posterior")
    )
    system = Autoregression(("alpha",), 0.02 if ours else 0.0, 2.0)
    filter_ = liu_west(system, 1000, changes=law, kernels=NORMAL, priors_as=FLAT, method="euler")
    flights = [observed(alpha, seed, 2.0) for alpha in FORMS.values() for seed in range(2)]
    found = run_many(filter_, stack(flights), workers=1)
    truth = np.repeat(np.stack(list(FORMS.values())), 2, axis=0)
    errors = np.abs(np.asarray(found.value[..., 0]) / truth - 1.0).reshape(len(FORMS), 2, -1)
    return found, dict(zip(FORMS, errors, strict=True))


@pytest.mark.parametrize("form", ["ramp", "sine", "square"])
def test_distributions_of_changed_parameters(form):
    ours, seed = follow(True)[1][form], follow(False)[1][form]
    assert np.mean(ours) < 0.05
    assert np.mean(ours) < 0.5 * np.mean(seed)


def test_a_jump_is_followed_within_two_samples():
    jumps = 1 + np.flatnonzero(np.diff(FORMS["square"]))
    assert np.max(follow(True)[1]["square"][:, jumps[1:] + 1]) < 0.05


def test_the_hazard_is_learned():
    """Many changes raise it, none lower it; and those that were are told."""
    found, _ = follow(True)
    hazard = dict(zip(FORMS, np.asarray(found.hazard[::2, -1]), strict=True))
    assert hazard["often"] > 0.3
    assert hazard["constant"] < 0.05
    probability = dict(zip(FORMS, np.asarray(found.change_probability[::2, 1:]), strict=True))
    jumps = np.diff(FORMS["often"]) != 0
    assert np.mean(probability["often"][jumps]) > 0.9
    assert np.mean(probability["constant"]) < 0.1


def test_recovery_after_all_weights_vanish():
    good = SAMPLES()
    bad = eqx.tree_at(lambda s: s.y, good, good.y.at[30].set(1e200))
    m, P, _ = kalman(good, np.float64(ALPHA))
    for build in FILTERS.values():
        found = run(build(), bad)
        health = np.asarray(found.health)
        is_finite = np.isfinite(found.innovation_std[30]).all()
        assert health[30] == (Health.RECOVERING if is_finite else Health.DIVERGED)
        assert np.sum(health == Health.RECOVERING) <= 2
        assert bool(jnp.all(jnp.isfinite(found.state)))
        assert np.all(np.abs(np.asarray(found.state)[45:, 0] - m[45:]) < 0.5 * np.sqrt(P[45:]))
        assert float(found.log_likelihood[30]) == float(found.log_likelihood[29])


def test_run_stream_and_run_many_agree():
    filter_ = bootstrap_filter(Autoregression(("alpha",), 0.1), 50, method="euler")
    samples = jax.tree.map(lambda leaf: leaf[:20], SAMPLES())
    key = jax.random.key(5)
    once = run(filter_, samples, key)
    both = run_many(filter_, stack([samples, samples]), jnp.stack([key, key]), workers=1)
    np.testing.assert_allclose(both.value[0], once.value, rtol=1e-9)
    stream = Stream(filter_, key)
    rows = [stream.step(jax.tree.map(lambda leaf, k=k: leaf[k], samples)) for k in range(20)]
    assert stream.engine == "jax"
    np.testing.assert_allclose([row.value for row in rows], once.value, rtol=1e-9)


def test_memory_does_not_grow_with_steps():
    filter_ = FILTERS["bootstrap"]()

    def needed(n):
        samples = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], n, axis=0), SAMPLES())
        analysis = (
            jax.jit(lambda s, k: final_state(filter_, s, k)).lower(samples, jax.random.key(0)).compile()
        )
        return analysis.memory_analysis().temp_size_in_bytes

    assert needed(4000) - needed(40) < 100_000


def test_a_quadrotor_is_tracked_from_its_first_measurement():
    system = SYSTEMS["bare"]
    noise = {"attitude": 0.05, "position": 0.1, "velocity": 0.2}
    wander = {
        "attitude": 0.3,
        "position": 0.6,
        "velocity": 1.2,
    }  # with less, ten dimensions need more particles
    settings = {"measurement_noise": noise, "process_noise": wander}
    samples, z = matched(ekf(system, **settings), 3, 40)
    found = run(bootstrap_filter(system, 5000, start="measured", method="euler", **settings), samples)
    off = np.stack(
        [system.states.minus(a, jnp.asarray(b)) for a, b in zip(found.state, z[:, :10], strict=True)]
    )
    nees = np.mean((off / np.asarray(found.state_std))[5:] ** 2)
    assert 0.3 < nees < 2.5
    assert np.sqrt(np.mean(off[20:, 3:6] ** 2)) < 0.1


def test_varying_noise_raises_in_filters_with_constant_noise():
    for build in (ekf, ukf):
        with pytest.raises(SettingError, match="needs constant noise, but the noise of theta, y varies"):
            build(Autoregression(("alpha",)))


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("prior is improper", lambda: bootstrap_filter(_wide(math.inf))),
        ("must be finite", lambda: Parameter("alpha", 1.0, std=math.inf)),
        ("no tracked parameter", lambda: liu_west(Autoregression())),
        ("needs one finite bound", lambda: liu_west(Autoregression(("alpha",)), kernels={"alpha": "gamma"})),
        ("no beta distribution", lambda: liu_west(_Broad())),
        ("leaves the bounds", lambda: liu_west(_Broad(), priors_as=FLAT)),
        ("'mass' is not tracked", lambda: liu_west(Autoregression(("alpha",)), changes=changes("mass", distribution="prior"))),
        ("need its spread", lambda: changes("alpha")),
        ("between 0 and 1", lambda: hazard_of(1.5, 1.0)),
        ("a shrinkage of 1.0", lambda: liu_west(Autoregression(("alpha",)), shrinkage=1.0)),
        ("too few", lambda: bootstrap_filter(Autoregression(), 1)),
        ("no noise", lambda: bootstrap_filter(_Still())),
    ],
)  # fmt: skip
def test_invalid_settings_raise(words, change):
    with pytest.raises(SettingError, match=words):
        change()


def _wide(std):
    @dataclasses.dataclass(frozen=True)
    class Wide(Autoregression):
        states = Space.of(theta=Scalar(std=std))

    return Wide()


@dataclasses.dataclass(frozen=True)
class _Broad(Autoregression):
    parameters = (  # pyright: ignore[reportAssignmentType]
        Parameter("alpha", 1.5, std=1.6, bounds=(0.0, 3.0)),
        Parameter("V", V),
        Parameter("W", W),
    )


@dataclasses.dataclass(frozen=True)
class _Still(Autoregression):
    def measurement_noise(self, x, u, p):
        return {}


def jump(seconds: float = 4.0) -> tuple[Multirotor, Samples, np.ndarray]:
    """A multirotor in hover whose mass jumps from 1.0 kg to 1.25 kg half-way, as its accelerometer shows at once."""
    system = multirotor(load_airframe("simulated-quad"), "thrust")
    n = round(50 * seconds)
    mass = np.where(np.arange(n) < n // 2, 1.0, 1.25)
    rng = np.random.default_rng(0)
    y = np.zeros((n, system.outputs.size))
    y[:, system.outputs.stored["attitude"]] = [1.0, 0.0, 0.0, 0.0]
    thrust = 9.80665 * mass
    thrust[n // 2 : n // 2 + 3] = 9.80665  # the controller needs three rows
    acceleration = thrust / mass - 9.80665
    y[:, system.outputs.stored["velocity"]] = 0.05 * rng.normal(size=(n, 3))
    y[:, system.outputs.stored["velocity"].stop - 1] += np.cumsum(0.02 * acceleration)
    y[:, system.outputs.stored["specific_force"]] = 0.2 * rng.normal(size=(n, 3))
    y[:, system.outputs.stored["specific_force"].stop - 1] += thrust / mass
    u = np.zeros((n, system.inputs.size))
    u[:, 0] = thrust
    numbers = (0.02 * np.arange(n), np.full(n, 0.02), u, y, np.ones((n, system.outputs.dim), bool))
    return system, Samples(*map(jnp.asarray, numbers)), mass


def test_a_filter_of_a_flight_follows_a_jump_that_its_gate_would_reject() -> None:
    with jax.enable_x64(True):
        check_a_jump()


def check_a_jump() -> None:
    system, samples, mass = jump()
    filter_ = flight_filter(system, 300)
    lag = next(p for p in system.parameters if p.name == "accelerometer_bias")
    k = [p.name for p in filter_.joint.tracked].index("mass")
    assert k == 0
    assert float(filter_.tuning.drift[-1]) >= LEAST_DRIFT * lag.std * 0.99
    estimates = jax.tree.map(np.asarray, run(filter_, samples))
    n = len(mass)
    assert np.isfinite(estimates.value).all()
    assert abs(estimates.value[n // 2 - 1, 0] - 1.0) < 0.04
    np.testing.assert_allclose(estimates.value[n // 2 + 5 :, 0], 1.25, atol=0.06)
    (time,) = change_peaks(np.asarray(samples.t), estimates.change_probability)
    assert time == pytest.approx(2.0, abs=0.05)


def test_priors_of_a_flight_do_not_replace_the_drift_of_the_particles() -> None:
    system = multirotor(load_airframe("px4-sih-quad"), "thrust")
    time = Parameter("gust_time", 0.04, unit="s")
    plain, gusty = flight_filter(system, 10), flight_filter(system, 10, priors={"gust_time": time})
    np.testing.assert_array_equal(plain.tuning.drift, gusty.tuning.drift)
    place = [p.name for p in system.parameters for _ in p.values].index("gust_time")
    assert float(gusty.tuning.values[place]) == pytest.approx(0.04)


def test_peaks_of_the_probability_of_a_change() -> None:
    t = 0.02 * np.arange(500)
    probability = np.full(500, 0.001)
    probability[[100, 101, 300]] = 0.1, 0.3, 0.05
    assert change_peaks(t, probability) == pytest.approx((2.02, 6.0))
    assert change_peaks(t, np.full(500, 0.01)) == ()
