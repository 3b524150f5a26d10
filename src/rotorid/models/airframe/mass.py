"""An airframe with another mass."""

from __future__ import annotations

import dataclasses

from rotorid.models.airframe.airframe import Airframe, Quantity


def with_mass(airframe: Airframe, mass: tuple[float, float] | None) -> Airframe:
    """An airframe with another mass and its standard deviation, kg; None: unchanged."""
    if mass is None:
        return airframe
    value, std = mass
    quantity = Quantity((value,), "kg", (std,) if std > 0.0 else None, "given as known")
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": quantity})


def with_exact_mass(airframe: Airframe) -> Airframe:
    """An airframe whose mass has no standard deviation."""
    quantity = dataclasses.replace(airframe.mass, std=None)
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": quantity})
