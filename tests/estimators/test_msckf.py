"""The MSCKF counts every measurement once, however often it uses it."""

import equinox as eqx
import jax
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.msckf import msckf
from rotorid.estimators.run import Stream, run
from rotorid.signals.samples import Samples
from tests.estimators import test_health
from tests.estimators.test_compiled import troubled
from tests.systems import SYSTEMS, Cart, matched


@pytest.mark.parametrize("name", ["pendulum", "bare"])
def test_with_a_window_of_one_it_is_the_ekf(name):
    one, filter_ = msckf(SYSTEMS[name], window=1), ekf(SYSTEMS[name])
    samples = troubled(matched(filter_, seed=11, steps=250)[0])
    a, b = run(one, samples), run(filter_, samples)
    for found, expected in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def stepped(filter_, samples):
    """The states after every sample."""
    stream, states = Stream(filter_), []
    for k in range(len(samples.t)):
        stream.step(jax.tree.map(lambda leaf, k=k: np.asarray(leaf[k]), samples))
        states.append(stream.state)
    return states


def conditioned(samples, k, shares):
    """Means and covariance of the cart's x_0 .. x_k given all measurements until then, all at once.

    x = (position, velocity, push), the push constant. A measurement after which j rows measured something has the noise
    R / (s_0 + .. + s_j).
    """
    m, Q = 2.0, np.diag([0.02, 0.05, 0.0]) ** 2
    H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, -0.5]])
    counted = np.concatenate([np.cumsum(shares), np.ones(k + 1)])
    mean, P = np.zeros((k + 1, 3)), np.zeros((k + 1, 3, k + 1, 3))
    mean[0], P[0, :, 0] = [float(samples.y[0, 0]), 0.0, 0.5], np.diag([2.0, 1.0, 1.0]) ** 2
    for i in range(1, k + 1):
        dt, u = float(samples.dt[i]), float(samples.u[i, 0])
        F = np.array([[1.0, dt, dt**2 / 2 / m], [0.0, 1.0, dt / m], [0.0, 0.0, 1.0]])
        mean[i] = F @ mean[i - 1] + np.array([dt**2 / 2, dt, 0.0]) * u / m
        P[i, :, :i] = np.einsum("ab,bjc->ajc", F, P[i - 1, :, :i])
        P[:i, :, i] = np.einsum("ajc->jca", P[i, :, :i])
        P[i, :, i] = F @ P[i - 1, :, i - 1] @ F.T + Q * dt
    mask = np.asarray(samples.mask[: k + 1])
    after = mask.any(axis=1).sum() - np.cumsum(mask.any(axis=1))
    R = np.array([0.1, 0.2, 0.3]) ** 2 / counted[after][:, None]
    used, n = mask.ravel(), 3 * (k + 1)
    mean, P = mean.ravel(), P.reshape(n, n)
    H, r, y = np.kron(np.eye(k + 1), H)[used], R.ravel()[used], np.asarray(samples.y[: k + 1]).ravel()[used]
    K = np.linalg.solve(H @ P @ H.T + np.diag(r), H @ P).T
    return (mean + K @ (y - H @ mean)).reshape(k + 1, 3), (P - K @ H @ P).reshape(k + 1, 3, k + 1, 3)


@pytest.mark.parametrize("shares", [(0.2, 0.2, 0.2, 0.4), (1.0,)])
def test_on_a_linear_system_a_measurement_counts_by_the_shares_used_so_far(shares):
    """Head and clones are those of the smoother with R over the sum of the shares used; blind rows use none."""
    push = Cart.parameters[0].with_prior(drift=0.0)
    filter_ = msckf(Cart(), shares=shares, priors={"push": push}, gate=1e6, bias_gate=1e6)
    steps, clones = 40, len(shares) - 1
    samples, _ = matched(filter_, seed=2, steps=steps, dt=0.1)
    mask = np.repeat(np.random.default_rng(0).random((steps, 2)) < 0.7, [1, 2], axis=1)
    mask[0] = True
    assert 0 < np.sum(~mask.any(axis=1)) < 10
    samples = jax.tree.map(np.asarray, eqx.tree_at(lambda s: s.mask, samples, mask))
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *stepped(filter_, samples))
    z, window = states.z, states.uncertainty
    measured = np.flatnonzero(mask.any(axis=1))
    for k in range(steps):
        means, P = conditioned(samples, k, shares)
        np.testing.assert_allclose(z[k], means[k], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(window.P[k, :3, :3], P[k, :, k], rtol=1e-9, atol=1e-10)
        for c, i in enumerate(measured[measured <= k][::-1][:clones]):
            own = slice(3 + 2 * c, 5 + 2 * c)
            np.testing.assert_allclose(window.x[k, c], means[i, :2], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(window.P[k, own, own], P[i, :2, i, :2], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(window.P[k, :3, own], P[k, :, i, :2], rtol=1e-9, atol=1e-10)


LAWS = [
    test_health.test_an_outlier_is_rejected_and_reported,
    test_health.test_a_gap_resets_the_states_and_keeps_the_mass,
    test_health.test_a_dropped_load_is_detected_within_half_a_second,
    test_health.test_an_input_that_is_no_number_is_reported_and_forgotten,
    test_health.test_missing_measurements_are_not_read,
    test_health.test_data_without_information_are_reported,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_filters(law):
    law(msckf)


def test_a_rejected_block_is_not_used_later():
    filter_ = msckf(SYSTEMS["bare"], bias_gate=1e6)
    samples, _ = matched(filter_, seed=1, steps=100)
    velocity = filter_.joint.system.outputs.stored["velocity"]
    y, mask = samples.y.at[80, velocity].add(20.0), samples.mask.at[80, 6:9].set(False)
    spoilt = Samples(samples.t, samples.dt, samples.u, y, samples.mask)
    without = Samples(samples.t, samples.dt, samples.u, samples.y, mask)
    np.testing.assert_allclose(run(filter_, spoilt).value, run(filter_, without).value, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"window": 0}, "a window of 0 holds no measurement"),
        ({"window": 2, "shares": (0.5, 0.3, 0.2)}, "3 shares for a window of 2"),
        ({"shares": (0.5, 0.4)}, "sum to one"),
        ({"shares": (1.5, -0.5)}, "must be positive"),
        ({"shares": ()}, "must be positive"),
    ],
)
def test_invalid_windows_raise(settings, why):
    with pytest.raises(SettingError, match=why):
        msckf(Cart(), **settings)


def test_default_shares_sum_to_one_and_give_the_window():
    for window in (1, 2, 7):
        shares = np.asarray(msckf(Cart(), window=window).shares)
        assert shares.shape == (window,)
        np.testing.assert_allclose(shares.sum(), 1.0, rtol=1e-15)
    np.testing.assert_allclose(msckf(Cart(), shares=(0.7, 0.3)).shares, [0.7, 0.3])
