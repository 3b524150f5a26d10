"""Priors of the free parameters: from the airframe file, from the caller, or of the usual width.

mass, inertia, arm_scale 10 %    tilt_scale 20 %    thrust_scale 20 %    motor_time_constant 30 %
thrust_coefficient, torque_ratio 50 %    centre_of_mass 0.02 m    products_of_inertia 5 % of the mean moment
drag: 0 or more, of the order of the mass over 1 s    angular_drag: 0 or more, of three times the inertia over 1 s
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rotorid.errors import SettingError
from rotorid.identification.coordinates import INERTIA, PRODUCTS, Prior
from rotorid.models.airframe import Airframe
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.models.system import Parameter, System

Numbers = float | tuple[float, ...]

RELATIVE = {
    "mass": 0.1, "inertia": 0.1, "thrust_coefficient": 0.5, "torque_ratio": 0.5, "thrust_scale": 0.2,
    "arm_scale": 0.1, "tilt_scale": 0.2, "motor_time_constant": 0.3,
}  # fmt: skip
"""Standard deviation of a parameter of a rigid multirotor over its value, where nothing else is known."""

_ONE_SIDED = ("drag", "angular_drag")
_CENTRE = 0.02  # m
_PRODUCTS = 0.05  # of the mean moment of inertia
_DRAG = 1.0  # 1/s, of the mass
_ANGULAR_DRAG = 3.0  # 1/s, of the mean moment of inertia


def airframe_priors(airframe: Airframe, free: Sequence[str]) -> dict[str, Numbers | None]:
    """The standard deviation of each of these parameters as the airframe file has it, None where it does not say."""
    found: dict[str, Numbers | None] = {}
    for name in free:
        quantity = airframe.get(name)
        found[name] = None
        if quantity is not None and quantity.std is not None and min(quantity.std) > 0:
            std = np.broadcast_to(quantity.std, len(quantity.value))
            found[name] = tuple(map(float, std)) if len(std) > 1 else float(std[0])
    return found


def priors_of(
    system: System, free: Sequence[str] | Mapping[str, Numbers | None], values: Mapping[str, Numbers]
) -> tuple[Prior, ...]:
    """The priors of the free parameters, in the System's order.

    values: prior means that replace the System's. Raises SettingError where a name is unknown, or a prior cannot be.
    """
    if isinstance(free, str):
        raise SettingError(f"free parameters {free!r}: give a list of names")
    wanted = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free)
    if not wanted:
        raise SettingError("no free parameter: name at least one that is to be found")
    for name in (*wanted, *values):
        system.parameter(name)
    means = {p.name: _numbers(p, "value", values.get(p.name, p.value)) for p in system.parameters}
    if isinstance(system, RigidMultirotor):
        if PRODUCTS in wanted and INERTIA not in wanted:
            raise SettingError(f"{PRODUCTS} free and {INERTIA} not: free both, or neither")
        if INERTIA in wanted and any(means[PRODUCTS]):
            wanted.setdefault(PRODUCTS, None)
    return tuple(_prior(system, p, wanted[p.name], means) for p in system.parameters if p.name in wanted)


def _prior(
    system: System, p: Parameter, std: Numbers | None, means: Mapping[str, tuple[float, ...]]
) -> Prior:
    value, one_sided = means[p.name], False
    if isinstance(system, RigidMultirotor):
        if p.name in RELATIVE:
            p = dataclasses.replace(p, bounds=(0.0, math.inf))
        one_sided = p.name in _ONE_SIDED
    if std is None:
        std = p.std or _usual(system, p, means)
    numbers = _numbers(p, "std", std)
    if min(numbers) <= 0:
        raise SettingError(
            f"{p.name}: a prior std of {min(numbers):g} {p.unit}; a free parameter needs one above 0"
        )
    lower, upper = p.bounds
    if not all(lower < v < upper for v in value) or (one_sided and min(value) < 0):
        raise SettingError(
            f"{p.name}: its prior value {', '.join(f'{v:g}' for v in value)} {p.unit} cannot be; give one that can"
        )
    body = isinstance(system, RigidMultirotor) and p.name in (INERTIA, PRODUCTS)
    return Prior(p, value, numbers, one_sided, body)


def _usual(system: System, p: Parameter, means: Mapping[str, tuple[float, ...]]) -> Numbers:
    if isinstance(system, RigidMultirotor):
        if p.name in RELATIVE:
            return tuple(RELATIVE[p.name] * abs(v) or 1.0 for v in means[p.name])
        turning = float(np.mean(means[INERTIA]))
        usual = {
            "centre_of_mass": _CENTRE,
            PRODUCTS: _PRODUCTS * turning,
            "drag": _DRAG * means["mass"][0],
            "angular_drag": _ANGULAR_DRAG * turning,
        }
        if p.name in usual:
            return usual[p.name]
    raise SettingError(f"{p.name}: no prior std; give one, as in free={{{p.name!r}: 0.1}} (in {p.unit})")


def _numbers(p: Parameter, what: str, given: Numbers) -> tuple[float, ...]:
    numbers = tuple(float(v) for v in np.ravel(given))
    if len(numbers) == 1:
        numbers = numbers * (len(p.values) if what == "std" else 1)
    if len(numbers) != len(p.values) or not all(math.isfinite(v) for v in numbers):
        raise SettingError(
            f"{p.name}: {what} {given!r}; {len(p.values)} finite numbers are needed, in {p.unit}"
        )
    return numbers
