"""Priors of what a free flight is to tell of an airframe: the file's standard deviation, else a wide one of the usual size.

inertia 50 %    mass 30 %    thrust_scale 30 %    torque_ratio 50 %    motor time constants: a factor of 2
rotor_scale 10 %    thrust_curve: 20 % of full thrust, each coefficient    voltage_exponent 1    delays 0.01 s
centre_of_mass, imu_position 0.02 m    products_of_inertia 10 % of the mean moment
drag: 0 or more, of the order of the mass over 2 s    rotor_drag: that, shared by the rotors in hover
drag_area: 0 or more, what a sphere as wide as the rotors has    angular_drag: 0 or more, three times the inertia over 1 s
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rotorid.errors import AirframeError, SettingError
from rotorid.identification.coordinates import INERTIA, PRODUCTS, Prior
from rotorid.models.airframe import MOTOR_LAG, Airframe
from rotorid.models.flown_body import local_parameter
from rotorid.models.rotors import torque_ratio_of
from rotorid.models.system import GRAVITY, Parameter

BODY = {
    INERTIA: "kg m^2", PRODUCTS: "kg m^2", "centre_of_mass": "m", "torque_ratio": "m", "drag": "N s/m",
    "rotor_drag": "N^0.5 s/m", "drag_area": "m^2", "angular_drag": "N m s", "imu_position": "m", "velocity_delay": "s",
    "attitude_delay": "s",
}  # fmt: skip
"""Parameters of the body, and their units."""

ROTORS = {
    "thrust_curve": "N", "voltage_exponent": "1", "thrust_scale": "1", "motor_time_constant": "s",
    "motor_time_constant_down": "s", "command_delay": "s", "rotor_scale": "1",
}  # fmt: skip
"""Parameters of the rotors, and their units."""

_POSITIVE = ("torque_ratio", "thrust_scale", "motor_time_constant", "motor_time_constant_down", "rotor_scale")
_ONE_SIDED = ("drag", "rotor_drag", "drag_area", "angular_drag")
_WIND, _GYROSCOPE, _ACCELEROMETER = 3.0, 0.02, 0.15  # m/s, rad/s, m/s^2
_FACTOR = 0.7  # of the logarithm: about a factor of 2


def value_of(airframe: Airframe, name: str) -> tuple[float, ...]:
    """The airframe's value of a parameter, or what stands for it where the file does not say.

    Raises AirframeError where nothing can.
    """
    curve = airframe.thrust_curve
    if name == "torque_ratio":
        return (torque_ratio_of(airframe),)
    if name == "rotor_scale":
        return tuple(rotor.thrust_scale for rotor in airframe.rotors)
    if name == "thrust_curve":
        coefficient = airframe.get("thrust_coefficient")
        if curve is not None:
            return curve.coefficients
        return (0.0, coefficient.number) if coefficient else (0.0, 1.0)
    if name == "voltage_exponent":
        return (curve.voltage_exponent if curve else 0.0,)
    found = airframe.get(name)
    if found is not None:
        return found.value
    if name == INERTIA:
        raise AirframeError(
            f"{airframe.source}: no [inertia]; give a guess in kg m^2, with std as far as it may be off"
        )
    if name == "motor_time_constant_down":
        return value_of(airframe, "motor_time_constant")
    zeros = (0.0,) * (3 if name in (PRODUCTS, "centre_of_mass", "imu_position") else 1)
    return {"thrust_scale": (1.0,), "motor_time_constant": (MOTOR_LAG,)}.get(name, zeros)


def std_of(airframe: Airframe, name: str) -> tuple[float, ...]:
    """How far the truth may be from the airframe's value: what the file says, else the usual."""
    value, found, curve = value_of(airframe, name), airframe.get(name), airframe.thrust_curve
    if found is not None and found.std is not None and min(found.std) > 0:
        return tuple(float(v) for v in np.broadcast_to(found.std, len(value)))
    if name == "thrust_curve" and curve is not None and curve.std and min(curve.std) > 0:
        return curve.std
    if name == "voltage_exponent" and curve is not None and curve.voltage_exponent_std > 0:
        return (curve.voltage_exponent_std,)
    if name == "rotor_scale" and airframe.rotors and min(r.thrust_scale_std for r in airframe.rotors) > 0:
        return tuple(r.thrust_scale_std for r in airframe.rotors)
    mass = airframe.mass.number
    turning = float(np.mean(value_of(airframe, INERTIA))) if name in (PRODUCTS, "angular_drag") else 0.0
    span = max((math.hypot(*rotor.position[:2]) for rotor in airframe.rotors), default=0.2)
    hover = mass * GRAVITY / max(len(airframe.rotors), 1)
    usual = {
        INERTIA: 0.5, "mass": 0.3, "thrust_scale": 0.3, "torque_ratio": 0.5, "rotor_scale": 0.1,
        "motor_time_constant": _FACTOR, "motor_time_constant_down": _FACTOR,
    }  # fmt: skip
    if name in usual:
        return tuple(usual[name] * v for v in value)
    absolute = {
        "thrust_curve": 0.2 * abs(sum(value)),
        "voltage_exponent": 1.0,
        "command_delay": 0.01,
        "velocity_delay": 0.01,
        "attitude_delay": 0.01,
        "centre_of_mass": 0.1 * span,
        "imu_position": 0.1 * span,
        PRODUCTS: 0.1 * turning,
        "drag": 0.5 * mass,
        "rotor_drag": 0.5 * mass / (max(len(airframe.rotors), 1) * math.sqrt(hover)),
        "drag_area": math.pi * span**2,
        "angular_drag": 3.0 * turning,
    }
    return (absolute[name],) * len(value)


def flown_priors(airframe: Airframe, free: Sequence[str]) -> tuple[Prior, ...]:
    """The priors of these parameters of body and rotors, in the order of `BODY` and `ROTORS`.

    Raises SettingError for a name that there is not, and for products of inertia without the inertia.
    """
    known = (*BODY, *ROTORS)
    for name in free:
        if name not in (*known, "mass"):
            raise SettingError(f"no parameter {name!r} to identify; there are mass, {', '.join(known)}")
    if PRODUCTS in free and INERTIA not in free:
        raise SettingError(f"{PRODUCTS} free and {INERTIA} not: free both, or neither")
    return tuple(_prior(airframe, name) for name in known if name in free)


def _prior(airframe: Airframe, name: str) -> Prior:
    value, std = value_of(airframe, name), std_of(airframe, name)
    bounds = (0.0, math.inf) if name in (*_POSITIVE, INERTIA) else (-math.inf, math.inf)
    vector = len(value) > 1 or name in ("thrust_curve", "rotor_scale")
    parameter = Parameter(name, value if vector else sum(value), unit={**BODY, **ROTORS}[name], bounds=bounds)
    return Prior(parameter, value, std, name in _ONE_SIDED, name in (INERTIA, PRODUCTS))


def local_prior(airframe: Airframe, name: str, parts: int) -> Prior:
    """The prior of a local input in so many parts of flights."""
    if name == "mass":
        value, std = airframe.mass.value, std_of(airframe, "mass")
    else:
        width = {"wind": 2, "gyroscope_bias": 3, "accelerometer_bias": 3}[name]
        value = (0.0,) * width
        std = ({"wind": _WIND, "gyroscope_bias": _GYROSCOPE}.get(name, _ACCELEROMETER),) * width
    return Prior(local_parameter(name, value * parts), value * parts, std * parts)
