"""Export to PX4 parameters, in the format of QGroundControl: allocation, hover, drag of the estimator, and PX4's simulator.

PX4's equations (its sources: ActuatorEffectivenessRotors.cpp, FunctionMotors.hpp, drag_fusion.cpp, sih.cpp), FRD:

    moment of a rotor = CT (r x a - KM a)                        KM positive for counter-clockwise rotation
    thrust / full thrust = THR_MDL_FAC s^2 + (1 - THR_MDL_FAC) s    s: signal to the motor
    specific force of drag = -MCOEF v - 1/2 rho |v| v / BCOEF       of the body's x and y
    SIH: thrust = T_MAX s behind a first-order lag T_TAU, drag -KDV v, torque -KDW omega, arms L_ROLL and L_PITCH

SIH simulates two vehicle types only; for others no SIH_* are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.file_header import as_hash_comments, file_header
from rotorid.export.limitations import (
    DRAG_QUANTITIES,
    angular_drag_by_axis,
    battery_voltage,
    command_delay,
    drag_by_axis,
    falling_lag,
    limitation,
    missing_parameters,
    out_of_range,
    rotor_aerodynamics,
    rotor_moments,
    thrust_curve_error,
)
from rotorid.export.text import NO_DRAG_AREA
from rotorid.export.uncertainty import standard_deviations
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import (
    FRD,
    VehicleProperties,
    collective_fraction,
    expo_fraction,
    hover_trim,
    limited_thrust_expo,
    vehicle_properties,
)

MOST_ROTORS = 12
DRAG_SPEED = 5.0
"""Airspeed at which the linear drag of SIH equals the quadratic one, m/s."""

_HALF_ROOT_3 = float(np.sqrt(0.75))
SIH_SHAPES: Final[Mapping[int, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]]] = {
    0: ((-1, 1, 1, -1), (1, -1, 1, -1), (1, 1, -1, -1)),
    4: (
        (-0.5, -1, -0.5, 0.5, 1, 0.5),
        (_HALF_ROOT_3, 0, -_HALF_ROOT_3, -_HALF_ROOT_3, 0, _HALF_ROOT_3),
        (1, -1, 1, -1, 1, -1),
    ),
}
"""By SIH_VEHICLE_TYPE: signs and factors of each motor's roll torque per L_ROLL, pitch per L_PITCH, yaw per Q_MAX."""

_RATIO = 0.05  # m, PX4's default CA_ROTORn_KM
_FLOAT, _INTEGER = 9, 6  # MAV_PARAM_TYPE
_COUNTS: Final = ("CA_ROTOR_COUNT", "SIH_VEHICLE_TYPE")
_SMALL = 1e-9
_LIMITS: Final = {
    "MPC_THR_HOVER": (0.1, 0.8),
    "EKF2_BCOEF_X": (0.0, 200.0),
    "EKF2_BCOEF_Y": (0.0, 200.0),
    "EKF2_MCOEF": (0.0, 1.0),
}
"""Ranges that PX4's parameter reference gives."""


def px4_values(airframe: Airframe) -> Mapping[str, float]:
    """The parameters by name, in order. Raises AirframeError where the airframe lacks a property that they need."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    if vehicle.rotors.count > MOST_ROTORS:
        raise AirframeError(f"{airframe.source}: {vehicle.rotors.count} rotors; PX4 allocates {MOST_ROTORS}")
    values: dict[str, float] = {"CA_ROTOR_COUNT": vehicle.rotors.count}
    places, axes, full = (
        FRD * vehicle.rotors.positions,
        FRD * vehicle.rotors.axes,
        vehicle.rotors.full_thrusts,
    )
    unit = max(1.0, full.max() / 100.0)  # PX4 limits them to 100; only their ratios count
    for k in range(vehicle.rotors.count):
        values |= {f"CA_ROTOR{k}_P{a}": p for a, p in zip("XYZ", places[k], strict=True)}
        values |= {f"CA_ROTOR{k}_A{a}": p for a, p in zip("XYZ", axes[k], strict=True)}
        values[f"CA_ROTOR{k}_CT"] = full[k] / unit
        values[f"CA_ROTOR{k}_KM"] = vehicle.rotors.spins[k] * (
            vehicle.rotors.torque_ratio if np.isfinite(vehicle.rotors.torque_ratio) else _RATIO
        )
    factor = limited_thrust_expo(vehicle.rotors.thrust_fraction)
    hover = hover_trim(vehicle)
    signal = hover_signal(vehicle)
    values["THR_MDL_FAC"] = factor
    values["MPC_THR_HOVER"] = float(expo_fraction(factor, signal))
    for axis in "XY":
        values[f"EKF2_BCOEF_{axis}"] = (
            vehicle.body.mass / vehicle.drag.mean_area if vehicle.drag.mean_area else 0.0
        )
    values["EKF2_MCOEF"] = (
        vehicle.drag.mean_linear + vehicle.drag.rotor_coefficient(hover.thrust)
    ) / vehicle.body.mass
    shape = sih_shape(vehicle)
    if shape is not None:
        values |= _simulator(vehicle, shape, signal, hover.thrust)
    return {name: value for name, value in values.items() if name not in _missing_names(airframe)}


def _missing_names(airframe: Airframe) -> set[str]:
    """Parameters whose properties are not in the airframe: the vehicle keeps its values."""
    missing = set()
    if not any(airframe.get(name) for name in DRAG_QUANTITIES):
        missing |= {"EKF2_BCOEF_X", "EKF2_BCOEF_Y", "EKF2_MCOEF", "SIH_KDV"}
    if airframe.get("angular_drag") is None:
        missing.add("SIH_KDW")
    if airframe.get("motor_time_constant") is None:
        missing.add("SIH_T_TAU")
    return missing


def px4_files(airframe: Airframe) -> dict[str, bytes]:
    """vehicle.params, which QGroundControl loads (Parameters, Tools, Load from file)."""
    values, stds = px4_values(airframe), standard_deviations(px4_values, airframe)
    lines = [
        "Onboard parameters for Vehicle 1",
        "",
        *file_header(airframe, "parameters of PX4", px4_limitations(airframe, values), fills_missing=False),
    ]
    lines += [
        "Frame: FRD, origin at the centre of mass. Each comment names the parameter below it, its unit and standard deviation.",
        "EKF2_DRAG_CTRL is not changed: set it to 1 to let the estimator use the drag.",
        "",
        "Vehicle-Id Component-Id Name Value Type",
    ]
    text = as_hash_comments(lines)
    for name, value in values.items():
        is_integer = name in _COUNTS
        unit = unit_of(name)
        if not is_integer:
            comment = NO_DRAG_AREA if "BCOEF" in name and not value else stds[name].to_text(unit)
            text += f"# {name}{f', {unit}' if unit != '1' else ''}: {comment}\n"
        number, kind = (f"{value:.0f}", _INTEGER) if is_integer else (f"{value + 0.0:.9g}", _FLOAT)
        text += f"1\t1\t{name}\t{number}\t{kind}\n"
    return {"vehicle.params": text.encode()}


def hover_signal(vehicle: VehicleProperties) -> float:
    """The common motor signal in hover."""
    return float(vehicle.rotors.command_at(np.array(collective_fraction(vehicle))))


def sih_shape(vehicle: VehicleProperties) -> int | None:
    """SIH_VEHICLE_TYPE whose motor torques have the signs of the airframe's; None where there is none."""
    moments = _moments(vehicle)
    for kind, shape in SIH_SHAPES.items():
        signs = np.array(shape)
        if signs.shape[1] == vehicle.rotors.count and np.array_equal(
            np.sign(signs), np.sign(np.round(moments, 9))
        ):
            return kind
    return None


def unit_of(name: str) -> str:
    """Unit of a parameter."""
    if name.startswith("CA_ROTOR"):
        kind = name.rsplit("_", 1)[1]
        return "m" if kind[0] == "P" or kind == "KM" else "N" if kind == "CT" else "1"
    return _UNITS.get(name, "1")


_UNITS: Final = {
    "EKF2_BCOEF_X": "kg/m^2",
    "EKF2_BCOEF_Y": "kg/m^2",
    "EKF2_MCOEF": "1/s",
    "SIH_MASS": "kg",
    "SIH_T_MAX": "N",
    "SIH_Q_MAX": "N m",
    "SIH_L_ROLL": "m",
    "SIH_L_PITCH": "m",
    "SIH_KDV": "N s/m",
    "SIH_KDW": "N m s",
    "SIH_T_TAU": "s",
    **{f"SIH_I{axes}": "kg m^2" for axes in ("XX", "YY", "ZZ", "XY", "XZ", "YZ")},
}


def _moments(vehicle: VehicleProperties) -> Float[np.ndarray, "3 rotors"]:
    """Torque of each rotor at full thrust over the mean full thrust, m, FRD."""
    return (
        FRD[:, None]
        * vehicle.rotors.allocation[3:]
        * vehicle.rotors.full_thrusts
        / vehicle.rotors.full_thrusts.mean()
    )


def _arms(vehicle: VehicleProperties, shape: int) -> Float[np.ndarray, " 3"]:
    """L_ROLL, L_PITCH and Q_MAX / T_MAX, by least squares."""
    signs = np.array(SIH_SHAPES[shape])
    return (signs * _moments(vehicle)).sum(axis=1) / (signs**2).sum(axis=1)


def _simulator(
    vehicle: VehicleProperties, shape: int, signal: float, thrust: Float[np.ndarray, " rotors"]
) -> dict[str, float]:
    full = vehicle.body.weight / (vehicle.rotors.count * signal)
    roll, pitch, yaw = _arms(vehicle, shape)
    J = FRD[:, None] * vehicle.body.inertia * FRD
    linear = (
        vehicle.drag.mean_linear
        + vehicle.drag.rotor_coefficient(thrust)
        + 0.5 * AIR_DENSITY * vehicle.drag.mean_area * DRAG_SPEED
    )
    return {
        "SIH_VEHICLE_TYPE": shape,
        "SIH_MASS": vehicle.body.mass,
        "SIH_IXX": J[0, 0],
        "SIH_IYY": J[1, 1],
        "SIH_IZZ": J[2, 2],
        "SIH_IXY": J[0, 1],
        "SIH_IXZ": J[0, 2],
        "SIH_IYZ": J[1, 2],
        "SIH_T_MAX": full,
        "SIH_Q_MAX": full * yaw,
        "SIH_L_ROLL": roll,
        "SIH_L_PITCH": pitch,
        "SIH_KDV": linear,
        "SIH_KDW": vehicle.drag.mean_angular,
        "SIH_T_TAU": vehicle.rotors.lag,
    }


def px4_limitations(airframe: Airframe, values: Mapping[str, float]) -> list[Finding]:
    """What PX4 cannot represent, with the size of each error. values: from `px4_values`."""
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    rotors, drag = vehicle.rotors, vehicle.drag
    found = missing_parameters(_missing_names(airframe))
    found += thrust_curve_error("THR_MDL_FAC", values["THR_MDL_FAC"], rotors.thrust_fraction)
    found.append(limitation("motor_signals_assumed"))
    if rotors.full_thrusts.max() > 100.0:
        found.append(
            limitation("thrust_coefficients_scaled", divisor=float(rotors.full_thrusts.max() / 100.0))
        )
    if not rotors.has_torque_ratio:
        found.append(limitation("torque_ratio_not_written"))
    found += out_of_range("PX4", values, _LIMITS)
    if drag.mean_area and vehicle.body.mass / drag.mean_area <= 1.0:
        found.append(limitation("drag_area_disabled"))
    if drag.rotor:
        found.append(limitation("rotor_drag_at_hover", parameter="EKF2_MCOEF"))
    found += [*battery_voltage(vehicle), *command_delay(vehicle)]
    if "SIH_MASS" in values:
        return found + _simulator_limitations(vehicle, values)
    return [*found, limitation("simulator_not_written")] if rotors.has_torque_ratio else found


def _simulator_limitations(vehicle: VehicleProperties, values: Mapping[str, float]) -> list[Finding]:
    found = []
    rotors, drag = vehicle.rotors, vehicle.drag
    full, shape = values["SIH_T_MAX"], int(values["SIH_VEHICLE_TYPE"])
    error = float(full / rotors.full_thrusts.mean() - 1.0)
    if abs(error) > _SMALL:
        found.append(limitation("linear_thrust", share=error))
    errors = np.array(SIH_SHAPES[shape]) * _arms(vehicle, shape)[:, None] - _moments(vehicle)
    worst = np.abs(errors).max()
    if worst > _SMALL:
        found.append(limitation("common_arms", share=float(worst / np.abs(rotors.positions).max())))
    horizontal = float(np.abs(rotors.axes[:, :2]).max())
    if horizontal > _SMALL:
        found.append(limitation("vertical_axes", share=horizontal))
    found += falling_lag(vehicle, "SIH_T_TAU")
    if drag.mean_area:
        linear = 0.5 * AIR_DENSITY * drag.mean_area * DRAG_SPEED
        found.append(limitation("drag_area_linearised", drag=linear, speed=DRAG_SPEED))
    if drag.rotor:
        found.append(limitation("isotropic_rotor_drag"))
    found += [*rotor_aerodynamics(vehicle), *rotor_moments(vehicle)]
    found += [*drag_by_axis(vehicle), *angular_drag_by_axis(vehicle)]
    return found
