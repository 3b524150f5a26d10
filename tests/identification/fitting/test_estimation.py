"""Residuals of a fit: autocorrelation of white and of coloured residuals against theory."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.fitting.estimation import OutputResiduals, autocorrelation

WINDOWS, ROWS = 60, 80


def of(error: np.ndarray) -> OutputResiduals:
    t = np.broadcast_to(0.01 * np.arange(ROWS), (WINDOWS, ROWS))
    return OutputResiduals("body_rate", "rad/s", t, np.zeros(WINDOWS, int), np.zeros_like(error), error)


def white(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((WINDOWS, ROWS, 3))


def test_of_white_residuals_five_percent_lie_outside() -> None:
    shares = [autocorrelation(of(3.0 * white(seed))).share_outside for seed in range(8)]
    assert np.mean(shares) == pytest.approx(0.05, abs=0.02)


def test_of_coloured_residuals_it_is_the_power_of_the_colour() -> None:
    e = white(0)
    for k in range(1, ROWS):
        e[:, k] = 0.8 * e[:, k - 1] + 0.6 * e[:, k]
    found = autocorrelation(of(e))
    np.testing.assert_allclose(found.lag[:4], [0.01, 0.02, 0.03, 0.04])
    np.testing.assert_allclose(
        found.value[:4], np.repeat(0.8 ** np.arange(1, 5)[:, None], 3, axis=1), atol=0.06
    )
    assert found.share_outside > 0.2


def test_rows_without_a_measurement_do_not_count() -> None:
    e = white(1)
    e[:, 1::2] = np.nan
    found = autocorrelation(of(e))
    assert np.isnan(found.value[::2]).all()
    assert np.isfinite(found.value[1::2]).all()
    assert found.share_outside < 0.12
