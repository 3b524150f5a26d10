"""Rotor flapping with hysteresis: a wrench that depends on the history of the velocity, and that no parameter of the rigid
multirotor describes.

    dz_i = dv_i / s (1 - |z_i| (1 + sgn(z_i dv_i)) / 2)        z in (-1, 1)
    f = -F (z_x, z_y, 0)        tau = (0, 0, h) x f             body frame

v is the velocity in the body frame. A velocity that rises pushes z along another curve than one that falls, so that the force
at a velocity has two values. The model is that of R. Bouc and Y.-K. Wen (Y.-K. Wen, Method for random vibration of hysteretic
systems, J. Eng. Mech. 102, 1976) with n = 1, in the velocity; its force is along the rotor planes, which lie h above the centre
of mass.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64


@dataclasses.dataclass(frozen=True)
class Flapping:
    """Rotor flapping with hysteresis: a wrench that depends on the history of the velocity.

    force: largest force, N. speed: scale of the velocity, m/s. height: height of the rotor planes above the centre of mass,
    m.
    """

    force: float = 1.5
    speed: float = 0.5
    height: float = 0.06

    def step(
        self, z: Float64[np.ndarray, " 2"], change: Float64[np.ndarray, " 2"]
    ) -> Float64[np.ndarray, " 2"]:
        """The state z of the hysteresis after a small change of the velocity (m/s, body x and y)."""
        return np.clip(
            z + change / self.speed * (1.0 - np.abs(z) * 0.5 * (1.0 + np.sign(z * change))), -1.0, 1.0
        )

    def wrench(
        self, z: Float64[np.ndarray, " 2"], rotation: Float64[np.ndarray, "3 3"]
    ) -> Float64[np.ndarray, " 6"]:
        """Force (N, world) and torque (N m, body) at the state z. rotation: from body to world."""
        fx, fy = -self.force * z
        return np.concatenate(
            [rotation @ np.array([fx, fy, 0.0]), [-self.height * fy, self.height * fx, 0.0]]
        )
