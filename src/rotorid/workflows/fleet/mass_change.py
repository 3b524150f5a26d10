"""Detection of a mass change within a flight, from the trims of its segments."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from rotorid.errors import RotoridError
from rotorid.identification.trends.trim import estimate_trim
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.results.text import plus_minus
from rotorid.signals.series import Intervals, total_length

_SHORTEST: Final = 8.0  # s, of a segment
_MOST: Final = 12  # segments
_SURE: Final = 0.05  # largest relative standard deviation of a mass
_APART: Final = 0.1  # relative difference of masses that batteries and gusts do not cause
_FAR: Final = 5.0  # standard deviations of the difference


def several_masses(flight: Flight, airframe: Airframe, flying: Intervals) -> str:
    """Describe a mass change within a flight; empty if a constant mass is consistent. flying: airborne intervals, s."""
    found = [_mass(flight, airframe, part) for part in _parts(flying)]
    sure = [(value, std) for value, std in found if std < _SURE * value]
    if len(sure) < 2:
        return ""
    (low, low_std), (high, high_std) = min(sure), max(sure)
    if high - low < max(_APART * high, _FAR * math.hypot(low_std, high_std)):
        return ""
    return (
        f"the mass changed in flight: from {plus_minus(low, low_std, 'kg')} to {plus_minus(high, high_std, 'kg')}; use "
        "`rotorid track` to find the times"
    )


def _parts(flying: Intervals) -> list[tuple[float, float]]:
    """Divide each interval into segments of equal length, s."""
    shortest = max(_SHORTEST, total_length(flying) / _MOST)
    parts = []
    for start, end in flying:
        edges = np.linspace(start, end, int((end - start) / shortest) + 1).tolist()
        parts += itertools.pairwise(edges)
    return parts


def _mass(flight: Flight, airframe: Airframe, part: tuple[float, float]) -> tuple[float, float]:
    """Mass of a segment and its standard deviation, kg; both infinite if the mass cannot be estimated."""
    try:
        found = estimate_trim(flight, airframe, [part])
    except RotoridError:
        return math.inf, math.inf
    return float(found.value[0]), math.sqrt(found.covariance[0, 0])
