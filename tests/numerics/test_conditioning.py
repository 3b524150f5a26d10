"""What a measurement leaves of a covariance, against the same in more digits."""

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.numerics.cholesky import whiten
from rotorid.numerics.conditioning import joseph_update
from rotorid.numerics.products import product

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6)) + 3.0 * np.eye(6)


def exact(P: np.ndarray, h: np.ndarray, r: np.ndarray) -> np.ndarray:
    """(I - K h) P (I - K h)^T + K R K^T, one measurement after the other, in extended precision."""
    P, h, r = (a.astype(np.longdouble) for a in (P, h, r))
    for row, noise in zip(h, r, strict=True):
        K = P @ row / (row @ P @ row + noise)
        kept = np.eye(len(P), dtype=np.longdouble) - np.outer(K, row)
        P = kept @ P @ kept.T + noise * np.outer(K, K)
    return P


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 2e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize(("scale", "lever"), [(1.0, 0.0), (-100.0, 0.0), (1.0, 0.1)])
def test_no_digits_are_lost_with_a_dominant_measurement(dtype, digits, scale, lever):
    P = np.asarray((ROOT @ ROOT.T) * 1e3, dtype)
    h = np.asarray(scale * np.eye(6)[1:4] + lever * np.eye(6)[[0, 4, 5]], dtype)
    r = np.asarray(scale**2 * np.array([1e-3, 1e-2, 1e-3]), dtype)
    P_, h_, r_ = map(jnp.asarray, (P, h, r))
    hP = product(h_, P_)
    A, inverse = whiten(product(hP, h_.T) + jnp.diag(r_), hP, jnp.eye(3, dtype=dtype))
    plain = P_ - product(A.T, A)
    got = joseph_update(plain, h_, r_, product(A.T, inverse), slice(1, 4))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, got.T)
    want = exact(P, h, r)
    std = np.sqrt(np.diag(want)[1:4])
    if not lever:
        off = np.abs(np.asarray(got)[1:4, 1:4] - want[1:4, 1:4]) / np.outer(std, std)
        assert off.max() < digits
        assert np.abs(np.asarray(plain)[1:4, 1:4] - want[1:4, 1:4]).max() > 30 * digits * std.min() ** 2
    everywhere = np.abs(np.asarray(got) - want) / np.sqrt(np.outer(np.diag(P), np.diag(P)))
    assert everywhere.max() < 30 * np.finfo(dtype).eps


def test_states_not_measured_directly_are_unchanged():
    P = jnp.asarray(ROOT @ ROOT.T)
    h, r = jnp.asarray(RNG.normal(size=(2, 6))), jnp.ones(2)
    np.testing.assert_array_equal(joseph_update(P, h, r, jnp.ones((6, 2)), None), P)
