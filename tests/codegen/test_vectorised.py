"""Rows side by side are CasADi's own, to the last bits, wherever they lie."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rotorid.codegen import vectorised as module
from rotorid.codegen.native import BuildError, compiler
from rotorid.codegen.vectorised import LANES, compile_over_rows

a, b, c = ca.SX.sym("a", 3), ca.SX.sym("b", 2, 2), ca.SX.sym("c")
FUNCTION = ca.Function(
    "f",
    [a, b, c],
    [ca.horzcat(ca.mtimes(b, a[:2]), ca.vertcat(ca.sin(a[2]) * c, 0.0), ca.if_else(c > 0, a[:2], b[:, 1]))],
)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("n", [1, LANES - 1, 3 * LANES + 2])
def test_it_equals_the_function_of_each_row(n: int) -> None:
    quick = compile_over_rows(FUNCTION)
    assert quick is not None
    rng = np.random.default_rng(n)
    x, shared, y = rng.normal(size=(n, 3)), rng.normal(size=4), rng.normal(size=n)
    found = quick(x, shared, y)
    one = [FUNCTION(x[k], shared.reshape(2, 2).T, y[k]).full().ravel("F") for k in range(n)]
    np.testing.assert_allclose(found, one, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(found[n // 2 :], quick(x[n // 2 :], shared, y[n // 2 :]))


def test_it_is_none_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise BuildError("no C compiler found")

    monkeypatch.setattr(module, "build", none)
    assert compile_over_rows(FUNCTION) is None
