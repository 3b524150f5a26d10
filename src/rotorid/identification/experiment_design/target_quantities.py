"""Target quantities of a plan, and the quantities that are estimated with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from rotorid.errors import SettingError
from rotorid.identification.airframe.priors import BODY, ROTORS, is_exact, prior_std, prior_value
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.system import quantity_names

DEFAULT_PARAMETERS: Final = (
    "inertia", "products_of_inertia", "centre_of_mass", "imu_position", "torque_ratio", "motor_time_constant", "command_delay",
    "thrust_curve", "drag", "angular_drag", "velocity_delay", "attitude_delay",
)  # fmt: skip
"""Parameters that are estimated in every plan, since they are not known accurately enough."""

DEFAULT_FIXED: Final = ("mass",)
"""Parameters that are held fixed by default: only ratios of forces and masses can be identified."""

_IF_GIVEN = ("motor_time_constant_down", *ROTOR_AERODYNAMICS, "drag_area")
_OTHER = ("mass", "thrust_scale", "rotor_scale")
PLANNABLE: Final = (*DEFAULT_PARAMETERS, *_IF_GIVEN, *_OTHER)
"""Parameters that a flight can be planned for."""

_UNITS = {"mass": "kg", **BODY, **ROTORS}


@dataclasses.dataclass(frozen=True)
class TargetQuantities:
    """Quantities of a plan. values, prior_std: in `unit`. target_count: number of targets, which come first."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    prior_std: tuple[float, ...]
    unit: tuple[str, ...]
    target_count: int


def target_quantities(
    airframe: Airframe, targets: Sequence[str], fixed: Sequence[str] = DEFAULT_FIXED
) -> TargetQuantities:
    """The quantities of the target parameters, and then those that are estimated with them.

    Args:
        airframe: values and prior standard deviations; without one, a parameter gets the default prior; with one of 0, it is
            held fixed.
        targets: parameters to identify.
        fixed: parameters held fixed; mass or thrust_curve must be among them.
    Raises:
        SettingError: an unknown parameter, no target, a target that is held fixed or exact in the airframe, or neither mass nor
            thrust_curve held fixed.
    """
    for name in (*targets, *fixed):
        if name not in PLANNABLE:
            raise SettingError(f"no parameter {name!r} to plan for; choose from {', '.join(PLANNABLE)}")
    both = [name for name in targets if name in fixed]
    if not targets or both:
        reason = f"{both[0]} is both a target and held fixed" if both else "no target parameter"
        raise SettingError(f"{reason}; name the parameters to identify with --for")
    exact = [name for name in targets if is_exact(airframe, name)]
    if exact:
        raise SettingError(
            f"{exact[0]}: {airframe.source} gives it a standard deviation of 0, so `rotorid identify` holds it fixed; remove "
            "`std = 0` there to identify it"
        )
    if not {"mass", "thrust_curve"} & set(fixed):
        raise SettingError(
            "mass or thrust_curve must be held fixed, since only ratios of forces and masses can be identified; "
            "give --known mass"
        )
    others = [name for name in DEFAULT_PARAMETERS if name not in fixed]
    others += [name for name in _IF_GIVEN if airframe.get(name) is not None and name not in fixed]
    if "mass" not in fixed:
        others.append("mass")
    others = [name for name in others if not is_exact(airframe, name)]
    if "thrust_scale" in targets:
        others = [name for name in others if name != "thrust_curve"]
    names, values, std, unit = [], [], [], []
    parameters = tuple(dict.fromkeys((*targets, *others)))
    count = 0
    for i, parameter in enumerate(parameters):
        for name, value, prior in _components(airframe, parameter):
            names.append(name)
            values.append(value)
            std.append(prior)
            unit.append(_UNITS[parameter])
        if i < len(targets):
            count = len(names)
    return TargetQuantities(tuple(names), tuple(values), tuple(std), tuple(unit), count)


def _components(airframe: Airframe, parameter: str) -> list[tuple[str, float, float]]:
    """Name, value and prior standard deviation of each component of a parameter."""
    values, stds = prior_value(airframe, parameter), prior_std(airframe, parameter)
    return list(zip(quantity_names(parameter, len(values)), values, stds, strict=True))
