"""A step of a fit is the best one within the bounds."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.fitting.gauss_newton import _levenberg_marquardt_step


@pytest.mark.parametrize("damping", [0.0, 1e-2])
@pytest.mark.parametrize("seed", range(5))
def test_a_step_meets_the_conditions_of_the_best_one_within_bounds(seed: int, damping: float) -> None:
    """On its own, to clip the free step is not enough: correlated coordinates have to move with those that are held."""
    rng = np.random.default_rng(seed)
    n = 6
    J = rng.normal(size=(20, n)) @ (np.eye(n) + 0.9 * np.ones((n, n)))
    R = np.linalg.qr(np.column_stack([J, 10.0 * rng.normal(size=20)]), mode="r")
    z = rng.normal(size=n)
    lower = np.where(np.arange(n) < 4, z - rng.uniform(0.0, 0.1, n), -np.inf)
    lower[0] = z[0]
    dz = _levenberg_marquardt_step(R, z, lower, damping)
    size = np.linalg.norm(R[:n, :n], axis=0)
    gradient = R[:n, :n].T @ (R[:n, :n] @ dz + R[:n, -1]) + damping * size**2 * dz
    is_held = dz <= lower - z
    assert np.all(z + dz >= lower)
    assert is_held.any()
    assert np.all(gradient[is_held] > -1e-9)
    np.testing.assert_allclose(gradient[~is_held], 0.0, atol=1e-9)
