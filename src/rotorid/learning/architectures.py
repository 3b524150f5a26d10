"""Ready-made heads of residuals for a multirotor.

"split" is the seed's (seed 001, eq. 29): the translation learns from the velocity in the world and the rotor thrusts, the
rotation from the body rate and the rotor thrusts, by 64 rectified nodes each. It cannot know where the vehicle points.

"body" sees the velocity in the body frame, the body rate and the rotor thrusts, and works there: wrong thrust coefficients,
geometry, mass, inertia and linear drag are then a linear map, which each head has beside its nodes.
"""

from __future__ import annotations

from typing import Literal

from rotorid.errors import SettingError
from rotorid.models.residual import Head

Architecture = Literal["split", "body"]
ARCHITECTURES: tuple[Architecture, ...] = ("split", "body")


def multirotor_heads(architecture: str = "body", hidden: int = 64) -> tuple[Head, ...]:
    """Make the heads of a residual for velocity and body rate.

    Args:
        architecture: "body" or "split", see the module.
        hidden: number of nodes of each head.
    Returns:
        The heads of the two blocks.
    Raises:
        SettingError: an unknown architecture.
    Source: seed 001, eq. 29, for "split".
    """
    if architecture not in ARCHITECTURES:
        raise SettingError(f"no architecture {architecture!r}; there are {', '.join(ARCHITECTURES)}")
    if architecture == "split":
        return (
            Head("velocity", ("velocity", "rotor_thrust"), hidden=hidden),
            Head("body_rate", ("body_rate", "rotor_thrust"), hidden=hidden),
        )
    inputs = ("velocity", "body_rate", "rotor_thrust")
    return tuple(
        Head(block, inputs, turned=("velocity",), hidden=hidden, activation="tanh", linear=True)
        for block in ("velocity", "body_rate")
    )
