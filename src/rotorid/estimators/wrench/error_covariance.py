"""How errors of the measurements become errors of an observed wrench: linear, and exact for white noise.

For the force, and likewise for the torque, three errors of three numbers are followed together:

    e = w^ - w        of the wrench
    r                 of the momentum defect, -rho(last measured) - integral of the known wrench since
    s                 of what the known wrench turns on: the attitude (rad, body) for the force, the body rate for the torque

A measured momentum enters twice, when it comes and as what the next one is compared with, so that white noise of the
momentum is not white noise of its increments; e and r are correlated by just that.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.numerics.products import product

Matrix = Float[Array, "3 3"]
Errors = Float[Array, "9 9"]
"""Covariance of (e, r, s)."""


def at_start(std: Float[Array, " 3"], s_std: Float[Array, " 3"]) -> Errors:
    """Errors before anything was measured."""
    return jnp.diag(jnp.concatenate([std, jnp.zeros(3, std.dtype), s_std]) ** 2)


def predicted(
    errors: Errors,
    known_by_s: Matrix,
    s_by_wrench: Matrix,
    drift: Float[Array, " 3"],
    s_growth: Float[Array, " 3"],
) -> Errors:
    """Errors a step later. known_by_s: integral of the known wrench over s. s_by_wrench: what an error of the wrench adds to s.

    drift, s_growth: standard deviations that w and s get meanwhile.
    """
    I, O = jnp.eye(3, dtype=errors.dtype), jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    F = jnp.block([[I, O, O], [O, I, -known_by_s], [s_by_wrench, O, I]])
    noise = jnp.concatenate([drift, jnp.zeros(3, errors.dtype), s_growth]) ** 2
    return _moved(errors, F) + jnp.diag(noise)


def with_measured_s(
    errors: Errors, seen: Bool[Array, ""], known_by_s: Matrix, std: Float[Array, " 3"]
) -> tuple[Errors, Float[Array, "9 3"]]:
    """Errors without the noise of a fresh s, and what that noise (standard deviation std) adds, as a factor of one.

    known_by_s: integral of the known wrench over the end's s, which is now taken with the measured one.
    """
    I, O = jnp.eye(3, dtype=errors.dtype), jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    share = jnp.where(seen, 1.0, 0.0)
    F = jnp.block([[I, O, O], [O, I, share * known_by_s], [O, O, (1.0 - share) * I]])
    G = jnp.concatenate([O, -share * known_by_s, share * I])
    return _moved(errors, F), G * std


def observed(
    errors: Errors,
    factors: Float[Array, "9 noises"],
    of_momentum: Float[Array, "3 noises"],
    seen: Bool[Array, ""],
    decay: Float[Array, " 3"],
    gain: Float[Array, " 3"],
    by_s: Matrix,
) -> Errors:
    """Errors after w^ <- decay w^ + gain (rho + defect) + by_s s, where seen; the balance then restarts from rho.

    factors, of_momentum: what unit white noises add to (e, r, s) and to rho. decay is 1 and gain and by_s 0 where the wrench
    is not to learn from this momentum.
    """
    O = jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    kept = jnp.where(seen, 0.0, 1.0) * jnp.eye(3, dtype=errors.dtype)
    F = jnp.block([[jnp.diag(decay), jnp.diag(gain), by_s], [O, kept, O], [O, O, jnp.eye(3)]])
    direct = jnp.concatenate(
        [gain[:, None] * of_momentum, jnp.where(seen, -of_momentum, 0.0), jnp.zeros_like(of_momentum)]
    )
    G = product(F, factors) + direct
    return _moved(errors, F) + product(G, G.T)


def of_innovation(
    errors: Errors,
    factors: Float[Array, "9 noises"],
    of_momentum: Float[Array, "3 noises"],
    H: Float[Array, "3 9"],
) -> Matrix:
    """Covariance of H (e, r, s) + the noise of rho."""
    G = product(H, factors) + of_momentum
    return product(product(H, errors), H.T) + product(G, G.T)


def _moved(P: Errors, F: Float[Array, "9 9"]) -> Errors:
    return product(product(F, P), F.T)
