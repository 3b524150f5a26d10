"""The share of rotor commands that their rows do not resolve, and other commands that a log could have had."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.logs.flight import Signal
from rotorid.signals.command_rate import Unresolved, other_commands, unresolved_collective

RATE = 10.0
T = np.arange(0.0, 60.0, 1.0 / RATE)


def logged(u: np.ndarray, t: np.ndarray = T) -> Signal:
    return Signal("rotor_command", t, 0.5 + np.stack([u, u], axis=1), "made")


def share(u: np.ndarray, t: np.ndarray = T) -> float:
    return unresolved_collective(logged(u, t), [(0.0, 60.0)]).share


@pytest.mark.parametrize(
    ("frequency", "least", "most"),
    [(0.5, 0.0, 1e-3), (2.0, 0.04, 0.06), (10.0 / 3.0, 1.1, 1.2), (4.5, 3.0, 3.5)],
)
def test_a_sine_is_resolved_with_five_rows_a_period(frequency: float, least: float, most: float) -> None:
    assert least <= share(np.sin(2.0 * np.pi * frequency * T)) <= most


def test_noise_is_not_resolved_and_slow_changes_are_no_manoeuvres() -> None:
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(T))
    assert share(noise) == pytest.approx(1.0, abs=0.25)  # of 20 rows about their own mean
    assert share(noise + 0.004 * T) == pytest.approx(share(noise), abs=0.15)
    assert share(np.zeros(len(T))) == 0.0


def test_uneven_rows_are_predicted_and_gaps_are_left_out() -> None:
    rng = np.random.default_rng(1)
    t = T + rng.uniform(0.0, 0.03, len(T))
    assert share(np.sin(4.0 * t), t) < 2e-3
    kept = (t < 20.0) | (t > 23.0)
    assert share(np.sin(4.0 * t[kept]), t[kept]) < 2e-3
    assert share(np.sin(4.0 * T[:4]), T[:4]) == 0.0


def test_flights_are_added_by_their_variation() -> None:
    assert (Unresolved(1.0, 4.0) + Unresolved(0.0, 6.0)).share == pytest.approx(0.1)


def test_other_commands_differ_by_what_the_rows_do_not_resolve() -> None:
    slow, noise = np.sin(T), np.random.default_rng(2).standard_normal(len(T))
    for u, size in ((slow, 1e-3), (noise, 1.0)):
        even, odd, noisy, early = (signal for _, signal in other_commands(logged(u), 0.0025))
        assert np.array_equal(even.times, T[::2])
        assert np.array_equal(odd.values, 0.5 + np.stack([u, u], axis=1)[1::2])
        added = noisy.values[:, 0] - 0.5 - u
        assert np.std(added) == pytest.approx(size, abs=0.1)
        assert np.array_equal(noisy.values[:, 0], noisy.values[:, 1])
        np.testing.assert_allclose(T - early.times, 0.0025 / np.sqrt(12.0))
