"""Hypotheses about when parameters last changed, one a row: how changes come, and the times that they settle on."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

NEVER = 1e6
"""Age of a change that there was not, s."""

UNLIKELY = -60.0
"""Least logarithm of a weight."""

EARLY = 0.3
"""Share of a step: whether hypotheses that come every so many whole steps are due must not hang on rounding."""

_HELD = 0.1  # s
_APART = 0.05  # s


class ChangeTuning(eqx.Module):
    """How parameters change. In estimation coordinates: relative for a positive parameter.

    rate_std, rate_noise: of the rates, per s and per s per square root of s. jump: standard deviation of a jump. hazard: jumps
    per s. period: s between hypotheses. lag: s by which the lagged estimate is late.
    """

    rate_std: Float[Array, ""]
    rate_noise: Float[Array, ""]
    jump: Float[Array, ""]
    hazard: Float[Array, ""]
    period: Float[Array, ""]
    lag: Float[Array, ""]


class Hypotheses(eqx.Module):
    """One a row: the joint point z, its covariance P, the logarithm of the weight, the age of its last change (s), and the
    tracked parameters (coordinates) and their standard deviations just before it. The first had no change lately."""

    z: Float[Array, "*h size"]
    P: Float[Array, "*h dim dim"]
    weight: Float[Array, "*h"]
    age: Float[Array, "*h"]
    before: Float[Array, "*h parameters"]
    before_std: Float[Array, "*h parameters"]


def largest(weight: Float[Array, " h"]) -> Float[Array, " h"]:
    """1 at the largest, the first of equals, 0 elsewhere."""
    is_largest = weight >= jnp.max(weight)
    return (is_largest & (jnp.cumsum(is_largest) == 1)).astype(weight.dtype)


def change_times(
    t: Float[Array | np.ndarray, " n"], since_change: Float[Array | np.ndarray, " n"]
) -> tuple[float, ...]:
    """When the parameters changed, s: the times that the estimates held to for `_HELD` s."""
    t, since_change = np.asarray(t), np.asarray(since_change)
    when = t - since_change
    starts = np.flatnonzero(np.abs(np.diff(when, prepend=np.inf)) > _APART)
    ends = np.append(starts[1:], len(t)) - 1
    held = [
        float(when[b])
        for a, b in zip(starts, ends, strict=True)
        if t[b] - t[a] >= _HELD and since_change[b] < NEVER / 2
    ]
    found: list[float] = []
    for time in sorted(held):
        if not found or time - found[-1] > 2 * _APART:
            found.append(time)
    return tuple(found)
