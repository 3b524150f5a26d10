"""The estimator of a learned network: one engine as the other, gaps, limits, and what lies outside of its training."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.errors import SettingError
from rotorid.estimators.base import Estimate, Health
from rotorid.estimators.elm.estimator import LEAST_TIME, elm_mass
from rotorid.estimators.elm.network import MOST_EXTRAPOLATION, MOST_LEVEL
from rotorid.estimators.elm.windows import RATIOS
from rotorid.estimators.run import Stream, run, run_many, stack
from rotorid.models.multirotor.with_drag import multirotor
from rotorid.signals.samples import Samples
from rotorid.simulation.flight import simulate
from rotorid.workflows.track.track import prepare_samples
from tests.estimators.elm.networks import AIRFRAME, BARE, random_network, samples_of, with_lag
from tests.systems import Cart


def assert_equal(a: Estimate, b: Estimate, rel: float = 1e-9) -> None:
    for name in ("value", "std", "state", "health", "informed"):
        assert np.asarray(getattr(a, name)) == pytest.approx(
            np.asarray(getattr(b, name)), rel=rel, abs=1e-12
        ), name


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("has_lag", [False, True])
def test_compiled_streamed_and_stacked_runs_are_those_of_jax(has_lag: bool) -> None:
    system = with_lag() if has_lag else BARE
    flight = simulate("loop", "step", 1, duration=5.0)
    samples = prepare_samples(flight, system, whole=True)
    estimator = elm_mass(system, network=random_network())
    expected = run(estimator, samples, engine="jax")
    assert np.asarray(expected.informed)[:, 0].any()
    assert_equal(run(estimator, samples, engine="c"), expected)
    stream = Stream(estimator)
    last = [
        stream.step(jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], samples))
        for k in range(len(samples.t))
    ][-1]
    assert_equal(last, jax.tree.map(lambda leaf: leaf[-1], expected))
    shorter = jax.tree.map(lambda leaf: leaf[:300], samples)
    stacked = run_many(estimator, stack([samples, shorter]), engine="c")
    assert_equal(jax.tree.map(lambda leaf: leaf[0], stacked), expected)
    assert_equal(
        jax.tree.map(lambda leaf: leaf[1][-1], stacked), jax.tree.map(lambda leaf: leaf[299], expected)
    )


def test_the_prior_holds_until_the_windows_are_full_and_after_a_gap() -> None:
    samples = samples_of()
    found = run(elm_mass(BARE, network=random_network()), samples, engine="jax")
    t = np.asarray(samples.t)
    early = t < LEAST_TIME - 0.05
    assert (np.asarray(found.health)[early] == Health.NO_INFORMATION).all()
    assert np.asarray(found.value)[early] == pytest.approx(BARE.mass.value)
    assert np.asarray(found.std)[early] == pytest.approx(BARE.mass.std)
    assert (np.asarray(found.health)[t > LEAST_TIME + 0.1] == Health.OK).mean() > 0.5
    k = int(np.searchsorted(t, 4.5))
    dt = np.asarray(samples.dt).copy()
    dt[k] = 2.0
    gap = run(
        elm_mass(BARE, network=random_network()),
        eqx.tree_at(lambda s: s.dt, samples, jnp.asarray(dt)),
        engine="jax",
    )
    health = np.asarray(gap.health)
    assert health[k] == Health.RECOVERING
    assert (health[k + 60 :] == Health.NO_INFORMATION).all()
    assert not np.asarray(gap.informed)[k:].any()


def test_missing_velocities_count_for_the_time_since() -> None:
    samples = samples_of(profile="linear")
    mask = np.asarray(samples.mask).copy()
    mask[np.arange(len(mask)) % 5 != 0, BARE.outputs.tangent["velocity"]] = False
    estimator = elm_mass(BARE, network=random_network())
    rare = run(estimator, eqx.tree_at(lambda s: s.mask, samples, jnp.asarray(mask)), engine="jax")
    full = run(estimator, samples, engine="jax")
    late = np.asarray(samples.t) > 5.0
    assert np.asarray(rare.value)[late] == pytest.approx(np.asarray(full.value)[late], rel=0.1)
    assert np.asarray(rare.informed)[late].all()


def test_rotors_at_their_limit_end_the_windows() -> None:
    airframe = dataclasses.replace(AIRFRAME, thrust_curve=_curve())
    system = multirotor(airframe, "rotor_command", rotors=4)
    n = 1000
    u = np.zeros((n, system.inputs.size))
    u[:, system.inputs.stored["rotor_command"]] = 0.5
    u[600, system.inputs.stored["rotor_command"].start] = 1.0
    y = np.tile(np.asarray(system.outputs.initial(), float), (n, 1))
    dt = np.full(n, 0.01)
    dt[0] = 0.0
    samples = Samples(*map(jnp.asarray, (np.cumsum(dt), dt, u, y, np.ones((n, system.outputs.dim), bool))))
    found = run(elm_mass(system, network=random_network()), samples, engine="jax")
    health, informed = np.asarray(found.health), np.asarray(found.informed)[:, 0]
    assert informed[599]
    assert health[600] == Health.OUT_OF_RANGE
    assert not informed[600 : 600 + int(LEAST_TIME / 0.01)].any()


def _curve():
    from rotorid.models.multirotor.thrust import ThrustCurve

    weight = 9.81 * AIRFRAME.mass.number
    return ThrustCurve((0.0, weight / 2.0))


def test_outside_of_the_training_the_band_widens_and_the_health_says_so() -> None:
    network = random_network()
    inside = jnp.ones(RATIOS)
    _, std, is_inside = network.mass(jnp.asarray(1.0), inside, jnp.asarray(10.0))
    assert is_inside
    half = 0.5 * (network.range.high - network.range.low)[0]
    for share in (0.1, 2.0 * MOST_EXTRAPOLATION):
        outside = inside.at[0].set(network.range.high[0] + share * half)
        _, wider, is_good = network.mass(jnp.asarray(1.0), outside, jnp.asarray(10.0))
        assert wider > std
        assert bool(is_good) == (share < MOST_EXTRAPOLATION)
    level = float(jnp.exp(network.range.level[1]))
    _, at_edge, is_good = network.mass(jnp.asarray(1.0), inside, jnp.asarray(level))
    assert (at_edge == pytest.approx(float(std)), bool(is_good)) == (True, True)
    _, above, is_good = network.mass(jnp.asarray(1.0), inside, jnp.asarray(level * np.exp(2.0 * MOST_LEVEL)))
    assert above > std
    assert not is_good


def test_hostile_numbers_are_survived() -> None:
    samples = samples_of()
    y, u = np.asarray(samples.y).copy(), np.asarray(samples.u).copy()
    y[450, BARE.outputs.stored["velocity"]] = np.nan
    y[451, BARE.outputs.stored["attitude"]] = 0.0
    u[452, BARE.inputs.stored["thrust"]] = 1e300
    wrong = eqx.tree_at(lambda s: (s.y, s.u), samples, (jnp.asarray(y), jnp.asarray(u)))
    found = run(elm_mass(BARE, network=random_network()), wrong, engine="jax")
    assert np.isfinite(np.asarray(found.value)).all()
    assert np.isfinite(np.asarray(found.std)).all()


def test_other_systems_are_refused() -> None:
    with pytest.raises(SettingError, match="multirotor"):
        elm_mass(Cart(), network=random_network())
    known = multirotor(AIRFRAME, "thrust", known_mass=1.0)
    with pytest.raises(SettingError, match="known mass"):
        elm_mass(known, network=random_network())
