"""Cutting a series into constant parts."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.drive import Parts
from rotorid.identification.mass_parts import cut


def test_steps_are_found_where_they_are() -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.zeros(40), np.full(30, 0.2), np.full(50, 0.1)])
    cuts = cut(truth + 0.02 * rng.normal(size=120), np.full(120, 1.0))
    assert cuts == pytest.approx([40, 70], abs=1)


@pytest.mark.parametrize("seed", range(20))
def test_a_constant_is_not_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert cut(0.02 * rng.normal(size=150), rng.uniform(0.5, 2.0, 150)) == []


def test_a_window_that_says_little_moves_no_cut() -> None:
    rng = np.random.default_rng(1)
    value = 0.01 * rng.normal(size=60)
    weight = np.full(60, 1.0)
    value[20:24], weight[20:24] = 5.0, 1e-9
    assert cut(value, weight) == []


def test_windows_belong_to_the_part_that_they_begin_in() -> None:
    parts = Parts(np.array([0, 0, 1]), np.array([0.0, 10.0, 0.0]))
    flight, t = np.array([0, 0, 0, 1]), np.array([-1.0, 9.9, 10.0, 50.0])
    assert list(parts.of(flight, t)) == [0, 0, 1, 2]
