"""Drag of a multirotor: force in the world frame, N.

    f = -k v - 1/2 rho A |v| v - k_r sum_i sqrt(T_i) P_i v,    P_i = 1 - a_i a_i^T

v is the velocity through the air. k is a linear drag, A the drag area (drag coefficient times area), and k_r the rotor drag:
the force in a rotor's plane grows with its speed, and so with the root of its thrust T_i, and with the air's speed across it
(blade flapping, induced drag and the momentum of the air that is taken along add up to it). a_i is the rotor's axis.

References: P. Martin, E. Salaun, The true role of accelerometer feedback in quadrotor control, ICRA 2010; M. Faessler,
A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, RA-L 3 (2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.models.airframe.airframe import Rotor
from rotorid.models.system import Values

AIR_DENSITY = 1.225
"""rho of the standard atmosphere at sea level, kg/m^3."""

_STILL = 1e-6  # m/s, N: added in quadrature under a root, whose slope is then finite at 0


def air_force(
    attitude: Float[Array, " 4"],
    velocity: Float[Array, " 3"],
    thrust: Float[Array, " rotors"],
    rotors: Sequence[Rotor],
    p: Values,
) -> Float[Array, " 3"]:
    """f in N, world frame. velocity: through the air, m/s, world. thrust: of each rotor, N. p: drag and, where the model
    has them, rotor_drag (N^0.5 s/m) and drag_area (m^2)."""
    force = -p["drag"] * velocity
    if "drag_area" in p:
        speed = jnp.sqrt(jnp.sum(velocity**2) + _STILL**2)
        force = force - 0.5 * AIR_DENSITY * p["drag_area"] * speed * velocity
    if "rotor_drag" in p:
        root = jnp.sqrt(jnp.maximum(thrust, 0.0) + _STILL)
        a = np.array([rotor.axis for rotor in rotors])
        projections = np.eye(3) - a[:, :, None] * a[:, None, :]
        weighted_projections = jnp.sum(root[:, None, None] * projections, axis=0)
        body_velocity = rotations.rotate(rotations.inverse(attitude), velocity)
        force = force - p["rotor_drag"] * rotations.rotate(
            attitude, jnp.sum(weighted_projections * body_velocity, axis=1)
        )
    return force
