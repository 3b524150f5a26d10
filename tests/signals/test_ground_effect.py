"""Time near the ground after take-off and before landing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.ground_effect import height_of_ground_effect, time_off_ground

AIRBORNE = [(3.0, 17.0)]
T = np.arange(0.0, 20.0, 0.1)


def flight(height: np.ndarray, start: float = 0.0, end: float = 20.0) -> Flight:
    """A log of heights above its own origin, m."""
    kept = (start <= T) & (end >= T)
    position = np.stack([T, 0.0 * T, 5.0 + height], axis=1)[kept]
    return Flight({"position": Signal("position", T[kept], position, "made")}, Path("made"), "px4-ulog")


def climb_and_landing(top: float, surface: float = 0.0) -> np.ndarray:
    """Up at 0.2 m/s from 3 s on, down from 17 s back to a surface of this height."""
    return np.clip(
        np.minimum(0.2 * (T - 3.0), surface + 0.2 * (17.0 - T)), np.where(T < 10.0, 0.0, surface), top
    )


def test_climb_and_descent_near_the_surfaces_are_left_out() -> None:
    [(start, end)] = time_off_ground(flight(climb_and_landing(1.0)), AIRBORNE, 0.3)
    assert (start, end) == (pytest.approx(4.5, abs=0.05), pytest.approx(15.5, abs=0.05))
    [(_, end)] = time_off_ground(flight(climb_and_landing(1.0, surface=0.4)), AIRBORNE, 0.3)
    assert end == pytest.approx(15.5, abs=0.05), "above a table"


def test_nothing_changes_where_no_height_is_known() -> None:
    low = climb_and_landing(1.0)
    assert time_off_ground(Flight({}, Path("made"), "px4-ulog"), AIRBORNE, 0.3) == AIRBORNE
    assert time_off_ground(flight(low, 3.0, 17.0), AIRBORNE, 0.3) == AIRBORNE, "begins and ends in the air"
    [(start, end)] = time_off_ground(flight(low, 0.0, 17.0), AIRBORNE, 0.3)
    assert (start, end) == (pytest.approx(4.5, abs=0.05), 17.0)
    assert time_off_ground(flight(climb_and_landing(0.2)), AIRBORNE, 0.3) == AIRBORNE, "a low flight"


def test_the_height_is_that_of_rotors_side_by_side() -> None:
    square = 0.1 * np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])
    assert height_of_ground_effect(square) == pytest.approx(0.18)
    coaxial = np.concatenate([square, square - [0.0, 0.0, 0.05]])
    assert height_of_ground_effect(coaxial) == pytest.approx(0.18)
    assert height_of_ground_effect(np.zeros((1, 3))) == 0.0
