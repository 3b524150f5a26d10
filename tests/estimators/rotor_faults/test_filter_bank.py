"""The filters of the torque balance in C and in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.estimators.rotor_faults.filter_bank import FilterBank

_NAMES = (
    "x", "P", "R", "likelihood", "correlation", "power", "last_e", "correlation_before", "power_before", "R_before",
    "rows_since", "E", "lagged_E", "onsets", "S", "D", "last_nu", "lagged_S", "lagged_D", "xi",
)  # fmt: skip


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("rotors", [4, 6])
def test_c_and_numpy_give_the_same_numbers(rotors: int) -> None:
    rng = np.random.default_rng(rotors)
    g = rng.standard_normal((3, rotors))
    has_torque = rng.random((3, rotors)) < 0.8
    compiled, other = (FilterBank(g, 2.5, 12) for _ in range(2))
    assert compiled._in_c is not None
    other._in_c = None
    for k in range(60):
        thrust = 2.5 + 0.3 * rng.standard_normal(rotors)
        acceleration, rate, products = rng.standard_normal((3, 3))
        loss = (3, 1, 0.4) if 40 <= k < 50 else None
        for bank in (compiled, other):
            bank.step(
                0.05 * k, 0.05, acceleration, thrust, rate, products, is_onset=k >= 10 and k < 40, loss=loss
            )
            if k == 50:
                bank.restore_noise(3)
                bank.compensate(3, 1, 0.4, 0.02)
            if k == 30:
                bank.kept = 2
        assert compiled.most_evidence(has_torque) == pytest.approx(other.most_evidence(has_torque), rel=1e-9)
        for kind in (0, 1):
            for a, b in zip(compiled.statistics(kind), other.statistics(kind), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)
    assert compiled.most_evidence(has_torque) == 0.0
    assert np.nanmax(np.abs(compiled.x)) > 0.1
    for name in _NAMES:
        np.testing.assert_allclose(
            getattr(compiled, name), getattr(other, name), rtol=1e-8, atol=1e-12, err_msg=name
        )
