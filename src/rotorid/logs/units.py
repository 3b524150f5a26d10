"""Units of logs, each with its factor to the SI unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from rotorid.geometry.gravity import GRAVITY

_TURN: Final = 2.0 * math.pi

TIME: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
ANGLE: Final[Mapping[str, float]] = {"rad": 1.0, "deg": math.pi / 180.0, "mrad": 1e-3}
FACTORS: Final[Mapping[str, Mapping[str, float]]] = {
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "km": 1e3, "ft": 0.3048},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "km/h": 1 / 3.6, "kn": 1852 / 3600, "ft/s": 0.3048},
    "rad/s": {
        "rad/s": 1.0,
        "mrad/s": 1e-3,
        "deg/s": math.pi / 180.0,
        "rpm": _TURN / 60.0,
        "Hz": _TURN,
    },
    "m/s^2": {"m/s^2": 1.0, "mm/s^2": 1e-3, "cm/s^2": 1e-2, "g": GRAVITY, "mg": GRAVITY * 1e-3},
    "N": {"N": 1.0, "mN": 1e-3, "kN": 1e3, "gf": GRAVITY * 1e-3, "kgf": GRAVITY},
    "N m": {"N m": 1.0, "mN m": 1e-3, "N mm": 1e-3, "N cm": 1e-2},
    "V": {"V": 1.0, "mV": 1e-3},
    "kg": {"kg": 1.0, "g": 1e-3},
    "1": {"1": 1.0, "%": 1e-2},
}
"""Unit of a signal -> units that a column may be in -> factor."""
