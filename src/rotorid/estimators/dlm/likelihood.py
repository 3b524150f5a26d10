"""The log-likelihood of a dynamic linear model (Torren 2014, section 3.3.1, eq. 3.6; see `estimators.dlm.filter`).

Where no matrix changes with time and no measurement is missing any longer, the covariance C_t settles, within some rows in most
models, and with it the gain K. From there on the innovations are a linear function of the measurements:

    m_t = A m_{t-1} + K Y_t      e_t = Y_t - F G m_{t-1}      A = (I - K F) G

so that those of 64 rows at a time are two products of matrices. The rows before are filtered one by one. A covariance has
settled once no entry changes by more than 2e-12 of its standard deviations in a row (6e-6 in single precision).

The derivative of the settled covariance is that of the last one filtered, which settles as fast. First and second derivatives
by forward and reverse mode are therefore those of the whole series.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.dlm.filter import (
    EXACT_TOLERANCE,
    gain,
    log_variances,
    matrices_by_row,
    measured,
    predict,
    update,
)
from rotorid.models.dlm.model import Dlm, Numbers

_ROWS: Final = 64  # in a block, a power of 2
_LEAST_BLOCKS: Final = 8  # shorter series are not worth the longer compilation
_SETTLED: Final = 0.75  # power of the rounding


class _Steady(NamedTuple):
    """A block of rows with a settled gain, from the state m before it and its measurements y, in one vector.

    z = by_measurements y - by_state m: independent innovations. m' = transition m + gains y: state after it. weights: inverse
    variances of z, 0 where exactly predicted. log_variance: of a row, with the constant term.
    """

    by_measurements: Float[Array, "z z"]
    by_state: Float[Array, "z p"]
    transition: Float[Array, "p p"]
    gains: Float[Array, "p z"]
    weights: Float[Array, " m"]
    log_variance: Float[Array, ""]


def dlm_log_likelihood(model: Dlm, y: Numbers) -> Float[Array, ""]:
    """Evaluate the log-likelihood of a dynamic linear model.

    Args:
        model: model with p states and m outputs.
        y: measurements, n rows of m (or n numbers where m is 1), in the order of the model's outputs; NaN is missing.
    Returns:
        Logarithm of the density of y under the model, with the constant term that Torren 2014 leaves out.
    Raises:
        SettingError: the shape of y does not fit the model, or its matrices change over another number of rows.
    Source: Torren 2014, section 3.3.1, eq. 3.6.
    """
    values, is_observed = measured(model, y)
    has_blocks = model.length is None and len(values) >= _LEAST_BLOCKS * _ROWS
    return (_by_blocks if has_blocks else _by_rows)(model, values, is_observed)


@jax.jit
def _by_rows(model: Dlm, values: Float[Array, "n m"], is_observed: Bool[Array, "n m"]) -> Float[Array, ""]:
    def step(carry, row):
        m, C, total = carry
        F, V, G, W, value, mask = row
        m, C, _, density = update(*predict(m, C, G, W), F, V, value, mask)
        return (m, C, total + density), None

    start = (model.m0, model.C0, jnp.zeros((), values.dtype))
    return jax.lax.scan(step, start, (*matrices_by_row(model, len(values)), values, is_observed))[0][2]


@jax.jit
def _by_blocks(model: Dlm, values: Float[Array, "n m"], is_observed: Bool[Array, "n m"]) -> Float[Array, ""]:
    n, size = values.shape
    count = -(-n // _ROWS)
    rows = jnp.arange(count * _ROWS).reshape(count, _ROWS) < n
    padding = ((0, count * _ROWS - n), (0, 0))
    values = jnp.pad(values, padding).reshape(count, _ROWS, size)
    is_observed = jnp.pad(is_observed, padding).reshape(count, _ROWS, size)
    is_whole = jnp.all(is_observed | ~rows[:, :, None], axis=(1, 2))
    is_whole_from = jnp.flip(jnp.cumprod(jnp.flip(is_whole))).astype(bool)
    may_settle = jnp.append(is_whole_from[1:], False)

    @jax.checkpoint
    def filtered(m, C, value, mask):
        def step(carry, row):
            m, C, _, total = carry
            previous = C
            m, C, _, density = update(*predict(m, C, model.G, model.W), model.F, model.V, *row)
            return (m, C, previous, total + density), None

        start = (m, C, C, jnp.zeros((), value.dtype))
        m, C, previous, total = jax.lax.scan(step, start, (value, mask))[0]
        return m, C, _has_settled(previous, C), total

    def first(carry, block):
        m, C, is_settled = carry
        value, mask, may_settle = block
        m, C, settles, density = jax.lax.cond(
            is_settled,
            lambda: (m, C, jnp.ones((), bool), jnp.zeros((), value.dtype)),
            lambda: filtered(m, C, value, mask),
        )
        return (m, C, is_settled | (settles & may_settle)), (density, is_settled)

    start = (model.m0, model.C0, jnp.zeros((), bool))
    (m, C, _), (densities, is_settled) = jax.lax.scan(first, start, (values, is_observed, may_settle))
    steady = _steady(model, C)

    def second(m, block):
        value, valid, is_settled = block
        return jax.lax.cond(
            is_settled,
            lambda: _steady_block(steady, m, value, valid),
            lambda: (m, jnp.zeros((), value.dtype)),
        )

    return jnp.sum(densities) + jnp.sum(jax.lax.scan(second, m, (values, rows, is_settled))[1])


def _has_settled(previous: Float[Array, "p p"], C: Float[Array, "p p"]) -> Bool[Array, ""]:
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(C), 0.0))
    tolerance = float(jnp.finfo(C.dtype).eps) ** _SETTLED
    return jnp.all(jnp.abs(C - previous) <= tolerance * std[:, None] * std)


def _steady(model: Dlm, C: Float[Array, "p p"]) -> _Steady:
    """Blocks after a row with the covariance C, which does not change any more."""
    F, V, G, W = model.F, model.V, model.G, model.W
    size, p = F.shape
    _, R = predict(jnp.zeros(p, C.dtype), C, G, W)
    pivots, is_significant, _, lower, weights, K = gain(R, F, V, jnp.zeros(size, C.dtype))
    A = (jnp.eye(p, dtype=R.dtype) - K @ F) @ G
    powers, power = jnp.eye(p, dtype=R.dtype)[None], A  # A^0, A^1 ...
    while len(powers) < _ROWS:
        powers, power = jnp.concatenate([powers, powers @ power]), power @ power
    whitened = lower @ F @ G
    by_state = whitened @ powers
    responses = -by_state @ K  # of an innovation to a measurement 1, 2 ... rows before
    index = jnp.arange(_ROWS)
    distance = index[:, None] - index
    by_measurements = jnp.where(
        (distance > 0)[:, :, None, None], responses[jnp.maximum(distance - 1, 0)], 0.0
    ) + jnp.where((distance == 0)[:, :, None, None], lower, 0.0)
    log_variance = jnp.sum(log_variances(pivots, is_significant, jnp.ones(size, bool)))
    return _Steady(
        jnp.swapaxes(by_measurements, 1, 2).reshape(_ROWS * size, _ROWS * size),
        by_state.reshape(_ROWS * size, p),
        power,
        jnp.swapaxes(jnp.flip(powers, 0) @ K, 0, 1).reshape(p, _ROWS * size),
        weights,
        log_variance,
    )


def _steady_block(
    steady: _Steady, m: Float[Array, " p"], value: Float[Array, "rows m"], valid: Bool[Array, " rows"]
) -> tuple[Float[Array, " p"], Float[Array, ""]]:
    """State after the rows of a block, and the logarithm of the density of the valid ones."""
    y = value.reshape(-1)
    z = (steady.by_measurements @ y - steady.by_state @ m).reshape(value.shape)
    is_contradicted = jnp.abs(z) > EXACT_TOLERANCE * (jnp.abs(value) + jnp.abs(value - z))
    is_impossible = jnp.any(is_contradicted & (steady.weights == 0.0) & valid[:, None])
    total = -0.5 * jnp.sum(jnp.where(valid, z**2 @ steady.weights + steady.log_variance, 0.0))
    return steady.transition @ m + steady.gains @ y, jnp.where(is_impossible, -jnp.inf, total)
