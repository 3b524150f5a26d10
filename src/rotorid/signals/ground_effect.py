"""Time near the ground, where rotors have more thrust than in free air.

Within some two rotor radii of the ground, the thrust at a command is larger than in free air, by 1.6 % at two radii and by
6.7 % at one (I. C. Cheeseman, W. E. Bennett, The effect of the ground on a helicopter rotor in forward flight, ARC R&M 3021
(1957)). A model without it reads that as less mass.

The height above the surface follows from the logged position: its level before an interval in the air is that of the take-off,
the level after it that of the landing. A log without position, or that begins and ends in the air, has no height; a simulated
flight has no ground.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import SHORTEST
from rotorid.signals.series import Intervals, interpolate_linear

RADII: Final = 2.0
"""Height above the surface within which time is near the ground, rotor radii."""

_RADIUS: Final = 0.45  # of the smallest distance between rotors; propellers do not overlap
_COAXIAL: Final = 0.01  # m, between rotors of one axis
_GROUND: Final = 1.0  # s before take-off and after landing, in which the level is that of the surface
_LEAST_GROUND: Final = 0.3  # s
_MARGIN: Final = 0.5  # s between that time and the interval in the air, in which the vehicle already climbs
_STEP: Final = 0.02  # s
_MOST: Final = 0.3  # share of the time in the air; a flight with more near the ground keeps it


def height_of_ground_effect(positions: Float[np.ndarray, "rotors 3"]) -> float:
    """Height up to which the ground has an effect, m; 0 for less than two rotors. positions: of the rotors, m, body frame."""
    horizontal = positions[:, :2]
    distance = np.linalg.norm(horizontal[:, None] - horizontal[None], axis=2)
    apart = distance[distance > _COAXIAL]
    return RADII * _RADIUS * float(apart.min()) if apart.size else 0.0


def time_off_ground(flight: Flight, airborne: Intervals, height: float) -> Intervals:
    """Intervals in the air, from the first time above a height over the take-off surface to the last over the landing surface.

    An end whose surface is unknown stays as it is. So do all intervals where more than 30 % of the time would be left out: the
    flight is a low one, or its logged height is wrong. Low passes within an interval stay, since an estimated height drifts.

    Args:
        flight: the log.
        airborne: intervals in the air, start and end in s.
        height: above the surface, m.
    """
    if "position" not in flight or flight.format == "simulation" or height <= 0.0:
        return airborne
    position = flight["position"]
    high = [_above(position, start, end, height) for start, end in airborne]
    high = [(start, end) for start, end in high if end - start >= SHORTEST]
    left, total = (sum(end - start for start, end in parts) for parts in (high, airborne))
    return high if left >= (1.0 - _MOST) * total else airborne


def _above(position: Signal, start: float, end: float, height: float) -> tuple[float, float]:
    """An interval from the first to the last time above its surfaces; of no length where it is never."""
    t = np.arange(start, end, _STEP)
    z = interpolate_linear(t, position.times, position.values[:, 2:])[:, 0]
    take_off = _level(position, start - _MARGIN - _GROUND, start - _MARGIN)
    landing = _level(position, end + _MARGIN, end + _MARGIN + _GROUND)
    if take_off is not None:
        above = t[z > take_off + height]
        start = max(start, float(above[0])) if len(above) else end
    if landing is not None:
        above = t[z > landing + height]
        end = min(end, float(above[-1]) + _STEP) if len(above) else start
    return start, end


def _level(position: Signal, start: float, end: float) -> float | None:
    """Level of the surface in a time on the ground, m; None where the log does not have it."""
    is_inside = (position.times >= start) & (position.times <= end)
    t = position.times[is_inside]
    if len(t) < 2 or t[-1] - t[0] < _LEAST_GROUND:
        return None
    return float(np.median(position.values[is_inside, 2]))
