"""The Kalman filter, smoother, likelihood and forecast of a dynamic linear model (Torren 2014, sections 3.2 and 3.3.1).

    a_t = G_t m_{t-1}      R_t = G_t C_{t-1} G_t' + W_t            prediction
    f_t = F_t a_t          Q_t = F_t R_t F_t' + V_t
    m_t = a_t + K_t (Y_t - f_t)      K_t = R_t F_t' Q_t^-1         measurement update
    C_t = (I - K_t F_t) R_t (I - K_t F_t)' + K_t V_t K_t'

    l = -1/2 sum_t (log |Q_t| + (Y_t - f_t)' Q_t^-1 (Y_t - f_t) + k_t log 2 pi)                              (3.6)

with k_t the number of measurements of row t; the thesis and R's dlm leave out the last term, which depends on no parameter.

The filter works on covariances rather than on their roots, which are smooth in the model's entries where a root is not (a
variance of 0, a singular W): gradients and Hessians of the likelihood are exact there too. C_t is in Joseph's form, which does
not become negative by rounding, also after C0 = 1e7. The smoother works on roots:

    s_t = m_t + J_t (s_{t+1} - a_{t+1})               J_t = C_t G_{t+1}' R_{t+1}^-1
    S_t = D_t + J_t S_{t+1} J_t'                      D_t = C_t - J_t R_{t+1} J_t'

where [r, 0; J r, d] is the triangular factor of [G c, w; c, 0], the small letters being roots (P. Park, T. Kailath, New
square-root smoothing algorithms, IEEE Trans. Automatic Control 41, 1996). It keeps its digits where smoothers on covariances
lose them: after C0 = 1e7, and where R becomes singular, as without measurement noise. A direction in which Q_t is singular is
exactly predicted; a contradicting measurement makes the likelihood zero.

A cell of y that is NaN is a missing measurement. All functions are pure, and go through `jit`, `vmap` and `grad`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.models.dlm.model import Dlm, Numbers
from rotorid.numerics.products import fused_product as product
from rotorid.numerics.semidefinite import divide, eliminate, reciprocals, root, triangle

EXACT_TOLERANCE: Final = 1e-6
"""Largest relative difference between a measurement without noise and its prediction."""


class Filtered(NamedTuple):
    """Estimates of the filter, row by row. a, R: predicted state. f, Q: predicted measurement. m, C: state after the row.

    standardised: innovations divided by their Cholesky factor, independent and of variance 1 where the model is right; NaN
    where nothing was measured. log_likelihood: of each row, given those before.
    """

    a: Float[Array, "n p"]
    R: Float[Array, "n p p"]
    f: Float[Array, "n m"]
    Q: Float[Array, "n m m"]
    m: Float[Array, "n p"]
    C: Float[Array, "n p p"]
    standardised: Float[Array, "n m"]
    log_likelihood: Float[Array, " n"]


class Gain(NamedTuple):
    """Of a measurement whose innovation has the covariance Q = L D L'.

    pivots: D. is_significant: which of them are above rounding. whitened: L^-1 e. lower: L^-1. weights: 1 / D, 0 where exactly
    predicted. K: the gain.
    """

    pivots: Float[Array, " m"]
    is_significant: Bool[Array, " m"]
    whitened: Float[Array, " m"]
    lower: Float[Array, "m m"]
    weights: Float[Array, " m"]
    K: Float[Array, "p m"]


class Smoothed(NamedTuple):
    """The states given all rows. s, S: mean and covariance."""

    s: Float[Array, "n p"]
    S: Float[Array, "n p p"]


class Forecast(NamedTuple):
    """Prediction of further rows. a, R: their states. f, Q: their measurements."""

    a: Float[Array, "h p"]
    R: Float[Array, "h p p"]
    f: Float[Array, "h m"]
    Q: Float[Array, "h m m"]


def dlm_filter(model: Dlm, y: Numbers) -> Filtered:
    """Estimate the states of a dynamic linear model given the rows so far (Kalman filter).

    Args:
        model: model with p states and m outputs.
        y: measurements, n rows of m (or n numbers where m is 1), in the order of the model's outputs; NaN is missing.
    Returns:
        Means and covariances of states and predicted measurements, n rows (see `Filtered`).
    Raises:
        SettingError: the shape of y does not fit the model, or its matrices change over another number of rows.
    Source: Torren 2014, section 3.2.
    """
    return _filter(model, *measured(model, y))


@jax.jit
def _filter(model: Dlm, values: Float[Array, "n m"], is_observed: Bool[Array, "n m"]) -> Filtered:
    def step(carry, row):
        (m, C), (F, V, G, W, value, mask) = carry, row
        a, R = predict(m, C, G, W)
        m, C, standardised, density = update(a, R, F, V, value, mask)
        z = jnp.where(mask, standardised, jnp.nan)
        f, Q = product(F, a), symmetric(product(product(F, R), F.T) + V)
        return (m, C), Filtered(a, R, f, Q, m, C, z, density)

    start = (model.m0, model.C0)
    return jax.lax.scan(step, start, (*matrices_by_row(model, len(values)), values, is_observed))[1]


def dlm_smooth(model: Dlm, y: Numbers) -> Smoothed:
    """Estimate the states of a dynamic linear model given all rows (fixed-interval smoother).

    Args:
        model: model with p states and m outputs.
        y: measurements, n rows of m (or n numbers where m is 1), in the order of the model's outputs; NaN is missing.
    Returns:
        Mean and covariance of the states, n rows (see `Smoothed`).
    Raises:
        SettingError: the shape of y does not fit the model, or its matrices change over another number of rows.
    Source: Torren 2014, section 3.2; P. Park and T. Kailath, IEEE Trans. Automatic Control 41 (1996).
    """
    return _smooth(model, *measured(model, y))


@jax.jit
def _smooth(model: Dlm, values: Float[Array, "n m"], is_observed: Bool[Array, "n m"]) -> Smoothed:
    F, V, G, W = matrices_by_row(model, len(values), roots=True)
    p = model.m0.shape[0]

    def forward(carry, row):
        m, C = carry
        F, V, G, W, value, mask = row
        a = G @ m
        prediction = triangle(jnp.block([[G @ C, W], [C, jnp.zeros_like(C)]]))
        R, cross, D = prediction[:p, :p], prediction[p:, :p], prediction[p:, p:]
        F, V = jnp.where(mask[:, None], F, 0.0), jnp.where(mask[:, None], V, 0.0)
        update = triangle(jnp.block([[F @ R, V], [R, jnp.zeros((p, V.shape[1]), V.dtype)]]))
        size = len(mask)
        K = divide(update[size:, :size], update[:size, :size])
        m, C = a + K @ jnp.where(mask, value - F @ a, 0.0), update[size:, size:]
        return (m, C), (a, m, C, divide(cross, R), D)

    start = (model.m0, root(model.C0))
    _, (a, m, C, J, D) = jax.lax.scan(forward, start, (F, V, G, W, values, is_observed))

    def backward(carry, row):
        s, S = carry
        m, a, J, D = row
        s, S = m + J @ (s - a), triangle(jnp.concatenate([D, J @ S], axis=1))
        return (s, S), (s, S)

    last = m[-1], C[-1]
    _, (s, S) = jax.lax.scan(backward, last, (m[:-1], a[1:], J[1:], D[1:]), reverse=True)
    s, S = (jnp.concatenate([x, end[None]]) for x, end in zip((s, S), last, strict=True))
    return Smoothed(s, S @ jnp.swapaxes(S, 1, 2))


@partial(jax.jit, static_argnames="steps")
def dlm_forecast(model: Dlm, m: Float[Array, " p"], C: Float[Array, "p p"], steps: int) -> Forecast:
    """Predict the measurements of the next rows.

    model: model, whose matrices that vary over time have one entry for each predicted row. m: mean of the state after the
    last row, `filtered.m[-1]`. C: covariance of that state, `filtered.C[-1]`. steps: number of rows to predict.
    """

    def step(carry, row):
        (m, C), (F, V, G, W) = carry, row
        a, R = predict(m, C, G, W)
        return (a, R), (a, R, F @ a, symmetric(F @ R @ F.T + V))

    return Forecast(*jax.lax.scan(step, (m, C), matrices_by_row(model, steps))[1])


@partial(jax.jit, static_argnames="n")
def dlm_simulate(model: Dlm, n: int, key: PRNGKeyArray) -> tuple[Float[Array, "n p"], Float[Array, "n m"]]:
    """Draw states (n, p) and measurements (n, m) from a model.

    model: model with p states and m outputs. n: number of rows. key: random key.
    """
    p, m = model.m0.shape[0], model.outputs
    first, *keys = jax.random.split(key, 3)
    theta = model.m0 + root(model.C0) @ jax.random.normal(first, (p,))
    state_noise, output_noise = jax.random.normal(keys[0], (n, p)), jax.random.normal(keys[1], (n, m))

    def step(theta, row):
        F, V, G, W, w, v = row
        theta = G @ theta + root(W) @ w
        return theta, (theta, F @ theta + root(V) @ v)

    return jax.lax.scan(step, theta, (*matrices_by_row(model, n), state_noise, output_noise))[1]


def measured(model: Dlm, y: Numbers) -> tuple[Float[Array, "n m"], Bool[Array, "n m"]]:
    """Measurements, 0 where missing, and the mask of those that are present."""
    values = jnp.asarray(y, model.m0.dtype)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != model.outputs:
        raise SettingError(
            f"y is {' x '.join(map(str, values.shape))}; this model measures {model.outputs} a row, so it must be rows x "
            f"{model.outputs}"
        )
    is_observed = ~jnp.isnan(values)
    return jnp.where(is_observed, values, 0.0), is_observed


def matrices_by_row(model: Dlm, n: int, *, roots: bool = False) -> tuple[Float[Array, "n _ _"], ...]:
    """F, V, G and W of every row; roots: with the roots of V and W."""
    if model.length not in (None, n):
        raise SettingError(
            f"the model's matrices change over {model.length} rows of time, and there are {n} of data"
        )

    def expand(matrix, spread=False):
        if spread and roots:
            matrix = jax.vmap(root)(matrix) if matrix.ndim == 3 else root(matrix)
        return matrix if matrix.ndim == 3 else jnp.broadcast_to(matrix, (n, *matrix.shape))

    return expand(model.F), expand(model.V, True), expand(model.G), expand(model.W, True)


def predict(
    m: Float[Array, " p"], C: Float[Array, "p p"], G: Float[Array, "p p"], W: Float[Array, "p p"]
) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
    """Mean a and covariance R of the state at the next row."""
    return product(G, m), symmetric(product(product(G, C), G.T) + W)


def update(
    a: Float[Array, " p"],
    R: Float[Array, "p p"],
    F: Float[Array, "m p"],
    V: Float[Array, "m m"],
    value: Float[Array, " m"],
    mask: Bool[Array, " m"],
) -> tuple[Float[Array, " p"], Float[Array, "p p"], Float[Array, " m"], Float[Array, ""]]:
    """State after a row, its standardised innovation, and the logarithm of its density.

    A missing measurement has a row of zeros in F and an independent noise, so that it has no effect.
    """
    p = F.shape[1]
    F = jnp.where(mask[:, None], F, 0.0)
    V = jnp.where(mask[:, None] & mask, V, 0.0) + jnp.diag(jnp.where(mask, 0.0, 1.0).astype(V.dtype))
    f = product(F, a)
    e = jnp.where(mask, value - f, 0.0)
    pivots, is_significant, whitened, _, weights, K = gain(R, F, V, e)
    residual_map = jnp.eye(p, dtype=R.dtype) - product(K, F)
    C = symmetric(product(product(residual_map, R), residual_map.T) + product(product(K, V), K.T))
    is_contradicted = ~is_significant & (jnp.abs(whitened) > EXACT_TOLERANCE * (jnp.abs(value) + jnp.abs(f)))
    total = -0.5 * jnp.sum(log_variances(pivots, is_significant, mask) + weights * whitened * whitened)
    total = jnp.where(jnp.any(is_contradicted), -jnp.inf, total)
    standardised = whitened * is_significant / jnp.sqrt(jnp.where(is_significant, pivots, 1.0))
    return a + product(K, e), C, standardised, total


def gain(
    R: Float[Array, "p p"], F: Float[Array, "m p"], V: Float[Array, "m m"], e: Float[Array, " m"]
) -> Gain:
    """The gain of a measurement with the innovation e, before which the states have the covariance R."""
    FR = product(F, R)
    Q = symmetric(product(FR, F.T) + V)
    pivots, is_significant, columns = eliminate(
        Q, jnp.concatenate([e[:, None], jnp.eye(len(e), dtype=Q.dtype)], axis=1)
    )
    whitened, lower = columns[:, 0], columns[:, 1:]
    weights = reciprocals(pivots, is_significant)
    K = product(FR.T, product(lower.T, weights[:, None] * lower))
    return Gain(pivots, is_significant, whitened, lower, weights, K)


def log_variances(
    pivots: Float[Array, " m"], is_significant: Bool[Array, " m"], mask: Bool[Array, " m"]
) -> Float[Array, " m"]:
    """log D + log 2 pi of the measured entries that are not exactly predicted, 0 of the others."""
    return jnp.log(jnp.where(is_significant, pivots, 1.0)) + jnp.where(
        mask & is_significant, math.log(2.0 * math.pi), 0.0
    )


def symmetric(A: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The symmetric part of a matrix that is symmetric but for rounding."""
    return 0.5 * (A + A.T)
