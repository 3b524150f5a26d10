"""The thrust model of autopilots, of one coefficient e, fitted to a thrust curve.

    thrust / full thrust = e s^2 + (1 - e) s

s is the signal from 0 to 1. PX4 calls e THR_MDL_FAC, ArduPilot MOT_THST_EXPO. Fitted over all signals by least squares; any
curve of first and second order through zero is met exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

_SIGNALS = np.linspace(0.0, 1.0, 1001)

ThrustFraction = Callable[[Any], Any]
"""Signals from 0 to 1 -> thrust over full thrust."""


def thrust_expo(fraction: ThrustFraction) -> float:
    """e of the nearest model, without limits."""
    bend = _SIGNALS**2 - _SIGNALS
    return float(np.dot(bend, fraction(_SIGNALS) - _SIGNALS) / np.dot(bend, bend))


def limited_thrust_expo(fraction: ThrustFraction) -> float:
    """e between 0 and 1, the range that the autopilots accept."""
    return float(np.clip(thrust_expo(fraction), 0.0, 1.0))


def expo_fraction(expo: float, signal: Float[np.ndarray, " n"] | float) -> Float[np.ndarray, " n"] | float:
    """e s^2 + (1 - e) s."""
    return expo * signal**2 + (1.0 - expo) * signal


def largest_difference(fraction: ThrustFraction, other: ThrustFraction) -> float:
    """The largest difference of two curves over all signals, as a fraction of the full thrust."""
    return float(np.abs(fraction(_SIGNALS) - other(_SIGNALS)).max())
