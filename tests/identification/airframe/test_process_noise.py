"""The gain of a predictor is the steady one of a Kalman filter."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.airframe.process_noise import steady_state_gains


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
