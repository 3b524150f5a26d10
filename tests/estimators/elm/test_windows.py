"""Fading windows equal the weighted sums that they stand for, and their ratios do not depend on the mass."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.elm.windows import (
    TIME_CONSTANTS,
    FadingWindows,
    add_sample,
    empty_windows,
    reference_inverse_mass,
    window_ratios,
)


def made(count: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (s) at uneven steps, impulses (N s) and velocities (m/s)."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.005, 0.05, count))
    J = np.cumsum(rng.standard_normal((count, 3)) + np.array([0.0, 0.0, 2.0]), axis=0)
    return t, J, J / 1.3 + 0.05 * rng.standard_normal((count, 3))


def filled(t: np.ndarray, J: np.ndarray, V: np.ndarray) -> FadingWindows:
    windows = add_sample(empty_windows(jnp.dtype(float)), jnp.zeros(3), jnp.zeros(3), jnp.zeros(()))
    for k in range(1, len(t)):
        windows = add_sample(windows, *map(jnp.asarray, (J[k] - J[k - 1], V[k] - V[k - 1], t[k] - t[k - 1])))
    return windows


def test_sums_are_those_of_all_samples() -> None:
    t, J, V = made()
    windows = filled(t, J, V)
    for k, tau in enumerate(TIME_CONSTANTS):
        w = np.exp(-(t[-1] - t) / tau)
        dJ, dV = J - w @ J / w.sum(), V - w @ V / w.sum()
        vertical = [w @ (dJ[:, 2] * dJ[:, 2]), w @ (dJ[:, 2] * dV[:, 2])]
        everything = [np.sum(w[:, None] * dJ * dJ), np.sum(w[:, None] * dJ * dV)]
        assert windows.weight[k] == pytest.approx(w.sum(), rel=1e-12)
        assert np.asarray(windows.squares[k]) == pytest.approx(vertical + everything, rel=1e-10)
        assert np.asarray(windows.impulse[k]) == pytest.approx(w @ J / w.sum() - J[-1], rel=1e-10)


def test_ratios_do_not_depend_on_the_mass() -> None:
    t, J, V = made()
    b, ratios = window_ratios(filled(t, J, V), jnp.asarray(0.05))
    heavier, same = window_ratios(filled(t, 3.0 * J, V), jnp.asarray(0.05))
    assert heavier == pytest.approx(float(b) / 3.0, rel=1e-12)
    assert np.asarray(same) == pytest.approx(np.asarray(ratios), rel=1e-9)


def test_a_constant_mass_without_noise_is_found_by_every_window() -> None:
    t, J, _ = made()
    windows = filled(t, J, J / 1.7)
    assert float(reference_inverse_mass(windows)) == pytest.approx(1.0 / 1.7, rel=1e-12)
    assert np.asarray(window_ratios(windows, jnp.asarray(0.05))[1]) == pytest.approx(1.0, rel=1e-9)
