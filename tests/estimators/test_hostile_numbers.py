"""Numbers that no sensor gives: a filter recovers from them, and health is never good beside a number that is not finite."""

from __future__ import annotations

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.base import LONGEST_STEP, Health, honest, plausible_sample, plausible_step, prior
from rotorid.estimators.ekf import ekf
from rotorid.estimators.msckf import msckf
from rotorid.estimators.particle.bootstrap import bootstrap_filter
from rotorid.estimators.particle.liu_west import liu_west
from rotorid.estimators.run import run
from rotorid.estimators.wrench.observers import acceleration_observer, momentum_observer
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.system import Parameter, System
from rotorid.signals.samples import Samples
from tests.estimators.flown import flown
from tests.estimators.particle.test_particles import Autoregression, observed
from tests.estimators.wrench.test_wrench import HEXAROTOR, WRENCH
from tests.systems import SYSTEMS, matched

CASES = {
    "body_rate": (1e9, 1e38, 1e300, np.nan),
    "thrust": (-1e9, 1e300, np.inf),
    "dt": (1e38, 1e300, np.nan, -1.0),
    "velocity": (1e38, -1e300, np.nan),
    "attitude": (1e300, np.nan),
}
APART = 50
"""Rows between two cases, in which a filter recovers."""


class Draining(System):
    """A level is measured by its square root, whose slope at 0 is infinite, and by a second sensor."""

    states = Space.of(level=Scalar(std=1.0, noise=0.1))
    inputs = Space.of()
    outputs = Space.of(level=Scalar(noise=0.1), gauge=Scalar(noise=0.1))
    parameters = (Parameter("leak", 0.1, std=0.05),)

    def dynamics(self, x, u, p):
        return {"level": -p["leak"] * x["level"]}

    def observe(self, x, u, p):
        return {"level": jnp.sqrt(x["level"]), "gauge": x["level"]}


@pytest.mark.parametrize("make", [ekf, msckf, adaptive])
@pytest.mark.parametrize("engine", ["c", "jax"])
def test_an_infinite_slope_of_a_missing_measurement_does_not_count(make, engine):
    n = 50
    mask = np.tile([False, True], (n, 1))
    samples = Samples(
        *map(jnp.asarray, (np.arange(n) * 0.1, np.full(n, 0.1), np.zeros((n, 0)), np.zeros((n, 2)), mask))
    )
    found = run(make(Draining()), samples, engine=engine)
    for leaf in jax.tree.leaves(found):
        assert np.isfinite(np.asarray(leaf, float)).all()
    assert not (np.asarray(found.health) == Health.DIVERGED).any()


@pytest.mark.parametrize("make", [ekf, msckf, adaptive])
def test_a_filter_recovers(make):
    filter_ = make(SYSTEMS["bare"])
    numbers = [(name, value) for name, values in CASES.items() for value in values]
    samples, truth = matched(ekf(SYSTEMS["bare"]), 1, APART * (len(numbers) + 4))
    inputs, outputs = filter_.joint.system.inputs.stored, filter_.joint.system.outputs.stored
    u, y, dt = (np.array(leaf) for leaf in (samples.u, samples.y, samples.dt))
    for k, (name, value) in enumerate(numbers):
        row = APART * (k + 2)
        if name == "dt":
            dt[row] = value
        elif name in inputs:
            u[row, inputs[name]] = value
        else:
            y[row, outputs[name]] = value
    spoilt = eqx.tree_at(
        lambda s: (s.u, s.y, s.dt), samples, (jnp.asarray(u), jnp.asarray(y), jnp.asarray(dt))
    )
    found = run(filter_, spoilt)
    for leaf in jax.tree.leaves(found):
        assert np.isfinite(np.asarray(leaf, float)).all()
    health = np.asarray(found.health)
    assert (health[APART * np.arange(3, len(numbers) + 3) - 1] != Health.DIVERGED).all()
    assert health[-1] == Health.OK
    assert abs(found.value[-1, 0] - np.exp(truth[-1, 10])) < 5.0 * found.std[-1, 0]


def test_a_thrust_that_is_not_possible_is_not_used():
    filter_ = ekf(SYSTEMS["bare"])
    samples, _ = matched(filter_, 1, 400)
    place = filter_.joint.system.inputs.stored["thrust"].start
    sound = run(filter_, samples)
    for row, thrust in ((2, -1e9), (2, 2e3), (200, 1e9), (200, np.nan)):
        found = run(filter_, eqx.tree_at(lambda s: s.u, samples, samples.u.at[row, place].set(thrust)))
        assert found.health[row] == Health.OUT_OF_RANGE
        change = np.abs(found.value[:, 0] - sound.value[:, 0])
        assert (change < 2.0 * found.std[:, 0]).all(), f"{thrust} N moved the mass by {change.max():.3f} kg"
        assert found.health[-1] == sound.health[-1]


PARTICLE_FILTERS = {
    "bootstrap": lambda: bootstrap_filter(Autoregression(), 100),
    "liu_west": lambda: liu_west(Autoregression(("alpha",)), 100, start="measured"),
    "liu_west, kalman": lambda: liu_west(
        Autoregression(("alpha",)), 100, states="kalman", start="measured", gate=5.0
    ),
}


@pytest.mark.parametrize("make", PARTICLE_FILTERS.values(), ids=PARTICLE_FILTERS)
def test_a_particle_filter_recovers(make):
    filter_ = make()
    t, y = np.arange(20.0 * 11), np.cumsum(np.random.default_rng(1).normal(size=20 * 11)) * 0.1
    dt = np.ones_like(t)
    numbers = {40: 1e38, 60: np.nan, 80: np.inf, 100: -1e300}, {120: 1e38, 140: 0.0, 160: -1.0, 180: np.nan}
    for column, wrong in zip((y, dt), numbers, strict=True):
        for row, value in wrong.items():
            column[row] = value
    samples = Samples(
        *(jnp.asarray(a) for a in (t, dt, np.zeros((len(t), 0)), y[:, None], np.ones((len(t), 1), bool)))
    )
    found = run(filter_, samples)
    is_finite = np.isfinite(np.asarray(found.state)[:, 0]) & np.isfinite(np.asarray(found.state_std)[:, 0])
    assert (np.asarray(found.health)[~is_finite] == Health.DIVERGED).all()
    ends = np.arange(59, len(t), 20)
    assert is_finite[ends].all()
    assert (np.abs(found.state[ends, 0] - y[ends]) < 6.0).all()
    assert np.isin(np.asarray(found.health)[ends], (Health.OK, Health.NO_INFORMATION)).all()


@pytest.mark.parametrize("make", [momentum_observer, acceleration_observer])
def test_an_observer_of_the_wrench_recovers(make):
    observer = make(HEXAROTOR)
    clean = flown(HEXAROTOR, np.tile(WRENCH, (1000, 1)))
    u, y, dt = (np.array(leaf) for leaf in (clean.u, clean.y, clean.dt))
    place = HEXAROTOR.outputs.stored
    numbers = [(dt, slice(0), v) for v in (1e38, np.nan, -1.0, 0.0)]
    numbers += [(u, slice(0, 1), v) for v in (np.inf, np.nan, 1e38, -1e300)]
    numbers += [(y, place[n], v) for n in ("velocity", "body_rate", "attitude") for v in (1e38, np.nan)]
    for k, (leaf, where, value) in enumerate(numbers):
        row = 100 + 60 * k
        leaf[(row,) if leaf is dt else (row, where)] = value
    spoilt = eqx.tree_at(lambda s: (s.u, s.y, s.dt), clean, (jnp.asarray(u), jnp.asarray(y), jnp.asarray(dt)))
    found = run(observer, spoilt)
    numbers_of = [np.asarray(leaf, float).reshape(len(u), -1) for leaf in jax.tree.leaves(found)]
    is_finite = np.all(np.isfinite(np.concatenate(numbers_of, axis=1)), axis=1)
    health = np.asarray(found.health)
    assert (health[~is_finite] == Health.DIVERGED).all()
    ends = np.arange(159, len(u), 60)
    assert is_finite[ends].all()
    assert (health[ends] == Health.OK).all()
    assert (np.abs(found.value[ends] - WRENCH) < 5.0 * found.std[ends]).all()


def test_the_momentum_observer_starts_again_after_numbers_that_overflow():
    """Velocities that last are accepted in the end; the squares of these overflow."""
    clean = flown(HEXAROTOR, np.tile(WRENCH, (1200, 1)))
    y = np.array(clean.y)
    y[200:600, HEXAROTOR.outputs.stored["velocity"]] = 1e300 * (-1.0) ** (np.arange(400) // 10)[:, None]
    observer = momentum_observer(HEXAROTOR)
    found = run(observer, eqx.tree_at(lambda s: s.y, clean, jnp.asarray(y)))
    leaves = [np.asarray(leaf, float).reshape(len(y), -1) for leaf in jax.tree.leaves(found)]
    is_finite = np.all(np.isfinite(np.concatenate(leaves, axis=1)), axis=1)
    health = np.asarray(found.health)
    assert is_finite.all()
    assert (health[200:600] != Health.OK).all()
    assert Health.DIVERGED in health[200:600]
    assert health[-1] == Health.OK
    assert (np.abs(found.value[-1] - WRENCH) < 5.0 * found.std[-1]).all()


FILTERS = {
    "ekf": lambda: ekf(SYSTEMS["bare"]),
    "msckf": lambda: msckf(SYSTEMS["bare"]),
    "adaptive": lambda: adaptive(SYSTEMS["bare"]),
    **PARTICLE_FILTERS,
    "momentum observer": lambda: momentum_observer(HEXAROTOR),
    "acceleration observer": lambda: acceleration_observer(HEXAROTOR),
}


def rows_for(filter_) -> Samples:
    """200 rows of a filter's System."""
    system = filter_.joint.system
    if system is HEXAROTOR:
        return flown(HEXAROTOR, np.tile(WRENCH, (200, 1)))
    if isinstance(system, Autoregression):
        return observed(np.full(200, 0.8), 1)
    return matched(filter_, 1, 200)[0]


def assert_same(found, expected) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_a_measurement_that_is_not_finite_counts_as_none(make):
    filter_ = make()
    samples = rows_for(filter_)
    outputs = filter_.joint.system.outputs
    name = next(iter(outputs))
    y, blank, mask = np.array(samples.y), np.array(samples.y), np.array(samples.mask)
    for row, value in ((120, np.nan), (140, np.inf), (141, -np.inf)):
        y[row, outputs.stored[name].start] = value
        blank[row, outputs.stored[name]] = blank[row - 1, outputs.stored[name]]
        mask[row, outputs.tangent[name]] = False
    spoilt = eqx.tree_at(lambda s: s.y, samples, jnp.asarray(y))
    missing = eqx.tree_at(lambda s: (s.y, s.mask), samples, (jnp.asarray(blank), jnp.asarray(mask)))
    assert_same(run(filter_, spoilt), run(filter_, missing))


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_a_step_that_is_no_time_counts_as_0(make):
    filter_ = make()
    samples = rows_for(filter_)
    wrong, none = (np.array(samples.dt) for _ in range(2))
    for row, value in ((120, np.nan), (140, -1.0), (160, -1e300)):
        wrong[row], none[row] = value, 0.0
    spoilt, still = (eqx.tree_at(lambda s: s.dt, samples, jnp.asarray(dt)) for dt in (wrong, none))
    assert_same(run(filter_, spoilt), run(filter_, still))


@dataclasses.dataclass(frozen=True)
class Broken(Autoregression):
    """One function of it has no number for states above 5."""

    function: str = ""

    def _broken(self, function, x, values):
        if function != self.function:
            return values
        return {name: jnp.where(x["theta"] > 5.0, jnp.nan, value) for name, value in values.items()}

    def dynamics(self, x, u, p):
        return self._broken("dynamics", x, super().dynamics(x, u, p))

    def observe(self, x, u, p):
        return self._broken("observe", x, super().observe(x, u, p))

    def measurement_noise(self, x, u, p):
        return self._broken("measurement_noise", x, super().measurement_noise(x, u, p))


@pytest.mark.parametrize("function", ["dynamics", "observe", "measurement_noise"])
@pytest.mark.parametrize(
    "make",
    [bootstrap_filter, liu_west, partial(liu_west, states="kalman")],
    ids=["bootstrap", "liu_west", "kalman"],
)
def test_particles_without_a_number_are_not_used(make, function):
    """The prior, of standard deviation 3.2, has some particles above 5; the state stays near 0, measured from row 5 on."""
    samples = observed(np.full(100, 0.5), 3, w=0.1, missing=range(5))
    tracked = () if make is bootstrap_filter else ("alpha",)
    found = run(make(Broken(tracked, w=0.1, function=function), 500), samples)
    expected = run(make(Autoregression(tracked, w=0.1), 500), samples)
    is_finite = np.isfinite(np.asarray(found.state)[:, 0]) & np.isfinite(np.asarray(found.state_std)[:, 0])
    health = np.asarray(found.health)
    assert (health[~is_finite] == Health.DIVERGED).all()
    assert is_finite[2:].all()
    assert (health[2:] != Health.DIVERGED).all()
    difference = np.abs(found.state - expected.state)[20:, 0]
    assert (difference < 0.5 * np.asarray(expected.state_std)[20:, 0]).all()


def test_health_is_not_good_beside_a_number_that_is_not_finite():
    estimate = prior(ekf(SYSTEMS["bare"]))
    assert honest(estimate).health == estimate.health
    for name in ("value", "std", "covariance", "state_std", "innovation", "nis"):
        bad = eqx.tree_at(lambda e, name=name: getattr(e, name), estimate, getattr(estimate, name) * jnp.nan)
        assert honest(bad).health == Health.DIVERGED


def test_numbers_that_are_not_finite_are_not_used():
    steps = {0.01: 0.01, np.inf: LONGEST_STEP, 1e38: LONGEST_STEP, -1.0: 0.0, -np.inf: 0.0, np.nan: 0.0}
    assert [float(plausible_step(jnp.asarray(dt))) for dt in steps] == list(steps.values())
    samples, _ = matched(ekf(SYSTEMS["bare"]), 1, 2)
    sample = jax.tree.map(lambda leaf: leaf[1], samples)
    outputs = SYSTEMS["bare"].outputs
    spoilt = eqx.tree_at(lambda s: s.y, sample, sample.y.at[outputs.stored["velocity"].start].set(jnp.nan))
    mask = np.asarray(plausible_sample(outputs, spoilt).mask)
    assert not mask[outputs.tangent["velocity"]].any()
    assert mask[outputs.tangent["position"]].all()
    assert bool(jnp.all(jnp.isfinite(plausible_sample(outputs, spoilt).y)))
