"""Whether the air damps turns alike about all axes, as the model's one angular drag does: by a regression that needs no fit.

    torque = g (G_a T) - k' omega + b,    k = k' / g        about each axis a (see `turning_rows`)

g is 1 where inertia and thrusts of the airframe are right; k then is in its torques, whatever they are. Where turns are damped
otherwise about one axis than about another, one angular drag for all takes the side of the stronger, and the inertia about the
others makes up for the phase that is wrong then: by far more than standard deviations know. Axes count whose torques explain
how they turn; where disturbances turned the vehicle more than its rotors did, g is far from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.rotors import allocation, torque_ratio_of
from rotorid.results.flights_check import predicted
from rotorid.results.flown import Known
from rotorid.results.turning_rows import TurningRows, turning_rows
from rotorid.results.words import joined, plus_minus
from rotorid.signals.series import Intervals

_ROWS: Final = 60
_BLOCK: Final = 25  # rows, of 2 s
_EXPLAINS: Final = (0.4, 2.5)  # g
_SURE: Final = 8.0  # standard deviations
_OTHER: Final = 1.4  # times
_PASSES: Final = 4
_HUBER: Final = 1.5


def damping_sentences(
    flights: Sequence[Flight], airframe: Airframe, known: Known, spans: Sequence[Intervals]
) -> list[str]:
    """A sentence of each flight in which turns are damped otherwise about one axis than about another. spans: s.

    Raises what `turning_rows` does.
    """
    found = []
    for flight, parts in zip(flights, spans, strict=True):
        if not known.turns or not predicted(flight, airframe, known):
            continue
        told = {
            axis: k
            for axis, k in zip("xyz", dampings(turning_rows(flight, airframe, parts), airframe), strict=True)
            if k
        }
        if len(told) < 2:
            continue
        low, high = min(told.values()), max(told.values())
        if high[0] > _OTHER * low[0] and high[0] - low[0] > _SURE * float(np.hypot(high[1], low[1])):
            each = joined([f"{plus_minus(*k)} about {axis}" for axis, k in told.items()])
            found.append(
                f"{flight.source.name}: turns are damped by {each} (N m s), where the model has one angular drag for all axes: "
                "moments of inertia, angular drag and delays may be off by more than their standard deviations."
            )
    return found


def dampings(rows: TurningRows, airframe: Airframe) -> list[tuple[float, float] | None]:
    """k about each axis and its standard deviation, N m s; None where the rows do not tell it."""
    n = len(rows.t)
    if n < _ROWS:
        return [None] * 3
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)), float)[3:]
    return [
        _damping(np.column_stack([rows.thrust @ G[a], rows.rate[:, a], np.ones(n)]), rows.torque[:, a])
        for a in range(3)
    ]


def _damping(x: Float[np.ndarray, "n 3"], y: Float[np.ndarray, " n"]) -> tuple[float, float] | None:
    weight = np.ones(len(y))
    P, solution, left = np.eye(3), np.zeros(3), y
    for _ in range(_PASSES):  # weights of Huber, so that a knock does not count
        P = np.linalg.pinv((x * weight[:, None]).T @ x)
        solution = P @ (x.T @ (weight * y))
        left = y - x @ solution
        spread = 1.4826 * float(np.median(np.abs(left - np.median(left))))
        weight = np.minimum(1.0, _HUBER * spread / np.maximum(np.abs(left), 1e-300))
    g, damped = float(solution[0]), -float(solution[1])
    if not _EXPLAINS[0] < g < _EXPLAINS[1]:
        return None
    scores = np.add.reduceat(x * (weight * left)[:, None], np.arange(0, len(y), _BLOCK), axis=0)
    slope = np.array([-damped / g**2, -1.0 / g])
    std = float(np.sqrt(slope @ (P @ scores.T @ scores @ P)[:2, :2] @ slope))
    return (damped / g, std) if damped > _SURE * std * g else None
