"""Torque of each rotor per newton of its thrust, from a torque balance.

    torque = sum_i c_i T_i - k omega + b      for each axis, by ridge regression

c_i is the torque of rotor i per newton (prior: of the size of the largest lever). Its sign is that of the entry of the
allocation, however wrong inertia and thrust curve are. k is the damping: without it, commands that sustain a rotation would
seem to have no effect.

The common effect of all rotors is hardly excited near hover, so that the prior decides it: levers about a centre of mass add
up to about zero. The standard deviation is the larger one of that of white residuals and that of the delete-one-block
jackknife: residuals are autocorrelated, and a bump on the ground or a landing is no evidence, however large it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.identification.rotor_geometry.torque_balance import TorqueBalance
from rotorid.models.airframe.airframe import Airframe, Rotor
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of

_ROWS: Final = 60
_BLOCKS: Final = 10


class LeverArms(NamedTuple):
    """Torque of each rotor per newton about each axis, N m per N, body frame, and its standard deviation."""

    value: Float[np.ndarray, "3 rotors"]
    std: Float[np.ndarray, "3 rotors"]


def lever_arms(rows: TorqueBalance, airframe: Airframe) -> LeverArms | None:
    """Torque of each rotor per newton about each axis.

    Args:
        rows: of a flight.
        airframe: its rotors give the size of the prior.
    Returns:
        The estimate; None where there are too few rows.
    """
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    thrust, rate = rows.thrust - rows.thrust.mean(axis=0), rows.rate - rows.rate.mean(axis=0)
    G = torques_per_newton(airframe.rotors, torque_ratio_of(airframe))
    blocks = np.array_split(np.arange(n), _BLOCKS)
    c, std = np.zeros((3, rotors)), np.zeros((3, rotors))
    for axis in range(3):
        x = np.column_stack([thrust, rate[:, axis], np.ones(n)])
        y, size = rows.torque[:, axis], max(float(np.abs(G[axis]).max()), 1e-12)
        spread, weight = max(float(np.std(y)), 1e-12), np.ones(n)
        solution, H, prior = np.zeros(rotors + 2), np.eye(rotors + 2), np.zeros(rotors + 2)
        for _ in range(4):  # Huber weights reduce the influence of outliers
            prior = np.append(np.full(rotors, (spread / size) ** 2), [0.0, 0.0])
            H = (x * weight[:, None]).T @ x + np.diag(prior)
            solution = np.linalg.lstsq(H, x.T @ (weight * y), rcond=None)[0]  # H is singular without rotation
            residual = y - x @ solution
            spread = max(1.4826 * float(np.median(np.abs(residual - np.median(residual)))), 1e-9 * size)
            weight = np.minimum(1.0, 1.5 * spread / np.maximum(np.abs(residual), 1e-300))
        without = []
        for block in blocks:
            kept = np.where(np.isin(np.arange(n), block), 0.0, weight)
            part = (x * kept[:, None]).T @ x + np.diag(prior)
            without.append(np.linalg.lstsq(part, x.T @ (kept * y), rcond=None)[0])
        white = spread**2 * np.diag(np.linalg.pinv(H, hermitian=True))
        jackknife = (_BLOCKS - 1) / _BLOCKS * np.sum((np.array(without) - solution) ** 2, axis=0)
        c[axis], std[axis] = solution[:rotors], np.sqrt(np.maximum(white, jackknife))[:rotors]
    return LeverArms(c, std)


def torques_per_newton(rotors: Sequence[Rotor], torque_ratio: float) -> Float[np.ndarray, "3 rotors"]:
    """Torque of each rotor per newton by its place, axis and direction, N m per N. torque_ratio: m."""
    return fixed_allocation(rotors, torque_ratio)[3:]
