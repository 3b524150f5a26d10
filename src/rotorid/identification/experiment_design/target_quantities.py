"""What a flight is planned for: quantities that are asked for, and those that have to be found beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from rotorid.errors import SettingError
from rotorid.identification.airframe.priors import BODY, ROTORS, prior_std, prior_value
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import quantity_names

DEFAULT_PARAMETERS: Final = (
    "inertia", "products_of_inertia", "centre_of_mass", "imu_position", "torque_ratio", "motor_time_constant", "command_delay",
    "thrust_curve", "drag", "angular_drag", "velocity_delay", "attitude_delay",
)  # fmt: skip
"""What no one knows of a vehicle well enough to leave out."""

DEFAULT_FIXED: Final = ("mass",)
"""What is taken as known: forces show only beside each other."""

_IF_GIVEN = ("motor_time_constant_down", "rotor_drag", "drag_area")
_OTHER = ("mass", "thrust_scale", "rotor_scale")
PLANNABLE: Final = (*DEFAULT_PARAMETERS, *_IF_GIVEN, *_OTHER)
"""All parameters that manoeuvres can tell something about."""

_UNITS = {"mass": "kg", **BODY, **ROTORS}


@dataclasses.dataclass(frozen=True)
class TargetQuantities:
    """names: in order. values, prior_std: in units. unit: of each. asked: how many of them are asked for; these come first."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    prior_std: tuple[float, ...]
    unit: tuple[str, ...]
    target_count: int


def target_quantities(
    airframe: Airframe, targets: Sequence[str], fixed: Sequence[str] = DEFAULT_FIXED
) -> TargetQuantities:
    """The quantities of the parameters asked for, then those that are found beside them.

    known: parameters that keep their values; mass or thrust_curve (with thrust_scale) must be among them. Prior standard
    deviations are the airframe's, or wide ones of the usual size. Raises SettingError for names that cannot be.
    """
    for name in (*targets, *fixed):
        if name not in PLANNABLE:
            raise SettingError(f"no parameter {name!r} to plan for; there are {', '.join(PLANNABLE)}")
    both = [name for name in targets if name in fixed]
    if not targets or both:
        what = f"{both[0]} is asked for and known; it can be one" if both else "no parameter is asked for"
        raise SettingError(f"{what}; name what is to be found with --for")
    if not {"mass", "thrust_curve"} & set(fixed):
        raise SettingError(
            "one of mass and thrust_curve must be known, since forces show only beside each other; give --known mass"
        )
    beside = [name for name in DEFAULT_PARAMETERS if name not in fixed]
    beside += [name for name in _IF_GIVEN if airframe.get(name) is not None and name not in fixed]
    if "mass" not in fixed:
        beside.append("mass")
    if "thrust_scale" in targets:
        beside = [name for name in beside if name != "thrust_curve"]
    names, values, std, unit = [], [], [], []
    wanted = tuple(dict.fromkeys((*targets, *beside)))
    count = 0
    for i, parameter in enumerate(wanted):
        for name, value, spread in _of(airframe, parameter):
            names.append(name)
            values.append(value)
            std.append(spread)
            unit.append(_UNITS[parameter])
        if i < len(targets):
            count = len(names)
    return TargetQuantities(tuple(names), tuple(values), tuple(std), tuple(unit), count)


def _of(airframe: Airframe, parameter: str) -> list[tuple[str, float, float]]:
    """Name, value and prior standard deviation of each number of a parameter."""
    values, stds = prior_value(airframe, parameter), prior_std(airframe, parameter)
    return list(zip(quantity_names(parameter, len(values)), values, stds, strict=True))
