"""Which rows count."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.workflows.track.changes import measure_change, settled_rows
from tests.workflows.tracks_for_tests import T, made_track, quantity


def test_the_first_ten_seconds_or_quarter_do_not_count() -> None:
    rows = settled_rows(made_track(1.0), "mass")
    assert T[np.argmax(rows)] == pytest.approx(10.0, abs=0.03)
    short = T[:1000]
    rows = settled_rows(made_track(quantity(1.0, t=short), t=short), "mass")
    assert short[np.argmax(rows)] == pytest.approx(5.0, abs=0.03)


def test_rows_without_information_or_number_do_not_count() -> None:
    value = np.where((T > 30) & (T < 31), np.nan, 1.0)
    informed = T > 20
    track = made_track(quantity(value, informed=informed))
    rows = settled_rows(track, "mass")
    assert not rows[T < 20].any()
    assert not rows[~np.isfinite(value)].any()
    never = made_track(quantity(1.0, informed=False))
    assert settled_rows(never, "mass").any()


def test_gaps_are_not_time_in_the_air() -> None:
    t = np.concatenate([T[:200], T[:2000] + 300.0])
    rows = settled_rows(made_track(quantity(1.0, t=t), t=t), "mass")
    assert t[np.argmax(rows)] == pytest.approx(305.0, abs=0.2)


def test_a_change_of_one_row() -> None:
    found = measure_change(np.array([3.0]), np.array([1.0]), np.array([0.1]))
    assert found.total == 0.0
    assert not found.is_significant
