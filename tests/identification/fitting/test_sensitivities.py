"""The rows of windows in C are those of the recursion in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.identification.fitting import sensitivities as module
from rotorid.identification.fitting.sensitivities import InputDerivatives, window_sensitivities
from rotorid.identification.fitting.step_derivatives import StepDerivatives

W, ROWS, N, M, OWN, FIRST, BY, INPUTS = 3, 7, 4, 5, 2, 3, 2, 6


@pytest.mark.parametrize("with_gain", [False, True])
@pytest.mark.parametrize("driven", [False, True])
def test_c_is_numpy(monkeypatch: pytest.MonkeyPatch, with_gain: bool, driven: bool) -> None:
    rng = np.random.default_rng(1)
    numbers = OWN + (INPUTS if driven else 0)
    slopes = StepDerivatives(*(rng.normal(size=(W * ROWS, a, b)) for a in (N, M) for b in (N, numbers)))
    slopes.F[:, 0, 1] = 0.0
    moved = InputDerivatives(rng.normal(size=(W, ROWS, FIRST, BY)), (5, 3), INPUTS) if driven else None
    weight = 1.0 * (rng.random((W, ROWS, M)) < 0.7)
    sigma, r = rng.uniform(0.5, 2.0, M), rng.normal(size=(W, ROWS, M))
    K = 0.1 * rng.normal(size=(N, M)) if with_gain else None
    if module._library() is None:
        pytest.skip("no C compiler")
    found = window_sensitivities(slopes, moved, weight, sigma, r, K)
    of_one = StepDerivatives(*(v[ROWS : 2 * ROWS] for v in slopes))
    alone = None if moved is None else moved._replace(derivatives=moved.derivatives[1:2])
    np.testing.assert_array_equal(
        found[1:2], window_sensitivities(of_one, alone, weight[1:2], sigma, r[1:2], K)
    )  # whatever its neighbours
    monkeypatch.setattr(module, "_library", lambda: None)
    np.testing.assert_allclose(
        found, window_sensitivities(slopes, moved, weight, sigma, r, K), rtol=1e-11, atol=1e-12
    )
