"""An airframe as numbers for other programs: SI units, body frame (FLU), places and torques from the centre of mass.

Built with numpy alone, so that it is cheap to ask again with another value (see `spread`). Frames of others:

    FRD = diag(1, -1, -1) FLU      a vector; a symmetric matrix changes the sign of its xy and xz elements
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe import MOTOR_LAG, Airframe
from rotorid.models.inertia import inertia_of
from rotorid.models.rotors import spin, torque_ratio_of
from rotorid.models.system import GRAVITY
from rotorid.models.thrust import ThrustCurve

FRD = np.array([1.0, -1.0, -1.0])
"""What FLU components are multiplied by to become FRD components, and the other way round."""

DRAGS = ("drag", "rotor_drag", "drag_area")
"""Quantities that slow a vehicle down."""

NO_AREA = "off, the airframe says no drag area"
"""Of an autopilot's ballistic coefficient that is 0."""

_HALVINGS = 60
_HOVERS = 1e-9


@dataclasses.dataclass(frozen=True)
class Facts:
    """Numbers of an airframe.

    inertia: kg m^2, about the centre of mass. centre: of mass, m from the origin of the body frame. places: of the rotors, m
    from the centre of mass. axes: along which they pull. spins: +1 for a rotor that turns counter-clockwise about its axis.
    scales: of a rotor's thrust over the curve's, or over what it is asked for where there is no curve (see `commanded`).
    torque_ratio: m, NaN where the airframe does not say. lag, lag_down: s. delay: of commands, s. drag: N s/m. rotor_drag:
    N^0.5 s/m. drag_area: m^2. angular_drag: N m s. Drags are 0 where not given.
    """

    mass: float
    inertia: Float[np.ndarray, "3 3"]
    centre: Float[np.ndarray, " 3"]
    places: Float[np.ndarray, "rotors 3"]
    axes: Float[np.ndarray, "rotors 3"]
    spins: Float[np.ndarray, " rotors"]
    scales: Float[np.ndarray, " rotors"]
    curve: ThrustCurve
    torque_ratio: float
    lag: float
    lag_down: float
    delay: float
    drag: float
    rotor_drag: float
    drag_area: float
    angular_drag: float

    @property
    def count(self) -> int:
        return len(self.spins)

    @property
    def commanded(self) -> bool:
        """Whether the airframe says what commands do; without, the rotors are known by their thrust alone."""
        return math.isfinite(sum(self.curve.coefficients))

    @property
    def weight(self) -> float:
        """N."""
        return self.mass * GRAVITY

    @property
    def full(self) -> Float[np.ndarray, " rotors"]:
        """Thrust of each rotor at full command, N; NaN where not commanded."""
        return self.scales * sum(self.curve.coefficients)

    @property
    def wrench(self) -> Float[np.ndarray, "6 rotors"]:
        """Force and torque about the centre of mass per newton of each rotor; G of `rotors.allocation`."""
        torque = np.cross(self.places, self.axes) - np.nan_to_num(self.torque_ratio) * (
            self.spins[:, None] * self.axes
        )
        return np.concatenate([self.axes, torque], axis=1).T

    def shape(self, command: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Thrust at a command over that at full command."""
        c = np.clip((command - self.curve.zero) / (self.curve.full - self.curve.zero), 0.0, 1.0)
        return np.polynomial.Polynomial(self.curve.coefficients)(c) / sum(self.curve.coefficients)

    def command(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The command at which a rotor pulls this share of its full thrust, by halving."""
        low = np.full(np.shape(share), self.curve.zero)
        high = np.full(np.shape(share), self.curve.full)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            less = self.shape(middle) < share
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return 0.5 * (low + high)

    def hover(self) -> Hover:
        """How it hovers. Raises AirframeError where it cannot."""
        G = self.wrench
        rows = G[2:]
        thrust = np.linalg.pinv(rows) @ np.array([1.0, 0.0, 0.0, 0.0])
        level = rows @ thrust
        thrust = thrust * self.weight / np.linalg.norm(G[:3] @ thrust)
        if np.abs(level - [1.0, 0.0, 0.0, 0.0]).max() > _HOVERS or thrust.min() < 0.0:
            raise AirframeError(
                "the rotors cannot carry this vehicle without turning it; check their places, axes and [centre_of_mass]"
            )
        with np.errstate(divide="ignore"):  # of a rotor that does not pull at all
            worst = float((thrust / self.full).max())
        if worst >= 1.0:
            raise AirframeError(
                f"a rotor would have to pull {100 * worst:.0f} % of its full thrust to hover; check [mass] and [thrust_curve]"
            )
        force = G[:3] @ thrust / self.weight
        axis = np.cross(force, [0.0, 0.0, 1.0])
        attitude = np.array([1.0 + force[2], *axis])
        command = self.command(thrust / self.full) if self.commanded else np.full(self.count, np.nan)
        return Hover(thrust, command, attitude / np.linalg.norm(attitude))

    def rotor_drag_at(self, thrust: Float[np.ndarray, " rotors"]) -> float:
        """Force of the rotors' drag per m/s across their axes at these thrusts, N s/m."""
        return self.rotor_drag * float(np.sqrt(np.maximum(thrust, 0.0)).sum())


def rotor_drag_sentence(f: Facts) -> list[str]:
    """What drag that acts at the rotors does beyond the airframe's, which acts at the centre of mass."""
    if not f.rotor_drag:
        return []
    each = f.rotor_drag * np.sqrt(f.hover().thrust)
    return [
        f"the rotors' drag acts at the rotors here: at hover it also turns by {abs(each @ f.places[:, 2]):.2g} N m per m/s, "
        f"and damps turning about z by {each @ (f.places[:, :2] ** 2).sum(axis=1):.2g} N m s"
    ]


@dataclasses.dataclass(frozen=True)
class Hover:
    """A hover in still air. thrust: of each rotor, N. command: of each rotor, NaN where not commanded. attitude: "
    "quaternion w x y z, body to world."""

    thrust: Float[np.ndarray, " rotors"]
    command: Float[np.ndarray, " rotors"]
    attitude: Float[np.ndarray, " 4"]


def facts_of(airframe: Airframe, *, torque: bool = True, commands: bool = True) -> Facts:
    """The numbers of an airframe. torque: whether its torque ratio must be known; commands: whether what they do.

    Raises AirframeError where it lacks rotors, inertia, thrust curve or, if asked for, torque ratio.
    """
    inertia = airframe.get("inertia")
    for name, there in (
        ("[[rotor]]", airframe.rotors),
        ("[inertia]", inertia),
        ("[thrust_curve]", airframe.thrust_curve or not commands),
    ):
        if not there:
            raise AirframeError(f"{airframe.source}: no {name}, without which there is no model; give it")
    assert inertia is not None
    ratio = math.nan
    if torque or airframe.get("torque_ratio") or airframe.get("torque_coefficient"):
        ratio = torque_ratio_of(airframe)

    centre = np.array(airframe.vector("centre_of_mass"))
    lag = airframe.number("motor_time_constant", MOTOR_LAG)
    return Facts(
        mass=airframe.mass.number,
        inertia=inertia_of(airframe),
        centre=centre,
        places=np.array([rotor.position for rotor in airframe.rotors]) - centre,
        axes=np.array([rotor.axis for rotor in airframe.rotors]),
        spins=np.array([float(spin(rotor)) for rotor in airframe.rotors]),
        scales=airframe.number("thrust_scale", 1.0)
        * np.array([rotor.thrust_scale for rotor in airframe.rotors]),
        curve=airframe.thrust_curve or ThrustCurve((math.nan,)),
        torque_ratio=ratio,
        lag=lag,
        lag_down=airframe.number("motor_time_constant_down", lag),
        delay=airframe.number("command_delay"),
        drag=airframe.number("drag"),
        rotor_drag=airframe.number("rotor_drag"),
        drag_area=airframe.number("drag_area"),
        angular_drag=airframe.number("angular_drag"),
    )


def no_commands(f: Facts) -> str:
    """What to know of a model whose inputs are thrusts."""
    return (
        f"the airframe has no [thrust_curve]: inputs are thrusts in N, behind which the motors' lag of {f.lag:g} s is not "
        "modelled"
    )
