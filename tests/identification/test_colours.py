"""Outputs count as what they say: noise that hangs together says less than its size suggests, noise that alternates more."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.identification.blocks import block_sums
from rotorid.identification.colours import colours_of
from rotorid.identification.grey_box import solve
from rotorid.identification.search import Found
from rotorid.identification.solving import Solved, places
from rotorid.signals.samples import Samples
from tests.identification.test_hidden_states import STEP, Wheel

PRIOR = {"gain": 0.5}


def flight(seed: int, size: float, colour: float) -> Samples:
    """A wheel of gain 1.5 under commands of this size, with noise of 0.02 that hangs together by this much from row to row."""
    rng, n = np.random.default_rng(seed), 2000
    t, u = STEP * np.arange(n), size * np.sign(np.sin(4.0 * STEP * np.arange(n)))
    noise = np.asarray(lfilter([np.sqrt(1.0 - colour**2)], [1.0, -colour], rng.standard_normal(n)))
    y = 1.5 * STEP * np.cumsum(u) + 0.02 * noise
    columns = (t, np.diff(t, prepend=t[0]), u[:, None], y[:, None], np.ones((n, 1), bool))
    return Samples(*map(jnp.asarray, columns))


def solved(*flown: Samples) -> Solved:
    how = {"values": None, "horizon": 0.5, "noise": None, "outputs": None, "iterations": 20}
    with jax.enable_x64(True):
        return solve(Wheel(False), list(flown), PRIOR, loss="squares", **how)


def test_noise_that_hangs_together_does_not_move_what_a_flight_does_not_tell() -> None:
    fit = solved(flight(0, 0.005, 0.98)).fit
    assert abs(fit.values["gain"] - 1.0) < PRIOR["gain"]
    assert fit.std["gain"] > 0.5 * PRIOR["gain"]
    assert fit.told["gain"] < 0.5


@pytest.mark.parametrize("colour", [-0.5, 0.9])
def test_standard_deviations_are_those_of_the_errors(colour: float) -> None:
    fits = [solved(flight(seed, 1.0, colour)).fit for seed in range(15)]
    z = np.array([(fit.values["gain"] - 1.5) / fit.std["gain"] for fit in fits])
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4


@pytest.mark.parametrize(("colour", "more"), [(-0.5, -1), (0.0, 0), (0.9, 1)])
def test_noise_is_weighed_by_how_it_hangs_together(colour: float, more: int) -> None:
    found = solved(flight(1, 1.0, colour))
    ratio = float(found.sigma[0]) / next(iter(found.fit.noise.values()))[0]
    assert (ratio > 1.5, 0.6 < ratio < 1.5, ratio < 0.9)[1 - more]


def test_outputs_together_are_the_whole() -> None:
    found = solved(flight(2, 1.0, 0.5))
    problem, x, z, sigma = found.problem, found.x, found.z, found.sigma
    with jax.enable_x64(True):
        ran = problem.run(x, z, sigma)
        linear = problem.linearised(ran, z, sigma)
        each = problem.by_output(ran, z, sigma, found.weight, np.eye(problem.free))
        hessians, gradients = block_sums(problem, linear.triangle, found.weight)
        np.testing.assert_allclose(each.told.sum(), np.trace(hessians.sum(axis=0)), rtol=1e-9)
        np.testing.assert_allclose(
            each.gradients.sum(axis=(0, 1)), gradients.sum(axis=0), rtol=1e-6, atol=1e-9
        )
        vectors = places(problem.shooting.system, problem.shooting.used).values()
        end = Found(z, x, linear.triangle, linear.squares, found.weight, 0, True)
        assert np.abs(np.log(colours_of(problem, end, sigma, vectors))).max() < 0.3
