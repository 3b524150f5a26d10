"""Gusts have the size, the memory and the independence that are asked for."""

import numpy as np
import pytest

from rotorid.simulation.wind import draw_wind, dryden_gusts

GUSTS, TIMES, DT = (1.5, 1.0, 0.5), (4.0, 2.0, 0.5), 0.05


def test_mean_size_and_memory():
    w = draw_wind((3.0, -1.0, 0.0), GUSTS, TIMES, 400_000, DT, [1])
    g = w - [3.0, -1.0, 0.0]
    np.testing.assert_allclose(g.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(g.std(axis=0), GUSTS, rtol=0.03)
    for lag in (1, 10, 40):
        correlation = np.mean(g[lag:] * g[:-lag], axis=0) / np.var(g, axis=0)
        np.testing.assert_allclose(correlation, np.exp(-lag * DT / np.array(TIMES)), atol=0.03)
    assert np.abs(np.corrcoef(g.T) - np.eye(3)).max() < 0.05


def test_they_are_stationary_from_the_first_row_on():
    first = np.array([draw_wind((0.0, 0.0, 0.0), GUSTS, TIMES, 1, DT, [s])[0] for s in range(2000)])
    np.testing.assert_allclose(first.std(axis=0), GUSTS, rtol=0.08)


def test_seeded_and_still_without_gusts():
    a, b = (draw_wind((1.0, 0.0, 0.0), GUSTS, TIMES, 50, DT, [7, k]) for k in (0, 1))
    np.testing.assert_array_equal(a, draw_wind((1.0, 0.0, 0.0), GUSTS, TIMES, 50, DT, [7, 0]))
    assert not np.array_equal(a, b)
    still = draw_wind((1.0, 2.0, 3.0), (0.0, 0.0, 0.0), TIMES, 50, DT, [7])
    np.testing.assert_array_equal(still, np.tile([1.0, 2.0, 3.0], (50, 1)))


def test_dryden_at_twenty_feet():
    """By hand: h = 20 ft, W_20 = 6 m/s, 0.177 + 0.000823 h = 0.19346."""
    gusts, times = dryden_gusts(6.0, 20.0 * 0.3048)
    assert gusts == pytest.approx((0.6 / 0.19346**0.4, 0.6 / 0.19346**0.4, 0.6))
    assert times == pytest.approx((6.096 / 0.19346**1.2 / 6.0, 6.096 / 0.19346**1.2 / 6.0, 1.016))
