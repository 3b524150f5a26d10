"""The gain of a predictor is the steady one of a Kalman filter."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.airframe.process_noise import SlowForce, slow_force_of, steady_state_gains


def iterated(q: float, a: float) -> np.ndarray:
    """The gain of a state and of a step of its rate after many steps of a Kalman filter, which measures the first."""
    F, P = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([1.0, 0.0 if a == 0.0 else 1.0])
    gain = np.zeros(2)
    for _ in range(3_000):
        gain = P[:, 0] / (P[0, 0] + 1.0)
        P = F @ (P - np.outer(gain, P[0])) @ F.T + q * np.diag([1.0, a**2])
    return gain


@pytest.mark.parametrize("q", [1e-3, 0.5, 1e6, 1e14])
@pytest.mark.parametrize("a", [0.0, 0.02, 0.3])
def test_a_walk_with_a_walking_rate_has_the_gain_of_a_kalman_filter(q: float, a: float) -> None:
    np.testing.assert_allclose(steady_state_gains(q, a), iterated(q, a), rtol=1e-6, atol=1e-9)


def test_a_rate_that_hardly_walks_is_hardly_followed() -> None:
    one, both = steady_state_gains(0.1, 0.0), steady_state_gains(0.1, 1e-6)
    assert both[0] == pytest.approx(one[0], rel=1e-2)
    assert 0.0 == one[1] < both[1] < 1e-4


def first_order_noise(seed: int, windows: int, std: float, time: float) -> np.ndarray:
    rng, decay = np.random.default_rng(seed), np.exp(-0.5 / time)
    values = std * rng.standard_normal(windows)
    for k in range(1, windows):
        values[k] = decay * values[k - 1] + np.sqrt(1.0 - decay**2) * values[k]
    return values


def slow_force(values: np.ndarray, start: np.ndarray) -> SlowForce:
    return slow_force_of(values, np.zeros(len(values), int), start, start + 0.5)


def test_the_mean_of_slow_gusts_is_within_its_uncertainty() -> None:
    """Windows of 45 s, of which a quarter is held out."""
    start = 0.5 * np.arange(90)
    is_fitted = start % 8.0 < 6.0
    z = []
    for seed in range(60):
        force = first_order_noise(seed, 90, 0.3, 5.0)[is_fitted]
        noise = 0.05 * np.random.default_rng([seed, 1]).standard_normal(len(force))
        found = slow_force(force + noise, start[is_fitted])
        z.append(force.mean() / found.mean_std(found.duration))
    assert np.mean(np.abs(z) < 1.96) > 0.8
    assert 0.5 < np.sqrt(np.mean(np.square(z))) < 1.6


def test_white_errors_are_no_slow_force() -> None:
    start = 0.5 * np.arange(90)
    found = [slow_force(first_order_noise(seed, 90, 0.3, 1e-3), start).std for seed in range(50)]
    assert np.mean(np.array(found) > 0.0) < 0.1
    assert SlowForce().mean_std(10.0) == 0.0
