"""Thinned curves keep their extremes, their ends and their gaps."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.numerics.decimation import decimate_band, decimate_line, extremes, segments


@pytest.mark.parametrize("n", [1, 5, 100, 12345])
@pytest.mark.parametrize("points", [4, 50, 1000])
def test_extremes_and_ends_stay(n: int, points: int) -> None:
    values = np.random.default_rng(n).standard_normal(n)
    index = extremes(values, points)
    assert len(index) <= max(points, 2)
    assert np.all(np.diff(index) > 0)
    assert {0, n - 1, int(np.argmin(values)), int(np.argmax(values))} <= set(index.tolist())


def test_nothing_that_is_not_a_number_stays() -> None:
    values = np.where(np.arange(1000) % 3 == 0, np.nan, np.arange(1000.0))
    assert np.isfinite(values[extremes(values, 20)]).all()
    assert len(extremes(np.full(10, np.nan), 4)) == 0


def test_a_line_breaks_at_gaps() -> None:
    t = np.concatenate([np.arange(0, 10, 0.01), np.arange(20, 30, 0.01)])
    ts, values, rows = decimate_line(t, np.sin(t), 100)
    assert len(ts) <= 102
    assert np.flatnonzero(np.isnan(values)).tolist() == np.flatnonzero(rows < 0).tolist()
    assert np.isnan(values).sum() == 1
    known = rows >= 0
    np.testing.assert_array_equal(values[known], np.sin(t)[rows[known]])
    assert len(segments(t)) == 2
    assert len(decimate_line(t, np.full(len(t), np.nan), 100)[0]) == 0


def test_a_thin_band_holds_the_whole_band() -> None:
    t = np.arange(0, 50, 0.01)
    rng = np.random.default_rng(3)
    lower, upper = -1 - rng.random(len(t)), 1 + rng.random(len(t))
    ts, values = decimate_band(t, lower, upper, 200)
    assert len(ts) <= 210
    assert ts[0] == t[0]
    assert np.nanmax(values) == upper.max()
    assert np.nanmin(values) == lower.min()
    half = len(ts) // 2
    np.testing.assert_array_equal(ts[:half], ts[half:][::-1][: half or None])
