"""Filter, smoother and likelihood of dynamic linear models: against statsmodels, the joint normal density, and their laws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from rotorid.errors import SettingError
from rotorid.estimators.dlm.filter import (
    Filtered,
    Smoothed,
    dlm_filter,
    dlm_forecast,
    dlm_simulate,
    dlm_smooth,
)
from rotorid.estimators.dlm.likelihood import dlm_log_likelihood
from rotorid.models.dlm.model import Dlm, block_diagonal, dlm
from rotorid.models.dlm.terms import arma, regression, seasonal, trend

ROWS = 60
RNG = np.random.default_rng(7)
COUPLED = RNG.normal(size=(3, 3))


def models() -> dict[str, Dlm]:
    X = np.random.default_rng(1).normal(size=(ROWS, 2))
    return {
        "local level": trend(1, dV=1.5, dW=[0.1]),
        "local linear trend": trend(2, dV=1.5, dW=[0.1, 0.01], C0=1e4),
        "seasonal": trend(1, dV=1.0, dW=[0.1], C0=1e3) + seasonal(4, dV=0.0, dW=[0.05, 0, 0], C0=1e3),
        "regression": trend(1, dV=1.0, C0=1e4) + regression(X, False, dV=0.0, dW=[0.1, 0.0], C0=1e4),
        "multivariate": dlm(
            [1.0, 0.0, -1.0],
            10.0 * np.eye(3),
            RNG.normal(size=(2, 3)),
            [[1.0, 0.3], [0.3, 0.5]],
            0.4 * COUPLED,
            COUPLED @ COUPLED.T,
        ),
        "no measurement noise": arma([0.7, 0.1], [0.4], 1.3, stationary=True),
    }


def same_shape(model: Dlm) -> Dlm:
    """The model with states that show nowhere, five in all, an output that is never measured, and an F of every row.

    Models of one shape compile once.
    """
    more = 5 - len(model.states)
    m = 1 if model.outputs == 1 else 2
    unseen = dlm(
        np.zeros(more), np.eye(more), np.zeros((m, more)), np.eye(m), np.eye(more), 0.1 * np.eye(more)
    )
    model = block_diagonal(model, unseen) if m == 1 else model + unseen
    F = np.broadcast_to(model.F, (ROWS, *model.F.shape[-2:]))
    return dlm(model.m0, model.C0, F, model.V, model.G, model.W, tuple("abcde"))


def data(model: Dlm, *, gaps: bool) -> np.ndarray:
    """Numbers that wander; of a second output where the model has one."""
    y = np.cumsum(np.random.default_rng(3).normal(size=(ROWS, 2)), axis=0)
    if gaps:
        y[10:14] = np.nan
        y[30, 0] = np.nan
    y[-1, -1] = np.nan
    if model.outputs == 1:
        y[:, 1] = np.nan
    return y


def peer(model: Dlm, y: np.ndarray):
    """statsmodels on the same model; its first state is ours one step after m0, C0."""
    p, m = model.m0.shape[0], model.outputs
    found = KalmanSmoother(k_endog=m, k_states=p, k_posdef=p)
    found.bind(np.asfortranarray(y.T.copy()))
    for name, matrix in {
        "design": model.F,
        "obs_cov": model.V,
        "transition": model.G,
        "state_cov": model.W,
        "selection": jnp.eye(p),
    }.items():
        found[name] = np.array(matrix) if matrix.ndim == 2 else np.moveaxis(np.array(matrix), 0, -1)
    found.initialize_known(np.array(model.G @ model.m0), np.array(model.G @ model.C0 @ model.G.T + model.W))
    return found.smooth()


@jax.jit
def both(model: Dlm, y: jax.Array) -> tuple[Filtered, Smoothed]:
    return dlm_filter(model, y), dlm_smooth(model, y)


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_agrees_with_statsmodels(name: str, gaps: bool) -> None:
    y = data(models()[name], gaps=gaps)
    model = same_shape(models()[name])
    theirs, (filtered, smoothed) = peer(model, y), both(model, jnp.asarray(y))
    assert float(jnp.sum(filtered.log_likelihood)) == pytest.approx(theirs.llf, rel=1e-8)
    for ours, other in (
        (filtered.a, theirs.predicted_state[:, :-1]),
        (filtered.R, theirs.predicted_state_cov[..., :-1]),
        (filtered.m, theirs.filtered_state),
        (filtered.C, theirs.filtered_state_cov),
        (smoothed.s, theirs.smoothed_state),
        (smoothed.S, theirs.smoothed_state_cov),
    ):
        other = np.moveaxis(other, -1, 0)
        np.testing.assert_allclose(ours, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())


def joint(model: Dlm, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of all states and of all measurements, written out from the definition."""
    p, m = model.m0.shape[0], model.outputs
    F, V, G, W = (np.broadcast_to(x, (n, *x.shape[-2:])) for x in (model.F, model.V, model.G, model.W))
    power = [np.eye(p)]
    for t in range(n):
        power.append(G[t] @ power[-1])
    inputs = np.zeros((n * p, (n + 1) * p))
    for t in range(n):
        inputs[t * p : (t + 1) * p, :p] = power[t + 1]
        moved = np.eye(p)
        for k in range(t, -1, -1):
            inputs[t * p : (t + 1) * p, (k + 1) * p : (k + 2) * p] = moved
            moved = moved @ G[k]
    noise = np.zeros(((n + 1) * p,) * 2)
    noise[:p, :p] = model.C0
    sees, errors = np.zeros((n * m, n * p)), np.zeros((n * m, n * m))
    for t in range(n):
        noise[(t + 1) * p : (t + 2) * p, (t + 1) * p : (t + 2) * p] = W[t]
        sees[t * m : (t + 1) * m, t * p : (t + 1) * p] = F[t]
        errors[t * m : (t + 1) * m, t * m : (t + 1) * m] = V[t]
    mean = inputs[:, :p] @ np.asarray(model.m0)
    return mean, inputs @ noise @ inputs.T, sees, errors


@pytest.mark.parametrize("singular", [False, True], ids=["regular", "singular"])
def test_likelihood_equals_the_joint_normal_density(singular: bool) -> None:
    """All matrices change; singular: G, W and V are, and a cell is missing."""
    n, p, m = 6, 3, 2
    rng = np.random.default_rng(5)
    roots = {k: rng.normal(size=(n, d, 1 if singular else d)) for k, d in (("V", m), ("W", p))}
    V, W = (r @ np.swapaxes(r, 1, 2) for r in (roots["V"], roots["W"]))
    G = rng.normal(size=(n, p, p)) * ([[1.0], [1.0], [0.0]] if singular else 1.0)
    model = dlm(rng.normal(size=p), np.eye(p), rng.normal(size=(n, m, p)), V, G, W)
    mean, P, sees, errors = joint(model, n)
    y = sees @ mean + np.linalg.cholesky(sees @ P @ sees.T + errors) @ rng.normal(size=n * m)
    seen = np.ones(n * m, bool)
    seen[[3, 6, 7]] = not singular
    H = sees[seen]
    Q = H @ P @ H.T + errors[np.ix_(seen, seen)]
    e = y[seen] - H @ mean
    _, logdet = np.linalg.slogdet(Q)
    density = -0.5 * (logdet + e @ np.linalg.solve(Q, e) + len(e) * np.log(2 * np.pi))
    K = P @ H.T @ np.linalg.inv(Q)
    smoothed = dlm_smooth(model, np.where(seen, y, np.nan).reshape(n, m))
    assert float(dlm_log_likelihood(model, np.where(seen, y, np.nan).reshape(n, m))) == pytest.approx(
        density, rel=1e-9
    )
    np.testing.assert_allclose(smoothed.s.ravel(), mean + K @ e, rtol=1e-7, atol=1e-9)
    S = P - K @ H @ P
    for t in range(n):
        block = slice(t * p, (t + 1) * p)
        np.testing.assert_allclose(smoothed.S[t], S[block, block], rtol=1e-6, atol=1e-8)


def test_no_digits_are_lost_after_a_diffuse_prior() -> None:
    """C0 = 1e7: a line through the data is that of least squares; a level's variance is the same at both ends."""
    t = np.arange(1.0, 21.0)
    A = np.stack([np.ones(20), t - 20.0], axis=1)
    S = dlm_smooth(trend(2, dV=1.0, dW=[0.0, 0.0]), 3.0 * t + 2.0).S
    np.testing.assert_allclose(S[-1], np.linalg.inv(A.T @ A), rtol=1e-6)
    nothing = dlm(
        [0, 0], [[1e7, 0], [0, 0]], [1, 0], 1.5, [[1, 0], [0, 1]], [[0.1, 0], [0, 0]], ("level", "slope")
    )
    S = dlm_smooth(nothing, 3.0 * t + 2.0).S[:, 0, 0]
    np.testing.assert_allclose(S, S[::-1], rtol=1e-6)


def test_missing_rows_are_forecasts() -> None:
    model = models()["local level"]
    longer = dlm_filter(model, np.concatenate([np.arange(15.0), np.full(5, np.nan)]))
    ahead = dlm_forecast(model, longer.m[14], longer.C[14], 5)
    for ours, other in zip(ahead, longer[:4], strict=True):
        np.testing.assert_allclose(ours, other[-5:], rtol=1e-12)
    assert np.all(np.asarray(longer.log_likelihood[-5:]) == 0.0)
    assert np.all(np.isnan(longer.standardised[-5:]))


def test_laws_of_the_filter() -> None:
    """Independent models block_diagonal each other; a scaled unit; a measurement that nothing but itself says."""
    one, two = trend(1, dV=1.0, dW=[0.3], C0=10.0), trend(1, dV=2.0, dW=[0.1], C0=5.0)
    y = np.random.default_rng(2).normal(size=(20, 2))
    density = dlm_log_likelihood
    apart = float(density(one, y[:, 0]) + density(two, y[:, 1]))
    assert float(density(block_diagonal(one, two), y)) == pytest.approx(apart, rel=1e-12)
    scaled = trend(1, dV=100.0, dW=[30.0], C0=1000.0)
    assert float(density(scaled, 10.0 * y[:, 0])) == pytest.approx(
        float(density(one, y[:, 0])) - 20 * np.log(10.0), rel=1e-12
    )
    copied = dlm(0.0, 10.0, [[1.0], [1.0]], [[1.0, 1.0], [1.0, 1.0]], 1.0, 0.3)  # the same number twice
    twice = np.repeat(y[:, :1], 2, axis=1)
    assert float(density(copied, twice)) == pytest.approx(float(density(one, y[:, 0])), rel=1e-12)
    assert float(density(copied, y)) == -np.inf


def test_outputs_at_once_equal_outputs_one_by_one() -> None:
    """Eight outputs go through a loop, the same eight one model each do not."""
    y = np.random.default_rng(3).normal(size=(12, 8))
    single = [trend(1, dV=1.0 + k, dW=[0.3], C0=10.0) for k in range(8)]
    model = single[0]
    for other in single[1:]:
        model = block_diagonal(model, other)
    apart = sum(float(dlm_log_likelihood(s, y[:, k])) for k, s in enumerate(single))
    assert float(dlm_log_likelihood(model, y)) == pytest.approx(apart, rel=1e-12)


def test_gradients_are_those_of_differences_also_where_variances_are_zero() -> None:
    y = np.array([0.3, 1.1, np.nan, 0.2, -0.8, 0.4, 1.9, 0.1, 0.5, -0.3, 0.7, 0.2])

    def value(q):
        return dlm_log_likelihood(trend(1, dV=q[0], dW=q[1:], C0=1e4), y)

    slopes, curves = jax.jit(jax.grad(value)), jax.jit(jax.jacfwd(jax.jacfwd(value)))
    for point in ([0.5, 0.1], [0.5, 0.0], [0.0, 0.5]):
        at = jnp.array(point)
        gradient, hessian = slopes(at), curves(at)
        for k in range(2):
            step = 1e-5 * jnp.eye(2)[k]
            # of the point and two ahead, as a variance cannot be less than 0: to second order
            ahead = (-3.0 * value(at) + 4.0 * value(at + step) - value(at + 2.0 * step)) / 2e-5
            assert float(gradient[k]) == pytest.approx(float(ahead), rel=1e-4, abs=1e-4)
            ahead = (-3.0 * slopes(at) + 4.0 * slopes(at + step) - slopes(at + 2.0 * step)) / 2e-5
            np.testing.assert_allclose(hessian[k], ahead, rtol=1e-4, atol=1e-4)


def test_a_gradient_through_the_smoother() -> None:
    y = np.array([0.3, 1.1, np.nan, 0.2, -0.8, 0.4])

    def spread(v):
        found = dlm_smooth(trend(1, dV=v, dW=[0.5], C0=1e4), y)
        return jnp.sum(found.s) + jnp.sum(found.S)

    change = (spread(1.0 + 1e-5) - spread(1.0 - 1e-5)) / 2e-5
    assert float(jax.grad(spread)(1.0)) == pytest.approx(float(change), rel=1e-6)


def test_many_at_once_and_the_innovations_are_white() -> None:
    model = models()["local level"]
    _, y = jax.vmap(lambda key: dlm_simulate(model, ROWS, key))(jax.random.split(jax.random.key(0), 100))
    found = jax.jit(jax.vmap(dlm_filter, (None, 0)))(model, y)
    z = np.asarray(found.standardised)[..., 0]
    assert abs(float((z**2).mean()) - 1.0) < 4.0 * np.sqrt(2.0 / z.size)
    assert abs(float((z[:, 1:] * z[:, :-1]).mean())) < 4.0 / np.sqrt(z.size)
    alone = dlm_filter(model, y[3])
    np.testing.assert_allclose(found.m[3], alone.m, rtol=1e-9, atol=1e-12)
    densities = -0.5 * (z**2 + np.log(2 * np.pi * np.asarray(found.Q)[:, :, 0, 0]))
    np.testing.assert_allclose(found.log_likelihood, densities, rtol=1e-12, atol=1e-12)


def test_inconsistent_arguments_raise() -> None:
    model = regression(np.ones((5, 1)))
    with pytest.raises(SettingError, match="y is 5 x 2; this model measures 1 a row"):
        dlm_filter(model, np.zeros((5, 2)))
    with pytest.raises(SettingError, match="change over 5 rows of time, and there are 6 of data"):
        dlm_log_likelihood(model, np.zeros(6))
