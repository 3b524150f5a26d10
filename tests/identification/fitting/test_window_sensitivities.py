"""Rows of windows and their triangles in C against NumPy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.codegen.native import kernel
from rotorid.identification.fitting import window_sensitivities as module
from rotorid.identification.fitting.step_derivatives import StepDerivatives
from rotorid.identification.fitting.window_sensitivities import (
    InputDerivatives,
    WindowSlopes,
    window_sensitivities,
    window_triangles,
)

W, ROWS, N, M, OWN, FIRST, BY, INPUTS = 3, 40, 4, 5, 2, 3, 2, 6


@dataclasses.dataclass(frozen=True)
class Case:
    with_gain: bool
    driven: bool
    own: int = OWN
    more: int = 2

    @property
    def windows(self) -> WindowSlopes:
        rng = np.random.default_rng(1)
        numbers = self.own + (INPUTS if self.driven else 0)
        slopes = StepDerivatives(
            *(rng.normal(size=(W * ROWS, a, b)) / a for a in (N, M) for b in (N, numbers))
        )
        slopes.F[:, 0, 1] = 0.0
        inputs = None
        if self.driven:
            inputs = InputDerivatives(rng.normal(size=(W, ROWS, FIRST, BY)), (5, 3), INPUTS)
        weight = 1.0 * (rng.random((W, ROWS, M)) < 0.7)
        sigma, r = rng.uniform(0.5, 2.0, M), weight * rng.normal(size=(W, ROWS, M))
        return WindowSlopes(
            slopes, inputs, weight, sigma, r, 0.1 * rng.normal(size=(N, M)) if self.with_gain else None
        )

    @property
    def further(self) -> np.ndarray:
        columns = N + self.windows.number_count + 1
        return np.random.default_rng(2).normal(size=(W, self.more, columns))


CASES = [
    *(Case(gain, driven) for gain in (False, True) for driven in (False, True)),
    *(Case(True, True, own) for own in (7, 8, 20, 60)),  # vectors of columns
    *(Case(False, True, more=more) for more in (0, 64, 150)),  # rows that are reduced at a time
]


def second(windows: WindowSlopes) -> WindowSlopes:
    """The second window alone."""
    slopes, inputs, weight, sigma, r, K = windows
    return WindowSlopes(
        StepDerivatives(*(v[ROWS : 2 * ROWS] for v in slopes)),
        None if inputs is None else inputs._replace(derivatives=inputs.derivatives[1:2]),
        weight[1:2],
        sigma,
        r[1:2],
        K,
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_c_is_numpy(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    if kernel("sensitivities.c") is None:
        pytest.skip("no C compiler")
    windows, further = case.windows, case.further
    rows, triangles = window_sensitivities(windows), window_triangles(windows, further)
    np.testing.assert_array_equal(rows[1:2], window_sensitivities(second(windows)))  # whatever its neighbours
    np.testing.assert_array_equal(triangles[1:2], window_triangles(second(windows), further[1:2]))
    monkeypatch.setattr(module, "kernel", lambda file: None)
    np.testing.assert_allclose(rows, window_sensitivities(windows), rtol=1e-11, atol=1e-12)
    expected = window_triangles(windows, further)
    np.testing.assert_array_equal(triangles, np.triu(triangles))
    signs = np.sign(np.diagonal(triangles * expected, axis1=1, axis2=2))  # those of a triangle are free
    np.testing.assert_allclose(triangles, signs[..., None] * expected, rtol=1e-9, atol=1e-10)
    stacked = np.concatenate([rows, further], axis=1)
    squares = np.swapaxes(stacked, 1, 2) @ stacked
    np.testing.assert_allclose(np.swapaxes(triangles, 1, 2) @ triangles, squares, rtol=1e-10, atol=1e-10)


def test_without_rows() -> None:
    """Windows without a measurement have a triangle of zeros."""
    windows = Case(False, True).windows
    empty = windows._replace(weight=0.0 * windows.weight, r=0.0 * windows.r)
    np.testing.assert_array_equal(window_triangles(empty, np.zeros((W, 0, N + empty.number_count + 1))), 0.0)
