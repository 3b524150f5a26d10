"""Explicit Runge-Kutta steps on a space that mixes vectors and rotations.

A step is taken in the chart delta around the present point, x(t) = x0 [+] delta(t) (Munthe-Kaas): the tangent rate
is carried into the chart by `Space.chart_rate`, so each method keeps its order on rotations too.

An explicit step diverges where a state relaxes faster than the step is long. A state s that follows a held target by a lag of
first order is known in closed form; the others see its mean over the step, which gives its impulse exactly:

    x_s <- mean of s over the step;    x <- step of x with s' = 0;    x_s <- s at the end of the step

Reference: H. Munthe-Kaas, High order Runge-Kutta methods on manifolds, Appl. Numer. Math. 29 (1999) 115-127.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """One step of dt seconds along the tangent rate (per second). "euler" is eq. 3 of SESAME D2.2."""
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


def step_of_numbers(
    space: Space,
    rate: Callable[[Float[Array, " size"]], Float[Array, " dim"]],
    x: Float[Array, " size"],
    dt: Float[Array, ""] | float,
) -> Float[Array, " size"]:
    """As `step` of fourth order, of the stored numbers in place of the chart: quaternions by their linear equation, of length
    1 after the step. With its gradient it takes half the time."""

    def slope(x: Float[Array, " size"]) -> Float[Array, " size"]:
        return space.lift(x, rate(x))

    k1 = slope(x)
    k2 = slope(x + 0.5 * dt * k1)
    k3 = slope(x + 0.5 * dt * k2)
    k4 = slope(x + dt * k3)
    return space.normalise(x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


Solved = Mapping[str, tuple[Float[Array, " ..."], Float[Array, " ..."]]]
"""States by name that are known in closed form: the value at the end of the step, and its mean over the step."""


def step_with_solved(
    space: Space,
    rate: Callable[[Float[Array, " size"]], Float[Array, " dim"]],
    x: Float[Array, " size"],
    dt: Float[Array, ""] | float,
    solved: Solved,
    method: Method = "rk4",
) -> Float[Array, " size"]:
    """As `step`, with vector states that are known in closed form; of second order in their coupling to the others."""
    if not solved:
        return step(space, rate, x, dt, method)
    at_mean = with_states(space, x, {name: mean for name, (_, mean) in solved.items()})
    moved = step(space, without_rates(space, rate, solved), at_mean, dt, method)
    return with_states(space, moved, {name: end for name, (end, _) in solved.items()})


def with_states(
    space: Space, x: Float[Array, " size"], values: Mapping[str, Float[Array, " ..."]]
) -> Float[Array, " size"]:
    """The point with other values of some states."""
    for name, value in values.items():
        place = space.stored[name]
        x = x.at[place].set(jnp.broadcast_to(value, x[place].shape).astype(x.dtype))
    return x


def without_rates(
    space: Space, rate: Callable[[Float[Array, " size"]], Float[Array, " dim"]], solved: Solved
) -> Callable[[Float[Array, " size"]], Float[Array, " dim"]]:
    """The tangent rate with 0 for the states that are solved."""

    def others(x: Float[Array, " size"]) -> Float[Array, " dim"]:
        slope = rate(x)
        for name in solved:
            slope = slope.at[space.tangent[name]].set(0.0)
        return slope

    return others


def _combine(
    coefficients: tuple[float, ...], slopes: list[Float[Array, " dim"]]
) -> Float[Array, " dim"] | None:
    terms = [c * k if c != 1.0 else k for c, k in zip(coefficients, slopes, strict=True) if c != 0.0]
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else jnp.sum(jnp.stack(terms), axis=0)
