"""Rotor speeds as the inputs of a simulator, for targets whose rotors have one thrust coefficient and axes along body z.

    T = k w^2        w: rad/s

k is the airframe's thrust coefficient, or makes full command 1000 rad/s. The commanded speeds are those of the thrusts of each
rotor, so that a thrust curve and different thrust scales carry over. Drag that such a simulator lacks is made linear:

    linear drag, rotor drag     at the hover thrust
    drag area                   exact at `DRAG_SPEED`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.limitations import limitation
from rotorid.export.xml import number
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, hover_trim

FULL_SPEED: Final = 1000.0
"""Speed at full command of an airframe without a thrust coefficient, rad/s."""

DRAG_SPEED: Final = 5.0
"""Airspeed at which a linear drag stands for the drag area, m/s."""

QUADROTOR: Final = 4
"""Number of rotors of these simulators."""

_SMALL = 1e-9

SPEEDS: Final = '''\
COEFFICIENTS = {coefficients}  # N, of one rotor, from the constant on
ZERO, FULL = {zero}, {full}  # the thrust rises between these commands
SCALES = {scales}  # thrust of each rotor over the curve
HOVER = {hover}  # command of each rotor in hover


def {function}(command):
    """Speeds of the rotors ({unit}) from their commands, 0 to 1."""
    c = np.clip((np.asarray(command) - ZERO) / (FULL - ZERO), 0.0, 1.0)
    thrust = np.array(SCALES) * sum(k * c**power for power, k in enumerate(COEFFICIENTS))
    return {factor}np.sqrt(np.maximum(thrust, 0.0) / {coefficient})
'''
"""Python source of a function from commands to speeds; see `speeds_in_python`."""


OF_SPEEDS: Final = '''\
SCALES = {scales}  # thrust of each rotor over that of the coefficient
HOVER = {hover}  # speed of each rotor in hover, rad/s


def {function}(speed):
    """Speeds with one thrust coefficient (rad/s) that have the thrusts of these speeds of the rotors (rad/s)."""
    return np.sqrt(SCALES) * np.asarray(speed)
'''
"""Python source where the inputs of the airframe are rotor speeds, too."""


def check_quadrotor(airframe: Airframe, vehicle: VehicleProperties, program: str) -> None:
    """Raise AirframeError for a vehicle that is no quadrotor, which is all that these simulators have."""
    if vehicle.rotors.count != QUADROTOR:
        raise AirframeError(
            f"{airframe.source or airframe.name}: {vehicle.rotors.count} [[rotor]], and {program} has four; export to "
            "mujoco, gazebo or fmu"
        )


def thrust_coefficient(airframe: Airframe, vehicle: VehicleProperties) -> float:
    """k, N s^2."""
    known = airframe.get("thrust_coefficient")
    return known.number if known else float(vehicle.rotors.full_thrusts.max()) / FULL_SPEED**2


def hover_speeds(airframe: Airframe, vehicle: VehicleProperties) -> Float[np.ndarray, " rotors"]:
    """Speed of each rotor in hover, rad/s."""
    return np.sqrt(hover_trim(vehicle).thrust / thrust_coefficient(airframe, vehicle))


def linear_drag(vehicle: VehicleProperties) -> Float[np.ndarray, " 3"]:
    """The whole drag by body axis as a linear one, N s/m."""
    drag, roots = vehicle.drag, float(np.sqrt(hover_trim(vehicle).thrust).sum())
    of_rotors = roots * np.array([drag.rotor, drag.rotor, drag.inflow])
    return drag.linear + of_rotors + 0.5 * AIR_DENSITY * drag.area * DRAG_SPEED


def speeds_in_python(
    airframe: Airframe, vehicle: VehicleProperties, *, function: str, unit: str, factor: str = ""
) -> str:
    """Python source of the function from commands to speeds. factor: from rad/s to unit, with its operator."""
    rotors = vehicle.rotors
    return SPEEDS.format(
        coefficients=in_python(rotors.thrust_curve.coefficients),
        zero=decimal(rotors.thrust_curve.zero),
        full=decimal(rotors.thrust_curve.full),
        scales=in_python(rotors.thrust_scales),
        hover=in_python(hover_trim(vehicle).command),
        coefficient=decimal(thrust_coefficient(airframe, vehicle)),
        function=function,
        unit=unit,
        factor=factor,
    )


def speeds_of_rotors_in_python(airframe: Airframe, vehicle: VehicleProperties, *, function: str) -> str:
    """Python source of the function from speeds of the rotors, of an airframe without a thrust curve."""
    scales = vehicle.rotors.thrust_scales
    hover = hover_speeds(airframe, vehicle) / np.sqrt(scales)
    return OF_SPEEDS.format(scales=in_python(scales), hover=in_python(hover), function=function)


def decimal(value: float) -> str:
    """A number with twelve digits, with a decimal point or an exponent: a float in Python and TOML."""
    text = number(value)
    return text if any(c in text for c in ".en") else f"{text}.0"


def in_python(values: Iterable[float]) -> str:
    """A list of floats with twelve digits."""
    return f"[{', '.join(decimal(v) for v in values)}]"


def speed_limitations(airframe: Airframe, vehicle: VehicleProperties) -> list[Finding]:
    """What such a simulator cannot represent of the rotors, with the size of each error."""
    has_curve = vehicle.rotors.has_thrust_curve
    inputs = limitation("inputs_from_function") if has_curve else limitation("no_largest_speed")
    found = [inputs, *assumed_speeds(airframe)]
    horizontal = float(np.abs(vehicle.rotors.axes[:, :2]).max())
    if horizontal > _SMALL:
        found.append(limitation("rotors_not_tilted", share=horizontal))
    return found


def assumed_speeds(airframe: Airframe) -> list[Finding]:
    """What the airframe does not say of its rotor speeds, and the simulator takes for granted."""
    found = [] if airframe.has_speed_lag else [limitation("lag_of_speeds")]
    if airframe.get("thrust_coefficient") is None:
        found.append(limitation("no_thrust_coefficient", speed=FULL_SPEED))
    return found


def angular_drag_limitation(vehicle: VehicleProperties) -> list[Finding]:
    """Angular drag that is left out: its torque at 1 rad/s, and the rate at which it would slow the body."""
    drag = vehicle.drag.angular
    if not drag.any():
        return []
    rates = drag / np.diag(vehicle.body.inertia)
    return [limitation("no_angular_drag", values=tuple(drag.tolist()), rates=tuple(rates.tolist()))]
