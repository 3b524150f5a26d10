"""Maximum likelihood in the study of the LPV quadrotor, on few data."""

from __future__ import annotations

import math

from rotorid.studies.lpv.likelihood import TRUE, data_length, first_test, varying_test


def test_the_first_test_of_the_seed() -> None:
    found = first_test([0, 1], rows=300)
    for one in found:
        assert one.converged
        assert set(one.values) == set(TRUE)
        for name, true in TRUE.items():
            assert abs(one.values[name] - true) < 4.0 * one.std[name]
            assert one.relative[name] == abs(one.values[name] / true - 1.0)
    assert found[0].values != found[1].values


def test_a_varying_parameter() -> None:
    (found,) = varying_test([2], rows=300)
    assert abs(found.constant.values["x1"] - 0.75) < 0.2
    for name, true in (("x1c", 0.6), ("x1t", 0.1)):
        assert abs(found.varying.values[name] - true) < 4.0 * found.varying.std[name]
    assert found.gain > -1e-6  # the constant model is a special case


def test_more_data_give_smaller_errors() -> None:
    few, more = data_length([40, 160], [0], inputs="measured")
    assert (few.rows, more.rows) == (40, 160)
    assert few.failed == more.failed == 0
    assert more.predicted[0] < 0.75 * few.predicted[0]
    for length in (few, more):
        assert math.isfinite(length.median)
        assert length.largest < 4.0 * length.predicted[0]
