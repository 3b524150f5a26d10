"""Rows that a wrench observer does not believe: glitches of a sensor, as against a sudden push.

A measured block y of three numbers is compared with what the System expects under the observed wrench. It is absurd where

    sum ((y - y^) / std)^2  is beyond the chi-square quantile of `gate` standard deviations, 3 degrees of freedom
    std^2 = 2 noise^2 + (error of the wrench) ^2 + (what a jump of the wrench makes of it since it was last believed)^2

A jump is as large as `JUMP` standard deviations of the wrench's prior. What is absurd in one row is left out, as if it had not
been measured, so that the next row speaks of the whole time since. What is still so after `FEW` rows is no glitch: it is
believed, and an observer by momentum then takes the impulse since as that of a steady wrench over the time since.
"""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.gaussian import chi_square_quantile
from rotorid.geometry.spaces import Space

GATED: Final = ("attitude", "velocity", "body_rate", "specific_force")
"""Outputs that are gated, in the order of the flags here."""

JUMP: Final = 3.0
FEW: Final = 3

NEVER: Final = 1e3
"""s since an output was believed that was not yet: whatever it says is."""

Flags = Bool[Array, " gated"]
Blocks = dict[str, Float[Array, " 3"]]


def believed(
    difference: Blocks,
    std: Blocks,
    measured: Flags,
    rejected: Float[Array, " gated"],
    gate: Float[Array, ""],
) -> Flags:
    """Which of the measured outputs are to be used. rejected: how many rows in a row each was not."""
    limit = chi_square_quantile(gate, 3)
    absurd = jnp.stack([jnp.sum((difference[name] / std[name]) ** 2) > limit for name in GATED])
    return measured & ~(absurd & (rejected < FEW))


def stds(
    outputs: Space,
    noise: Float[Array, " measured"],
    wrench_std: Float[Array, " 6"],
    prior_std: Float[Array, " 6"],
    mass: Float[Array, ""],
    inertia: Float[Array, " 3"],
    since: Float[Array, " gated"],
) -> Blocks:
    """Standard deviation of measured less expected, by output, before which a difference is absurd.

    wrench_std, prior_std: of force (N) and torque (N m). since: s since each output was last believed.
    """
    linear = jnp.hypot(wrench_std[:3], JUMP * prior_std[:3]) / mass
    angular = jnp.hypot(wrench_std[3:], JUMP * prior_std[3:]) / inertia
    rate = noise[outputs.tangent["body_rate"]]
    reach = {
        "attitude": since[0] * (rate + 0.5 * since[2] * angular),
        "velocity": since[1] * linear,
        "body_rate": since[2] * angular,
        "specific_force": JUMP * linear,
    }
    return {name: jnp.hypot(jnp.sqrt(2.0) * noise[outputs.tangent[name]], reach[name]) for name in GATED}
