"""Numbers that no sensor gives: a filter recovers from them, and health is never good beside a number that is not finite."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.base import LONGEST_STEP, Health, finite_measurements, honest, plausible_step, prior
from rotorid.estimators.ekf import ekf
from rotorid.estimators.msckf import msckf
from rotorid.estimators.run import run
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
    mask = np.asarray(finite_measurements(outputs, spoilt).mask)
    assert not mask[outputs.tangent["velocity"]].any()
    assert mask[outputs.tangent["position"]].all()
    assert bool(jnp.all(jnp.isfinite(finite_measurements(outputs, spoilt).y)))
