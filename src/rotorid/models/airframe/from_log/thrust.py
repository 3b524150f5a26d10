"""Thrust of the rotors, from a flight and the mass: the form of the curve by the autopilot's parameters, its size in flight.

With c the command between the ends of its range, and e the share of the quadratic term (PX4's THR_MDL_FAC, ArduPilot's
MOT_THST_EXPO),

    T = k ((1 - e) c + e c^2) (V / V_0)^n,      k = m mean(f_z) / mean(sum_i T_i / k)

where f_z is the specific force along body z and the ratio of the means is the median of blocks of `_BLOCK` s over the first
`_FIRST` s in the air: the mass is that of most of this time. Before a flight, k is that of the autopilot's hover throttle h
(MOT_THST_HOVER, MPC_THR_HOVER): k h = m g / sum of the rotors' axes. The autopilot's parameter is its model of the motors,
which may be that of other motors; the standard deviations allow for it. n is that of motors without speed control.

After a flight, h is a second witness: where it was set or learnt, and the flight needs the share h_f = m g / k of the full
thrust, c = ln(h / h_f) is 0 for a vehicle that carries what it carried when h was learnt, whatever m is stated. Real vehicles
of a constant mass have |c| up to c_0 = 0.33, by their batteries and propellers. Beyond it, m may not be the mass after the
take-off, and the size of the thrust has an additional relative standard deviation of sqrt(c^2 - c_0^2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Quantity, Rotor
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.series import interpolate_linear, is_inside

_EXPO: Final = 0.5  # share of the quadratic term of motors of which no parameter is known
_TERM_STD: Final = 0.35  # of each term, over the full thrust
_CONSTANT_STD: Final = 0.05
_COEFFICIENT_STD: Final = 0.15  # of a thrust coefficient from the mean thrust
# Exponent of the voltage, and its standard deviation: 0 with speed control, 1.6 for a small brushless quadrotor, 2 by momentum
# theory, 3 for a real quadrotor whose motors also warm up.
_VOLTAGE: Final = (1.8, 1.2)
_LEAST_VOLTAGE: Final = 2.5  # V of a battery
_HOVER_DEFAULTS: Final = {"MOT_THST_HOVER": 0.35, "MPC_THR_HOVER": 0.5}
_HOVER_CONFLICT: Final = 0.33  # of ln(h / h_f): the largest of 12 real flights with a weighed mass
_FEWEST: Final = 20  # rows
_FIRST: Final = 30.0  # s
_BLOCK: Final = 1.0  # s


def thrust_curve_from_log(flight: Flight, parameters: Mapping[str, float], mass: float) -> ThrustCurve:
    """The thrust curve of a flight with rotor commands and specific force.

    Args:
        flight: the log.
        parameters: of the autopilot.
        mass: of the vehicle in flight, kg.
    Raises:
        AirframeError: the log has no part in the air, or no specific force.
    """
    expo, _ = _expo(parameters)
    zero, full = _range(parameters)
    times, force = _force(flight)
    command = _at(flight, "rotor_command", times)
    c = np.clip((command - zero) / (full - zero), 0.0, 1.0)
    total = np.sum((1.0 - expo) * c + expo * c**2, axis=1)
    voltage = math.nan
    if _has_voltage(flight):
        volts = _at(flight, "battery_voltage", times)[:, 0]
        voltage = round(float(np.median(volts)), 2)
        total = total * (volts / voltage) ** _VOLTAGE[0]
    level = _level(mass, times, force, total, "rotor_command")
    source = f"the mean thrust after the take-off of {flight.source.name}, which carries {mass:g} kg"
    conflict = hover_throttle_conflict(parameters, mass, level * command.shape[1])
    if conflict is not None:
        source += (
            f", at {conflict.flown:.2f} of full thrust, where {conflict.name} says {conflict.stated:.2f}"
        )
    return _curve(parameters, level, voltage, source)


def thrust_curve_from_hover(
    parameters: Mapping[str, float], mass: float, rotors: Sequence[Rotor], voltage: float = math.nan
) -> ThrustCurve:
    """The thrust curve by the autopilot's hover throttle.

    Args:
        parameters: of the autopilot.
        mass: of the vehicle in flight, kg.
        rotors: with their axes.
        voltage: of the battery, V; NaN where unknown, then the thrust is taken as independent of it.
    Raises:
        AirframeError: the autopilot has no hover throttle between 0 and 1.
    """
    name, hover = _hover_throttle(parameters)
    if not 0.0 < hover < 1.0:
        raise AirframeError(
            "no hover throttle (MOT_THST_HOVER, MPC_THR_HOVER) among the parameters, which the thrust would follow from; give "
            "an airframe by --airframe"
        )
    level = mass * GRAVITY / (hover * sum(rotor.axis[2] for rotor in rotors))
    source = f"{name} {hover:.3g}, at which the rotors carry {mass:g} kg"
    return _curve(parameters, level, voltage, source)


class HoverThrottle(NamedTuple):
    """The autopilot's hover throttle where it contradicts a flight.

    name: of the parameter. stated: its value. flown: the share of the full thrust that carried the mass. std: relative, of the
    thrust that the mass was taken to calibrate.
    """

    name: str
    stated: float
    flown: float
    std: float


def hover_throttle_conflict(
    parameters: Mapping[str, float], mass: float, full: float
) -> HoverThrottle | None:
    """The autopilot's hover throttle against a flight; None where it has none but the default, or the two agree.

    Args:
        parameters: of the autopilot.
        mass: that the flight was taken to carry, kg.
        full: thrust of all rotors at full command, N.
    """
    name, hover = _hover_throttle(parameters)
    if not 0.0 < hover < 1.0 or abs(hover - _HOVER_DEFAULTS.get(name, 0.0)) < 1e-3:
        return None
    flown = mass * GRAVITY / full
    conflict = abs(math.log(hover / flown))
    if conflict < _HOVER_CONFLICT:
        return None
    return HoverThrottle(name, hover, flown, math.sqrt(conflict**2 - _HOVER_CONFLICT**2))


def _hover_throttle(parameters: Mapping[str, float]) -> tuple[str, float]:
    """Name and value of the autopilot's hover throttle, 0 where it has none."""
    name = next((n for n in _HOVER_DEFAULTS if n in parameters), "")
    return name, parameters.get(name, 0.0)


def check_rotors_move(flight: Flight) -> None:
    """Raise AirframeError where the commands of some rotors never change in the air and those of the others do: these channels
    do not drive motors."""
    signal = flight.signals.get("rotor_command")
    if signal is None:
        return
    values = signal.values[is_inside(signal.times, airborne_intervals(flight))]
    if len(values) < _FEWEST:
        return
    is_still = np.ptp(values, axis=0) == 0.0
    if is_still.any() and not is_still.all():
        still = ", ".join(str(i) for i in np.flatnonzero(is_still))
        raise AirframeError(
            f"{flight.source.name}: of the commands of {len(is_still)} rotors, those of rotor {still} never change in the air, "
            f"those of the other {int((~is_still).sum())} do; check which outputs of the autopilot drive motors, or give an "
            "airframe by --airframe"
        )


def _curve(parameters: Mapping[str, float], level: float, voltage: float, source: str) -> ThrustCurve:
    """The thrust curve with a full thrust, N, at a voltage, V; NaN: independent of it. source: of the full thrust."""
    expo, expo_source = _expo(parameters)
    zero, full = _range(parameters)
    exponent, exponent_std = (0.0, math.hypot(*_VOLTAGE)) if math.isnan(voltage) else _VOLTAGE
    return ThrustCurve(
        (0.0, _digits(level * (1.0 - expo)), _digits(level * expo)),
        zero,
        full,
        voltage,
        exponent,
        f"form by {expo_source}; size by {source}",
        (_digits(_CONSTANT_STD * level), _digits(_TERM_STD * level), _digits(_TERM_STD * level)),
        exponent_std,
    )


def thrust_coefficient_from_log(flight: Flight, mass: float) -> Quantity:
    """The thrust coefficient (N s^2) of a flight with rotor speeds and specific force. Raises as `thrust_curve_from_log`."""
    times, force = _force(flight)
    speed = _at(flight, "rotor_speed", times)
    value = _level(mass, times, force, np.sum(speed**2, axis=1), "rotor_speed")
    source = f"the mean thrust after the take-off of {flight.source.name}, which carries {mass:g} kg"
    return Quantity((_digits(value),), "N s^2", (_digits(_COEFFICIENT_STD * value),), source)


def _expo(parameters: Mapping[str, float]) -> tuple[float, str]:
    for name in ("MOT_THST_EXPO", "THR_MDL_FAC"):
        if name in parameters:
            value = float(np.clip(parameters[name], 0.0, 1.0))
            return round(value, 3), f"{name} {value:.3g}"
    return _EXPO, "the usual share of the quadratic term"


def _range(parameters: Mapping[str, float]) -> tuple[float, float]:
    """Commands at which c is 0 and 1."""
    low, high = parameters.get("MOT_SPIN_MIN", 0.0), parameters.get("MOT_SPIN_MAX", 1.0)
    return (round(low, 4), round(high, 4)) if 0.0 <= low < high <= 1.0 else (0.0, 1.0)


def _has_voltage(flight: Flight) -> bool:
    if "battery_voltage" not in flight:
        return False
    volts = flight["battery_voltage"].values[:, 0]
    return bool(np.isfinite(volts).all() and volts.min() > _LEAST_VOLTAGE and np.ptp(volts) > 0.0)


def _force(flight: Flight) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Times in the air, s, and specific force along body z, m/s^2."""
    if "specific_force" not in flight:
        raise AirframeError(
            f"{flight.source.name}: no specific force (accelerometer) in the log, which the thrust would follow from; give an "
            "airframe by --airframe"
        )
    signal = flight["specific_force"]
    intervals = airborne_intervals(flight)
    first = [(start, min(end, intervals[0][0] + _FIRST)) for start, end in intervals]
    is_used = is_inside(signal.times, first) & np.isfinite(signal.values[:, 2])
    if is_used.sum() < _FEWEST:
        raise AirframeError(
            f"{flight.source.name}: the vehicle is never in the air in this log, so that its thrust is unknown; give a log of "
            "a flight, or an airframe by --airframe"
        )
    return signal.times[is_used], signal.values[is_used, 2]


def _at(flight: Flight, name: str, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    signal = flight[name]
    return interpolate_linear(times, signal.times, signal.values)


def _level(
    mass: float,
    times: Float[np.ndarray, " n"],
    force: Float[np.ndarray, " n"],
    total: Float[np.ndarray, " n"],
    name: str,
) -> float:
    """Median over blocks of the thrust, N, over `total`."""
    is_known = np.isfinite(total)
    _, starts = np.unique(np.floor(times[is_known] / _BLOCK), return_index=True)
    rows = np.stack([force, total])[:, is_known]
    means = np.array([block.mean(axis=1) for block in np.split(rows, starts[1:], axis=1) if block.size])
    means = means.reshape(-1, 2)
    if not len(means) or np.median(means, axis=0).min() <= 0.0:
        raise AirframeError(
            f"the mean of {name} and of the upward specific force in the air is not positive; check the log by `rotorid "
            "inspect`, or give an airframe by --airframe"
        )
    means = means[(means > 0.0).all(axis=1)]
    return mass * float(np.median(means[:, 0] / means[:, 1]))


def _digits(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
