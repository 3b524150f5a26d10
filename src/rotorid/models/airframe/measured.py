"""What a user measures of a vehicle: its mass, with a standard deviation, and its span."""

from __future__ import annotations

import math
from typing import Final

from rotorid.errors import SettingError

WEIGHED: Final = 0.005
"""Standard deviation of a mass from a scale, over its value."""

Weighed = float | tuple[float, float]
"""A mass, kg, or a mass and its standard deviation."""


def mass_with_std(mass: Weighed | None, name: str = "mass") -> tuple[float, float] | None:
    """Mass and standard deviation, kg; of a mass alone, that of a scale. None of None.

    Args:
        mass: in kg.
        name: of the argument, for messages.
    Raises:
        SettingError: no number above 0, or a standard deviation below 0.
    """
    if mass is None:
        return None
    try:
        if isinstance(mass, bool):
            raise TypeError
        value, std = (float(v) for v in mass) if isinstance(mass, (tuple, list)) else (float(mass), None)
    except (TypeError, ValueError):
        value, std = math.nan, None
    std = WEIGHED * value if std is None else std
    if not (math.isfinite(value + std) and value > 0.0 and std >= 0.0):
        raise SettingError(
            f"{name} {mass}: give a mass in kg, such as 1.52, or with its standard deviation, (1.52, 0.01)"
        )
    return value, std


def check_span(span: float | None, name: str = "span") -> None:
    """Raise SettingError for a distance of opposite motors that is not positive, m. name: of the argument."""
    if span is not None and not (isinstance(span, (int, float)) and math.isfinite(span) and span > 0.0):
        raise SettingError(f"{name} {span}: give a distance in m above 0")
