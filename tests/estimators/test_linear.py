"""On a linear System, EKF and UKF are the Kalman filter."""

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import run
from rotorid.estimators.ukf import ukf
from rotorid.signals.samples import Samples
from tests.systems import Cart, matched


def kalman(samples: Samples, tuning) -> tuple[np.ndarray, np.ndarray]:
    """The textbook filter on the cart: x = (position, velocity, push), the transition integrated by hand."""
    m = 2.0
    x = np.array([0.0, 0.0, 0.5])
    P = np.diag([2.0, 1.0, 1.0]) ** 2
    H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, -0.5]])
    R = np.diag([0.1, 0.2, 0.3]) ** 2
    values, stds = [], []
    for k in range(len(samples.t)):
        dt, u = float(samples.dt[k]), float(samples.u[k, 0])
        F = np.array([[1.0, dt, dt**2 / 2 / m], [0.0, 1.0, dt / m], [0.0, 0.0, 1.0]])
        x = F @ x + np.array([dt**2 / 2, dt, 0.0]) * u / m
        P = F @ P @ F.T + np.diag([0.02, 0.05, 0.1]) ** 2 * dt
        if k == 0:
            x[0] = float(samples.y[0, 0])
        keep = np.asarray(samples.mask[k])
        if keep.any():
            h, r = H[keep], R[np.ix_(keep, keep)]
            S = h @ P @ h.T + r
            K = P @ h.T @ np.linalg.inv(S)
            x = x + K @ (np.asarray(samples.y[k])[keep] - h @ x)
            P = P - K @ S @ K.T
        values.append(x.copy())
        stds.append(np.sqrt(np.diag(P)))
    return np.array(values), np.array(stds)


@pytest.mark.parametrize("make", [ekf, ukf])
@pytest.mark.parametrize("method", ["midpoint", "rk4"])
def test_equals_the_kalman_filter(make, method):
    filter_ = make(Cart(), method=method, gate=1e6, bias_gate=1e6)
    samples, _ = matched(filter_, seed=2, steps=400, dt=0.05)
    rng = np.random.default_rng(0)
    mask = np.repeat(rng.random((400, 2)) < 0.7, [1, 2], axis=1)
    mask[0] = True
    samples = Samples(samples.t, samples.dt, samples.u, samples.y, jnp.asarray(mask))
    estimate = run(filter_, samples)
    values, stds = kalman(samples, filter_.tuning)
    np.testing.assert_allclose(estimate.state, values[:, :2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimate.value[:, 0], values[:, 2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimate.state_std, stds[:, :2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimate.std[:, 0], stds[:, 2], rtol=1e-9, atol=1e-9)
