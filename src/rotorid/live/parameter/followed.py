"""The parameter of `--publish-parameter`: MPC_THR_HOVER (PX4), MOT_THST_HOVER (ArduPilot) or NAME=mass."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Final

from rotorid.control.gate import TrustCriteria
from rotorid.errors import SettingError
from rotorid.estimators.gaussian import INFORMED
from rotorid.live.parameter.hover_thrust import (
    ARDUPILOT_PARAMETERS,
    PX4_PARAMETERS,
    VehicleConditions,
    ardupilot_hover_thrust,
    ardupilot_refusal,
    px4_hover_thrust,
    px4_refusal,
)
from rotorid.live.snapshot import Reading
from rotorid.logs.mavlink.vehicle import ARDUPILOT, PX4
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_relative_std

Conversion = Callable[[Reading, VehicleConditions], tuple[float, float] | None]
"""From the mass to the value and standard deviation of a parameter; None while something is unknown."""


@dataclasses.dataclass(frozen=True)
class FollowedParameter:
    """A parameter that follows the mass.

    name, unit: of the parameter. convert: from the mass. allowed: range of the vehicle. information_limit: relative
    standard deviation of the mass below which it is informed, by data or since it was weighed. autopilot: MAV_AUTOPILOT
    that has it, None for any. needed: other parameters that `convert` uses, with the value of a vehicle that has no such
    parameter (None: it must have it). refusal: why it must not be written to a vehicle with these other parameters, "" if
    it may be. rotors: number of rotors.
    """

    name: str
    unit: str
    convert: Conversion
    allowed: tuple[float, float]
    information_limit: float
    autopilot: int | None = None
    needed: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    refusal: Callable[[Mapping[str, float]], str] = lambda _: ""
    rotors: int = 1


def parse_parameter(text: str, airframe: Airframe) -> FollowedParameter:
    """Parse the value of `--publish-parameter`.

    Args:
        text: MPC_THR_HOVER, MOT_THST_HOVER, or NAME=mass.
        airframe: of the vehicle.
    Raises:
        SettingError: the text has another format.
    """
    name, _, quantity = text.partition("=")
    limit = INFORMED * mass_relative_std(airframe)
    if mass_relative_std(airframe) <= TrustCriteria().max_relative_std:
        limit = math.inf  # what was weighed needs no information from data
    if not 0 < len(name) <= 16 or not name.replace("_", "").isalnum() or not name.isascii():
        raise SettingError(f"{text}: a parameter name has up to 16 letters, digits and _")
    if quantity == "mass":
        allowed = (0.0, 10.0 * airframe.mass.number)
        return FollowedParameter(name, "kg", lambda mass, _: (mass.value, mass.std), allowed, limit)
    if quantity or name not in _HOVER:
        raise SettingError(
            f"{text}: use {' or '.join(_HOVER)}, or NAME=mass for a parameter that holds the mass in kg"
        )
    hover = _HOVER[name]
    return FollowedParameter(
        name,
        "",
        hover.convert,
        hover.allowed,
        limit,
        hover.autopilot,
        hover.needed,
        hover.refusal,
        len(airframe.rotors),
    )


@dataclasses.dataclass(frozen=True)
class _HoverParameter:
    """Hover thrust of one autopilot. Attributes as of `FollowedParameter`."""

    autopilot: int
    allowed: tuple[float, float]
    needed: Mapping[str, float | None]
    convert: Conversion
    refusal: Callable[[Mapping[str, float]], str]


_HOVER: Final = {
    "MPC_THR_HOVER": _HoverParameter(PX4, (0.1, 0.8), PX4_PARAMETERS, px4_hover_thrust, px4_refusal),
    "MOT_THST_HOVER": _HoverParameter(
        ARDUPILOT, (0.125, 0.6875), ARDUPILOT_PARAMETERS, ardupilot_hover_thrust, ardupilot_refusal
    ),
}
"""By name. allowed: the range to which the autopilot itself limits the value."""
