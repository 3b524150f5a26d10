"""Whether a vehicle moved enough through the air for drag to show.

A velocity comes from an estimator, which wanders by some cm/s. Where the vehicle itself moves no faster, its drag is regressed
on what is mostly error, and comes out too small, however long the flight is and however sure the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals

AIR: Final = ("drag", "rotor_drag", "drag_area")
"""Parameters that only motion through the air tells."""

_LEAST: Final = 0.15  # m/s


def speed(flights: Sequence[Flight], spans: Sequence[Intervals]) -> float:
    """Root mean square of how much a velocity differs from its mean in these parts of the flight where it does most, m/s."""
    found = [0.0]
    for flight, parts in zip(flights, spans, strict=True):
        v = flight["velocity"]
        inside = np.any([(a <= v.times) & (v.times <= b) for a, b in parts], axis=0)
        if inside.any():
            found.append(
                float(
                    np.sqrt(np.mean(np.sum((v.values - v.values[inside].mean(axis=0))[inside] ** 2, axis=1)))
                )
            )
    return max(found)


def told_by_motion(
    free: tuple[str, ...], flights: Sequence[Flight], spans: Sequence[Intervals]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is left to be looked for, and a sentence where something is not since the vehicle hardly moved.

    Raises ExcitationError where nothing is left."""
    if not set(AIR) & set(free) or (moved := speed(flights, spans)) > _LEAST:
        return free, ()
    said = (
        f"The vehicle hardly moved (its velocity changed by {moved:.2f} m/s, root mean square), which does not tell drag: it "
        "was left as the airframe says; fly legs to and fro at speed."
    )
    left = tuple(name for name in free if name not in AIR)
    if not left:
        raise ExcitationError(f"{flights[0].source}: {said[0].lower()}{said[1:-1]}")
    return left, (said,)
