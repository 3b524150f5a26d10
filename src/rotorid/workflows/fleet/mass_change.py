"""Detection of a mass change within a flight, from the trims of its segments."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from rotorid.errors import RotoridError
from rotorid.findings import Finding, Severity
from rotorid.identification.trends.trim import estimate_trim
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.signals.series import Intervals, total_length

_MIN_LENGTH: Final = 8.0  # s, of a segment
_MAX_SEGMENTS: Final = 12
_MAX_RELATIVE_STD: Final = 0.05  # of the mass of a segment that is used
_MIN_DIFFERENCE: Final = 0.1  # relative; batteries and gusts cause smaller differences
_SIGNIFICANT: Final = 5.0  # standard deviations of the difference


def detect_mass_change(flight: Flight, airframe: Airframe, flying: Intervals) -> Finding | None:
    """Test whether the mass was constant during a flight.

    Args:
        flight: with the signals of a trim.
        airframe: of its vehicle.
        flying: airborne intervals, s.
    Returns:
        "mass_changed" with the lowest and highest mass of a segment, kg; None if a constant mass is consistent.
    """
    masses = [_segment_mass(flight, airframe, segment) for segment in _segments(flying)]
    precise = [(value, std) for value, std in masses if std < _MAX_RELATIVE_STD * value]
    if len(precise) < 2:
        return None
    (lowest, lowest_std), (highest, highest_std) = min(precise), max(precise)
    if highest - lowest < max(_MIN_DIFFERENCE * highest, _SIGNIFICANT * math.hypot(lowest_std, highest_std)):
        return None
    values = {"lowest": lowest, "lowest_std": lowest_std, "highest": highest, "highest_std": highest_std}
    return Finding("mass_changed", Severity.WARNING, values)


def _segments(flying: Intervals) -> list[tuple[float, float]]:
    """Divide each interval into segments of equal length, s."""
    min_length = max(_MIN_LENGTH, total_length(flying) / _MAX_SEGMENTS)
    segments = []
    for start, end in flying:
        edges = np.linspace(start, end, int((end - start) / min_length) + 1).tolist()
        segments += itertools.pairwise(edges)
    return segments


def _segment_mass(flight: Flight, airframe: Airframe, segment: tuple[float, float]) -> tuple[float, float]:
    """Mass of a segment and its standard deviation, kg; both infinite if the mass cannot be estimated."""
    try:
        trim = estimate_trim(flight, airframe, [segment])
    except RotoridError:
        return math.inf, math.inf
    return float(trim.value[0]), math.sqrt(trim.covariance[0, 0])
