"""Hover in still air: thrusts, commands and attitude of a vehicle at rest, and their standard deviations.

    G T = (f, 0),  |f| = m g      f: force of the rotors, body frame; T: thrusts of least norm
    level: f = (*, *, m g)        tilted rotors: the vehicle tilts until f points up

    hover_command    of a rotor in hover, as the log gives commands: mean over the rotors
    hover_thrust     weight over the full thrust of all rotors (ArduPilot: MOT_THST_HOVER)
    thrust_expo      e of  thrust / full thrust = e c^2 + (1 - e) c  (ArduPilot: MOT_THST_EXPO, PX4: THR_MDL_FAC)

    var f = g^T P g,    g: central differences of f by the estimated parameters

P is the covariance of the fit. An error of a mass or thrust that was held fixed scales masses and thrusts alike, and changes
none of these numbers. They hold at the voltage of the thrust curve.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Airframe, airframe_numbers, with_numbers
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties
from rotorid.models.multirotor.thrust_expo import thrust_expo

_LEVEL_TOLERANCE = 1e-9  # of the force and torque per newton
_STEP = 0.01  # of a standard deviation
_THRUST_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class HoverTrim:
    """thrust: of each rotor, N. command: of each rotor, NaN without a thrust curve. attitude: quaternion w x y z, body to
    world."""

    thrust: Float[np.ndarray, " rotors"]
    command: Float[np.ndarray, " rotors"]
    attitude: Float[np.ndarray, " 4"]


@dataclasses.dataclass(frozen=True)
class HoverQuantity:
    """A dimensionless number and its standard deviation."""

    value: float
    std: float


def level_thrusts(allocation: Float[np.ndarray, "6 rotors"]) -> Float[np.ndarray, " rotors"]:
    """Thrusts of least norm with a vertical force of 1 N and no torque.

    Args:
        allocation: force and torque per newton of each rotor, body frame (see `rotors.allocation`).
    """
    return np.linalg.pinv(allocation[2:]) @ np.array([1.0, 0.0, 0.0, 0.0])


def hover_trim(vehicle: VehicleProperties) -> HoverTrim:
    """Thrusts, commands and attitude in hover.

    Raises:
        AirframeError: the rotors cannot carry the vehicle without a torque, or a rotor would exceed its full thrust.
    """
    rotors, weight = vehicle.rotors, vehicle.body.weight
    G = rotors.allocation
    thrust = level_thrusts(G)
    level = G[2:] @ thrust
    thrust = thrust * weight / np.linalg.norm(G[:3] @ thrust)
    if np.abs(level - [1.0, 0.0, 0.0, 0.0]).max() > _LEVEL_TOLERANCE or thrust.min() < 0.0:
        raise AirframeError(
            "the rotors cannot carry the weight without a torque; check their positions, axes and [centre_of_mass]"
        )
    with np.errstate(divide="ignore"):  # of a rotor without thrust
        worst = float((thrust / rotors.full_thrusts).max())
    if worst >= 1.0:
        raise AirframeError(
            f"hover needs {100 * worst:.0f} % of the full thrust of a rotor; check [mass] and [thrust_curve]"
        )
    force = G[:3] @ thrust / weight
    axis = np.cross(force, [0.0, 0.0, 1.0])
    attitude = np.array([1.0 + force[2], *axis])
    command = np.full(rotors.count, np.nan)
    if rotors.has_thrust_curve:
        command = np.asarray(rotors.command_at(thrust / rotors.full_thrusts))
    return HoverTrim(thrust, command, attitude / np.linalg.norm(attitude))


def collective_fraction(vehicle: VehicleProperties) -> float:
    """Weight over the vertical force of all rotors at full thrust."""
    return vehicle.body.weight / float(vehicle.rotors.full_thrusts @ vehicle.rotors.axes[:, 2])


def hover_quantities(
    airframe: Airframe, names: Sequence[str], covariance: Float[np.ndarray, "n n"], mass_std: float = 0.0
) -> dict[str, HoverQuantity]:
    """`hover_command` and `hover_thrust`, and `thrust_expo` where the thrust curve was estimated.

    Args:
        airframe: with the estimated values.
        names: of the estimated parameters.
        covariance: of them.
        mass_std: of the mass, kg, where it is not among them.
    Raises:
        AirframeError: the airframe cannot hover.
    """
    has_expo = "thrust_curve_1" in names
    values = {name: value for name, (value, _) in airframe_numbers(airframe).items()}
    stds = dict(zip(names, np.sqrt(np.diag(covariance)), strict=True))
    middle = _quantities(airframe, has_expo)

    def slope(name: str, std: float) -> Float[np.ndarray, " quantities"]:
        step = _STEP * std
        if name not in values or step == 0.0:
            return np.zeros(len(middle))
        high, low = (
            _quantities(with_numbers(airframe, {name: values[name] + d}), has_expo) for d in (step, -step)
        )
        return np.array([high[n] - low[n] for n in middle]) / (2.0 * step)

    J = np.array([slope(name, float(std)) for name, std in stds.items()]).reshape(len(names), len(middle))
    variance = np.sum((covariance @ J) * J, axis=0)
    if "mass" not in stds:
        variance = variance + (slope("mass", mass_std) * mass_std) ** 2
    std = np.sqrt(np.maximum(variance, 0.0))
    return {
        name: HoverQuantity(value, float(s)) for (name, value), s in zip(middle.items(), std, strict=True)
    }


def _quantities(airframe: Airframe, has_expo: bool) -> dict[str, float]:
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False)
    rotors, hover = vehicle.rotors, hover_trim(vehicle)
    thrust = rotors.full_thrusts * rotors.thrust_fraction(hover.command)
    if np.abs(thrust - hover.thrust).max() > _THRUST_TOLERANCE * hover.thrust.max():
        raise AirframeError("its thrust curve does not rise from 0 to more than the weight")
    quantities = {
        "hover_command": float(np.mean(hover.command)),
        "hover_thrust": collective_fraction(vehicle),
    }
    return quantities | ({"thrust_expo": thrust_expo(rotors.thrust_fraction_in_range)} if has_expo else {})
