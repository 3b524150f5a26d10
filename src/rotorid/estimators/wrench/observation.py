"""Update of the force, or of the torque, of a wrench observer by one sample: equation 14 of Alharbat 2025 over one step.

w^ <- exp(-K T) w^ + (1 - exp(-K T)) / T (rho - rho_last - integral of w_k)
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.wrench import error_covariance
from rotorid.numerics.cholesky import whiten


class WrenchUpdate(eqx.Module):
    """Force or torque after a sample.

    Attributes:
        value: N or N m.
        defect: of the momentum balance, N s or N m s.
        is_measured: whether the momentum was measured, so that its balance restarts.
        is_updated: whether the value was updated.
        errors: covariance, see `error_covariance`.
        innovation, innovation_std: in the unit of the measured output.
        nis: normalised innovation squared, over three dimensions.
    """

    value: Float[Array, " 3"]
    defect: Float[Array, " 3"]
    is_measured: Bool[Array, ""]
    is_updated: Bool[Array, ""]
    errors: Float[Array, "9 9"]
    innovation: Float[Array, " 3"]
    innovation_std: Float[Array, " 3"]
    nis: Float[Array, ""]


def momentum_update(
    wrench: Float[Array, " 3"],
    rho: Float[Array, " 3"],
    defect: Float[Array, " 3"],
    errors: tuple[Float[Array, "9 9"], Float[Array, "9 noises"], Float[Array, "3 noises"]],
    is_measured: Bool[Array, ""],
    is_updated: Bool[Array, ""],
    elapsed: Float[Array, ""],
    gain: Float[Array, " 3"],
    unit: Float[Array, "3 3"],
) -> WrenchUpdate:
    """Equation 14, solved over the time since the last measured momentum.

    Args:
        wrench: estimate of force (N) or torque (N m) before.
        rho: momentum now.
        defect: of the momentum balance.
        errors: covariance of (e, r, s), and factors of unit white noises in it and in rho (see `error_covariance`).
        is_measured: whether rho was measured. is_updated: whether the wrench is updated by it.
        elapsed: s since the last measured momentum.
        gain: K, 1/s.
        unit: matrix from a momentum to the measured output.
    Source: Alharbat 2025, eq. 14.
    """
    P, factors, momentum_noise = errors
    decay = jnp.where(is_updated, jnp.exp(-gain * elapsed), 1.0)
    share = jnp.where(is_updated, share_per_second(gain, elapsed), 0.0)
    external = rho + defect
    I = jnp.eye(3, dtype=P.dtype)  # noqa: E741
    H = jnp.concatenate([-elapsed * I, I, jnp.zeros_like(I)], axis=1)
    S = error_covariance.innovation_covariance(P, factors, momentum_noise, H)
    innovation, std, nis = normalised_innovation(external - wrench * elapsed, S, is_updated, unit)
    return WrenchUpdate(
        value=decay * wrench + share * external,
        defect=jnp.where(is_measured, -rho, defect),
        is_measured=is_measured,
        is_updated=is_updated,
        errors=error_covariance.update_errors(
            P, factors, momentum_noise, is_measured, decay, share, jnp.zeros_like(I)
        ),
        innovation=innovation,
        innovation_std=std,
        nis=nis,
    )


def share_per_second(gain: Float[Array, " 3"], elapsed: Float[Array, ""]) -> Float[Array, " 3"]:
    """(1 - exp(-K T)) / T in 1/s: K where T is 0."""
    T = jnp.where(elapsed > 0.0, elapsed, 1.0)
    return jnp.where(elapsed > 0.0, -jnp.expm1(-gain * T) / T, gain)


def normalised_innovation(
    innovation: Float[Array, " 3"],
    S: Float[Array, "3 3"],
    is_updated: Bool[Array, ""],
    unit: Float[Array, "3 3"],
) -> tuple[Float[Array, " 3"], Float[Array, " 3"], Float[Array, ""]]:
    """An innovation of covariance S in the unit of the measured output, its standard deviation, and its NIS; zeros where the
    wrench is not updated."""
    (w,) = whiten(jnp.where(is_updated, S, jnp.eye(3)), innovation)
    std = jnp.sqrt(jnp.sum((unit @ S) * unit, axis=1))
    return (
        jnp.where(is_updated, unit @ innovation, 0.0),
        jnp.where(is_updated, std, 0.0),
        jnp.where(is_updated, w @ w, 0.0),
    )
