"""Resampling of weighted particles, on logarithms of weights, in linear time.

    W_i = exp(l_i - logsumexp(l)),    C_i = W_1 + ... + W_i

A scheme chooses points 0 < U_1 <= ... <= U_M < 1, and the ancestor of point j is the first i with C_i > U_j:

    systematic     U_j = (j - 1 + u) / M, one u
    stratified     U_j = (j - 1 + u_j) / M
    multinomial    order statistics of M uniforms, by exponential spacings
    residual       floor(M W_i) copies each, and multinomial draws of what is left

Of sorted points it is enough to know K_i, how many lie under C_i: ancestor j is the number of i with K_i <= j, so one scatter
and one sum do it, without a search. Each scheme gives particle i M W_i copies in the mean, so sums stay unbiased.

References: G. Kitagawa, J. Comput. Graph. Statist. 5 (1996) 1-25; J. Liu, R. Chen, JASA 93 (1998) 1032-1044; R. Douc, O. Cappé,
E. Moulines, Comparison of resampling schemes for particle filtering, ISPA 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from rotorid.numerics.draws import Stream, uniforms

Scheme = Literal["systematic", "stratified", "multinomial", "residual"]

_BLOCK = 16


class Normalised(NamedTuple):
    """Weights that sum to 1, the logarithm of their sum before, and whether there was any weight: where there was none they are
    equal, and the logarithm is -inf."""

    weights: Float[Array, " n"]
    log_sum: Float[Array, ""]
    has_weight: Bool[Array, ""]


class Resampled(NamedTuple):
    """Index of the ancestor of each new particle, in order, and whether there was any weight (else all are copied alike)."""

    ancestors: Int32[Array, " m"]
    has_weight: Bool[Array, ""]


def normalise(log_weights: Float[Array, " n"]) -> Normalised:
    """Weights from their logarithms. A logarithm that is no number, or infinite, is weight 0."""
    l = jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf)  # noqa: E741
    top = jnp.max(l)
    has_weight = top > -jnp.inf
    w = jnp.exp(l - jnp.where(has_weight, top, 0.0))
    total = jnp.sum(w)
    weights = jnp.where(has_weight, w / jnp.where(has_weight, total, 1.0), 1.0 / l.shape[0])
    return Normalised(weights, jnp.where(has_weight, top + jnp.log(total), -jnp.inf), has_weight)


def effective_sample_size(log_weights: Float[Array, " n"]) -> Float[Array, ""]:
    """1 / sum W_i^2: the number of equal weights of the same variance (Kong, Liu, Wong 1994); n if all weights are 0."""
    return 1.0 / jnp.sum(normalise(log_weights).weights ** 2)


def prefix_sum(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x_1, x_1 + x_2, ...: by blocks, each times a triangle of ones, in a third of the time of `jnp.cumsum` on a CPU."""
    n = x.shape[0]
    if n <= 2 * _BLOCK:
        return jnp.cumsum(x)
    rows = -(-n // _BLOCK)
    blocks = jnp.concatenate([x, jnp.zeros(rows * _BLOCK - n, x.dtype)]).reshape(rows, _BLOCK)
    within = jnp.matmul(
        blocks, jnp.triu(jnp.ones((_BLOCK, _BLOCK), x.dtype)), precision=jax.lax.Precision.HIGHEST
    )
    offsets = jnp.concatenate([jnp.zeros(1, x.dtype), prefix_sum(within[:, -1])[:-1]])
    return (within + offsets[:, None]).reshape(-1)[:n]


def systematic(key: PRNGKeyArray, log_weights: Float[Array, " n"], count: int | None = None) -> Resampled:
    """count ancestors (n where None) by one uniform number: the least noise for the least work."""
    return _resampled("systematic", key, log_weights, count)


def stratified(key: PRNGKeyArray, log_weights: Float[Array, " n"], count: int | None = None) -> Resampled:
    """count ancestors (n where None), one from each m-th of the weights."""
    return _resampled("stratified", key, log_weights, count)


def multinomial(key: PRNGKeyArray, log_weights: Float[Array, " n"], count: int | None = None) -> Resampled:
    """count independent ancestors (n where None), in order."""
    return _resampled("multinomial", key, log_weights, count)


def residual(key: PRNGKeyArray, log_weights: Float[Array, " n"], count: int | None = None) -> Resampled:
    """count ancestors (n where None): whole copies first, independent draws of the fractions for the rest."""
    return _resampled("residual", key, log_weights, count)


def ancestors(scheme: Scheme, key: Stream, weights: Float[Array, " n"], m: int) -> Int32[Array, " m"]:
    """m ancestors by weights that sum to 1."""
    n, dtype = weights.shape[0], weights.dtype
    if scheme == "systematic":
        u = uniforms(key, ()).astype(dtype)
        return _from_counts(jnp.ceil(m * _cumulative(weights) - u), m)
    if scheme == "stratified":
        u = uniforms(key, (m,)).astype(dtype)
        place = m * _cumulative(weights)
        copies = jnp.floor(place)
        stratum = jnp.minimum(copies.astype(jnp.int32), m - 1)
        return _from_counts(copies + (u[stratum] < place - copies), m)
    if scheme == "multinomial":
        spaces = prefix_sum(-jnp.log(uniforms(key, (m + 1,)).astype(dtype)))
        indices = jnp.searchsorted(_cumulative(weights), spaces[:-1] / spaces[-1], side="right")
        return jnp.minimum(indices, n - 1).astype(jnp.int32)
    copies = jnp.floor(m * weights * (1.0 + 4.0 * jnp.finfo(dtype).eps))
    fractions = jnp.maximum(m * weights - copies, 0.0)
    places = _cumulative(fractions / jnp.maximum(jnp.sum(fractions), jnp.finfo(dtype).tiny))
    indices_ = jnp.searchsorted(places, uniforms(key, (m,)).astype(dtype), side="right")
    is_drawn = (jnp.arange(m) < m - jnp.sum(copies)).astype(dtype)
    return _from_counts(prefix_sum(copies.at[jnp.minimum(indices_, n - 1)].add(is_drawn)), m)


SCHEMES: dict[str, Callable[..., Resampled]] = {
    "systematic": systematic,
    "stratified": stratified,
    "multinomial": multinomial,
    "residual": residual,
}


def _resampled(
    scheme: Scheme, key: PRNGKeyArray, log_weights: Float[Array, " n"], count: int | None
) -> Resampled:
    weights, _, has_weight = normalise(log_weights)
    return Resampled(ancestors(scheme, key, weights, count or weights.shape[0]), has_weight)


def _cumulative(weights: Float[Array, " n"]) -> Float[Array, " n"]:
    """C, held to 1 from the last particle that has weight on, whatever the rounding."""
    C = prefix_sum(weights)
    total = C[-1]
    return jnp.where(total <= C, 1.0, jnp.minimum(C, 1.0))


def _from_counts(counts: Float[Array, " n"], m: int) -> Int32[Array, " m"]:
    """Ancestors from the counts K_i of the points below each C_i."""
    K = jnp.clip(counts, 0, m).astype(jnp.int32)
    steps = jnp.zeros(m, jnp.int32).at[K].add(1, mode="drop", indices_are_sorted=True)
    return jnp.minimum(prefix_sum(steps.astype(counts.dtype)).astype(jnp.int32), counts.shape[0] - 1)
