"""Whether the rotors are where the airframe has them: by the direction in which each rotates the vehicle.

    torque = sum_i c_i T_i - k omega + b      for each axis, by ridge regression

c_i is the torque of rotor i per newton (prior: of the size of the largest lever). Its sign is that of the entry of the
allocation, however wrong inertia and thrust curve are. k is the damping: without it, commands that sustain a rotation would
seem to have no effect.

The common effect of all rotors is hardly excited near hover, so that the prior decides it: levers about a centre of mass add
up to about zero. A sign is wrong where c_i is on the other side of 0 by many standard deviations and by a large share of its
value. The standard deviation is the larger one of that of white residuals and that of the delete-one-block jackknife: residuals
are autocorrelated, and a bump on the ground or a landing is no evidence, however large it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.workflows.identify.preparation import TorqueBalance
from rotorid.workflows.identify.request import FitRequest

_ROWS: Final = 60
_BLOCKS: Final = 10
_SIGMAS: Final = 5.0
_LARGE: Final = 0.25  # of the airframe's lever
_VERBS: Final = ("rolls", "pitches", "yaws")
_ENTRIES: Final = ("position y", "position x", "direction")


def check_geometry(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Raise AirframeError where a rotor rotates the vehicle in the other direction than the airframe says."""
    for flight in request.preparation.torque_balanced:
        errors = geometry_errors(flight.torque_balance, flight.airframe)
        if errors:
            raise AirframeError(f"{flight.airframe.source}: in {flight.name} {errors[0]}; check [[rotor]]")
    return request, []


def geometry_errors(rows: TorqueBalance, airframe: Airframe) -> list[str]:
    """What contradicts the airframe's rotors in these rows, a clause each; none where there are too few rows."""
    estimate = lever_arms(rows, airframe)
    if estimate is None:
        return []
    c, std = estimate
    G = _torques(airframe)
    wrong_signs = _wrong_signs(G, c, std)
    if not wrong_signs.any():
        return []
    permutation = _swap(G, c, std)
    if permutation is not None:
        a, b = permutation
        return [f"rotors {a} and {b} are exchanged: their order in the airframe or in the log is wrong"]
    return [
        f"rotor {i} {_VERBS[axis]} the vehicle in the wrong direction ({c[axis, i]:.3g} ± {std[axis, i]:.1g} N m per N, where "
        f"its {_ENTRIES[axis]} gives {G[axis, i]:.3g}): it is mirrored, or the order is wrong"
        for i in range(G.shape[1])
        for axis in range(3)
        if wrong_signs[axis, i]
    ]


def lever_arms(
    rows: TorqueBalance, airframe: Airframe
) -> tuple[Float[np.ndarray, "3 rotors"], Float[np.ndarray, "3 rotors"]] | None:
    """Torque of each rotor per newton about each axis, N m per N, and its standard deviation; None where there are too few
    rows."""
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    thrust, rate = rows.thrust - rows.thrust.mean(axis=0), rows.rate - rows.rate.mean(axis=0)
    G = _torques(airframe)
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
            solution = np.linalg.solve(H, x.T @ (weight * y))
            residual = y - x @ solution
            spread = max(1.4826 * float(np.median(np.abs(residual - np.median(residual)))), 1e-9 * size)
            weight = np.minimum(1.0, 1.5 * spread / np.maximum(np.abs(residual), 1e-300))
        without = []
        for block in blocks:
            kept = np.where(np.isin(np.arange(n), block), 0.0, weight)
            part = (x * kept[:, None]).T @ x + np.diag(prior)
            without.append(np.linalg.lstsq(part, x.T @ (kept * y), rcond=None)[0])
        white = spread**2 * np.diag(np.linalg.inv(H))
        jackknife = (_BLOCKS - 1) / _BLOCKS * np.sum((np.array(without) - solution) ** 2, axis=0)
        c[axis], std[axis] = solution[:rotors], np.sqrt(np.maximum(white, jackknife))[:rotors]
    return c, std


def _torques(airframe: Airframe) -> Float[np.ndarray, "3 rotors"]:
    return np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]


def _wrong_signs(G: np.ndarray, c: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Which torques have the other sign than the allocation."""
    against = -np.sign(G) * c
    is_relevant = np.abs(G) > 0.2 * np.abs(G).max(axis=1, keepdims=True)
    return is_relevant & (against > _SIGMAS * std) & (against > _LARGE * np.abs(G))


def _swap(G: np.ndarray, c: np.ndarray, std: np.ndarray) -> Sequence[int] | None:
    """Two rotors whose exchange explains all wrong signs."""
    for pair in combinations(range(G.shape[1]), 2):
        order = list(range(G.shape[1]))
        a, b = pair
        order[a], order[b] = b, a
        if not _wrong_signs(G[:, order], c, std).any():
            return pair
    return None
