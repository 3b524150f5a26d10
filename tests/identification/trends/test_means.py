"""Means in C are those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.identification.trends import means
from rotorid.identification.trends.means import robust_mean, window_means
from rotorid.logs.flight import Signal

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
RNG = np.random.default_rng(5)


def in_numpy(monkeypatch: pytest.MonkeyPatch, function, *arguments):
    with monkeypatch.context() as m:
        m.setattr(means, "kernel", lambda _: None)
        return function(*arguments)


@needs_compiler
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 4), (11, 4), (12, 1), (200, 3), (5001, 6)])
def test_hubers_mean_is_that_of_numpy(n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert means.kernel("means.c") is not None
    for digits in (1, 15):
        z = np.round(RNG.normal(size=(n, k)) * RNG.lognormal(size=k) + 3.0, digits)
        z[RNG.random(n) < 0.1] *= 8.0
        for found, expected in zip(robust_mean(z), in_numpy(monkeypatch, robust_mean, z), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@needs_compiler
def test_what_is_not_a_number_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for row, column in ((0, 0), (4, 2), (9, 3)):
        z = RNG.normal(size=(10, 4))
        z[row, column] = np.nan
        for found, expected in zip(robust_mean(z), in_numpy(monkeypatch, robust_mean, z), strict=True):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            assert np.isnan(found).all()


@needs_compiler
def test_window_means_are_those_of_numpy_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.cumsum(RNG.uniform(1e-3, 2e-2, 2000))
    starts = np.concatenate([times[:3], np.linspace(-1.0, times[-1] + 1.0, 60), times[-2:]])
    for values in (RNG.normal(size=(2000, 4)), np.asfortranarray(RNG.normal(size=(2000, 3)))):
        signal = Signal("body_rate", times, values, "")
        expected = in_numpy(monkeypatch, window_means, signal, starts)
        np.testing.assert_array_equal(window_means(signal, starts), expected)
        assert len(window_means(signal, starts[:0])) == 0


def test_the_mean_of_a_line_is_its_value_in_the_middle() -> None:
    signal = Signal("body_rate", np.array([0.0, 1.0, 3.0, 4.0]), np.array([[1.0], [3.0], [7.0], [9.0]]), "")
    np.testing.assert_allclose(window_means(signal, np.array([0.5, 2.0]), 1.0), [[3.0], [6.0]], rtol=1e-14)
    single = Signal("body_rate", np.array([1.0]), np.array([[2.0]]), "")
    np.testing.assert_array_equal(window_means(single, np.array([1.0])), [[0.0]])


def test_huber_steps_end_where_they_change_nothing() -> None:
    """The mean is that of 20 steps, with outliers and without."""
    for seed in range(20):
        z = np.random.default_rng(seed).standard_normal((11, 3))
        z[: seed % 4] *= 8.0
        centre = np.median(z, axis=0)
        spread = 1.4826 * np.median(np.abs(z - centre), axis=0) + 1e-12
        for _ in range(20):
            deviation = np.max(np.abs(z - centre) / spread, axis=1)
            weight = np.minimum(1.0, 3.0 / np.maximum(deviation, 1e-12))
            centre = weight @ z / weight.sum()
        np.testing.assert_allclose(robust_mean(z)[0], centre, rtol=1e-12, atol=1e-14)
