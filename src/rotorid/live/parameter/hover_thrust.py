"""Hover thrust for a mass, in the unit of each autopilot's parameter.

The command u of a rotor in hover follows from the airframe's thrust curve: sum T(u) = m g, at the latest battery voltage.

PX4: MPC_THR_HOVER is the collective thrust setpoint s. The mixer converts it to the motor signal u by THR_MDL_FAC = f,
s = (1 - f) u + f u^2. With MC_BAT_SCALE_EN the setpoint is multiplied by a factor of the battery that the vehicle does not
send. https://docs.px4.io/main/en/advanced_config/parameter_reference.html

ArduPilot: MOT_THST_HOVER is the throttle before battery, air density and thrust curve are compensated. With
r = (u - MOT_SPIN_MIN) / (MOT_SPIN_MAX - MOT_SPIN_MIN), e = MOT_THST_EXPO, v = V / MOT_BAT_VOLT_MAX (1 if not set; V is
limited to MOT_BAT_VOLT_MIN to _MAX), and the density ratio d of the air to sea level (limited to 0.5 to 1.25),
throttle = d ((1 - e) r v + e (r v)^2). From thrust_to_actuator and get_compensation_gain in
AP_Motors_Thrust_Linearization.cpp. V is ArduPilot's resting voltage unless bit 0 of MOT_OPTIONS is set; the resting
voltage is not sent, and the measured one is used with an uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rotorid.live.snapshot import Reading
from rotorid.models.system import GRAVITY

PX4_PARAMETERS: Final[Mapping[str, float | None]] = {"THR_MDL_FAC": None, "MC_BAT_SCALE_EN": 0.0}
ARDUPILOT_PARAMETERS: Final[Mapping[str, float | None]] = {
    "MOT_HOVER_LEARN": None,
    "MOT_THST_EXPO": None,
    "MOT_SPIN_MIN": None,
    "MOT_SPIN_MAX": None,
    "MOT_BAT_VOLT_MAX": 0.0,
    "MOT_BAT_VOLT_MIN": 0.0,
    "MOT_OPTIONS": 0.0,
}
"""Parameters that a hover thrust depends on; with the value of a vehicle without such a parameter, None if it must have it."""

_TABLE_SIZE: Final = 1001  # commands; linear interpolation is exact to 1e-6 of the command
_RAW_VOLTAGE: Final = 1  # bit of MOT_OPTIONS
_LOWEST_VOLTAGE: Final = 0.6  # of MOT_BAT_VOLT_MAX, to which ArduPilot raises MOT_BAT_VOLT_MIN
_SAG_STD: Final = 0.03  # resting over measured voltage, relative
_DENSITY_STD: Final = 0.02  # of the standard atmosphere by altitude, relative


class HoverCommand:
    """The command of each rotor that carries a mass, at the latest battery voltage.

    Args:
        thrust: collective thrust of commands of all rotors, N. Its dependence on the voltage is a common factor.
        rotors: number of rotors.
    """

    def __init__(self, thrust: Callable[[list[float]], float], rotors: int) -> None:
        self._thrust, self._full = thrust, [1.0] * rotors
        self._commands = np.linspace(0.0, 1.0, _TABLE_SIZE)
        self._thrusts = np.maximum.accumulate([thrust([u] * rotors) for u in self._commands.tolist()])

    def __call__(self, kg: float) -> float:
        """The command, 0 to 1; 1 if none carries the mass. kg: mass."""
        factor = self._thrust(self._full) / self._thrusts[-1]
        return float(np.interp(kg * GRAVITY / factor, self._thrusts, self._commands))


@dataclass(frozen=True)
class VehicleConditions:
    """What a conversion from the mass uses.

    command: command of each rotor for a mass in kg. parameters: of the vehicle, by name. voltage: of the battery, V; nan if
    unknown. altitude: above sea level, m; nan if unknown.
    """

    command: Callable[[float], float]
    parameters: Mapping[str, float]
    voltage: float = math.nan
    altitude: float = math.nan


def px4_hover_thrust(mass: Reading, conditions: VehicleConditions) -> tuple[float, float] | None:
    """MPC_THR_HOVER for a mass in kg, and its standard deviation."""
    factor = conditions.parameters["THR_MDL_FAC"]

    def setpoint(kg: float) -> float:
        u = conditions.command(kg)
        return (1.0 - factor) * u + factor * u * u

    value = setpoint(mass.value)
    return value, abs(setpoint(mass.value + mass.std) - value)


def px4_refusal(parameters: Mapping[str, float]) -> str:
    """Why MPC_THR_HOVER cannot follow, "" if it can."""
    if not 0.0 <= parameters["THR_MDL_FAC"] <= 1.0:
        return f"THR_MDL_FAC is {parameters['THR_MDL_FAC']:g}, outside 0 to 1"
    if parameters["MC_BAT_SCALE_EN"]:
        return "MC_BAT_SCALE_EN is on, whose factor is not sent; set it to 0"
    return ""


def ardupilot_hover_thrust(mass: Reading, conditions: VehicleConditions) -> tuple[float, float] | None:
    """MOT_THST_HOVER for a mass in kg, and its standard deviation; None if voltage or altitude is needed and unknown."""
    p = conditions.parameters
    expo = min(max(p["MOT_THST_EXPO"], -1.0), 1.0)
    voltage_ratio, voltage_std = _voltage_ratio(p, conditions.voltage)
    density = _density_ratio(conditions.altitude)
    if not math.isfinite(voltage_ratio * density):
        return None

    def throttle(kg: float, ratio: float) -> float:
        u = conditions.command(kg)
        r = min(max((u - p["MOT_SPIN_MIN"]) / (p["MOT_SPIN_MAX"] - p["MOT_SPIN_MIN"]), 0.0), 1.0) * ratio
        return density * ((1.0 - expo) * r + expo * r * r)

    value = throttle(mass.value, voltage_ratio)
    by_mass = abs(throttle(mass.value + mass.std, voltage_ratio) - value)
    by_voltage = abs(throttle(mass.value, voltage_ratio * (1.0 + voltage_std)) - value)
    return value, math.hypot(by_mass, by_voltage, _DENSITY_STD * value)


def ardupilot_refusal(parameters: Mapping[str, float]) -> str:
    """Why MOT_THST_HOVER cannot follow, "" if it can."""
    learn = parameters["MOT_HOVER_LEARN"]
    if learn:
        return f"MOT_HOVER_LEARN is {learn:g}: ArduPilot itself changes MOT_THST_HOVER in flight; set it to 0"
    if not 0.0 <= parameters["MOT_SPIN_MIN"] < parameters["MOT_SPIN_MAX"] <= 1.0:
        return "MOT_SPIN_MIN and MOT_SPIN_MAX are not in order within 0 to 1"
    return ""


def _voltage_ratio(parameters: Mapping[str, float], voltage: float) -> tuple[float, float]:
    """Battery voltage over MOT_BAT_VOLT_MAX as ArduPilot limits it, and its relative standard deviation; nan if unknown."""
    high, low = parameters["MOT_BAT_VOLT_MAX"], parameters["MOT_BAT_VOLT_MIN"]
    if high <= 0.0 or low >= high:
        return 1.0, 0.0
    if not voltage > 0.0:
        return math.nan, 0.0
    low = max(low, _LOWEST_VOLTAGE * high)
    is_raw = int(parameters["MOT_OPTIONS"]) & _RAW_VOLTAGE
    return min(max(voltage, low), high) / high, 0.0 if is_raw else _SAG_STD


def _density_ratio(altitude: float) -> float:
    """Density of the standard atmosphere over that at sea level, limited as by ArduPilot. altitude: m; nan gives nan."""
    if not -500.0 < altitude < 11000.0:
        return math.nan
    return min(max((1.0 - 2.25577e-5 * altitude) ** 4.25588, 0.5), 1.25)
