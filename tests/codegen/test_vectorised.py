"""Rows and windows side by side are CasADi's own, to the last bits, wherever they lie."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rotorid.codegen import vectorised as module
from rotorid.codegen.native import BuildError, compiler
from rotorid.codegen.vectorised import LANES, compile_over_rows, compile_over_windows

a, b, c = ca.SX.sym("a", 3), ca.SX.sym("b", 2, 2), ca.SX.sym("c")
FUNCTION = ca.Function(
    "f",
    [a, b, c],
    [ca.horzcat(ca.mtimes(b, a[:2]), ca.vertcat(ca.sin(a[2]) * c, 0.0), ca.if_else(c > 0, a[:2], b[:, 1]))],
)

state, first, column, shared = (
    ca.SX.sym("state", 2),
    ca.SX.sym("first"),
    ca.SX.sym("column", 3),
    ca.SX.sym("k"),
)
AFTER = ca.if_else(first > 0, state, ca.vertcat(shared * state[1], ca.sin(state[0]) + column[0]))
ROW = ca.Function("row", [shared, state, first, column], [ca.vertcat(AFTER, AFTER[0] * column[2])])


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


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("w", [1, LANES, LANES + 3])
def test_it_goes_through_windows_row_after_row(w: int) -> None:
    quick = compile_over_windows(ROW, (2, 1))
    assert quick is not None
    rng = np.random.default_rng(w)
    starts, columns = rng.normal(size=(w, 2)), rng.normal(size=(w, 5, 3))
    after, results = np.empty((w, 5, 2)), np.empty((w, 5, 1))
    quick((after, results), np.array(0.5), starts, columns)
    for i in range(w):
        x = starts[i]
        for k in range(5):
            found = ROW(0.5, x, float(k == 0), columns[i, k]).full().ravel()
            x = found[:2]
            np.testing.assert_allclose(after[i, k], x, rtol=1e-14)
            np.testing.assert_allclose(results[i, k], found[2:], rtol=1e-14)
    own = np.empty((1, 5, 2)), np.empty((1, 5, 1))
    quick(own, np.array(0.5), starts[-1:], columns[-1:])
    np.testing.assert_array_equal(own[0][0], after[-1])


def test_it_is_none_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise BuildError("no C compiler found")

    monkeypatch.setattr(module, "build", none)
    assert compile_over_rows(FUNCTION) is None
    assert compile_over_windows(ROW, (2, 1)) is None
