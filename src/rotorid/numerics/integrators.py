"""Explicit Runge-Kutta steps on a space that mixes vectors and rotations.

A step is taken in the chart delta around the present point, x(t) = x0 [+] delta(t) (Munthe-Kaas): the tangent rate
is carried into the chart by `Space.chart_rate`, so each method keeps its order on rotations too.

Reference: H. Munthe-Kaas, High order Runge-Kutta methods on manifolds, Appl. Numer. Math. 29 (1999) 115-127.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.geometry.spaces import Space

Method = Literal["euler", "midpoint", "rk4"]

_TABLEAUS: dict[str, tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]] = {
    "euler": (((),), (1.0,)),
    "midpoint": (((), (0.5,)), (0.0, 1.0)),
    "rk4": (((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}


def step(
    space: Space,
    rate: Callable[[Float[Array, " size"]], Float[Array, " dim"]],
    x: Float[Array, " size"],
    dt: Float[Array, ""] | float,
    method: Method = "rk4",
) -> Float[Array, " size"]:
    """One step of dt seconds along the tangent rate (per second). "euler" is eq. 3 of seed 000."""
    stages, weights = _TABLEAUS[method]
    slopes: list[Float[Array, " dim"]] = []
    for coefficients in stages:
        delta = _combine(coefficients, slopes)
        if delta is None:
            slopes.append(rate(x))
        else:
            delta = dt * delta
            slopes.append(space.chart_rate(delta, rate(space.plus(x, delta))))
    total = _combine(weights, slopes)
    assert total is not None
    return space.plus(x, dt * total)


def _combine(
    coefficients: tuple[float, ...], slopes: list[Float[Array, " dim"]]
) -> Float[Array, " dim"] | None:
    terms = [c * k if c != 1.0 else k for c, k in zip(coefficients, slopes, strict=True) if c != 0.0]
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else jnp.sum(jnp.stack(terms), axis=0)
