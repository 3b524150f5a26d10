"""Hypotheses about the time of the last change of the parameters, the tuning of changes, and change times from estimates."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.models.joint import Joint

NEVER = 1e6
"""Age of the last change where there was none, s."""

UNLIKELY = -60.0
"""Lower bound of the logarithm of a weight."""

EARLY = 0.3
"""Share of a step by which a new hypothesis may come early, so that rounding does not decide when it is due."""

_LEAST_DURATION = 0.1  # s for which estimates must agree on a change time
_SAME_TIME = 0.05  # s: closer change times are one


class ChangeTuning(eqx.Module):
    """How parameters change, in estimation coordinates (relative for a positive parameter).

    Attributes:
        rate_std: prior standard deviation of the rates, per s.
        rate_noise: process noise of the rates, per s and square root of s.
        jump: standard deviation of a jump.
        hazard: jumps per s.
        period: s between hypotheses.
        lag: s by which the lagged estimate is delayed.
    """

    rate_std: Float[Array, ""]
    rate_noise: Float[Array, ""]
    jump: Float[Array, ""]
    hazard: Float[Array, ""]
    period: Float[Array, ""]
    lag: Float[Array, ""]


class Hypotheses(eqx.Module):
    """Hypotheses, one a row; the first has no recent change.

    Attributes:
        z, P: joint point and its covariance.
        weight: logarithm of the probability.
        age: s since its last change.
        before, before_std: tracked parameters (coordinates) just before that change, and their standard deviations.
    """

    z: Float[Array, "*h size"]
    P: Float[Array, "*h dim dim"]
    weight: Float[Array, "*h"]
    age: Float[Array, "*h"]
    before_change: Float[Array, "*h parameters"]
    before_change_std: Float[Array, "*h parameters"]


def most_probable(weight: Float[Array, " h"]) -> Float[Array, " h"]:
    """1 at the largest weight (the first of equals), 0 elsewhere."""
    is_largest = weight >= jnp.max(weight)
    return (is_largest & (jnp.cumsum(is_largest) == 1)).astype(weight.dtype)


def branch(
    joint: Joint, h: Hypotheses, jump_std: Float[Array, " dim"], log_probability: Float[Array, ""]
) -> Hypotheses:
    """Add a hypothesis: the most probable one with a change at this time. The oldest one is merged into the first.

    Args:
        joint: of states and parameters.
        h: at least two hypotheses, the newest change in row 1.
        jump_std: standard deviation of a jump, by tangent dimension.
        log_probability: of a change in the time between two new hypotheses, its logarithm.
    """
    first, oldest, others = (
        jax.tree.map(lambda leaf, rows=rows: leaf[rows], h) for rows in (0, -1, slice(1, -1))
    )
    selector = most_probable(h.weight)
    most_likely = jax.tree.map(lambda leaf: jnp.tensordot(selector, leaf, 1), h)
    n, size, count = joint.states_dim, joint.system.states.size, len(joint.quantities)
    new = Hypotheses(
        most_likely.z,
        most_likely.P + jnp.diag(jump_std**2),
        jnp.maximum(most_likely.weight + log_probability, UNLIKELY),
        jnp.zeros_like(most_likely.age),
        most_likely.z[size : size + count],
        jnp.sqrt(jnp.diag(most_likely.P))[n : n + count],
    )
    merged = merge(joint, first, oldest)
    return jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[None], c]), merged, new, others)


def with_change(
    joint: Joint, h: Hypotheses, jump_std: Float[Array, " dim"], is_change: Bool[Array, ""]
) -> Hypotheses:
    """Add a change at this time to all hypotheses if is_change; else return them unchanged."""
    n, size, count = joint.states_dim, joint.system.states.size, len(joint.quantities)
    variance = jnp.diagonal(h.P, axis1=1, axis2=2)[:, n : n + count]
    changed = Hypotheses(
        h.z,
        h.P + jnp.diag(jump_std**2),
        h.weight,
        jnp.zeros_like(h.age),
        h.z[:, size : size + count],
        jnp.sqrt(variance),
    )
    return jax.tree.map(lambda new, old: jnp.where(is_change, new, old), changed, h)


def merge(joint: Joint, a: Hypotheses, b: Hypotheses) -> Hypotheses:
    """One hypothesis with the first two moments of two; its last change is that of the more probable one."""
    share = jax.nn.sigmoid(b.weight - a.weight)
    difference = joint.space.minus(b.z, a.z)
    more_likely = jax.tree.map(lambda x, y: jnp.where(share > 0.5, y, x), a, b)
    return Hypotheses(
        joint.space.plus(a.z, share * difference),
        a.P + share * (b.P - a.P) + share * (1.0 - share) * difference[:, None] * difference,
        jnp.logaddexp(a.weight, b.weight),
        more_likely.age,
        more_likely.before_change,
        more_likely.before_change_std,
    )


def change_times(
    t: Float[Array | np.ndarray, " n"], since_change: Float[Array | np.ndarray, " n"]
) -> tuple[float, ...]:
    """Times at which the parameters changed.

    Args:
        t: times of the n estimates, s.
        since_change: time since the last change, s, from `AdaptiveEstimate`.
    Returns:
        Change times in s, ascending, on which the estimates agreed for at least 0.1 s.
    """
    t, since_change = np.asarray(t), np.asarray(since_change)
    change_t = t - since_change
    starts = np.flatnonzero(np.abs(np.diff(change_t, prepend=np.inf)) > _SAME_TIME)
    ends = np.append(starts[1:], len(t)) - 1
    candidates = [
        float(change_t[b])
        for a, b in zip(starts, ends, strict=True)
        if t[b] - t[a] >= _LEAST_DURATION and since_change[b] < NEVER / 2
    ]
    times: list[float] = []
    for time in sorted(candidates):
        if not times or time - times[-1] > 2 * _SAME_TIME:
            times.append(time)
    return tuple(times)
