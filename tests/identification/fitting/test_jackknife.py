"""The jackknife over blocks, against fits that are really made without one, and against errors that hang together."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.fitting.jackknife import (
    between_flight_factor,
    delete_block_steps,
    shrink_covariance,
    student_t_factor,
)


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
