"""Monitoring of an estimator: rejected measurements, consistency of the innovations, health."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rotorid.estimators.base import Health
from rotorid.geometry.spaces import Space

RECOVERY = 0.5
"""s for which the health of an estimate is RECOVERING after a reset."""

CONSISTENCY_MEMORY = 0.5
"""s over which the normalised innovations squared are averaged."""

INCONSISTENT = 3.0
"""Mean NIS over its dimension above which the health of an estimate is INCONSISTENT."""

LARGEST_RATIO = 1e6
"""Largest NIS over its dimension that is averaged."""

INFORMED = 0.7
"""A parameter is informed while its standard deviation is below this share of that of its prior."""


class BlockStatus(eqx.Module):
    """The state of the gate of each output block.

    rejection_time: s for which the block has been rejected without interruption. is_awaited: whether its next measurement
    bypasses the gate and sets the state of the same name.
    """

    rejection_time: Float[Array, " blocks"]
    is_awaited: Bool[Array, " blocks"]


class PendingReset(eqx.Module):
    """Resets of the next prediction: states (by tangent dimension) return to their prior, the covariance of the parameters
    is inflated."""

    states: Bool[Array, " tangent"]
    parameters: Bool[Array, ""]


class Consistency(eqx.Module):
    """nis_ratio: running mean of NIS over its dimension, 1 for a consistent filter. recovery_time: s of RECOVERING left."""

    nis_ratio: Float[Array, ""]
    recovery_time: Float[Array, ""]


class Innovation(eqx.Module):
    """The last innovation. value: measured minus predicted, 0 where not measured. std: its predicted standard deviation. nis:
    normalised innovation squared of the accepted measurements, of nis_dof dimensions."""

    value: Float[Array, " measured"]
    std: Float[Array, " measured"]
    nis: Float[Array, ""]
    nis_dof: Int[Array, ""]

    @classmethod
    def none(cls, dim: int, dtype: jnp.dtype) -> Innovation:
        """Before any measurement."""
        zeros = jnp.zeros(dim, dtype)
        return cls(zeros, zeros, jnp.zeros((), dtype), jnp.zeros((), int))


def rejection_times(
    previous: Float[Array, " blocks"],
    is_measured: Bool[Array, " blocks"],
    is_accepted: Bool[Array, " blocks"],
    dt: Float[Array, ""],
) -> Float[Array, " blocks"]:
    """Rejection times (s) after a sample, dt (s) after the one before; a block that was not measured keeps its own."""
    return jnp.where(is_measured, jnp.where(is_accepted, 0.0, previous + dt), previous)


def mean_nis_ratio(
    previous: Float[Array, ""], nis: Float[Array, ""], dof: Int[Array, ""], dt: Float[Array, ""]
) -> Float[Array, ""]:
    """Running mean of NIS over its dimension, after a sample with this NIS over dof dimensions. A sample counts as at most
    `LARGEST_RATIO`, so that a single one is forgotten after some seconds."""
    share = jnp.where(dof > 0, dt / (dt + CONSISTENCY_MEMORY), 0.0)
    return previous + share * (jnp.minimum(nis / jnp.maximum(dof, 1), LARGEST_RATIO) - previous)


def health_of(
    health: Int[Array, ""],
    *,
    is_rejected: Bool[Array, ""],
    is_outside: Bool[Array, ""],
    nis_ratio: Float[Array, ""],
    is_recovering: Bool[Array, ""],
    is_doubtful: Bool[Array, ""] | bool = False,
) -> Int[Array, ""]:
    """The worst health that applies.

    Args:
        health: health without monitoring, OK or NO_INFORMATION.
        is_rejected: whether a measurement was rejected.
        is_outside: whether the model does not hold (see `System.holds`).
        nis_ratio: of `Consistency`.
        is_recovering: whether a reset was less than `RECOVERY` ago.
        is_doubtful: whether the innovations have a bias, not yet large enough for a reset.
    """
    health = jnp.where(is_rejected, int(Health.OUTLIER), health)
    health = jnp.where(is_outside, int(Health.OUT_OF_RANGE), health)
    health = jnp.where((nis_ratio > INCONSISTENT) | is_doubtful, int(Health.INCONSISTENT), health)
    return jnp.where(is_recovering, int(Health.RECOVERING), health)


def measured_blocks(outputs: Space, mask: Bool[Array, " measured"]) -> Bool[Array, " blocks"]:
    """Output blocks of which at least one dimension was measured."""
    return jnp.stack([jnp.any(mask[s]) for s in outputs.tangent.values()])


def complete_blocks(outputs: Space, mask: Bool[Array, " measured"]) -> Bool[Array, " blocks"]:
    """Output blocks of which every dimension was measured."""
    return jnp.stack([jnp.all(mask[s]) for s in outputs.tangent.values()])


def per_dimension(outputs: Space, blocks: Bool[Array, " blocks"]) -> Bool[Array, " measured"]:
    """A flag per output block, repeated for each of its tangent dimensions."""
    return jnp.concatenate(
        [jnp.broadcast_to(blocks[i], (s.stop - s.start,)) for i, s in enumerate(outputs.tangent.values())]
    )


def chi_square_quantile(sigmas: Float[Array, ""], dof: int) -> Float[Array, ""]:
    """Chi-square quantile whose tail is that of a normal beyond sigmas.

    Source: E. Wilson, M. Hilferty, The distribution of chi-square, PNAS 17, 1931 (the cube root is nearly normal).
    """
    spread = 2.0 / (9.0 * dof)
    return dof * (1.0 - spread + sigmas * jnp.sqrt(spread)) ** 3
