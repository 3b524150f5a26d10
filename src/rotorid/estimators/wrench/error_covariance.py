"""Propagation of measurement errors to an observed wrench: linear, and exact for white noise.

For the force, and likewise for the torque, the joint covariance of three errors of three numbers is propagated:

    e = w^ - w        of the wrench
    r                 of the momentum defect, -rho(last measured) - integral of the known wrench since
    s                 of the state that the known wrench depends on: attitude (rad, body) for the force, rate for the torque

A measured momentum enters twice, at its own sample and as the reference of the next one. White noise of the momentum is
therefore not white noise of its increments, and e and r are correlated.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.numerics.products import congruence, mirrored, product

Matrix = Float[Array, "3 3"]
Errors = Float[Array, "9 9"]
"""Covariance of (e, r, s)."""


def initial_errors(std: Float[Array, " 3"], s_std: Float[Array, " 3"]) -> Errors:
    """Errors before the first measurement."""
    return jnp.diag(jnp.concatenate([std, jnp.zeros(3, std.dtype), s_std]) ** 2)


def propagate_errors(
    errors: Errors,
    wrench_by_s: Matrix,
    s_by_wrench: Matrix,
    drift: Float[Array, " 3"],
    s_growth: Float[Array, " 3"],
) -> Errors:
    """Errors a step later. wrench_by_s: integral of d(known wrench) / ds. s_by_wrench: ds / d(wrench) over the step.

    drift, s_growth: standard deviations added to w and s.
    """
    I, O = jnp.eye(3, dtype=errors.dtype), jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    F = jnp.block([[I, O, O], [O, I, -wrench_by_s], [s_by_wrench, O, I]])
    noise = jnp.concatenate([drift, jnp.zeros(3, errors.dtype), s_growth]) ** 2
    return congruence(F, errors, noise)


def with_measured_s(
    errors: Errors, is_measured: Bool[Array, ""], wrench_by_s: Matrix, std: Float[Array, " 3"]
) -> tuple[Errors, Float[Array, "9 3"]]:
    """Errors after a measurement of s, without its noise, and the factor of that noise (standard deviation std).

    wrench_by_s: integral of d(known wrench) / ds at the end of the step, which now uses the measured s.
    """
    I, O = jnp.eye(3, dtype=errors.dtype), jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    share = jnp.where(is_measured, 1.0, 0.0)
    F = jnp.block([[I, O, O], [O, I, share * wrench_by_s], [O, O, (1.0 - share) * I]])
    G = jnp.concatenate([O, -share * wrench_by_s, share * I])
    return congruence(F, errors), G * std


def update_errors(
    errors: Errors,
    factors: Float[Array, "9 noises"],
    momentum_noise: Float[Array, "3 noises"],
    is_measured: Bool[Array, ""],
    decay: Float[Array, " 3"],
    gain: Float[Array, " 3"],
    by_s: Matrix,
) -> Errors:
    """Errors after w^ <- decay w^ + gain (rho + defect) + by_s s, where measured; the balance then restarts from rho.

    factors, momentum_noise: factors of unit white noises in (e, r, s) and in rho. Where the wrench is not updated, decay is 1,
    gain and by_s are 0.
    """
    O = jnp.zeros((3, 3), errors.dtype)  # noqa: E741
    retention = jnp.where(is_measured, 0.0, 1.0) * jnp.eye(3, dtype=errors.dtype)
    F = jnp.block([[jnp.diag(decay), jnp.diag(gain), by_s], [O, retention, O], [O, O, jnp.eye(3)]])
    direct = jnp.concatenate(
        [
            gain[:, None] * momentum_noise,
            jnp.where(is_measured, -momentum_noise, 0.0),
            jnp.zeros_like(momentum_noise),
        ]
    )
    G = product(F, factors) + direct
    return mirrored(congruence(F, errors) + product(G, G.T))


def innovation_covariance(
    errors: Errors,
    factors: Float[Array, "9 noises"],
    momentum_noise: Float[Array, "3 noises"],
    H: Float[Array, "3 9"],
) -> Matrix:
    """Covariance of H (e, r, s) + the noise of rho."""
    G = product(H, factors) + momentum_noise
    return congruence(H, errors) + product(G, G.T)
