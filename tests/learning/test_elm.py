"""ELM and OS-ELM compared with scikit-learn's ridge regression, weighted least squares, and their own laws."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from rotorid.learning.elm import ELMRegressor, OSELMRegressor
from rotorid.learning.hidden_layer import ACTIVATIONS, BLOCK


@parametrize_with_checks(
    [
        ELMRegressor(hidden=40, random_state=0),
        ELMRegressor(hidden=40, alpha=1e-3, random_state=0),
        OSELMRegressor(hidden=40, random_state=0),
        OSELMRegressor(hidden=40, alpha=0.0, random_state=0),
        OSELMRegressor(hidden=40, forgetting=0.99, random_state=0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def problem(n=600, inputs=4, outputs=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, inputs)) * [1.0, 1e-3, 1e4, 5.0][:inputs] + [0.0, 1.0, -3e4, 2.0][:inputs]
    S = (X - X.mean(axis=0)) / X.std(axis=0)
    T = np.stack([np.sin(S[:, 0]) + S[:, 1], S[:, -1] * S[:, -2]], axis=1)[:, :outputs]
    return X, T + noise * rng.normal(size=T.shape)


def close(found, wanted, share=1e-8):
    np.testing.assert_allclose(found, wanted, rtol=share, atol=share * np.abs(wanted).max())


def chunks(n, *sizes):
    """Slices of the given sizes, the last size again and again until n."""
    start = k = 0
    while start < n:
        size = sizes[min(k, len(sizes) - 1)]
        yield slice(start, min(start + size, n))
        start, k = start + size, k + 1


# --- batch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", [*ACTIVATIONS, np.arctan])
@pytest.mark.parametrize("alpha", [1e-2, 10.0])
@pytest.mark.parametrize("n", [30, 600])
def test_regularised_is_ridge_on_the_hidden_layer(activation, alpha, n):
    X, T = problem(n)
    elm = ELMRegressor(60, activation, alpha, random_state=1).fit(X, T)
    H = elm.hidden_layer(X)
    ridge = Ridge(alpha, fit_intercept=False, solver="svd").fit(H, T)
    close(elm.output_weights_, ridge.coef_.T)
    close(elm.predict(X), ridge.predict(H))


@pytest.mark.parametrize("alpha", [1e-9, 1e-12])
def test_a_small_regularisation_is_as_accurate_as_the_singular_value_decomposition(alpha):
    """The normal equations lose all digits here, QR does not."""
    X, T = problem(500, inputs=2, outputs=1)
    elm = ELMRegressor(60, "gaussian", alpha, weight_scale=0.3, random_state=1).fit(X, T)
    H = elm.hidden_layer(X)
    squares = np.linalg.eigvalsh(H.T @ H)
    assert squares[0] < 1e-16 * squares[-1]
    U, s, Vt = np.linalg.svd(H, full_matrices=False)
    close(elm.predict(X), U @ ((s**2 / (s**2 + alpha))[:, None] * (U.T @ T)), 1e-8)
    close(elm.output_weights_, Vt.T @ ((s / (s**2 + alpha))[:, None] * (U.T @ T)), 1e-4)


@pytest.mark.parametrize("n", [20, 60, 600])
def test_plain_is_least_squares_of_least_norm(n):
    X, T = problem(n)
    elm = ELMRegressor(60, weight_scale=3.0, random_state=1).fit(X, T)
    H = elm.hidden_layer(X)
    close(elm.output_weights_, np.linalg.lstsq(H, T)[0])


def test_as_many_nodes_as_samples_interpolate():
    X, T = problem(80)
    elm = ELMRegressor(80, weight_scale=3.0, random_state=2).fit(X, T)
    close(elm.predict(X), T)
    assert np.all(np.isinf(elm.noise_variance_))
    assert np.all(np.isinf(elm.predict(X[:3], return_std=True)[1]))


def test_a_hidden_layer_of_equal_nodes_is_solved_with_least_norm():
    X, T = problem(200)
    flat = ELMRegressor(30, lambda x: np.ones_like(x)).fit(X, T)
    close(flat.predict(X), np.broadcast_to(T.mean(axis=0), T.shape))
    close(flat.output_weights_, np.broadcast_to(T.mean(axis=0) / 30, (30, 2)))
    assert np.all(np.isfinite(flat.noise_variance_))
    close(flat.noise_variance_, T.var(axis=0, ddof=1))


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_blocks_do_not_change_the_fit(alpha):
    """More rows than a block holds."""
    n = 2 * BLOCK // 20 + 7
    X, T = problem(n, outputs=1)
    elm = ELMRegressor(19, alpha=alpha, random_state=0).fit(X, T[:, 0])
    H = elm.hidden_layer(X)
    assert H.shape == (n, 19)
    close(elm.output_weights_, np.linalg.solve(H.T @ H + alpha * np.eye(19), H.T @ T[:, 0]))


def test_the_fit_is_invariant_to_units():
    X, T = problem()
    a = ELMRegressor(40, alpha=1e-3, random_state=0).fit(X, T)
    b = ELMRegressor(40, alpha=1e-3, random_state=0).fit(1e3 * X + 5.0, T)
    close(a.predict(X), b.predict(1e3 * X + 5.0), 1e-6)


def test_scaling():
    X, T = problem()
    given = ELMRegressor(40, alpha=1e-3, scaling=(X.mean(axis=0), X.std(axis=0)), random_state=0).fit(X, T)
    close(given.predict(X), ELMRegressor(40, alpha=1e-3, random_state=0).fit(X, T).predict(X))
    raw = ELMRegressor(40, alpha=1e-3, scaling=None, weight_scale=2.0, random_state=0).fit(X, T)
    close(raw.hidden_layer(X), 1.0 / (1.0 + np.exp(np.minimum(-X @ raw.input_weights_ - raw.bias_, 700.0))))


def test_constant_inputs_are_harmless():
    X, T = problem()
    X = np.column_stack([X, np.full(len(X), 0.1), np.zeros(len(X))])
    elm = ELMRegressor(100, alpha=1e-3, random_state=0).fit(X, T)
    assert elm.score(X, T) > 0.9
    np.testing.assert_allclose(elm.scale_[-2:], [0.1, 1.0])


# --- sequential -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-2, 1.0])
@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3, 50), (600,), (17,), (400, 1), (59, 1, 130)])
def test_chunks_give_the_fit_of_all_data(alpha, sizes):
    X, T = problem()
    scaling = (X.mean(axis=0), X.std(axis=0))
    wanted = ELMRegressor(60, alpha=alpha, weight_scale=3.0, random_state=1).fit(X, T)
    found = OSELMRegressor(60, alpha=alpha, scaling=scaling, weight_scale=3.0, random_state=1)
    for part in chunks(len(X), *sizes):
        found.partial_fit(X[part], T[part])
    close(found.output_weights_, wanted.output_weights_)
    close(found.predict(X, return_std=True)[1], wanted.predict(X, return_std=True)[1], 1e-7)


def test_the_first_chunk_scales():
    X, T = problem()
    found = OSELMRegressor(30, random_state=0).partial_fit(X[:100], T[:100]).partial_fit(X[100:], T[100:])
    close(found.mean_, X[:100].mean(axis=0))
    close(found.scale_, X[:100].std(axis=0))
    ridge = Ridge(1e-5, fit_intercept=False, solver="svd").fit(found.hidden_layer(X), T)
    close(found.predict(X), ridge.predict(found.hidden_layer(X)))


def test_first_sample_alone():
    X, T = problem()
    found = OSELMRegressor(30, alpha=1e-6, random_state=0)
    for i in range(3):
        found.partial_fit(X[i : i + 1], T[i : i + 1])
        mean, std = found.predict(X[: i + 1], return_std=True)
        close(mean, T[: i + 1], 1e-4)
        assert np.all(np.isfinite(std))
        assert np.all(std > 0)
    assert np.all(found.scale_ == np.abs(X[0]))


def test_fewer_samples_than_nodes_without_penalty():
    """Eq. 30 requires as many initial samples as nodes; with fewer samples the limit is the fit of least norm."""
    X, T = problem(25)
    found = OSELMRegressor(
        60, alpha=0.0, scaling=(X.mean(axis=0), X.std(axis=0)), weight_scale=3.0, random_state=0
    )
    for i in range(25):
        found.partial_fit(X[i : i + 1], T[i : i + 1])
        H = found.hidden_layer(X[: i + 1])
        close(found.output_weights_, np.linalg.lstsq(H, T[: i + 1])[0], 1e-7)


@pytest.mark.parametrize("sizes", [(1,), (1, 30, 7), (600,), (250, 5)])
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_forgetting_is_weighted_least_squares(sizes, alpha):
    X, T = problem()
    found = OSELMRegressor(
        40, alpha=alpha, forgetting=0.97, scaling=(X.mean(axis=0), X.std(axis=0)), random_state=0
    )
    for part in chunks(len(X), *sizes):
        found.partial_fit(X[part], T[part])
    weights = 0.97 ** np.arange(len(X) - 1.0, -1.0, -1.0)
    H = found.hidden_layer(X)
    ridge = Ridge(alpha, fit_intercept=False, solver="svd").fit(H, T, sample_weight=weights)
    close(found.output_weights_, ridge.coef_.T)


def test_forgetting_follows_a_change_and_never_winds_up():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (4000, 1))
    y = np.where(np.arange(4000) < 2000, X[:, 0], -X[:, 0]) + 0.01 * rng.normal(size=4000)
    found = OSELMRegressor(20, alpha=1e-4, forgetting=0.99, scaling=(0.0, 1.0), random_state=0).partial_fit(
        X, y
    )
    grid = np.linspace(-0.9, 0.9, 9)[:, None]
    np.testing.assert_allclose(found.predict(grid), -grid[:, 0], atol=0.02)
    still = np.full((50_000, 1), 0.3)
    found.partial_fit(still, -0.3 + 0.01 * rng.normal(size=50_000))
    mean, std = found.predict(np.array([[0.3], [-0.9]]), return_std=True)
    assert abs(mean[0] + 0.3) < 0.01
    assert std[1] > 10.0 * std[0]
    assert np.isfinite(std).all()


def test_a_hundred_thousand_single_samples():
    """The fit equals that of all data at once, and the covariance is symmetric and positive definite."""
    code = """
import numpy as np
from rotorid.learning import ELMRegressor, OSELMRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(100_000, 2))
y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))
found = OSELMRegressor(12, alpha=1e-6, scaling=(X.mean(axis=0), X.std(axis=0)), random_state=0)
for i in range(len(X)):
    found.partial_fit(X[i : i + 1], y[i : i + 1])
wanted = ELMRegressor(12, alpha=1e-6, random_state=0).fit(X, y)
beta = wanted.output_weights_
np.testing.assert_allclose(found.output_weights_, beta, rtol=1e-8, atol=1e-8 * np.abs(beta).max())
S = found._squares.solution().inverse_root
P, H = S @ S.T, found.hidden_layer(X)
assert np.array_equal(P, P.T) and np.linalg.eigvalsh(P)[0] > 0.0
K = H.T @ H + 1e-6 * np.eye(12)
np.testing.assert_allclose(S.T @ K @ S, np.eye(12), atol=1e-7)
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True
    )  # not under the type checks, which take most of the time


# --- how sure it is -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "regressor",
    [
        ELMRegressor(50, random_state=0),
        ELMRegressor(50, alpha=1e-4, random_state=0),
        OSELMRegressor(50, forgetting=0.995, alpha=1e-3, random_state=0),
    ],
)
def test_standard_deviation_is_that_of_the_noise(regressor):
    """z-scores of new measurements over many data sets have variance 1, also with few samples per node."""
    scores = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2.0, 2.0, (300, 1))
        new = rng.uniform(-1.9, 1.9, (200, 1))
        y, wanted = (
            np.stack([np.sin(2.0 * x[:, 0]), 100.0 * x[:, 0]], axis=1)
            + rng.normal(size=(len(x), 2)) * [0.2, 30.0]
            for x in (X, new)
        )
        mean, std = regressor.fit(X, y).predict(new, return_std=True)
        scores.append((wanted - mean) / std)
    scores = np.concatenate(scores)
    np.testing.assert_allclose(scores.std(axis=0), 1.0, atol=0.04)
    np.testing.assert_allclose((np.abs(scores) < 1.96).mean(axis=0), 0.95, atol=0.01)


def test_noise_variance():
    X, T = problem(5000, noise=0.3)
    elm = ELMRegressor(300, alpha=1e-6, random_state=0).fit(X, T)
    np.testing.assert_allclose(np.sqrt(elm.noise_variance_), 0.3, rtol=0.05)
    one = ELMRegressor(300, alpha=1e-6, random_state=0).fit(X, T[:, 0])
    assert isinstance(one.noise_variance_, float)
    mean, std = one.predict(X[:4], return_std=True)
    assert mean.shape == std.shape == (4,)
    assert one.output_weights_.shape == (300,)


# --- what cannot be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": 0}, "hidden=0"),
        ({"hidden": 2.5}, "hidden=2.5"),
        ({"activation": "step"}, "activation='step'.*sigmoid"),
        ({"activation": lambda x: x.sum(axis=1)}, "elementwise"),
        ({"activation": lambda x: np.where(x > 0.0, np.nan, x)}, "not finite"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"weight_scale": 0.0}, "weight_scale=0.0"),
        ({"scaling": "minmax"}, "scaling='minmax'"),
        ({"scaling": (0.0, 0.0)}, "scale above 0"),
        ({"scaling": (np.zeros(7), 1.0)}, "one for each of the 4 inputs"),
        ({"forgetting": 0.0}, "forgetting=0.0"),
        ({"forgetting": 1.1}, "forgetting=1.1"),
    ],
)
def test_invalid_settings_are_rejected(settings, words):
    X, T = problem(50)
    with pytest.raises(ValueError, match=words):
        OSELMRegressor(**settings).fit(X, T)
    if "forgetting" not in settings:
        with pytest.raises(ValueError, match=words):
            ELMRegressor(**settings).fit(X, T)


def test_invalid_data_are_rejected():
    X, T = problem(50)
    found = OSELMRegressor(10, random_state=0).partial_fit(X, T)
    before = found.output_weights_
    with pytest.raises(ValueError, match="NaN"):
        found.partial_fit(np.full((2, 4), np.nan), T[:2])
    with pytest.raises(ValueError, match="NaN"):
        found.partial_fit(X[:2], np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="3 features"):
        found.partial_fit(X[:, :3], T)
    with pytest.raises(ValueError, match="y has 1 outputs, but the previous chunks had 2"):
        found.partial_fit(X, T[:, 0])
    with pytest.raises(ValueError, match="too large"):
        ELMRegressor(10).fit(1e200 * X, T)
    assert np.array_equal(found.output_weights_, before)


def test_a_chunk_whose_last_row_fails_changes_nothing():
    """Also of more than one block."""
    X, T = problem(1000)
    rows = BLOCK // 602
    assert rows < len(X) < 2 * 600
    bad = OSELMRegressor(
        600, activation=lambda x: np.where(np.abs(x) > 1e6, np.nan, np.tanh(x)), random_state=0
    )
    bad.partial_fit(X, T)
    before = bad.output_weights_
    X[-1] *= 1e9
    with pytest.raises(ValueError, match="not finite"):
        bad.partial_fit(X, T)
    bad._squares._solution = None
    assert np.array_equal(bad.output_weights_, before)


def test_a_first_chunk_that_fails_leaves_nothing_behind():
    X, T = problem(50)
    found = OSELMRegressor(10, activation=lambda x: np.full_like(x, np.nan), random_state=0)
    with pytest.raises(ValueError, match="not finite"):
        found.partial_fit(X, T)
    found.set_params(activation="sigmoid").partial_fit(X[:, :2], T)
    assert found.predict(X[:, :2]).shape == (50, 2)


def test_training_continues_after_pickling():
    X, T = problem()
    found = OSELMRegressor(20, random_state=0).partial_fit(X[:300], T[:300])
    again = pickle.loads(pickle.dumps(found)).partial_fit(X[300:], T[300:])
    close(again.predict(X), found.partial_fit(X[300:], T[300:]).predict(X))
