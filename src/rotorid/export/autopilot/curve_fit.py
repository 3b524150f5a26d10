"""How far the thrust model of an autopilot is from a thrust curve (see `rotorid.models.multirotor.thrust_expo`)."""

from __future__ import annotations

import numpy as np

from rotorid.models.multirotor.thrust_expo import ThrustFraction, expo_fraction, largest_difference

_TOLERANCE = 1e-9


def curve_limitation(name: str, expo: float, fraction: ThrustFraction) -> list[str]:
    """The largest error of the autopilot's thrust model, where there is one. name, expo: of its parameter."""
    worst = largest_difference(fraction, lambda s: np.asarray(expo_fraction(expo, s)))
    if worst < _TOLERANCE:
        return []
    return [
        f"{name}: nearest fit to the thrust curve, with an error of up to {100 * worst:.2g} % of the full thrust"
    ]
