"""The mass of an airframe: its standard deviation, and airframes with another mass."""

from __future__ import annotations

import dataclasses
from typing import Final

from rotorid.models.airframe.airframe import Airframe, Quantity

DEFAULT_MASS_STD: Final = 0.3
"""Standard deviation of a mass whose airframe file gives none, over the mass. A mass is exact where the file says `std = 0`."""


def mass_std(airframe: Airframe) -> float:
    """Standard deviation of the mass, kg: that of the airframe file, else the default."""
    mass = airframe.mass
    return DEFAULT_MASS_STD * mass.number if mass.std is None else mass.std[0]


def mass_relative_std(airframe: Airframe) -> float:
    """Standard deviation of the mass over its value."""
    return mass_std(airframe) / airframe.mass.number


def with_mass(airframe: Airframe, mass: tuple[float, float] | None) -> Airframe:
    """An airframe with another mass and its standard deviation, kg; None: unchanged."""
    if mass is None:
        return airframe
    value, std = mass
    quantity = Quantity((value,), "kg", (std,), "given as known")
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": quantity})


def with_exact_mass(airframe: Airframe) -> Airframe:
    """An airframe whose mass has a standard deviation of 0."""
    quantity = dataclasses.replace(airframe.mass, std=(0.0,))
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "mass": quantity})
