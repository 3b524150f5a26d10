"""Prediction errors of a System with residual heads over training windows (Alharbat 2025, eqs. 16-21)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rotorid.geometry import rotations
from rotorid.learning.batch_last import batch_last
from rotorid.learning.windows import Windows
from rotorid.models.residual import Head, inputs_of, rate
from rotorid.models.system import System, Values
from rotorid.numerics import integrators

Weights = dict[str, Float[Array, " ..."]]
WindowBatch = dict[str, Array]
"""JAX arrays: all rows (x, u, dt), the first rows of the windows (starts), and 0 to horizon - 1 (steps)."""

AVERAGED_ROWS = 25
"""Rows over which rate errors are averaged. The noise of all states but the first and the last cancels."""

_SCALE_WINDOWS = 2000  # windows from which the error scales are computed, at least


def window_batch(data: Windows, starts: Int[np.ndarray, " k"]) -> WindowBatch:
    """The windows that begin at the rows `starts`, as JAX arrays."""
    arrays = {"x": data.x, "u": data.u, "dt": data.dt, "starts": starts, "steps": np.arange(data.horizon)}
    return {name: jnp.asarray(value) for name, value in arrays.items()}


def prediction_errors(
    system: System, heads: Sequence[Head], weights: Sequence[Weights] | None, p: Values, batch: WindowBatch
) -> tuple[Float[Array, "windows horizon _"], ...]:
    """Predicted minus measured block of each head after each step of each window, in the unit of the block.

    weights: of each head; None: without residual.
    """
    space = system.states

    def rates(x: Float[Array, " size"], u: Values) -> Float[Array, " dim"]:
        values = space.unpack(x)
        derivatives = dict(system.dynamics(values, u, p))
        regressors = system.regressors(values, u, p)
        for head, w in zip(heads, weights or (), strict=weights is not None):
            derivatives[head.output] = derivatives[head.output] + rate(head, w, regressors)
        return space.pack_tangent(derivatives)

    def move(
        x: Float[Array, " size"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        measured: Float[Array, " size"],
    ) -> tuple[Float[Array, " size"], tuple[Float[Array, " _"], ...]]:
        inputs = system.inputs.unpack(u)
        x = integrators.step_of_numbers(space, lambda x: rates(x, inputs), x, dt)
        difference = space.minus(x, measured)
        return x, tuple(difference[space.tangent[head.output]] for head in heads)

    def step(x, row):
        return move_all(x, *row)

    move_all = batch_last(move)
    indices = batch["starts"] + 1 + batch["steps"][:, None]
    u, measured = (jnp.moveaxis(batch[name][indices], 1, 2) for name in ("u", "x"))
    x, rows = batch["x"][batch["starts"]].T, (u, batch["dt"][indices], measured)
    if len(indices) == 1:
        errors = step(x, jax.tree.map(lambda v: v[0], rows))[1]
        return tuple(e.T[:, None] for e in errors)
    _, errors = jax.lax.scan(jax.checkpoint(step), x, rows)
    return tuple(jnp.moveaxis(e, 2, 0) for e in errors)


def error_scales(
    system: System, heads: Sequence[Head], p: Values, batch: WindowBatch
) -> Float[Array, "heads horizon"]:
    """r of each head after each step: the rms error without residual."""
    stride = max(1, len(batch["starts"]) // _SCALE_WINDOWS)
    sample = batch | {"starts": batch["starts"][::stride]}
    errors = prediction_errors(system, heads, None, p, sample)
    return jnp.stack([jnp.sqrt(jnp.mean(jnp.sum(e * e, axis=2), axis=0)) for e in errors])


def loss(
    system: System,
    heads: Sequence[Head],
    weights: Sequence[Weights],
    p: Values,
    r: Float[Array, "heads horizon"],
    batch: WindowBatch,
) -> Float[Array, ""]:
    """L; 1 without residual."""
    tiny = jnp.finfo(r.dtype).tiny
    errors = zip(prediction_errors(system, heads, weights, p, batch), r, strict=True)
    parts = [jnp.mean(jnp.sum(e * e, axis=2) / jnp.maximum(s * s, tiny)) for e, s in errors]
    return jnp.mean(jnp.stack(parts))


def rate_errors(
    system: System,
    heads: Sequence[Head],
    weights: Sequence[Weights] | None,
    p: Values,
    data: Windows,
    *,
    held_out: bool,
) -> list[tuple[Float[np.ndarray, "n inputs"], Float[np.ndarray, "n output"]]]:
    """Inputs of each head, and the measured minus the predicted rate of its block, averaged over `AVERAGED_ROWS` rows.

    Rates are in the unit of the block per second and in the frame of the head. held_out: whether to use the validation
    rows or the training rows.
    """
    ends = np.flatnonzero(data.follows & (data.held_out == held_out))
    batch = window_batch(dataclasses.replace(data, horizon=1), ends - 1)
    span = np.cumsum(np.concatenate([[0], np.diff(ends) != 1]))  # number of the contiguous span of each row
    index = np.arange(len(ends)) - np.searchsorted(span, span)  # of each row in its span
    group = np.cumsum(np.concatenate([[0], (np.diff(span) != 0) | (index[1:] % AVERAGED_ROWS == 0)]))
    count = np.bincount(group)

    def average(values: Float[Array, "n k"]) -> Float[np.ndarray, "groups k"]:
        columns = [np.bincount(group, column) for column in np.asarray(values).T]
        return (np.stack(columns, axis=1) / count[:, None])[count == AVERAGED_ROWS]

    by_head = _row_rate_errors(system, tuple(heads), weights, p, batch)
    return [(average(inputs), average(errors)) for inputs, errors in by_head]


@partial(jax.jit, static_argnums=(0, 1))
def _row_rate_errors(
    system: System, heads: tuple[Head, ...], weights: Any, p: Values, batch: WindowBatch
) -> Any:
    """Inputs and rate error of each head, row by row."""
    starts = batch["starts"]
    x = jax.vmap(system.states.unpack)(batch["x"][starts])
    u = jax.vmap(system.inputs.unpack)(batch["u"][starts + 1])
    regressors = jax.vmap(lambda x, u: system.regressors(x, u, p))(x, u)
    by_head = []
    for head, e in zip(heads, prediction_errors(system, heads, weights, p, batch), strict=True):
        error = -e[:, 0] / batch["dt"][starts + 1, None]
        if head.output in head.turned:
            to_body = jax.vmap(rotations.inverse)(regressors[head.attitude])
            error = jax.vmap(rotations.rotate)(to_body, error)
        by_head.append((jax.vmap(partial(inputs_of, head))(regressors), error))
    return by_head
