"""Cutting a series into constant parts."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.airframe.window_inputs import (
    MASS,
    WIND,
    Segmentation,
    _represented,
    find_changepoints,
)


def test_steps_are_found_where_they_are() -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.zeros(40), np.full(30, 0.2), np.full(50, 0.1)])
    cuts = find_changepoints((truth + 0.02 * rng.normal(size=120))[:, None], np.full((120, 1), 1.0), MASS)
    assert cuts == pytest.approx([40, 70], abs=1)


@pytest.mark.parametrize("seed", range(20))
def test_a_constant_is_not_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert find_changepoints(0.02 * rng.normal(size=(150, 1)), rng.uniform(0.5, 2.0, (150, 1)), MASS) == []


def test_a_window_that_says_little_moves_no_cut() -> None:
    rng = np.random.default_rng(1)
    value = 0.01 * rng.normal(size=60)
    weight = np.full(60, 1.0)
    value[20:24], weight[20:24] = 5.0, 1e-9
    assert find_changepoints(value[:, None], weight[:, None], MASS) == []


def test_steps_that_are_not_worth_a_part_are_none() -> None:
    """However well they show."""
    rng = np.random.default_rng(4)
    truth = np.concatenate([np.zeros(40), np.full(40, 0.008), np.full(40, 0.03)])
    assert find_changepoints((truth + 1e-4 * rng.normal(size=120))[:, None], np.ones((120, 1)), MASS) == [80]


def test_windows_that_were_left_out_count_to_the_length_of_a_segment() -> None:
    """Of eleven windows, those on either side of a step were left out: two remain after it, fewer than a segment has."""
    every, kept = np.arange(11.0), np.array([0, 1, 2, 3, 4, 5, 6, 9, 10], float)
    count = _represented(every, kept)
    assert list(count) == [1, 1, 1, 1, 1, 1, 2, 2, 1]
    assert list(_represented(every, np.array([2.0, 3.0, 8.0]))) == [3, 3, 5]
    value = np.where(kept < 8.0, 0.223, 0.0) + 0.001 * np.random.default_rng(0).normal(size=9)
    assert find_changepoints(value[:, None], np.ones((9, 1)), MASS, count) == [7]


def test_a_wind_that_turns_is_cut_where_it_does() -> None:
    rng = np.random.default_rng(3)
    truth = np.concatenate([np.zeros((40, 2)), np.full((30, 2), [2.0, -4.0]), np.full((50, 2), [2.0, 0.0])])
    assert find_changepoints(
        truth + 0.3 * rng.normal(size=(120, 2)), np.ones((120, 2)), WIND
    ) == pytest.approx([40, 70], abs=1)


@pytest.mark.parametrize("seed", range(20))
def test_errors_that_hang_together_for_seconds_are_no_wind(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanders = np.cumsum(rng.normal(size=(160, 2)), axis=0)
    short = wanders - np.stack([np.convolve(w, np.full(9, 1.0 / 9.0), "same") for w in wanders.T], axis=1)
    assert find_changepoints((0.2 * short)[5:-5], np.ones((150, 2)), WIND) == []


def test_windows_belong_to_the_part_that_they_begin_in() -> None:
    parts = Segmentation(np.array([0, 0, 1]), np.array([0.0, 10.0, 0.0]))
    flight, t = np.array([0, 0, 0, 1]), np.array([-1.0, 9.9, 10.0, 50.0])
    assert list(parts.segment_at(flight, t)) == [0, 0, 1, 2]
