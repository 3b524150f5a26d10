"""What a flight is planned for: quantities that are asked for, and those that have to be found beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.errors import SettingError
from rotorid.models.airframe import MOTOR_LAG, QUANTITIES, Airframe
from rotorid.models.system import GRAVITY

USUAL: Final = (
    "inertia", "products_of_inertia", "centre_of_mass", "imu_position", "torque_ratio", "motor_time_constant", "command_delay",
    "thrust_curve", "drag", "angular_drag", "velocity_delay", "attitude_delay",
)  # fmt: skip
"""What no one knows of a vehicle well enough to leave out."""

KNOWN: Final = ("mass",)
"""What is taken as known: forces show only beside each other."""

_IF_GIVEN = ("motor_time_constant_down", "rotor_drag", "drag_area")
_ENDS = {
    "inertia": ("x", "y", "z"),
    "products_of_inertia": ("xy", "xz", "yz"),
    "centre_of_mass": ("x", "y", "z"),
    "imu_position": ("x", "y", "z"),
}
_OTHER = ("mass", "thrust_scale", "rotor_scale")
FINDABLE: Final = (*USUAL, *_IF_GIVEN, *_OTHER)
"""All parameters that manoeuvres can tell something about."""

_SPREAD = 0.2  # of the thrust
_RELATIVE: Final = {
    "mass": 0.3, "inertia": 0.5, "torque_ratio": 0.5, "thrust_scale": 0.3, "rotor_scale": 0.1, "motor_time_constant": 0.7,
    "motor_time_constant_down": 0.7,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Quantities:
    """names: in order. values, prior_std: in units. unit: of each. asked: how many of them are asked for; these come first."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    prior_std: tuple[float, ...]
    unit: tuple[str, ...]
    asked: int


def quantities_of(airframe: Airframe, asked: Sequence[str], known: Sequence[str] = KNOWN) -> Quantities:
    """The quantities of the parameters asked for, then those that are found beside them.

    known: parameters that keep their values; mass or thrust_curve (with thrust_scale) must be among them. Prior standard
    deviations are the airframe's, or wide ones of the usual size. Raises SettingError for names that cannot be.
    """
    for name in (*asked, *known):
        if name not in FINDABLE:
            raise SettingError(f"no parameter {name!r} to plan for; there are {', '.join(FINDABLE)}")
    both = [name for name in asked if name in known]
    if not asked or both:
        what = f"{both[0]} is asked for and known; it can be one" if both else "no parameter is asked for"
        raise SettingError(f"{what}; name what is to be found with --for")
    if not {"mass", "thrust_curve"} & set(known):
        raise SettingError(
            "one of mass and thrust_curve must be known, since forces show only beside each other; give --known mass"
        )
    beside = [name for name in USUAL if name not in known]
    beside += [name for name in _IF_GIVEN if airframe.get(name) is not None and name not in known]
    if "mass" not in known:
        beside.append("mass")
    if "thrust_scale" in asked:
        beside = [name for name in beside if name != "thrust_curve"]
    names, values, std, unit = [], [], [], []
    wanted = tuple(dict.fromkeys((*asked, *beside)))
    count = 0
    for i, parameter in enumerate(wanted):
        for name, value, spread in _of(airframe, parameter):
            names.append(name)
            values.append(value)
            std.append(spread)
            unit.append(_unit(parameter))
        if i < len(asked):
            count = len(names)
    return Quantities(tuple(names), tuple(values), tuple(std), tuple(unit), count)


def _unit(parameter: str) -> str:
    if parameter == "thrust_curve":
        return "N"
    return QUANTITIES[parameter][0] if parameter in QUANTITIES else "1"


def _of(airframe: Airframe, parameter: str) -> list[tuple[str, float, float]]:
    """Name, value and prior standard deviation of each number of a parameter."""
    if parameter == "thrust_curve":
        curve = airframe.thrust_curve
        assert curve is not None
        full = _SPREAD * sum(curve.coefficients)
        return [
            (f"thrust_curve_{i}", value, curve.std[i] if curve.std and curve.std[i] else full)
            for i, value in enumerate(curve.coefficients)
        ]
    if parameter == "rotor_scale":
        return [
            (
                f"rotor_scale_{i}",
                r.thrust_scale,
                r.thrust_scale_std or _RELATIVE["rotor_scale"] * r.thrust_scale,
            )
            for i, r in enumerate(airframe.rotors)
        ]
    given = airframe.get(parameter)
    ends = _ENDS.get(parameter)
    values = given.value if given else _default(airframe, parameter)
    stds = np.broadcast_to(
        given.std if given and given.std and min(given.std) > 0 else _spread(airframe, parameter, values),
        len(values),
    )
    names = [f"{parameter}_{end}" for end in ends] if ends else [parameter]
    return [(n, float(v), float(s)) for n, v, s in zip(names, values, stds, strict=True)]


def _default(airframe: Airframe, parameter: str) -> tuple[float, ...]:
    """The value of a parameter that the airframe does not give."""
    if parameter == "motor_time_constant_down":
        up = airframe.get("motor_time_constant")
        return up.value if up else (MOTOR_LAG,)
    if parameter == "motor_time_constant":
        return (MOTOR_LAG,)
    if parameter == "thrust_scale":
        return (1.0,)
    return (0.0,) * QUANTITIES[parameter][1]


def _spread(airframe: Airframe, parameter: str, values: Sequence[float]) -> tuple[float, ...]:
    """The usual standard deviation of each number of a parameter that the airframe does not give one for."""
    mass, rotors = airframe.mass.number, airframe.rotors
    inertia = airframe.get("inertia")
    turning = float(np.mean(inertia.value)) if inertia else 1.0
    span = max((math.hypot(*rotor.position[:2]) for rotor in rotors), default=0.2)
    hover = mass * GRAVITY / max(len(rotors), 1)
    if parameter in _RELATIVE:
        return tuple(_RELATIVE[parameter] * abs(v) for v in values)
    return (
        {
            "centre_of_mass": 0.1 * span,
            "imu_position": 0.1 * span,
            "products_of_inertia": 0.1 * turning,
            "drag": 0.5 * mass,
            "angular_drag": 3.0 * turning,
            "drag_area": math.pi * span**2,
            "rotor_drag": 0.5 * mass / (max(len(rotors), 1) * math.sqrt(hover)),
            "command_delay": 0.01,
            "velocity_delay": 0.01,
            "attitude_delay": 0.01,
        }[parameter],
    )
