"""The bare multirotor as a user of a general filter package writes it: 10 numbers, no manifold.

    x = (roll, pitch, yaw, position, velocity, mass),   u = (thrust, body rate),   y = the first nine

The sizes are those of rotorid's error state (10) and measurement (9), the smallest that this vehicle allows. One step is
explicit: rates held, r + v dt + a dt^2 / 2. Noise and prior are those of rotorid's own defaults.
"""

from __future__ import annotations

from math import cos, sin, tan

import numpy as np

from benchmarks.flights import RATE, SYSTEM

DT = 1.0 / RATE
GRAVITY = np.array([0.0, 0.0, -9.81])
PROCESS = np.diag(np.array([*SYSTEM.states.noise(), SYSTEM.mass.drift]) ** 2 * DT)
MEASUREMENT = np.diag(np.array(SYSTEM.outputs.noise()) ** 2)
PRIOR = np.diag(np.array([*SYSTEM.states.std(), SYSTEM.mass.std]) ** 2)
START = np.array([0.0] * 9 + [SYSTEM.mass.values[0]])
OBSERVE = np.eye(9, 10)
SIGMA_POINTS = {
    "alpha": 0.5,
    "beta": 2.0,
    "kappa": 0.0,
}  # dynamax's default reaches below a mass of zero


def step(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The state DT seconds later."""
    roll, pitch, yaw = x[:3]
    thrust, p, q, r = u
    sr, cr, sp, cp, sy, cy = sin(roll), cos(roll), sin(pitch), cos(pitch), sin(yaw), cos(yaw)
    turn = sr * q + cr * r
    lift = thrust / x[9]
    ax, ay, az = (
        lift * (cr * sp * cy + sr * sy),
        lift * (cr * sp * sy - sr * cy),
        lift * cr * cp - 9.81,
    )
    rate = np.array([p + turn * sp / cp, cr * q - sr * r, turn / cp, *x[6:9], ax, ay, az, 0.0])
    after = x + DT * rate
    after[3:6] += 0.5 * DT * DT * rate[6:9]
    return after


def step_jacobian(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Of `step`, by hand."""
    roll, pitch, yaw = x[:3]
    thrust, _, q, r = u
    sr, cr, sp, cp, sy, cy = sin(roll), cos(roll), sin(pitch), cos(pitch), sin(yaw), cos(yaw)
    turn, back = sr * q + cr * r, cr * q - sr * r
    F = np.eye(10)
    F[0, 0] += DT * back * tan(pitch)
    F[0, 1] = DT * turn / cp**2
    F[1, 0] = -DT * turn
    F[2, 0] = DT * back / cp
    F[2, 1] = DT * turn * sp / cp**2
    F[3, 6] = F[4, 7] = F[5, 8] = DT
    lift = DT * thrust / x[9]
    F[6:9, :3] = [
        [lift * (cr * sy - sr * sp * cy), lift * cr * cp * cy, lift * (sr * cy - cr * sp * sy)],
        [lift * (-sr * sp * sy - cr * cy), lift * cr * cp * sy, lift * (cr * sp * cy + sr * sy)],
        [-lift * sr * cp, -lift * cr * sp, 0.0],
    ]
    lost = -lift / x[9]
    F[6, 9], F[7, 9], F[8, 9] = (
        lost * (cr * sp * cy + sr * sy),
        lost * (cr * sp * sy - sr * cy),
        lost * cr * cp,
    )
    F[3:6, :3] = 0.5 * DT * F[6:9, :3]
    F[3:6, 9] = 0.5 * DT * F[6:9, 9]
    return F
