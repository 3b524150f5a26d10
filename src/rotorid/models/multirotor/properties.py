"""The properties of a vehicle as arrays, its hover in still air, and the thrust model of autopilots.

SI units, body frame (FLU), positions and torques about the centre of mass. Made with numpy alone, so that it is cheap to make
them again with other values (finite differences). Frames of other programs:

    FRD = diag(1, -1, -1) FLU      for a vector; in a symmetric matrix, the xy and xz elements change their sign

Thrust model of one coefficient e, fitted to a thrust curve:

    thrust / full thrust = e s^2 + (1 - e) s

s is the signal from 0 to 1. PX4 calls e THR_MDL_FAC, ArduPilot MOT_THST_EXPO. Fitted over all signals by least squares; any
curve of first and second order through zero is met exactly.

Hover: thrusts, commands and attitude of a vehicle at rest, and their standard deviations.

    G T = (f, 0),  |f| = m g      f: force of the rotors, body frame; T: thrusts of least norm
    level: f = (*, *, m g)        tilted rotors: the vehicle tilts until f points up

    hover_command    of a rotor in hover, as the log gives commands: mean over the rotors
    hover_thrust     weight over the full thrust of all rotors (ArduPilot: MOT_THST_HOVER)

    var f = g^T P g,    g: central differences of f by the estimated parameters

P is the covariance of the fit. An error of a mass or thrust that was held fixed scales masses and thrusts alike, and changes
none of these numbers. They hold at the voltage of the thrust curve.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import (
    MOTOR_LAG,
    QUANTITIES,
    Airframe,
    Quantity,
    airframe_numbers,
    with_numbers,
)
from rotorid.models.multirotor.rotors import inertia_matrix_of, spin, torque_ratio_of
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.numerics.bisection import bisect

FRD = np.array([1.0, -1.0, -1.0])
"""Factors that turn FLU components into FRD components, and back."""

_BISECTIONS = 60

Numbers = Float[np.ndarray, "*n"] | float
"""An array of any shape, or one number."""


@dataclasses.dataclass(frozen=True)
class RigidBody:
    """mass: kg. inertia: about the centre of mass, kg m^2. centre_of_mass: from the origin of the body frame, m."""

    mass: float
    inertia: Float[np.ndarray, "3 3"]
    centre_of_mass: Float[np.ndarray, " 3"]

    @property
    def weight(self) -> float:
        """N."""
        return self.mass * GRAVITY


@dataclasses.dataclass(frozen=True)
class RotorSet:
    """The rotors of a vehicle.

    positions: from the centre of mass, m. axes: unit vectors of their thrusts. spins: +1 for a rotor that turns
    counter-clockwise about its axis, else -1. thrust_scales: thrust of each rotor over the curve's; without a curve (see
    `has_thrust_curve`), over the commanded thrust. torque_ratio: torque over thrust, m; NaN where unknown. momentum: angular
    momentum of a rotor over the root of its thrust, N^0.5 m s. lag, lag_down: time constants for rising and falling thrust, s.
    command_delay: s.
    """

    positions: Float[np.ndarray, "rotors 3"]
    axes: Float[np.ndarray, "rotors 3"]
    spins: Float[np.ndarray, " rotors"]
    thrust_scales: Float[np.ndarray, " rotors"]
    thrust_curve: ThrustCurve
    torque_ratio: float
    momentum: float
    lag: float
    lag_down: float
    command_delay: float

    @property
    def count(self) -> int:
        """Number of rotors."""
        return len(self.spins)

    @property
    def has_thrust_curve(self) -> bool:
        """Whether the thrust of a command is known. Without, the inputs are thrusts."""
        return math.isfinite(sum(self.thrust_curve.coefficients))

    @property
    def has_torque_ratio(self) -> bool:
        """Whether the torque of a thrust is known."""
        return math.isfinite(self.torque_ratio)

    @property
    def full_thrusts(self) -> Float[np.ndarray, " rotors"]:
        """Thrust of each rotor at full command, N; NaN without a thrust curve."""
        return self.thrust_scales * sum(self.thrust_curve.coefficients)

    @property
    def allocation(self) -> Float[np.ndarray, "6 rotors"]:
        """Force, and torque about the centre of mass, per newton of each rotor: G of `rotors.allocation`."""
        torque = np.cross(self.positions, self.axes) - np.nan_to_num(self.torque_ratio) * (
            self.spins[:, None] * self.axes
        )
        return np.concatenate([self.axes, torque], axis=1).T

    def thrust_fraction(self, command: Numbers) -> Numbers:
        """Thrust at a command over the thrust at full command."""
        c = np.clip(
            (command - self.thrust_curve.zero) / (self.thrust_curve.full - self.thrust_curve.zero), 0.0, 1.0
        )
        coefficients = self.thrust_curve.coefficients
        return np.polynomial.polynomial.polyval(c, coefficients) / sum(coefficients)

    def thrust_fraction_in_range(self, c: Numbers) -> Numbers:
        """The same over c, which runs from 0 at the command `zero` of the curve to 1 at its command `full`."""
        return self.thrust_fraction(
            self.thrust_curve.zero + (self.thrust_curve.full - self.thrust_curve.zero) * c
        )

    def command_in_range(self, command: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """c of a command, see `thrust_fraction_in_range`."""
        return (command - self.thrust_curve.zero) / (self.thrust_curve.full - self.thrust_curve.zero)

    def command_at(self, fraction: Numbers) -> Numbers:
        """The command at which a rotor has this fraction of its full thrust."""
        low, high = bisect(
            lambda command: self.thrust_fraction(command) < fraction,
            np.full(np.shape(fraction), self.thrust_curve.zero),
            np.full(np.shape(fraction), self.thrust_curve.full),
            _BISECTIONS,
        )
        return 0.5 * (low + high)


def _mean(values: Float[np.ndarray, " 3"]) -> float:
    """Mean of three numbers, without rounding where they are equal."""
    return float(values.mean() if np.ptp(values) else values[0])


@dataclasses.dataclass(frozen=True)
class DragCoefficients:
    """Drag and aerodynamics of the rotors (see `air`); 0 where the airframe has none.

    linear: force over speed by body axis, N s/m. rotor, inflow: force of a rotor in its plane, loss of its thrust, over speed
    and square root of thrust, N^0.5 s/m. lift: its thrust over the square of the speed in its plane, N s^2/m^2. flapping:
    moment of a rotor over speed and square root of thrust, N^0.5 s. area: drag coefficient times area by body axis, m^2.
    angular: torque over angular rate by body axis, N m s.
    """

    linear: Float[np.ndarray, " 3"]
    rotor: float
    inflow: float
    lift: float
    flapping: float
    area: Float[np.ndarray, " 3"]
    angular: Float[np.ndarray, " 3"]

    @property
    def mean_linear(self) -> float:
        """Mean of `linear` over the axes."""
        return _mean(self.linear)

    @property
    def mean_area(self) -> float:
        """Mean of `area` over the axes."""
        return _mean(self.area)

    @property
    def mean_angular(self) -> float:
        """Mean of `angular` over the axes."""
        return _mean(self.angular)

    def rotor_coefficient(self, thrust: Float[np.ndarray, " rotors"]) -> float:
        """Drag force of all rotors per m/s across their axes at these thrusts (N), N s/m."""
        return self.rotor * float(np.sqrt(np.maximum(thrust, 0.0)).sum())

    def across(self, thrust: Float[np.ndarray, " rotors"]) -> float:
        """Drag at low speed across body z at these thrusts (N), N s/m."""
        return 0.5 * float(self.linear[0] + self.linear[1]) + self.rotor_coefficient(thrust)

    def along(self, thrust: Float[np.ndarray, " rotors"]) -> float:
        """Drag at low speed along body z, with the loss of thrust, at these thrusts (N), N s/m."""
        return float(self.linear[2]) + self.inflow * float(np.sqrt(np.maximum(thrust, 0.0)).sum())


@dataclasses.dataclass(frozen=True)
class VehicleProperties:
    """The properties of an airframe."""

    body: RigidBody
    rotors: RotorSet
    drag: DragCoefficients


def vehicle_properties(
    airframe: Airframe, *, needs_torque_ratio: bool = True, needs_thrust_curve: bool = True
) -> VehicleProperties:
    """Collect the properties of an airframe.

    Args:
        airframe: with rotors and inertia.
        needs_torque_ratio: whether its torque ratio must be known.
        needs_thrust_curve: whether its thrust curve must be known.
    Raises:
        AirframeError: it lacks rotors, inertia, or what is needed.
    """
    inertia = airframe.get("inertia")
    for name, is_given in (
        ("[[rotor]]", airframe.rotors),
        ("[inertia]", inertia),
        ("[thrust_curve]", airframe.thrust_curve or not needs_thrust_curve),
    ):
        if not is_given:
            raise AirframeError(f"{airframe.source}: no {name}, which this model needs; add it")
    assert inertia is not None
    ratio = math.nan
    if needs_torque_ratio or airframe.get("torque_ratio") or airframe.get("torque_coefficient"):
        ratio = torque_ratio_of(airframe)

    centre = np.array(airframe.vector("centre_of_mass"))
    lag = airframe.number("motor_time_constant", MOTOR_LAG)
    return VehicleProperties(
        RigidBody(airframe.mass.number, inertia_matrix_of(airframe), centre),
        RotorSet(
            positions=np.array([rotor.position for rotor in airframe.rotors]) - centre,
            axes=np.array([rotor.axis for rotor in airframe.rotors]),
            spins=np.array([float(spin(rotor)) for rotor in airframe.rotors]),
            thrust_scales=airframe.number("thrust_scale", 1.0)
            * np.array([rotor.thrust_scale for rotor in airframe.rotors]),
            thrust_curve=airframe.thrust_curve or ThrustCurve((math.nan,)),
            torque_ratio=ratio,
            momentum=airframe.number("rotor_momentum"),
            lag=lag,
            lag_down=airframe.number("motor_time_constant_down", lag),
            command_delay=airframe.number("command_delay"),
        ),
        DragCoefficients(
            linear=np.array(airframe.vector("drag")),
            rotor=airframe.number("rotor_drag"),
            inflow=airframe.number("rotor_inflow"),
            lift=airframe.number("translational_lift"),
            flapping=airframe.number("flapping_moment"),
            area=np.array(airframe.vector("drag_area")),
            angular=np.array(airframe.vector("angular_drag")),
        ),
    )


_EXPO_SIGNALS = np.linspace(0.0, 1.0, 1001)

ThrustFraction = Callable[[Any], Any]
"""Signals from 0 to 1 -> thrust over full thrust."""


def thrust_expo(fraction: ThrustFraction) -> float:
    """e of the nearest model, without limits."""
    basis = _EXPO_SIGNALS**2 - _EXPO_SIGNALS
    return float(np.dot(basis, fraction(_EXPO_SIGNALS) - _EXPO_SIGNALS) / np.dot(basis, basis))


def limited_thrust_expo(fraction: ThrustFraction) -> float:
    """e between 0 and 1, the range that the autopilots accept."""
    return float(np.clip(thrust_expo(fraction), 0.0, 1.0))


def expo_fraction(expo: float, signal: Float[np.ndarray, " n"] | float) -> Float[np.ndarray, " n"] | float:
    """e s^2 + (1 - e) s."""
    return expo * signal**2 + (1.0 - expo) * signal


def largest_difference(fraction: ThrustFraction, other: ThrustFraction) -> float:
    """The largest difference of two curves over all signals, as a fraction of the full thrust."""
    return float(np.abs(fraction(_EXPO_SIGNALS) - other(_EXPO_SIGNALS)).max())


_LEVEL_TOLERANCE = 1e-9  # of the force and torque per newton
_DIFFERENCE_STEP = 0.01  # of a standard deviation
_THRUST_TOLERANCE = 1e-6
_DRAGS = ("drag", "rotor_drag", "rotor_inflow")
_DRAG_UNIT = "N s/m"


@dataclasses.dataclass(frozen=True)
class HoverTrim:
    """thrust: of each rotor, N. command: of each rotor, NaN without a thrust curve. attitude: quaternion w x y z, body to
    world."""

    thrust: Float[np.ndarray, " rotors"]
    command: Float[np.ndarray, " rotors"]
    attitude: Float[np.ndarray, " 4"]


@dataclasses.dataclass(frozen=True)
class HoverQuantity:
    """A number, its standard deviation, and their unit."""

    value: float
    std: float
    unit: str = "1"


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
        largest_fraction = float((thrust / rotors.full_thrusts).max())
    if largest_fraction >= 1.0:
        raise AirframeError(
            f"hover needs {100 * largest_fraction:.0f} % of the full thrust of a rotor; check [mass] and [thrust_curve]"
        )
    force = G[:3] @ thrust / weight
    axis = np.cross(force, [0.0, 0.0, 1.0])
    attitude = np.array([1.0 + force[2], *axis])
    command = np.full(rotors.count, np.nan)
    if rotors.has_thrust_curve:
        command = np.asarray(rotors.command_at(thrust / rotors.full_thrusts))
    return HoverTrim(thrust, command, attitude / np.linalg.norm(attitude))


def collective_fraction(vehicle: VehicleProperties, gravity: float = GRAVITY) -> float:
    """Weight over the vertical force of all rotors at full thrust. gravity: m/s^2."""
    return vehicle.body.mass * gravity / float(vehicle.rotors.full_thrusts @ vehicle.rotors.axes[:, 2])


def hover_quantities(
    airframe: Airframe, names: Sequence[str], covariance: Float[np.ndarray, "n n"], mass_std: float = 0.0
) -> dict[str, HoverQuantity]:
    """`hover_command` and `hover_thrust` where the airframe has a thrust curve, `thrust_expo` where it was estimated, and
    `drag_across` and `drag_along` (of body z, at low speed) where drag was estimated.

    Args:
        airframe: with the estimated values.
        names: of the estimated parameters.
        covariance: of them.
        mass_std: of the mass, kg, where it is not among them.
    Raises:
        AirframeError: the airframe cannot hover.
    """
    airframe = _with_zeros(airframe, names)
    has_expo = "thrust_curve_1" in names
    has_drag = any(name.startswith(_DRAGS) for name in names)
    values = {name: value for name, (value, _) in airframe_numbers(airframe).items()}
    stds = dict(zip(names, np.sqrt(np.diag(covariance)), strict=True))
    nominal = _quantities(airframe, has_expo, has_drag)

    def slope(name: str, std: float) -> Float[np.ndarray, " quantities"]:
        step = _DIFFERENCE_STEP * std
        if name not in values or step == 0.0:
            return np.zeros(len(nominal))
        high, low = (
            _quantities(with_numbers(airframe, {name: values[name] + d}), has_expo, has_drag)
            for d in (step, -step)
        )
        return np.array([high[n] - low[n] for n in nominal]) / (2.0 * step)

    J = np.array([slope(name, float(std)) for name, std in stds.items()]).reshape(len(names), len(nominal))
    variance = np.sum((covariance @ J) * J, axis=0)
    if "mass" not in stds:
        variance = variance + (slope("mass", mass_std) * mass_std) ** 2
    std = np.sqrt(np.maximum(variance, 0.0))
    return {
        name: HoverQuantity(value, float(s), _DRAG_UNIT if name.startswith("drag") else "1")
        for (name, value), s in zip(nominal.items(), std, strict=True)
    }


def _with_zeros(airframe: Airframe, names: Sequence[str]) -> Airframe:
    """The airframe with the drags that were estimated at 0, which its file leaves out."""
    zeros = {}
    for name in _DRAGS:
        if airframe.get(name) is None and any(n == name or n.removesuffix("_x") == name for n in names):
            zeros[name] = Quantity((0.0,) * (1 if name in names else 3), QUANTITIES[name][0])
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **zeros})


def _quantities(airframe: Airframe, has_expo: bool, has_drag: bool) -> dict[str, float]:
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
    rotors, hover = vehicle.rotors, hover_trim(vehicle)
    thrust = rotors.full_thrusts * rotors.thrust_fraction(hover.command)
    if np.abs(thrust - hover.thrust).max() > _THRUST_TOLERANCE * hover.thrust.max():
        raise AirframeError("its thrust curve does not rise from 0 to more than the weight")
    quantities = {}
    if rotors.has_thrust_curve:
        quantities["hover_command"] = float(np.mean(hover.command))
        quantities["hover_thrust"] = collective_fraction(vehicle)
    if has_expo:
        quantities["thrust_expo"] = thrust_expo(rotors.thrust_fraction_in_range)
    if has_drag:
        quantities["drag_across"] = vehicle.drag.across(hover.thrust)
        quantities["drag_along"] = vehicle.drag.along(hover.thrust)
    return quantities
