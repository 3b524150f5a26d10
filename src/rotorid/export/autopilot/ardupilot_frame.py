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
from rotorid.export.limitations import (
    command_delay,
    drag_by_axis,
    falling_lag,
    limitation,
    thrust_curve_error,
)
from rotorid.findings import Finding
from rotorid.geometry.gravity import STANDARD_GRAVITY
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import (
    FRD,
    VehicleProperties,
    expo_fraction,
    hover_trim,
    largest_difference,
    limited_thrust_expo,
    vehicle_properties,
)
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
    rotor_drag = vehicle.drag.rotor + vehicle.drag.mean_linear / np.sqrt(hover.thrust).sum()
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
    damping = float(_decay_rates(vehicle).mean())
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
        return area <= vehicle.drag.mean_area

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


def frame_limitations(vehicle: VehicleProperties, values: Mapping[str, float]) -> list[Finding]:
    """What SITL cannot represent, with the size of each error. values: from `frame_values`."""
    body, rotors, drag = vehicle.body, vehicle.rotors, vehicle.drag
    expo, hover, curve = values["propExpo"], hover_trim(vehicle), vehicle.rotors.thrust_curve
    found = thrust_curve_error("propExpo", expo, rotors.thrust_fraction_in_range)
    spread = float(np.ptp(rotors.thrust_scales) / rotors.thrust_scales.mean())
    if spread > _SMALL:
        found.append(limitation("equal_thrusts", share=spread))
    if curve.voltage_exponent not in (0.0, 2.0):
        found.append(limitation("voltage_exponent", exponent=curve.voltage_exponent))
    if not math.isfinite(curve.voltage):
        found.append(limitation("voltage_unknown"))
    found.append(limitation("sea_level_assumed"))
    products = np.abs(body.inertia[np.triu_indices(3, 1)]).max()
    if products:
        found.append(limitation("products_of_inertia", share=float(products / np.diag(body.inertia).min())))
    c = rotors.command_in_range(hover.command)
    if rotors.has_torque_ratio:
        found.append(limitation("torque_exact_in_hover", command=float(c.mean())))
    else:
        found.append(limitation("torque_ratio_default"))
    found.append(limitation("lag_as_rate_limit", lag=rotors.lag))
    found += falling_lag(vehicle, "slew_max")
    found.append(
        limitation(
            "thrust_falls_in_climb", loss=_thrust_loss(vehicle, values), weight=body.weight, speed=_CLIMB
        )
    )
    if drag.mean_linear:
        found.append(limitation("linear_drag_at_hover"))
    found += drag_by_axis(vehicle)
    if drag.rotor or drag.mean_linear:
        found.append(limitation("disc_area_arbitrary"))
    if drag.mean_area:
        found.append(limitation("drag_area_by_axis", parameter="refAngle"))
    rates = _decay_rates(vehicle)
    if np.ptp(rates) > _SMALL * rates.max():
        rate = ROTATION / values["refRotRate"]
        found.append(limitation("single_damping", rate=rate, rates=tuple(rates.tolist())))
    worst = largest_difference(rotors.thrust_fraction_in_range, lambda s: np.asarray(expo_fraction(expo, s)))
    if worst > _SMALL:
        error = abs(expo_fraction(expo, float(c.mean())) - float(rotors.thrust_fraction_in_range(c.mean())))
        share = float(error * rotors.full_thrusts.mean() / hover.thrust.mean())
        found.append(limitation("hover_thrust_error", share=share))
    return found + command_delay(vehicle)


def _decay_rates(vehicle: VehicleProperties) -> Float[np.ndarray, " 3"]:
    """Decay rates of the body rate about x, y and z, 1/s."""
    return vehicle.drag.angular * np.diag(np.linalg.inv(vehicle.body.inertia))


def _thrust_loss(vehicle: VehicleProperties, values: Mapping[str, float]) -> float:
    """Loss of thrust in a climb at `_CLIMB`, N, in SITL's momentum theory."""
    weight = vehicle.body.weight
    area = weight / (0.5 * AIR_DENSITY * (2.0 * values["refVoltage"] * values["refCurrent"] / weight) ** 2)
    return 0.5 * AIR_DENSITY * area * _CLIMB**2
