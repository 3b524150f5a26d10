"""The properties of a vehicle as arrays: SI units, body frame (FLU), positions and torques about the centre of mass.

Made with numpy alone, so that it is cheap to make them again with other values (finite differences). Frames of other programs:

    FRD = diag(1, -1, -1) FLU      for a vector; in a symmetric matrix, the xy and xz elements change their sign
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
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
    `has_thrust_curve`), over the commanded thrust. torque_ratio: torque over thrust, m; NaN where unknown. lag, lag_down: time
    constants for rising and falling thrust, s. command_delay: s.
    """

    positions: Float[np.ndarray, "rotors 3"]
    axes: Float[np.ndarray, "rotors 3"]
    spins: Float[np.ndarray, " rotors"]
    thrust_scales: Float[np.ndarray, " rotors"]
    thrust_curve: ThrustCurve
    torque_ratio: float
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
        return np.polynomial.Polynomial(self.thrust_curve.coefficients)(c) / sum(
            self.thrust_curve.coefficients
        )

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


@dataclasses.dataclass(frozen=True)
class DragCoefficients:
    """Drag; 0 where the airframe has none.

    linear: force over speed, N s/m. rotor: force across a rotor's axis over speed and square root of thrust, N^0.5 s/m.
    area: drag coefficient times area, m^2. angular: torque over angular rate, N m s.
    """

    linear: float
    rotor: float
    area: float
    angular: float

    def of_rotors_at(self, thrust: Float[np.ndarray, " rotors"]) -> float:
        """Drag force of all rotors per m/s across their axes at these thrusts (N), N s/m."""
        return self.rotor * float(np.sqrt(np.maximum(thrust, 0.0)).sum())


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
            lag=lag,
            lag_down=airframe.number("motor_time_constant_down", lag),
            command_delay=airframe.number("command_delay"),
        ),
        DragCoefficients(
            linear=airframe.number("drag"),
            rotor=airframe.number("rotor_drag"),
            area=airframe.number("drag_area"),
            angular=airframe.number("angular_drag"),
        ),
    )
