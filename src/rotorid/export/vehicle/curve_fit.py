"""The thrust model of autopilots, and how far it is from an airframe's thrust curve.

    thrust / full thrust = f s^2 + (1 - f) s

s is the signal from 0 to 1. PX4 calls f THR_MDL_FAC, ArduPilot MOT_THST_EXPO. Fitted over all signals by least squares; any
curve of first and second order through zero is met exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

_SIGNALS = np.linspace(0.0, 1.0, 1001)
_EXACT = 1e-9

Shape = Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]


def thrust_factor(shape: Shape) -> float:
    """f, between 0 and 1: the autopilots take no other. shape: share of the full thrust over the signal."""
    return float(np.clip(free_factor(shape), 0.0, 1.0))


def free_factor(shape: Shape) -> float:
    """f without limits."""
    bend = _SIGNALS**2 - _SIGNALS
    return float(np.dot(bend, shape(_SIGNALS) - _SIGNALS) / np.dot(bend, bend))


def modelled(factor: float, signal: Float[np.ndarray, " n"] | float) -> Float[np.ndarray, " n"] | float:
    """f s^2 + (1 - f) s."""
    return factor * signal**2 + (1.0 - factor) * signal


def mismatch(shape: Shape, other: Shape) -> float:
    """The largest difference of two curves, of the full thrust."""
    return float(np.abs(shape(_SIGNALS) - other(_SIGNALS)).max())


def curve_sentence(name: str, factor: float, shape: Shape) -> list[str]:
    """How far the autopilot's model is from the curve, where it is; name of its parameter."""
    worst = mismatch(shape, lambda s: np.asarray(modelled(factor, s)))
    if worst < _EXACT:
        return []
    return [
        f"{name} is the nearest to the thrust curve, from which it is off by up to {100 * worst:.2g} % of the full thrust"
    ]
