"""Heads of residuals for a multirotor.

"split" (Alharbat 2025, eq. 29): the inputs of the translation head are the velocity in the world frame and the rotor
thrusts, those of the rotation head the body rate and the rotor thrusts. Each head has 64 rectified nodes. No head has
the attitude as an input.

"body": the inputs are the velocity in the body frame, the body rate and the rotor thrusts, and the outputs are in the
body frame. In this frame, errors of thrust coefficients, geometry, mass, inertia and linear drag are linear in the
inputs. Each head therefore has a linear part besides its nodes.
"""

from __future__ import annotations

from typing import Literal

from rotorid.errors import SettingError
from rotorid.models.residual import Head

Architecture = Literal["split", "body"]
ARCHITECTURES: tuple[Architecture, ...] = ("split", "body")


def multirotor_heads(
    architecture: str = "body", hidden: int = 64, *, fades: bool = False
) -> tuple[Head, ...]:
    """Make the heads of a residual for velocity and body rate.

    Args:
        architecture: "body": inputs and outputs in the body frame, with a linear part beside the nodes. "split": velocity
            (world) and thrusts for the one head, body rate and thrusts for the other.
        hidden: number of nodes of each head.
        fades: whether they go to 0 beyond their training inputs.
    Returns:
        The heads of the two blocks.
    Raises:
        SettingError: an unknown architecture.
    Source: Alharbat 2025, eq. 29, for "split".
    """
    if architecture not in ARCHITECTURES:
        raise SettingError(f"no architecture {architecture!r}; choose from {', '.join(ARCHITECTURES)}")
    if architecture == "split":
        return (
            Head("velocity", ("velocity", "rotor_thrust"), hidden=hidden, fades=fades),
            Head("body_rate", ("body_rate", "rotor_thrust"), hidden=hidden, fades=fades),
        )
    inputs = ("velocity", "body_rate", "rotor_thrust")
    return tuple(
        Head(block, inputs, turned=("velocity",), hidden=hidden, activation="tanh", linear=True, fades=fades)
        for block in ("velocity", "body_rate")
    )
