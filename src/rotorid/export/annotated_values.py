"""Numbers with unit and standard deviation as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rotorid.export.vehicle.spread import Spread

_UNITS: Final = {
    "mass": "kg",
    "inertia": "kg m^2",
    "centre of mass": "m",
    "drag area": "m^2",
    "drag": "N s/m",
    "rotor drag": "N^0.5 s/m",
    "angular drag": "N m s",
    "lag": "s",
    "torque ratio": "m",
    "full thrust": "N",
    "hover command": "1",
}


def told(values: Mapping[str, float], stds: Mapping[str, Spread]) -> list[str]:
    """`mass: 1 kg, std 0.1 kg` and so on. Names begin with one of those whose unit is known."""
    lines = []
    for name, value in values.items():
        unit = _UNITS[max((key for key in _UNITS if name.startswith(key)), key=len)]
        shown = f"{value + 0.0:.6g}" + ("" if unit == "1" else f" {unit}")
        lines.append(f"{name}: {shown}, {stds[name].words(unit)}")
    return lines
