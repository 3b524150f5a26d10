"""Predictions of a System with residual heads over training windows, and how far they are off (seed 001, eqs. 16-21)."""

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
from rotorid.learning.windows import Windows
from rotorid.models.residual import Head, inputs_of, rate
from rotorid.models.system import System, Values
from rotorid.numerics import integrators

Weights = dict[str, Float[Array, " ..."]]
Rows = dict[str, Array]
"""All rows (x, u, dt), the first rows of some windows (starts), and 0 to horizon - 1 (steps), on the device."""

SMOOTHED = 25
"""Rows over which missing rates are averaged: noise of the states cancels but for that of the first and last."""

_FOR_SCALES = 2000  # windows that tell how far physics alone is off


def on_device(data: Windows, starts: Int[np.ndarray, " k"]) -> Rows:
    """These windows."""
    rows = {"x": data.x, "u": data.u, "dt": data.dt, "starts": starts, "steps": np.arange(data.horizon)}
    return {name: jnp.asarray(value) for name, value in rows.items()}


def errors(
    system: System, heads: Sequence[Head], weights: Sequence[Weights] | None, p: Values, data: Rows
) -> tuple[Float[Array, "windows horizon _"], ...]:
    """Predicted minus measured block of each head after each step of each window, in the block's unit.

    weights: of each head; None: physics alone.
    """
    space = system.states

    def rates(x: Float[Array, " size"], u: Values) -> Float[Array, " dim"]:
        values = space.unpack(x)
        found = dict(system.dynamics(values, u, p))
        seen = system.regressors(values, u, p)
        for head, w in zip(heads, weights or (), strict=weights is not None):
            found[head.output] = found[head.output] + rate(head, w, seen)
        return space.pack_tangent(found)

    def step(x, following):
        u, dt, wanted = following
        inputs = system.inputs.unpack(u)
        x = integrators.step(space, lambda x: rates(x, inputs), x, dt, "rk4")
        difference = space.minus(x, wanted)
        return x, tuple(difference[space.tangent[head.output]] for head in heads)

    def window(start):
        x, rows = data["x"][start], start + 1 + data["steps"]
        following = data["u"][rows], data["dt"][rows], data["x"][rows]
        if len(rows) == 1:
            return tuple(e[None] for e in step(x, jax.tree.map(lambda v: v[0], following))[1])
        return jax.lax.scan(jax.checkpoint(step), x, following)[1]

    return jax.vmap(window)(data["starts"])


def scales(system: System, heads: Sequence[Head], p: Values, data: Rows) -> Float[Array, "heads horizon"]:
    """r of each head after each step: the rms error of physics alone."""
    some = data | {"starts": data["starts"][:: max(1, len(data["starts"]) // _FOR_SCALES)]}
    found = errors(system, heads, None, p, some)
    return jnp.stack([jnp.sqrt(jnp.mean(jnp.sum(e * e, axis=2), axis=0)) for e in found])


def loss(
    system: System,
    heads: Sequence[Head],
    weights: Sequence[Weights],
    p: Values,
    r: Float[Array, "heads horizon"],
    data: Rows,
) -> Float[Array, ""]:
    """L: 1 for physics alone."""
    least = jnp.finfo(r.dtype).tiny
    found = zip(errors(system, heads, weights, p, data), r, strict=True)
    parts = [jnp.mean(jnp.sum(e * e, axis=2) / jnp.maximum(s * s, least)) for e, s in found]
    return jnp.mean(jnp.stack(parts))


def missing_rates(
    system: System,
    heads: Sequence[Head],
    weights: Sequence[Weights] | None,
    p: Values,
    data: Windows,
    *,
    held_out: bool,
) -> list[tuple[Float[np.ndarray, "n inputs"], Float[np.ndarray, "n output"]]]:
    """Of each head: its inputs, and the measured rate of its block minus the predicted one, in its unit per second and in the
    frame of the head; both averaged over `SMOOTHED` rows. held_out: of the rows for validation, else of the others."""
    ends = np.flatnonzero(data.follows & (data.held_out == held_out))
    rows = on_device(dataclasses.replace(data, horizon=1), ends - 1)
    block = np.cumsum(np.concatenate([[0], np.diff(ends) != 1]))
    place = np.arange(len(ends)) - np.searchsorted(block, block)
    group = np.cumsum(np.concatenate([[0], (np.diff(block) != 0) | (place[1:] % SMOOTHED == 0)]))
    count = np.bincount(group)

    def averaged(values: Float[Array, "n k"]) -> Float[np.ndarray, "groups k"]:
        columns = [np.bincount(group, column) for column in np.asarray(values).T]
        return (np.stack(columns, axis=1) / count[:, None])[count == SMOOTHED]

    found = _missing(system, tuple(heads), weights, p, rows)
    return [(averaged(inputs), averaged(missing)) for inputs, missing in found]


@partial(jax.jit, static_argnums=(0, 1))
def _missing(system: System, heads: tuple[Head, ...], weights: Any, p: Values, data: Rows) -> Any:
    starts = data["starts"]
    x = jax.vmap(system.states.unpack)(data["x"][starts])
    u = jax.vmap(system.inputs.unpack)(data["u"][starts + 1])
    seen = jax.vmap(lambda x, u: system.regressors(x, u, p))(x, u)
    found = []
    for head, e in zip(heads, errors(system, heads, weights, p, data), strict=True):
        missing = -e[:, 0] / data["dt"][starts + 1, None]
        if head.output in head.turned:
            to_body = jax.vmap(rotations.inverse)(seen[head.attitude])
            missing = jax.vmap(rotations.rotate)(to_body, missing)
        found.append((jax.vmap(partial(inputs_of, head))(seen), missing))
    return found
