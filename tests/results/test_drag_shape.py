"""Forces that are left over beside a quadratic drag of each axis by itself."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.results.drag_shape import explained


@pytest.fixture(scope="module")
def flown() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity, noise that hangs together as that of an estimator does, and blocks, of 100 s at 10 Hz."""
    rng, t = np.random.default_rng(0), np.arange(1000) / 10.0
    v = np.stack([4.0 * np.sin(0.7 * t), 3.0 * np.sin(0.45 * t + 1.0), 1.5 * np.sin(1.1 * t)], axis=1)
    noise = 0.04 * rng.standard_normal(v.shape)
    for k in range(1, len(t)):
        noise[k] += 0.8 * noise[k - 1]
    return v, noise, (t // 2.0).astype(int)


def test_a_body_of_plates_is_told(flown) -> None:
    v, noise, block = flown
    wrong = -0.1 * (np.abs(v) * v - np.linalg.norm(v, axis=1, keepdims=True) * v)
    share, sure = explained(wrong + noise, v, block)
    assert share > 0.4
    assert sure > 20.0


def test_noise_and_drags_that_models_have_are_not(flown) -> None:
    """A drag that was found too small is another matter."""
    v, noise, block = flown
    for left in (
        noise,
        noise - 0.3 * v - 0.05 * np.linalg.norm(v, axis=1, keepdims=True) * v + [0.1, 0.0, 0.2],
    ):
        share, sure = explained(left, v, block)
        assert share < 0.05
        assert sure < 4.0


def test_of_one_axis_alone_both_are_the_same(flown) -> None:
    v, noise, block = flown
    assert explained(noise, v * np.array([1.0, 0.0, 0.0]), block) == (0.0, 0.0)
