"""The jackknife over blocks against fits without one, and weights of outputs with autocorrelated residuals."""

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
from rotorid.identification.fitting.uncertainty import (
    between_flight_factor,
    block_information,
    delete_block_steps,
    shrink_covariance,
    student_t_factor,
    variance_inflation,
)
from rotorid.identification.grey_box.fit import estimate_grey_box
from rotorid.models.system import System, Values
from rotorid.signals.samples import Samples
from tests.identification.fitting.test_hidden_states import STEP, Wheel


def _blocks(X: np.ndarray, r: np.ndarray, size: int):
    rows = X.reshape(-1, size, X.shape[1])
    errors = r.reshape(-1, size)
    return np.einsum("bij,bik->bjk", rows, rows), np.einsum("bij,bi->bj", rows, errors)


def test_it_is_what_a_fit_without_the_block_finds() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    whole = np.linalg.lstsq(X, y, rcond=None)[0]
    steps = delete_block_steps(*_blocks(X, X @ whole - y, 6), X.T @ X)
    for b, step in enumerate(steps):
        kept = np.arange(60) // 6 != b
        without = np.linalg.lstsq(X[kept], y[kept], rcond=None)[0]
        assert np.sqrt(9 / 10) * (without - whole) == pytest.approx(step)


def test_bands_cover_where_noise_hangs_together_and_blocks_are_few() -> None:
    """15 blocks, of which each has an error of its own: bands by the residuals' size alone hold the truth half as often."""
    rng, trials, blocks, size = np.random.default_rng(1), 400, 15, 20
    inside = np.zeros((2, trials))
    for k in range(trials):
        X = rng.normal(size=(blocks, 1, 4)).repeat(size, axis=1).reshape(-1, 4)
        X = X + 0.3 * rng.normal(size=X.shape)
        noise = rng.normal(size=(blocks, 1)).repeat(size, axis=1).ravel() + rng.normal(size=blocks * size)
        found = np.linalg.lstsq(X, noise, rcond=None)[0]  # the truth is 0
        residual = X @ found - noise
        H = X.T @ X
        steps = delete_block_steps(*_blocks(X, residual, size), H)
        std = student_t_factor(blocks) * np.sqrt(np.sum(steps[:, 0] ** 2))
        naive = np.sqrt(np.linalg.inv(H)[0, 0] * np.mean(residual**2))
        inside[:, k] = abs(found[0]) < 1.96 * np.array([std, naive])
    covered, naively = inside.mean(axis=1)
    assert 0.92 < covered < 0.99
    assert naively < 0.7


def test_covariances_of_few_blocks_are_whole_and_as_large_as_the_errors() -> None:
    """12 steps in 20 dimensions, some of them tight: a Mahalanobis distance stays near its degrees of freedom."""
    rng, n, blocks, trials = np.random.default_rng(2), 20, 12, 200
    size = np.geomspace(1.0, 1e-3, n)  # of the model's errors; the true ones are 3 times as large
    root = np.linalg.qr(rng.normal(size=(n, n)))[0] * size
    distance = []
    for _ in range(trials):
        steps = 3.0 * rng.normal(size=(blocks, n)) @ root.T / np.sqrt(blocks)
        A = shrink_covariance(steps, root, np.eye(n))
        error = 3.0 * root @ rng.normal(size=n)
        distance.append(np.sum(np.linalg.solve(A, error) ** 2) / n)
    assert np.median(distance) == pytest.approx(1.0, abs=0.25)


def test_steps_as_the_model_has_them_change_nothing() -> None:
    root = np.array([[3.0, 0.0], [1.0, 0.1]])
    steps = np.array([[1.0, 1.0], [1.0, -1.0]]) @ root.T / np.sqrt(2.0)
    A = shrink_covariance(steps, root, np.eye(2))
    np.testing.assert_allclose(A @ A.T, root @ root.T)


def test_what_the_data_do_not_tell_is_not_widened() -> None:
    rng = np.random.default_rng(3)
    steps = np.zeros((10, 3))
    steps[:, :2] = 5.0 * rng.normal(size=(10, 2)) / np.sqrt(10)
    A = shrink_covariance(steps, np.eye(3), np.diag([1.0, 1.0, 0.0]))
    assert A[2] @ A[2] == pytest.approx(0.0)
    assert A[0] @ A[0] > 5.0


def test_few_blocks_widen() -> None:
    assert student_t_factor(8) > student_t_factor(30) > 1.0
    assert student_t_factor(10_000) == pytest.approx(1.0, abs=1e-3)


def test_flights_that_differ_by_more_than_their_noise_widen() -> None:
    """Means over flights whose truths differ: what is stated with the factor is about what the mean is wrong by; where they do
    not differ, hardly more."""
    rng = np.random.default_rng(4)
    flights, blocks, count = 4, 10, 400
    for apart, most in ((0.0, 1.2), (1.0, 1.6)):
        wrong, stated = [], []
        for _ in range(count):
            truth = apart * rng.standard_normal(flights)
            seen = truth[:, None] + rng.standard_normal((flights, blocks))
            steps = ((seen - seen.mean()) / seen.size).reshape(-1, 1)
            factor = between_flight_factor(steps, np.repeat(np.arange(flights), blocks))
            wrong.append(seen.mean())
            stated.append(float(factor[0] * np.sqrt(np.sum(steps**2))))
        ratio = float(np.sqrt(np.mean(np.square(wrong)) / np.mean(np.square(stated))))
        assert 1.0 / most < ratio < most
    alone = between_flight_factor(rng.standard_normal((12, 3)), np.zeros(12, dtype=int))
    np.testing.assert_array_equal(alone, 1.0)


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
    ratio = float(found.sigma[0]) / next(iter(found.fit.residuals.noise.values()))[0]
    assert (ratio > 1.5, 0.6 < ratio < 1.5, ratio < 0.9)[1 - more]


def test_outputs_together_are_the_whole() -> None:
    found = solved(flight(2, 1.0, 0.5))
    problem, x, z, sigma = found.problem, found.x, found.z, found.sigma
    with jax.enable_x64(True):
        triangle, costs = problem.linearise(x, z, sigma)
        each = problem.output_information(x, z, sigma, found.weight, np.eye(problem.free_size))
        hessians, gradients = block_information(problem, triangle, found.weight)
        np.testing.assert_allclose(each.information.sum(), np.trace(hessians.sum(axis=0)), rtol=1e-9)
        np.testing.assert_allclose(
            each.gradients.sum(axis=(0, 1)), gradients.sum(axis=0), rtol=1e-6, atol=1e-9
        )
        vectors = output_slices(problem.shooting.system, problem.shooting.compared).values()
        end = GaussNewtonResult(z, x, triangle, costs.squared_residuals, found.weight, 0, True)
        assert np.abs(np.log(variance_inflation(problem, end, sigma, vectors))).max() < 0.3


@dataclasses.dataclass(frozen=True)
class TwiceMeasured(Wheel):
    """A wheel whose speed is measured twice."""

    outputs = Space.of(v=Vector(1, noise=0.01), w=Vector(1, noise=0.01))

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return {"v": x["v"], "w": x["v"]}


def twice_measured() -> Samples:
    """The second measurement has noise that is autocorrelated."""
    steady, wanders = flight(3, 1.0, 0.0), flight(3, 1.0, 0.95)
    return dataclasses.replace(
        steady,
        y=jnp.concatenate([steady.y, wanders.y], axis=1),
        mask=jnp.concatenate([steady.mask, wanders.mask], axis=1),
    )


def inflation_with(K: list[list[float]], found: Estimation) -> np.ndarray:
    noise = np.concatenate(list(found.fit.residuals.noise.values()))
    with jax.enable_x64(True):
        following = dataclasses.replace(found.problem, K=np.array(K))
        triangle, (squares, _) = following.linearise(found.x, found.z, noise)
        end = GaussNewtonResult(found.z, found.x, triangle, squares, found.weight, 0, True)
        return variance_inflation(following, end, noise, (slice(0, 1), slice(1, 2)))


def test_what_wanders_counts_less_beside_what_does_not_but_for_a_predictor() -> None:
    found = solved(twice_measured(), of=TwiceMeasured(False))
    noise = np.concatenate(list(found.fit.residuals.noise.values()))
    assert found.sigma[1] / noise[1] > 2.0 * found.sigma[0] / noise[0]
    colours = inflation_with([[0.1, 0.1]], found)
    assert colours[0] == colours[1] != 1.0


def test_a_predictor_that_corrects_unmeasured_states_alone_weighs_each_output_by_itself() -> None:
    found = solved(twice_measured(), of=TwiceMeasured(True))
    colours = inflation_with([[0.0, 0.0], [0.1, 0.0]], found)
    assert colours[1] > 2.0 * colours[0]
