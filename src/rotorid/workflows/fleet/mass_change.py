"""Whether a flight had one mass: the trim of each part of it, beside those of the others."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from rotorid.errors import RotoridError
from rotorid.identification.trim import trim
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.results.words import plus_minus
from rotorid.signals.series import Intervals, length

_SHORTEST: Final = 8.0  # s of a part
_MOST: Final = 12  # parts
_SURE: Final = 0.05  # of a mass: its standard deviation at most
_APART: Final = 0.1  # of the larger mass: what batteries and gusts do not make of one
_FAR: Final = 5.0  # standard deviations of the difference


def several_masses(flight: Flight, airframe: Airframe, flying: Intervals) -> str:
    """Which masses a flight had, in words; empty of a flight that may have had one. flying: when it was in the air, s."""
    found = [_mass(flight, airframe, part) for part in _parts(flying)]
    sure = [(value, std) for value, std in found if std < _SURE * value]
    if len(sure) < 2:
        return ""
    (low, low_std), (high, high_std) = min(sure), max(sure)
    if high - low < max(_APART * high, _FAR * math.hypot(low_std, high_std)):
        return ""
    return (
        f"found, but it was not one: from {plus_minus(low, low_std, 'kg')} to {plus_minus(high, high_std, 'kg')} in parts "
        "of the flight; `rotorid track` tells when"
    )


def _parts(flying: Intervals) -> list[tuple[float, float]]:
    """Parts of equal length of each stretch, s."""
    shortest = max(_SHORTEST, length(flying) / _MOST)
    parts = []
    for start, end in flying:
        edges = np.linspace(start, end, int((end - start) / shortest) + 1).tolist()
        parts += itertools.pairwise(edges)
    return parts


def _mass(flight: Flight, airframe: Airframe, part: tuple[float, float]) -> tuple[float, float]:
    """Mass and its standard deviation, kg; infinitely unsure where the part tells none."""
    try:
        found = trim(flight, airframe, [part])
    except RotoridError:
        return math.inf, math.inf
    return float(found.value[0]), math.sqrt(found.covariance[0, 0])
