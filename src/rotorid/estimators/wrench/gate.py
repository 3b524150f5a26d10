"""Gate of a wrench observer: it rejects sensor glitches, and accepts sudden contact forces.

A measured block y of three numbers is compared with the prediction under the estimated wrench. It is implausible where

    sum ((y - y^) / std)^2  is beyond the chi-square quantile of `gate` standard deviations, 3 degrees of freedom
    std^2 = 2 noise^2 + (error of the wrench) ^2 + (effect of a jump of the wrench since it was last accepted)^2

A jump is as large as `JUMP` standard deviations of the wrench's prior. An implausible block is not used, so that the
next row counts for the whole time since. After `FEW` rows it is accepted in any case, and the momentum observer then takes the
impulse as that of a constant wrench over this time.
"""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.monitoring import chi_square_quantile
from rotorid.geometry.spaces import Space

GATED: Final = ("attitude", "velocity", "body_rate", "specific_force")
"""Outputs that are gated, in the order of the flags here."""

JUMP: Final = 3.0
FEW: Final = 3

NEVER: Final = 1e3
"""Initial time since an output was last accepted, s: so long that any first measurement passes."""

Flags = Bool[Array, " gated"]
Blocks = dict[str, Float[Array, " 3"]]


def is_accepted(
    difference: Blocks,
    std: Blocks,
    measured: Flags,
    rejected: Float[Array, " gated"],
    gate: Float[Array, ""],
) -> Flags:
    """Which of the measured outputs are used. rejected: number of consecutive rows for which each was rejected."""
    limit = chi_square_quantile(gate, 3)
    implausible = jnp.stack([jnp.sum((difference[name] / std[name]) ** 2) > limit for name in GATED])
    return measured & ~(implausible & (rejected < FEW))


def stds(
    outputs: Space,
    noise: Float[Array, " measured"],
    wrench_std: Float[Array, " 6"],
    prior_std: Float[Array, " 6"],
    mass: Float[Array, ""],
    inertia: Float[Array, " 3"],
    since_accepted: Float[Array, " gated"],
) -> Blocks:
    """Standard deviation of measured less expected, by output.

    wrench_std, prior_std: of force (N) and torque (N m). since_accepted: s since each output was last accepted.
    """
    linear = jnp.hypot(wrench_std[:3], JUMP * prior_std[:3]) / mass
    angular = jnp.hypot(wrench_std[3:], JUMP * prior_std[3:]) / inertia
    rate = noise[outputs.tangent["body_rate"]]
    reach = {
        "attitude": since_accepted[0] * (rate + 0.5 * since_accepted[2] * angular),
        "velocity": since_accepted[1] * linear,
        "body_rate": since_accepted[2] * angular,
        "specific_force": JUMP * linear,
    }
    return {name: jnp.hypot(jnp.sqrt(2.0) * noise[outputs.tangent[name]], reach[name]) for name in GATED}
