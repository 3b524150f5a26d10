"""Dynamic linear models: their matrices against R's, the laws of their sum, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.models.dlm.model import block_diagonal, dlm
from rotorid.models.dlm.terms import arma, regression, seasonal, trend, trigonometric

WALK = {"m0": 0.0, "C0": 10.0, "F": 1.0, "V": 1.4, "G": 1.0, "W": 0.2}
PAIR = {"m0": [0, 0], "C0": np.eye(2), "F": [1, 0], "V": 1.0, "G": np.eye(2), "W": np.eye(2)}


def test_a_model_from_numbers() -> None:
    model = dlm(**WALK)
    for matrix, value in ((model.C0, 10.0), (model.F, 1.0), (model.V, 1.4), (model.G, 1.0), (model.W, 0.2)):
        assert matrix.tolist() == [[value]]
    assert (model.outputs, model.length, model.states) == (1, None, ("theta_1",))


def test_the_matrices_are_those_of_r() -> None:
    """As R's dlmModPoly(3), dlmModSeas(4), dlmModTrig(4), dlmModARMA(c(.5, .2), c(.4, .3), 2) print them."""
    poly, seas, trig = trend(3), seasonal(4), trigonometric(4)
    assert poly.G.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    assert poly.F.tolist() == [[1, 0, 0]]
    assert poly.W.tolist() == np.diag([0.0, 0.0, 1.0]).tolist()
    assert poly.C0.tolist() == np.diag([1e7] * 3).tolist()
    assert seas.G.tolist() == [[-1, -1, -1], [1, 0, 0], [0, 1, 0]]
    assert seas.W.tolist() == np.diag([1.0, 0.0, 0.0]).tolist()
    np.testing.assert_allclose(trig.G, [[0, 1, 0], [-1, 0, 0], [0, 0, -1]], atol=1e-15)
    assert trig.F.tolist() == [[1, 0, 1]]
    process = arma([0.5, 0.2], [0.4, 0.3], 2.0)
    assert process.G.tolist() == [[0.5, 1, 0], [0.2, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(process.W, 2.0 * np.outer([1, 0.4, 0.3], [1, 0.4, 0.3]))
    assert regression([[2.0], [3.0]]).F.tolist() == [[[1, 2]], [[1, 3]]]


@pytest.mark.parametrize("make", [seasonal, trigonometric], ids=lambda f: f.__name__)
@pytest.mark.parametrize("period", [2, 5, 12])
def test_seasons_repeat_and_sum_to_zero(make, period: int) -> None:
    model = make(period)
    assert len(model.states) == period - 1
    theta, seen = np.random.default_rng(period).normal(size=period - 1), []
    for _ in range(2 * period):
        theta = np.asarray(model.G) @ theta
        seen.append(float((np.asarray(model.F) @ theta)[0]))
    np.testing.assert_allclose(seen[:period], seen[period:], atol=1e-12)
    assert abs(sum(seen[:period])) < 1e-12


def test_a_period_that_is_no_whole_number() -> None:
    model = trigonometric(7.5, 2)
    turned = np.linalg.matrix_power(np.asarray(model.G), 15)
    np.testing.assert_allclose(turned, np.eye(4), atol=1e-12)
    with pytest.raises(SettingError, match=r"7\.5 rows has 3 harmonics, not 4"):
        trigonometric(7.5, 4)


def test_a_sum_concatenates_the_states() -> None:
    X = np.arange(6.0).reshape(3, 2)
    model = trend(2, dV=3.0) + seasonal(3, dV=0.0) + regression(X, intercept=False, dV=0.0)
    assert model.states == ("level", "slope", "season_1", "season_2", "coefficient_1", "coefficient_2")
    assert model.V.tolist() == [[3.0]]
    assert model.F.shape == (3, 1, 6)
    assert model.F[1].tolist() == [[1, 0, 1, 0, 2, 3]]
    np.testing.assert_array_equal(model.G[:2, :2], trend(2).G)
    np.testing.assert_array_equal(model.G[2:4, 2:4], seasonal(3).G)
    assert float(jnp.abs(model.G[:2, 2:]).sum()) == 0.0
    assert (trend(1) + trend(1)).states == ("level", "level_2")
    pair = block_diagonal(trend(1, dV=2.0), trend(2, dV=3.0))
    assert pair.V.tolist() == [[2, 0], [0, 3]]
    assert pair.F.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_the_stationary_covariance_is_invariant() -> None:
    model = arma([0.5, 0.2], [0.4], 2.0, stationary=True)
    np.testing.assert_allclose(model.G @ model.C0 @ model.G.T + model.W, model.C0, rtol=1e-12)
    np.testing.assert_allclose(arma([0.8], (), 2.0, stationary=True).C0, [[2.0 / (1.0 - 0.64)]], rtol=1e-12)


def test_a_model_is_made_inside_of_jax() -> None:
    def entry(v):
        return (trend(2, dV=v) + arma([0.5], (), v)).V[0, 0] + dlm(**(WALK | {"W": v})).W[0, 0]

    assert float(jax.jit(jax.grad(entry))(2.0)) == 2.0
    assert jax.vmap(entry)(jnp.array([1.0, 2.0])).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m0": np.eye(2)}, "m0 is 2 x 2; it must be one row of numbers"),
        ({"F": [1, 0, 0]}, "F is 1 x 3; with 2 states in m0 it must be outputs x 2, or times x outputs x 2"),
        ({"V": np.eye(2)}, "V is 2 x 2; with 1 output it must be 1 x 1, or times x 1 x 1"),
        ({"G": 1.0}, "G is one number; with 2 states it must be 2 x 2, or times x 2 x 2"),
        ({"W": np.eye(3)}, "W is 3 x 3; with 2 states it must be 2 x 2, or times x 2 x 2"),
        ({"C0": np.ones((4, 2, 2))}, "C0 is 4 x 2 x 2; with 2 states it must be 2 x 2"),
        (
            {"G": np.ones((4, 2, 2)), "V": np.ones((5, 1, 1))},
            "as many rows of time as each other; here V 5, G 4",
        ),
        ({"W": [[1, 2], [2, 1]]}, "W is not positive semidefinite (least eigenvalue -1)"),
        ({"V": -1.0}, "V is not positive semidefinite (least eigenvalue -1)"),
        ({"C0": [[1, 0.5], [0, 1]]}, "C0 is not symmetric, so it is no covariance"),
        ({"G": [[1, np.nan], [0, 1]]}, "G holds a number that is not finite"),
        ({"G": [[1, 2], [0]]}, "G must be numbers in rows of equal length"),
        ({"states": ("level",)}, "1 name for 2 states; give one a state"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_errors_are_one_line(change: dict, words: str) -> None:
    with pytest.raises(SettingError) as error:
        dlm(**(PAIR | change))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_invalid_terms_raise() -> None:
    for make, words in (
        (lambda: trend(0), "order must be a whole number of at least 1"),
        (lambda: seasonal(1), "frequency must be a whole number of at least 2"),
        (lambda: trend(2, dW=[1.0]), "dW has 1 variances; this term has 2 states"),
        (lambda: trigonometric(1.0), "period of a trigonometric term must be more than 1 row"),
        (lambda: regression([[1.0], [np.nan]]), "a regressor must be known in every row"),
        (lambda: regression(np.ones((3, 1, 1))), "X must be a table"),
        (lambda: regression(np.ones(3)) + regression(np.ones(4)), "change over 3 and 4 rows of time"),
        (lambda: block_diagonal(trend(1), trend(1)) + trend(1), "models of 2 and 1 outputs cannot be added"),
    ):
        with pytest.raises(SettingError, match=words.replace("(", r"\(")):
            make()
