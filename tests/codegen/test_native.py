"""Machine code of CasADi's functions."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rotorid.codegen import native


def test_machine_code_gives_the_same_bits(monkeypatch):
    if native.compiler() is None:
        pytest.skip("no C compiler here")
    a, b = ca.SX.sym("a", 3), ca.SX.sym("b", 3)
    function = ca.Function(
        "some", [a, b], [ca.cross(a, b) / ca.norm_2(a), ca.atan2(a[0], b[0]), ca.sin(a) * b]
    )
    fast = native.compiled(function)
    assert fast.class_name() != function.class_name()
    for x, y in np.random.default_rng(0).standard_normal((200, 2, 3)):
        for expected, found in zip(function(x, y), fast(x, y), strict=True):
            np.testing.assert_array_equal(np.array(expected), np.array(found))

    def absent(*_):
        raise native.BuildError("no C compiler found")

    monkeypatch.setattr(native, "build", absent)
    assert native.compiled(function) is function
