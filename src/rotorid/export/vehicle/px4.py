"""An airframe as PX4 parameters, in the file of QGroundControl: allocation, hover, drag of the estimator, and PX4's simulator.

What PX4 computes with them (its sources: ActuatorEffectivenessRotors.cpp, FunctionMotors.hpp, drag_fusion.cpp, sih.cpp), FRD:

    moment of a rotor = CT (r x a - KM a)                        KM positive where it turns counter-clockwise
    thrust / full thrust = THR_MDL_FAC s^2 + (1 - THR_MDL_FAC) s    s: signal to the motor
    specific force of drag = -MCOEF v - 1/2 rho |v| v / BCOEF       of the body's x and y
    SIH: thrust = T_MAX s behind a first-order lag T_TAU, drag -KDV v, torque -KDW omega, arms L_ROLL and L_PITCH

SIH flies two shapes of vehicle only; others get no SIH_*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.vehicle.curve_fit import curve_sentence, modelled, thrust_factor
from rotorid.export.vehicle.facts import DRAGS, FRD, NO_AREA, Facts, facts_of
from rotorid.export.vehicle.heading import hashed, heading, left_out
from rotorid.export.vehicle.spread import spreads
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor_air import AIR_DENSITY

MOST_ROTORS = 12
DRAG_SPEED = 5.0
"""m/s, at which a linear drag stands for a quadratic one."""

_HALF_ROOT_3 = float(np.sqrt(0.75))
SIH_SHAPES: Final[Mapping[int, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]]] = {
    0: ((-1, 1, 1, -1), (1, -1, 1, -1), (1, 1, -1, -1)),
    4: (
        (-0.5, -1, -0.5, 0.5, 1, 0.5),
        (_HALF_ROOT_3, 0, -_HALF_ROOT_3, -_HALF_ROOT_3, 0, _HALF_ROOT_3),
        (1, -1, 1, -1, 1, -1),
    ),
}
"""By SIH_VEHICLE_TYPE: roll of each motor per L_ROLL, pitch per L_PITCH, yaw per Q_MAX, over its thrust."""

_RATIO = 0.05  # m, PX4's own CA_ROTORn_KM
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
    """The parameters by name, in order. Raises AirframeError where the airframe lacks what they follow from."""
    f = facts_of(airframe, torque=False)
    if f.count > MOST_ROTORS:
        raise AirframeError(f"{airframe.source}: {f.count} rotors; PX4 allocates {MOST_ROTORS}")
    values: dict[str, float] = {"CA_ROTOR_COUNT": f.count}
    places, axes, full = FRD * f.places, FRD * f.axes, f.full
    unit = max(1.0, full.max() / 100.0)  # PX4 takes 100 at most, and goes by their ratios
    for k in range(f.count):
        values |= {f"CA_ROTOR{k}_P{a}": p for a, p in zip("XYZ", places[k], strict=True)}
        values |= {f"CA_ROTOR{k}_A{a}": p for a, p in zip("XYZ", axes[k], strict=True)}
        values[f"CA_ROTOR{k}_CT"] = full[k] / unit
        values[f"CA_ROTOR{k}_KM"] = f.spins[k] * (f.torque_ratio if np.isfinite(f.torque_ratio) else _RATIO)
    factor = thrust_factor(f.shape)
    hover = f.hover()
    signal = hover_signal(f)
    values["THR_MDL_FAC"] = factor
    values["MPC_THR_HOVER"] = float(modelled(factor, signal))
    for axis in "XY":
        values[f"EKF2_BCOEF_{axis}"] = f.mass / f.drag_area if f.drag_area else 0.0
    values["EKF2_MCOEF"] = (f.drag + f.rotor_drag_at(hover.thrust)) / f.mass
    shape = sih_shape(f)
    if shape is not None:
        values |= _simulator(f, shape, signal, hover.thrust)
    return {name: value for name, value in values.items() if name not in _unknown(airframe)}


def _unknown(airframe: Airframe) -> set[str]:
    """Parameters of which the airframe says nothing: the vehicle keeps its own."""
    found = set()
    if not any(airframe.get(name) for name in DRAGS):
        found |= {"EKF2_BCOEF_X", "EKF2_BCOEF_Y", "EKF2_MCOEF", "SIH_KDV"}
    if airframe.get("angular_drag") is None:
        found.add("SIH_KDW")
    if airframe.get("motor_time_constant") is None:
        found.add("SIH_T_TAU")
    return found


def px4_files(airframe: Airframe) -> dict[str, bytes]:
    """vehicle.params, which QGroundControl loads (Parameters, Tools, Load from file)."""
    values, stds = px4_values(airframe), spreads(px4_values, airframe)
    f = facts_of(airframe, torque=False)
    lines = [
        "Onboard parameters for Vehicle 1",
        "",
        *heading(
            airframe,
            "parameters of PX4",
            [*left_out(_unknown(airframe)), *_sentences(f, values)],
            fills=False,
        ),
    ]
    lines += [
        "Frame: FRD, from the centre of mass. Comments are lines of their own: parameter, unit, standard deviation.",
        "EKF2_DRAG_CTRL is left as it is: 1 lets the estimator use the drag.",
        "",
        "Vehicle-Id Component-Id Name Value Type",
    ]
    text = hashed(lines)
    for name, value in values.items():
        whole = name in _COUNTS
        unit = unit_of(name)
        if not whole:
            words = NO_AREA if "BCOEF" in name and not value else stds[name].words(unit)
            text += f"# {name}{f', {unit}' if unit != '1' else ''}: {words}\n"
        text += f"1\t1\t{name}\t{f'{value:.0f}' if whole else f'{value + 0.0:.9g}'}\t{_INTEGER if whole else _FLOAT}\n"
    return {"vehicle.params": text.encode()}


def hover_signal(f: Facts) -> float:
    """The signal that carries the vehicle where all motors get the same."""
    return float(f.command(np.array(f.weight / (f.full @ f.axes[:, 2]))))


def sih_shape(f: Facts) -> int | None:
    """SIH_VEHICLE_TYPE whose motors push and turn the same ways as the airframe's, None where there is none."""
    moments = _moments(f)
    for kind, shape in SIH_SHAPES.items():
        signs = np.array(shape)
        if signs.shape[1] == f.count and np.array_equal(np.sign(signs), np.sign(np.round(moments, 9))):
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


def _moments(f: Facts) -> Float[np.ndarray, "3 rotors"]:
    """Torque of each rotor over the mean full thrust at its full thrust, m, FRD."""
    return FRD[:, None] * f.wrench[3:] * f.full / f.full.mean()


def _arms(f: Facts, shape: int) -> Float[np.ndarray, " 3"]:
    """L_ROLL, L_PITCH and Q_MAX / T_MAX, by least squares."""
    signs = np.array(SIH_SHAPES[shape])
    return (signs * _moments(f)).sum(axis=1) / (signs**2).sum(axis=1)


def _simulator(f: Facts, shape: int, signal: float, thrust: Float[np.ndarray, " rotors"]) -> dict[str, float]:
    full = f.weight / (f.count * signal)
    roll, pitch, yaw = _arms(f, shape)
    J = FRD[:, None] * f.inertia * FRD
    linear = f.drag + f.rotor_drag_at(thrust) + 0.5 * AIR_DENSITY * f.drag_area * DRAG_SPEED
    return {
        "SIH_VEHICLE_TYPE": shape,
        "SIH_MASS": f.mass,
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
        "SIH_KDW": f.angular_drag,
        "SIH_T_TAU": f.lag,
    }


def _sentences(f: Facts, values: Mapping[str, float]) -> list[str]:
    """What PX4 cannot say of this airframe, and how large that is."""
    found = curve_sentence("THR_MDL_FAC", values["THR_MDL_FAC"], f.shape)
    found.append(
        "THR_MDL_FAC holds for a curve over signals, as logs have them that were flown with THR_MDL_FAC 0"
    )
    if f.full.max() > 100.0:
        found.append(
            f"CA_ROTORn_CT are divided by {f.full.max() / 100.0:.4g}: PX4 takes 100 at most; their ratios count"
        )
    if not np.isfinite(f.torque_ratio):
        found.append(
            "CA_ROTORn_KM and SIH_*: not written, the airframe has no [torque_ratio]; PX4 takes 0.05 m of all"
        )
    found += [
        f"{name} {values[name]:.3g} is outside of PX4's range, {low:g} to {high:g}"
        for name, (low, high) in _LIMITS.items()
        if name in values and not low <= values[name] <= high
    ]
    if f.drag_area and f.mass / f.drag_area <= 1.0:
        found.append("EKF2_BCOEF_*: PX4 takes 1 kg/m^2 and less for none")
    if f.rotor_drag:
        found.append(
            "EKF2_MCOEF has the rotors' drag at the thrust of hover; at twice the thrust it is 1.41 times as large"
        )
    if f.curve.voltage_exponent:
        found.append(
            f"the curve holds at {f.curve.voltage:g} V; a volt less takes "
            f"{100 * f.curve.voltage_exponent / f.curve.voltage:.2g} % "
            "of the thrust, which no parameter here says"
        )
    if f.delay:
        found.append(f"commands arrive {1000 * f.delay:.3g} ms late; PX4 has no number for it")
    if "SIH_MASS" not in values:
        if np.isfinite(f.torque_ratio):
            found.append(
                "SIH_*: not written, PX4's simulator flies a quadrotor X or a hexarotor X in its own order of motors"
            )
        return found
    return found + _simulator_sentences(f, values)


def _simulator_sentences(f: Facts, values: Mapping[str, float]) -> list[str]:
    found = []
    full, shape = values["SIH_T_MAX"], int(values["SIH_VEHICLE_TYPE"])
    off = full / f.full.mean() - 1.0
    if abs(off) > _SMALL:
        found.append(
            f"SIH_T_MAX is right at hover; the simulator's thrust is linear, and at full signal {100 * off:+.2g} % off"
        )
    error = np.array(SIH_SHAPES[shape]) * _arms(f, shape)[:, None] - _moments(f)
    worst = np.abs(error).max()
    if worst > _SMALL:
        found.append(
            "SIH_L_ROLL, SIH_L_PITCH, SIH_Q_MAX: rotors of one kind, about the centre of mass; a rotor's torque is off "
            "by up to "
            f"{100 * worst / np.abs(f.places).max():.2g} % of its thrust times its arm"
        )
    sideways = np.abs(f.axes[:, :2]).max()
    if sideways > _SMALL:
        found.append(
            f"SIH: rotors pull straight up; {100 * sideways:.2g} % of a rotor's thrust goes sideways"
        )
    if f.lag != f.lag_down:
        found.append(f"SIH_T_TAU: one number; rotors slow down in {f.lag_down:g} s")
    if f.drag_area:
        found.append(
            f"SIH_KDV: linear; {0.5 * AIR_DENSITY * f.drag_area * DRAG_SPEED:.3g} N s/m of it stand for the drag area, "
            "right at "
            f"{DRAG_SPEED:g} m/s"
        )
    if f.rotor_drag:
        found.append("SIH_KDV: in all directions; the rotors' drag has no part along their axes")
    return found
