"""Outputs count as what they say: noise that hangs together says less than its size suggests, noise that alternates more."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.geometry.spaces import Space, Vector
from rotorid.identification.fitting.estimation import Estimation, output_slices
from rotorid.identification.fitting.gauss_newton import GaussNewtonResult
from rotorid.identification.fitting.residual_autocorrelation import variance_inflation
from rotorid.identification.fitting.window_blocks import block_information
from rotorid.identification.grey_box.fit import estimate_grey_box
from rotorid.models.system import System, Values
from rotorid.signals.samples import Samples
from tests.identification.fitting.test_hidden_states import STEP, Wheel

PRIOR = {"gain": 0.5}
WHEEL = Wheel(False)


def flight(seed: int, size: float, colour: float) -> Samples:
    """A wheel of gain 1.5 under commands of this size, with noise of 0.02 that hangs together by this much from row to row."""
    rng, n = np.random.default_rng(seed), 2000
    t, u = STEP * np.arange(n), size * np.sign(np.sin(4.0 * STEP * np.arange(n)))
    noise = np.asarray(lfilter([np.sqrt(1.0 - colour**2)], [1.0, -colour], rng.standard_normal(n)))
    y = 1.5 * STEP * np.cumsum(u) + 0.02 * noise
    columns = (t, np.diff(t, prepend=t[0]), u[:, None], y[:, None], np.ones((n, 1), bool))
    return Samples(*map(jnp.asarray, columns))


def solved(*flown: Samples, of: System = WHEEL) -> Estimation:
    how = {"values": None, "horizon": 0.5, "noise": None, "outputs": tuple(of.outputs), "iterations": 20}
    with jax.enable_x64(True):
        return estimate_grey_box(of, list(flown), PRIOR, loss="squares", **how)


def test_noise_that_hangs_together_does_not_move_what_a_flight_does_not_tell() -> None:
    fit = solved(flight(0, 0.005, 0.98)).fit
    assert abs(fit.values["gain"] - 1.0) < PRIOR["gain"]
    assert fit.std["gain"] > 0.5 * PRIOR["gain"]
    assert fit.information_gain["gain"] < 0.5


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
        ran = problem.predict(x, z, sigma)
        linear = problem.linearise(ran, z, sigma)
        each = problem.output_information(ran, z, sigma, found.weight, np.eye(problem.free_size))
        hessians, gradients = block_information(problem, linear.triangle, found.weight)
        np.testing.assert_allclose(each.information.sum(), np.trace(hessians.sum(axis=0)), rtol=1e-9)
        np.testing.assert_allclose(
            each.gradients.sum(axis=(0, 1)), gradients.sum(axis=0), rtol=1e-6, atol=1e-9
        )
        vectors = output_slices(problem.shooting.system, problem.shooting.compared).values()
        end = GaussNewtonResult(z, x, linear.triangle, linear.squared_residuals, found.weight, 0, True)
        assert np.abs(np.log(variance_inflation(problem, end, sigma, vectors))).max() < 0.3


@dataclasses.dataclass(frozen=True)
class TwiceMeasured(Wheel):
    """A wheel whose speed is measured twice."""

    outputs = Space.of(v=Vector(1, noise=0.01), w=Vector(1, noise=0.01))

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return {"v": x["v"], "w": x["v"]}


def test_what_wanders_counts_less_beside_what_does_not_but_for_a_predictor() -> None:
    steady, wanders = flight(3, 1.0, 0.0), flight(3, 1.0, 0.95)
    both = dataclasses.replace(
        steady,
        y=jnp.concatenate([steady.y, wanders.y], axis=1),
        mask=jnp.concatenate([steady.mask, wanders.mask], axis=1),
    )
    found = solved(both, of=TwiceMeasured(False))
    noise = np.concatenate(list(found.fit.noise.values()))
    assert found.sigma[1] / noise[1] > 2.0 * found.sigma[0] / noise[0]
    with jax.enable_x64(True):
        following = dataclasses.replace(found.problem, K=np.full((1, 2), 0.1))
        linear = following.linearise(following.predict(found.x, found.z, noise), found.z, noise)
        end = GaussNewtonResult(
            found.z, found.x, linear.triangle, linear.squared_residuals, found.weight, 0, True
        )
        colours = variance_inflation(following, end, noise, (slice(0, 1), slice(1, 2)))
    assert colours[0] == colours[1] != 1.0
