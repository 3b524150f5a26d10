"""Values with unit and standard deviation as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rotorid.export.uncertainty import StandardDeviation

_UNITS: Final = {
    "mass": "kg",
    "inertia": "kg m^2",
    "centre of mass": "m",
    "drag area": "m^2",
    "drag": "N s/m",
    "rotor drag": "N^0.5 s/m",
    "rotor inflow": "N^0.5 s/m",
    "translational lift": "N s^2/m^2",
    "flapping moment": "N^0.5 s",
    "angular drag": "N m s",
    "rotor momentum": "N^0.5 m s",
    "lag": "s",
    "torque ratio": "m",
    "full thrust": "N",
    "hover command": "1",
}


def annotated_values(values: Mapping[str, float], stds: Mapping[str, StandardDeviation]) -> list[str]:
    """Lines such as `mass: 1 kg, std 0.1 kg`. Each name begins with a key of `_UNITS`."""
    lines = []
    for name, value in values.items():
        unit = _UNITS[max((key for key in _UNITS if name.startswith(key)), key=len)]
        shown = f"{value + 0.0:.6g}" + ("" if unit == "1" else f" {unit}")
        lines.append(f"{name}: {shown}, {stds[name].to_text(unit)}")
    return lines
