"""The band of the mass in gusts: the drag along the rotor axis times their standard deviation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rotorid.live.estimation.gust_error import GustError
from rotorid.simulation.wind import draw_wind

NAMES = ("mass", "axial_drag_ratio", "wind_force_x", "wind_force_y")
STEP, WEIGHT, RATIO = 0.02, 20.0, 1.5


def band(forces: np.ndarray, std: float) -> float:
    error = GustError(NAMES, WEIGHT)
    stds = np.array([0.1, 0.1, std, std])
    return [error.update(STEP, np.array([2.0, RATIO, *force]), stds) for force in forces][-1]


def test_gusts_widen_the_band_and_a_steady_wind_does_not() -> None:
    steady = np.full((3000, 2), 4.0)
    assert band(steady, 0.1) == 0.0
    for sigma in (0.2, 0.6):
        gusts = steady + draw_wind((0.0,) * 3, (sigma,) * 3, (0.5,) * 3, 3000, STEP, [1])[:, :2]
        assert band(gusts, 1e-3) == pytest.approx(0.7 * RATIO * sigma / WEIGHT, rel=0.3)
        assert band(gusts, 2.0 * sigma) == 0.0  # within the noise of the estimate


def test_a_system_without_wind_has_none() -> None:
    error = GustError(("mass",), WEIGHT)
    assert error.update(STEP, np.array([2.0]), np.array([0.1])) == 0.0
    error = GustError(NAMES, WEIGHT)
    assert error.update(STEP, np.array([2.0, RATIO, math.nan, 0.0]), np.full(4, 0.1)) == 0.0
