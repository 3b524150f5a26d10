"""Whether rotors sit where the airframe says: by which way each turns the vehicle.

    torque = sum_i c_i T_i - k omega + b      for each axis, by ridge regression

c_i is what rotor i does per newton (prior: of the size of the largest lever); its sign is that of the entry of the allocation,
however wrong inertia and thrust curve are. k is what damps the turn: without it, commands that keep up a turn would seem to do
nothing.

What the rotors do all alike hardly shows where a vehicle hovers, which the prior settles: levers about a centre of mass add up
to about nothing. A sign is wrong where c_i lies beyond 0 by many of its standard deviations and by much of what it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe import Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.results.turning_rows import TurningRows

_ROWS: Final = 60
_SURE: Final = 5.0  # standard deviations
_LARGE: Final = 0.25  # of what the airframe says
_TURNS: Final = ("rolls", "pitches", "yaws")
_SAYS: Final = ("position y", "position x", "direction")


def geometry_faults(rows: TurningRows, airframe: Airframe) -> list[str]:
    """What contradicts the airframe's rotors in these rows of a flight, a sentence each; none where they do not tell."""
    levers = lever_signs(rows, airframe)
    if levers is None:
        return []
    found, std = levers
    G = _torques(airframe)
    wrong = _wrong(G, found, std)
    if not wrong.any():
        return []
    swapped = _swap(G, found, std)
    if swapped is not None:
        a, b = swapped
        return [
            f"rotors {a} and {b} turn the vehicle as each other should: their order is wrong, or the log's is"
        ]
    return [
        f"rotor {i} {_TURNS[axis]} the vehicle the wrong way ({found[axis, i]:.3g} ± {std[axis, i]:.1g} N m per N, where its "
        f"{_SAYS[axis]} gives {G[axis, i]:.3g}): mirrored, or out of order"
        for i in range(G.shape[1])
        for axis in range(3)
        if wrong[axis, i]
    ]


def lever_signs(
    rows: TurningRows, airframe: Airframe
) -> tuple[Float[np.ndarray, "3 rotors"], Float[np.ndarray, "3 rotors"]] | None:
    """c in N m per N and its standard deviation; None where there are too few rows."""
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    thrust, rate = rows.thrust - rows.thrust.mean(axis=0), rows.rate - rows.rate.mean(axis=0)
    G = _torques(airframe)
    c, std = np.zeros((3, rotors)), np.zeros((3, rotors))
    for axis in range(3):
        x = np.column_stack([thrust, rate[:, axis], np.ones(n)])
        y, size = rows.torque[:, axis], max(float(np.abs(G[axis]).max()), 1e-12)
        spread, weight = max(float(np.std(y)), 1e-12), np.ones(n)
        solution, P = np.zeros(rotors + 2), np.eye(rotors + 2)
        for _ in range(4):  # weights of Huber, so that a knock does not count
            prior = np.append(np.full(rotors, (spread / size) ** 2), [0.0, 0.0])
            P = np.linalg.inv((x * weight[:, None]).T @ x + np.diag(prior))
            solution = P @ (x.T @ (weight * y))
            left = y - x @ solution
            spread = max(1.4826 * float(np.median(np.abs(left - np.median(left)))), 1e-9 * size)
            weight = np.minimum(1.0, 1.5 * spread / np.maximum(np.abs(left), 1e-300))
        c[axis], std[axis] = solution[:rotors], spread * np.sqrt(np.diag(P)[:rotors])
    return c, std


def _torques(airframe: Airframe) -> Float[np.ndarray, "3 rotors"]:
    return np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]


def _wrong(G: np.ndarray, found: np.ndarray, std: np.ndarray) -> np.ndarray:
    against = -np.sign(G) * found
    matters = np.abs(G) > 0.2 * np.abs(G).max(axis=1, keepdims=True)
    return matters & (against > _SURE * std) & (against > _LARGE * np.abs(G))


def _swap(G: np.ndarray, found: np.ndarray, std: np.ndarray) -> Sequence[int] | None:
    """Two rotors that explain all, if they change places."""
    for pair in combinations(range(G.shape[1]), 2):
        order = list(range(G.shape[1]))
        a, b = pair
        order[a], order[b] = b, a
        if not _wrong(G[:, order], found, std).any():
            return pair
    return None
