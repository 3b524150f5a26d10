"""Export of an airframe as a frame of ArduPilot's simulator (SITL).

SITL's equations (its sources: SIM_Frame.cpp, SIM_Motor.cpp; g = 9.80665 m/s^2), FRD:

    thrust / full thrust = e c^2 + (1 - e) c      c: from spin_min to spin_max of the range of PWM, e: propExpo
    full thrust of all = m g / hoverThrOut        at maxVoltage and the air of refAlt, times (V / maxVoltage)^2
    torque about a rotor's axis = -yaw 0.05 diagonal_size c T
    drag of a rotor = mdrag_coef sqrt(rho disc_area / n) sqrt(T) v,   of the body areaCd 1/2 rho v_i |v_i|, axis by axis, where
    m g tan(refAngle) = areaCd 1/2 rho refSpd^2 + mdrag_coef refSpd cos(refAngle)^2 sqrt(m g / cos(refAngle) rho disc_area)
    omega' loses (400 deg) / refRotRate omega;   the rate of c is limited to slew_max
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.autopilot.curve_fit import curve_limitation
from rotorid.export.limitations import rotor_drag_limitation
from rotorid.geometry.gravity import STANDARD_GRAVITY
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.hover import hover_trim
from rotorid.models.multirotor.properties import FRD, VehicleProperties, vehicle_properties
from rotorid.models.multirotor.thrust_expo import expo_fraction, largest_difference, limited_thrust_expo
from rotorid.numerics.bisection import bisect

PWM: Final = (1000.0, 2000.0)
"""Pulse widths of the commands 0 and 1, us."""

YAW_SCALE = 0.05
ROTATION = math.radians(400.0)
MOST_ROTORS = 12

_MOMENTUM = 0.2  # SITL's default mdrag_coef
_MERIT = 0.5  # figure of merit of a rotor: ideal over actual power in hover
_REFERENCE_SPEED = 10.0  # m/s
_SLEW = 0.5585  # slew_max times the lag: the least-squares ramp for 1 - exp(-t / lag)
_CLIMB = 3.0  # m/s
_BISECTIONS = 60
_SMALL = 1e-9


def frame_values(airframe: Airframe) -> Mapping[str, float]:
    """The values of the frame by name; elements of a vector end in _0, _1 and _2."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    if vehicle.rotors.count > MOST_ROTORS:
        raise AirframeError(
            f"{airframe.source}: {vehicle.rotors.count} rotors; ArduPilot's simulator takes {MOST_ROTORS}"
        )
    hover = hover_trim(vehicle)
    rotor_drag = vehicle.drag.rotor + vehicle.drag.linear / np.sqrt(hover.thrust).sum()
    momentum = _MOMENTUM if rotor_drag else 0.0
    disc = (
        vehicle.rotors.count * (rotor_drag / _MOMENTUM) ** 2 / AIR_DENSITY
        if rotor_drag
        else _disc_area(vehicle)
    )
    voltage = (
        vehicle.rotors.thrust_curve.voltage if math.isfinite(vehicle.rotors.thrust_curve.voltage) else 12.6
    )
    power = vehicle.body.weight**1.5 / math.sqrt(2.0 * AIR_DENSITY * disc) / _MERIT
    size = float(np.linalg.norm(vehicle.rotors.positions, axis=1).max())
    damping = vehicle.drag.angular * np.trace(np.linalg.inv(vehicle.body.inertia)) / 3.0
    values: dict[str, float] = {
        "mass": vehicle.body.mass,
        "diagonal_size": size,
        "num_motors": vehicle.rotors.count,
        "refSpd": _REFERENCE_SPEED,
        "refAngle": math.degrees(_reference_angle(vehicle, momentum, disc)),
        "refVoltage": voltage,
        "refCurrent": power / voltage,
        "refAlt": 0.0,
        "refTempC": 15.0,
        "refBatRes": 0.0,
        "maxVoltage": voltage,
        "battCapacityAh": 0.0,
        "propExpo": limited_thrust_expo(vehicle.rotors.thrust_fraction_in_range),
        "refRotRate": ROTATION / damping if damping else 0.0,
        "hoverThrOut": vehicle.body.mass * STANDARD_GRAVITY / float(vehicle.rotors.full_thrusts.sum()),
        "pwmMin": PWM[0],
        "pwmMax": PWM[1],
        "spin_min": vehicle.rotors.thrust_curve.zero,
        "spin_max": vehicle.rotors.thrust_curve.full,
        "slew_max": _SLEW / vehicle.rotors.lag,
        "disc_area": disc,
        "mdrag_coef": momentum,
        **{f"moment_inertia_{k}": vehicle.body.inertia[k, k] for k in range(3)},
    }
    c = vehicle.rotors.command_in_range(hover.command)
    for k in range(vehicle.rotors.count):
        values |= {f"motor{k + 1}_position_{a}": v for a, v in enumerate(FRD * vehicle.rotors.positions[k])}
        values |= {f"motor{k + 1}_vector_{a}": v for a, v in enumerate(FRD * vehicle.rotors.axes[k])}
        yaw = vehicle.rotors.spins[k]
        if math.isfinite(vehicle.rotors.torque_ratio):
            yaw *= vehicle.rotors.torque_ratio / (YAW_SCALE * size * float(c.mean()))
        values[f"motor{k + 1}_yaw"] = yaw
    return values


def body_area(mass: float, speed: float, angle: float, momentum: float, disc: float, rho: float) -> float:
    """areaCd of SITL, m^2.

    Args:
        mass: kg.
        speed: refSpd, m/s.
        angle: refAngle, rad.
        momentum: mdrag_coef.
        disc: disc_area, m^2.
        rho: density of the air, kg/m^3.
    """
    lost = mass * STANDARD_GRAVITY * math.tan(angle)
    root = math.sqrt(mass * STANDARD_GRAVITY / math.cos(angle) * rho * disc)
    taken = momentum * speed * math.cos(angle) ** 2 * root
    return max(0.0, lost - taken) / (0.5 * rho * speed**2)


def _reference_angle(vehicle: VehicleProperties, momentum: float, disc: float) -> float:
    """The tilt in rad from which SITL computes the drag area of the airframe."""

    def is_below(angle: Float[np.ndarray, ""]) -> bool:
        area = body_area(vehicle.body.mass, _REFERENCE_SPEED, float(angle), momentum, disc, AIR_DENSITY)
        return area <= vehicle.drag.area

    return float(bisect(is_below, 0.0, 0.5 * math.pi - 1e-6, _BISECTIONS)[1])


def _disc_area(vehicle: VehicleProperties) -> float:
    """Disc area of propellers whose radius is 0.45 of the least rotor distance, m^2; of one rotor, 0.1 m of radius."""
    apart = np.linalg.norm(
        vehicle.rotors.positions[:, None, :2] - vehicle.rotors.positions[None, :, :2], axis=2
    )
    apart = apart[apart > _SMALL]
    return vehicle.rotors.count * math.pi * (0.45 * float(apart.min()) if apart.size else 0.1) ** 2


def frame_unit(name: str) -> str:
    """Unit of a number of the frame."""
    if name.startswith("moment_inertia"):
        return "kg m^2"
    if "_position_" in name:
        return "m"
    return {
        "mass": "kg", "diagonal_size": "m", "refAngle": "deg", "refCurrent": "A", "refRotRate": "deg/s", "slew_max": "1/s",
        "disc_area": "m^2",
    }.get(name, "1")  # fmt: skip


def frame_limitations(vehicle: VehicleProperties, values: Mapping[str, float]) -> list[str]:
    """Sentences on what SITL cannot represent, with the size of each error."""
    body, rotors, drag = vehicle.body, vehicle.rotors, vehicle.drag
    e, hover = values["propExpo"], hover_trim(vehicle)
    sentences = curve_limitation("propExpo", e, rotors.thrust_fraction_in_range)
    spread = np.ptp(rotors.thrust_scales) / rotors.thrust_scales.mean()
    if spread > _SMALL:
        sentences.append(
            f"all rotors have the same thrust; in the airframe their thrusts differ by {100 * spread:.2g} %"
        )
    exponent = rotors.thrust_curve.voltage_exponent
    if exponent not in (0.0, 2.0):
        sentences.append(f"the voltage exponent of the thrust is 2; the airframe's is {exponent:g}")
    if not math.isfinite(rotors.thrust_curve.voltage):
        sentences.append("maxVoltage: not in the airframe; SIM_BATT_VOLTAGE must equal the value here")
    sentences.append(
        "refAlt 0: the thrust curve is assumed to hold at sea level. If it was measured at another altitude, set refAlt "
        "to that altitude; 500 m higher, the thrust is 4.7 % smaller"
    )
    products = np.abs(body.inertia[np.triu_indices(3, 1)]).max()
    if products:
        sentences.append(
            f"products of inertia: not represented; the largest is {100 * products / np.diag(body.inertia).min():.2g} % of "
            "the smallest moment of inertia"
        )
    c = rotors.command_in_range(hover.command)
    if rotors.has_torque_ratio:
        sentences.append(
            f"motorN_yaw: the torque per newton is proportional to c and exact in hover, c = {c.mean():.3g}; at c = 1 it is "
            f"{1.0 / c.mean():.3g} times the airframe's"
        )
    else:
        sentences.append("motorN_yaw: the airframe has no [torque_ratio]; the simulator's default is used")
    sentences.append(
        f"slew_max: the rate limit that fits the motor lag of {1000 * rotors.lag:.3g} ms best for a step from 0 to 1; small "
        "steps have no lag"
    )
    if rotors.lag != rotors.lag_down:
        sentences.append(
            f"slew_max: one value for both directions; the lag for falling thrust is {1000 * rotors.lag_down:.3g} ms"
        )
    area = body.weight / (
        0.5 * AIR_DENSITY * (2.0 * values["refVoltage"] * values["refCurrent"] / body.weight) ** 2
    )
    sentences.append(
        "refCurrent: from momentum theory with a figure of merit of 0.5. The simulator reduces the thrust in a climb, by "
        f"{0.5 * AIR_DENSITY * area * _CLIMB**2:.2g} of {body.weight:.3g} N at {_CLIMB:g} m/s; the airframe has no such effect"
    )
    if drag.linear:
        sentences.append(
            "mdrag_coef: includes the linear drag at the hover thrust; here it is proportional to the square root of the "
            "thrust, at twice the hover thrust 1.41 times as large"
        )
    sentences += rotor_drag_limitation(vehicle)
    if drag.rotor or drag.linear:
        sentences.append(
            "mdrag_coef, disc_area: only the product mdrag_coef sqrt(disc_area) is known. SITL applies it along the rotor "
            "axes, too"
        )
    if drag.area:
        sentences.append(
            "refAngle: the drag of the body acts separately on each axis; at 45 deg between two axes it is 29 % smaller "
            "than the airframe's"
        )
    if drag.angular:
        rates = drag.angular / np.diag(body.inertia)
        sentences.append(
            f"refRotRate: one decay rate, {ROTATION / values['refRotRate']:.3g} 1/s; the airframe's are "
            f"{', '.join(f'{rate:.3g}' for rate in rates)} 1/s about x, y and z"
        )
    worst = largest_difference(rotors.thrust_fraction_in_range, lambda s: np.asarray(expo_fraction(e, s)))
    if worst > _SMALL:
        hover_c = float(c.mean())
        error = abs(expo_fraction(e, hover_c) - float(rotors.thrust_fraction_in_range(c.mean())))
        sentences.append(
            f"propExpo: the thrust error in hover is {100 * error * rotors.full_thrusts.mean() / hover.thrust.mean():.2g} %"
        )
    return sentences + delay_limitation(vehicle)


def delay_limitation(vehicle: VehicleProperties) -> list[str]:
    """On the delay of commands, which ArduPilot has no parameter for."""
    delay = vehicle.rotors.command_delay
    return [f"the command delay of {1000 * delay:.3g} ms is not represented"] if delay else []
