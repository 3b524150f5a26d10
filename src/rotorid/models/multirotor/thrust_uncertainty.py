"""How well an airframe knows its collective thrust, and with it what a flight can tell of the mass.

Flight identifies the ratio of thrust and mass: a thrust curve that gives 5 % too much makes the mass 5 % too large. The
uncertainty of the thrust, relative to it, is the first of these that the airframe file has:

    thrust_scale std    of a calibration
    thrust_curve std    in hover: sigma_T^2 = sum_i (sigma_i c^i)^2, the coefficients taken as independent
    neither             `UNSTATED_STD`

A mass that is known better than that (one that was weighed) calibrates the thrust in the first seconds of a flight.

*Voltage*. With e the exponent of the voltage V in the thrust curve, and V_0 the voltage at which the thrust is known (of the
curve, or of the first seconds where the mass was weighed), the thrust has a relative standard deviation of
std(e) |ln(V / V_0)|, with |ln(V / V_0)| taken as 0.03 where the voltage is unknown. Motors without speed control also lose
thrust while they warm up: 0.025 within some 20 s. Both apply to curves whose exponent has a standard deviation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY

UNSTATED_STD: Final = 0.1
"""Relative standard deviation of a thrust whose airframe file gives none: what thrust stands and flights differ by."""

CALIBRATION_TIME: Final = 10.0
"""s from the start of a flight in which a weighed mass calibrates the thrust."""

_UNKNOWN_SAG: Final = 0.03  # of ln V after the first seconds, where the voltage is unknown
_WARM_UP, _WARM_UP_TIME = 0.025, 20.0  # of the thrust, s


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


def voltage_relative_std(
    curve: ThrustCurve,
    elapsed: Float[np.ndarray, "*n"],
    voltage: Float[np.ndarray, "*n"] | None,
    first_voltage: float,
    *,
    is_calibrated: bool,
) -> Float[np.ndarray, "*n"]:
    """Standard deviation of the thrust over its value by the exponent of the voltage and by motors that warm up.

    Args:
        curve: with a standard deviation of its exponent.
        elapsed: time since the start of the flight, s.
        voltage: of the battery, V; None where it is unknown.
        first_voltage: median of the voltage in the first `CALIBRATION_TIME` s, V.
        is_calibrated: whether a known or weighed mass calibrates the thrust in this time.
    """
    warm_up = -np.expm1(-elapsed / _WARM_UP_TIME) if is_calibrated else np.ones_like(elapsed)
    if voltage is None or not curve.voltage_exponent:
        sag = -_UNKNOWN_SAG * np.expm1(-elapsed / CALIBRATION_TIME)
    else:
        reference = first_voltage if is_calibrated else curve.voltage
        sag = np.log(np.maximum(voltage, 0.1 * reference) / reference)
    return np.asarray(np.hypot(curve.voltage_exponent_std * sag, _WARM_UP * warm_up))
