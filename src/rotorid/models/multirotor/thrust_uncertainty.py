"""How well an airframe knows its collective thrust, and with it what a flight can tell of the mass.

Flight identifies the ratio of thrust and mass: a thrust curve that gives 5 % too much makes the mass 5 % too large. The
uncertainty of the thrust, relative to it, is the first of these that the airframe file has:

    thrust_scale std    of a calibration
    thrust_curve std    in hover: sigma_T^2 = sum_i (sigma_i c^i)^2, the coefficients taken as independent
    neither             `UNSTATED_STD`

A mass that is known better than that (one that was weighed) calibrates the thrust in the first seconds of a flight.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY

UNSTATED_STD: Final = 0.1
"""Relative standard deviation of a thrust whose airframe file gives none: what thrust stands and flights differ by."""


def thrust_relative_std(airframe: Airframe) -> float:
    """Standard deviation of the collective thrust in hover over its value, before a flight."""
    scale, curve = airframe.get("thrust_scale"), airframe.thrust_curve
    if scale is not None and scale.std is not None:
        return scale.std[0] / scale.number
    if curve is None or not curve.std:
        return UNSTATED_STD
    return _curve_relative_std(airframe, curve)


def response_relative_std(airframe: Airframe) -> float:
    """Standard deviation of the response of the collective thrust to the command over its value: at least that of the curve
    where it has one, since a calibration of its size in hover says nothing of its slope."""
    curve = airframe.thrust_curve
    std = thrust_relative_std(airframe)
    return max(std, _curve_relative_std(airframe, curve)) if curve is not None and curve.std else std


def _curve_relative_std(airframe: Airframe, curve: ThrustCurve) -> float:
    c = hover_signal(airframe)
    powers = c ** np.arange(len(curve.std))
    thrust = float(np.polynomial.Polynomial(curve.coefficients)(c))
    return float(np.linalg.norm(powers * np.array(curve.std))) / max(thrust, 1e-12)


def is_weighed(airframe: Airframe) -> bool:
    """Whether the mass in the airframe file is better known than its thrust."""
    return mass_relative_std(airframe) < thrust_relative_std(airframe)


def hover_signal(airframe: Airframe) -> float:
    """The c of the thrust curve (see `ThrustCurve`) at which the rotors carry the weight; 1 where they cannot."""
    assert airframe.thrust_curve is not None
    c = np.linspace(0.0, 1.0, 1001)
    thrust = np.polynomial.Polynomial(airframe.thrust_curve.coefficients)(c)
    rotors = len(airframe.rotors) or 4
    return float(c[np.argmax(thrust >= airframe.mass.number * GRAVITY / rotors)] or 1.0)
