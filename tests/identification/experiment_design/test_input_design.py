"""The best choice of manoeuvres, against all choices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.identification.experiment_design.input_design import (
    choose_manoeuvres,
    criterion_gradient,
    criterion_value,
)


def some(count: int, p: int, seed: int = 0) -> np.ndarray:
    """Information of manoeuvres that each tell two directions."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(count, 2, p)) * 3.0
    return np.swapaxes(Y, 1, 2) @ Y


@pytest.mark.parametrize("criterion", ["D", "A"])
@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_the_best_of_all_choices(criterion, seed: int) -> None:
    M = some(7, 5, seed)
    found = choose_manoeuvres(M, 2, 3, criterion, max_repeats=2)
    choices = [
        c for c in itertools.combinations_with_replacement(range(7), 3) if max(c.count(i) for i in c) <= 2
    ]
    best = max(criterion_value(np.eye(5) + M[list(c)].sum(axis=0), 2, criterion) for c in choices)
    own = criterion_value(np.eye(5) + M[list(found.manoeuvres)].sum(axis=0), 2, criterion)
    assert own == pytest.approx(found.value)
    assert found.value >= best - 0.05 * abs(best)
    assert best <= found.upper_bound + 1e-9, "no choice exceeds the bound"


@pytest.mark.parametrize("criterion", ["D", "A"])
def test_slopes_of_the_criteria(criterion) -> None:
    M, change = np.eye(5) + some(1, 5)[0], some(1, 5, 1)[0]
    h = 1e-6
    slope = (
        criterion_value(M + h * change, 2, criterion) - criterion_value(M - h * change, 2, criterion)
    ) / (2.0 * h)
    assert np.sum(criterion_gradient(M, 2, criterion) * change) == pytest.approx(slope, rel=1e-5)


def test_what_tells_nothing_of_what_is_asked_for_is_not_taken() -> None:
    useful, useless = np.diag([5.0, 0.0, 0.0]), np.diag([0.0, 50.0, 50.0])
    assert choose_manoeuvres(np.stack([useless, useful]), 1, 3).manoeuvres == (1, 1, 1)


def test_one_manoeuvre_is_not_flown_all_the_time() -> None:
    M = np.stack([np.diag([9.0, 0.0]), np.diag([8.0, 0.0])])
    assert sorted(choose_manoeuvres(M, 1, 4, max_repeats=2).manoeuvres) == [0, 0, 1, 1]


def test_settings_that_cannot_be() -> None:
    with pytest.raises(SettingError, match="no manoeuvre fits"):
        choose_manoeuvres(np.zeros((0, 2, 2)), 1, 3)
