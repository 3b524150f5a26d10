"""Whether rotation is damped alike about all axes, as the model's one angular drag has it: a regression that needs no fit.

    torque = g (G_a T) - k' omega + b,    k = k' / g        about each axis a (see `TorqueBalance`)

g is 1 where the airframe's inertia and thrust curve are right; k does not depend on them. Where the damping differs between
axes, one angular drag for all follows the stronger one, and the inertia about the other axes absorbs the wrong phase, by far
more than its standard deviation. An axis counts where the rotors' torque explains the rotation: where disturbances exceed it,
g is far from 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.priors import INERTIA
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.workflows.identify.preparation import TorqueBalance
from rotorid.workflows.identify.request import FitRequest

_ROWS: Final = 60
_BLOCK: Final = 25  # rows, of 2 s
_EXPLAINS: Final = (0.4, 2.5)  # g
_SIGMAS: Final = 8.0
_RATIO: Final = 1.4
_PASSES: Final = 4
_HUBER: Final = 1.5


def check_damping(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Find the flights whose rotation is damped differently about different axes; only where inertia and angular drag are
    free. Raises what `PreparedFlight.torque_balance` does."""
    if not {INERTIA, "angular_drag"} <= set(request.free):
        return request, []
    findings = []
    for flight in request.preparation.torque_balanced:
        dampings = zip("xyz", axis_dampings(flight.torque_balance, flight.airframe), strict=True)
        damping = {axis: k for axis, k in dampings if k}
        if len(damping) < 2:
            continue
        low, high = min(damping.values()), max(damping.values())
        if high[0] > _RATIO * low[0] and high[0] - low[0] > _SIGMAS * float(np.hypot(high[1], low[1])):
            values = {"flight": flight.name, "damping": damping}
            findings.append(Finding("damping_differs", Severity.WARNING, values, ("body_rate",)))
    return request, findings


def axis_dampings(rows: TorqueBalance, airframe: Airframe) -> list[tuple[float, float] | None]:
    """The damping k about each axis and its standard deviation, N m s; None where it cannot be estimated."""
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
    P, solution, residual = np.eye(3), np.zeros(3), y
    for _ in range(_PASSES):  # Huber weights reduce the influence of outliers
        P = np.linalg.pinv((x * weight[:, None]).T @ x)
        solution = P @ (x.T @ (weight * y))
        residual = y - x @ solution
        spread = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
        weight = np.minimum(1.0, _HUBER * spread / np.maximum(np.abs(residual), 1e-300))
    g, damping = float(solution[0]), -float(solution[1])
    if not _EXPLAINS[0] < g < _EXPLAINS[1]:
        return None
    scores = np.add.reduceat(x * (weight * residual)[:, None], np.arange(0, len(y), _BLOCK), axis=0)
    slope = np.array([-damping / g**2, -1.0 / g])
    std = float(np.sqrt(slope @ (P @ scores.T @ scores @ P)[:2, :2] @ slope))
    return (damping / g, std) if damping > _SIGMAS * std * g else None
