"""What one sample does to the force, or to the torque, of a wrench observer: equation 14 of seed 001 over one step.

w^ <- exp(-K T) w^ + (1 - exp(-K T)) / T (rho - rho_last - integral of w_k)
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators import wrench_errors
from rotorid.numerics.cholesky import whiten


class Seen(eqx.Module):
    """What a sample did to one half of the wrench. value: N or N m. seen: whether the defect begins anew; learnt: whether
    the wrench followed. The innovation is in the unit of what was measured."""

    value: Float[Array, " 3"]
    defect: Float[Array, " 3"]
    seen: Bool[Array, ""]
    learnt: Bool[Array, ""]
    errors: Float[Array, "9 9"]
    innovation: Float[Array, " 3"]
    innovation_std: Float[Array, " 3"]
    nis: Float[Array, ""]


def by_momentum(
    wrench: Float[Array, " 3"],
    rho: Float[Array, " 3"],
    defect: Float[Array, " 3"],
    errors: tuple[Float[Array, "9 9"], Float[Array, "9 noises"], Float[Array, "3 noises"]],
    seen: Bool[Array, ""],
    learnt: Bool[Array, ""],
    elapsed: Float[Array, ""],
    gain: Float[Array, " 3"],
    unit: Float[Array, "3 3"],
) -> Seen:
    """Equation 14 solved over the time elapsed (s) since the last momentum.

    errors: covariance, what unit white noises add to it, and to rho (see `wrench_errors`). unit: turns a momentum into what
    was measured.
    """
    P, factors, of_momentum = errors
    decay = jnp.where(learnt, jnp.exp(-gain * elapsed), 1.0)
    follow = jnp.where(learnt, share_per_second(gain, elapsed), 0.0)
    external = rho + defect
    I = jnp.eye(3, dtype=P.dtype)  # noqa: E741
    H = jnp.concatenate([-elapsed * I, I, jnp.zeros_like(I)], axis=1)
    S = wrench_errors.of_innovation(P, factors, of_momentum, H)
    innovation, std, nis = judged(external - wrench * elapsed, S, learnt, unit)
    return Seen(
        value=decay * wrench + follow * external,
        defect=jnp.where(seen, -rho, defect),
        seen=seen,
        learnt=learnt,
        errors=wrench_errors.observed(P, factors, of_momentum, seen, decay, follow, jnp.zeros_like(I)),
        innovation=innovation,
        innovation_std=std,
        nis=nis,
    )


def share_per_second(gain: Float[Array, " 3"], elapsed: Float[Array, ""]) -> Float[Array, " 3"]:
    """(1 - exp(-K T)) / T in 1/s: K where T is 0."""
    T = jnp.where(elapsed > 0.0, elapsed, 1.0)
    return jnp.where(elapsed > 0.0, -jnp.expm1(-gain * T) / T, gain)


def judged(
    innovation: Float[Array, " 3"], S: Float[Array, "3 3"], learnt: Bool[Array, ""], unit: Float[Array, "3 3"]
) -> tuple[Float[Array, " 3"], Float[Array, " 3"], Float[Array, ""]]:
    """An innovation in the unit of what was measured, its standard deviation, and the NIS; zeros where nothing was learnt."""
    (w,) = whiten(jnp.where(learnt, S, jnp.eye(3)), innovation)
    std = jnp.sqrt(jnp.sum((unit @ S) * unit, axis=1))
    return (
        jnp.where(learnt, unit @ innovation, 0.0),
        jnp.where(learnt, std, 0.0),
        jnp.where(learnt, w @ w, 0.0),
    )
