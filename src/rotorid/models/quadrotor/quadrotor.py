"""The 12-state quadrotor with gyroscopic rotors, driven by its rotor speeds (Torren 2014, eqs. 1.1-1.37, derived again).

    phi' = p                                   p' = ((Iyy - Izz) q r + tau_x - q h - k_p p) / Ixx
    theta' = q                                 q' = ((Izz - Ixx) r p + tau_y + p h - k_q q) / Iyy
    psi' = r                                   r' = ((Ixx - Iyy) p q + tau_z       - k_r r) / Izz
    m (x, y, z)'' = R(phi, theta, psi) (0, 0, U1) - m g z - k (x, y, z)'
    U1 = sum_i b |W_i| W_i       tau = sum_i (y_i, -x_i, 0) b |W_i| W_i - s_i d |W_i| W_i z       h = J_TP sum_i s_i W_i

World frame ENU, body frame FLU; roll phi, pitch theta, yaw psi are the intrinsic z-y-x angles of R. W_i is the speed of
rotor i at (x_i, y_i) from the centre of mass, s_i is +1 where it turns counter-clockwise seen from above, h the angular
momentum of all rotors. The thesis's frame is rotor 1 front, 2 right, 3 rear, 4 left, of which 1 and 3 turn
counter-clockwise; here rotors may be any number of upright ones. Drag k and k_p, k_q, k_r is 0 in the thesis.

Corrections to the thesis's equations:
- 1.5, second row, third column, and 1.33: cos theta should be sin theta. 1.35 is right as it stands.
- 1.6: the term tan(theta) sin(phi) has a plus.
- 1.14, 1.27, 1.29: the gyroscopic terms have the wrong sign. By 1.20, rotors 1 and 3 drag the body clockwise, so they turn
  counter-clockwise and their angular momentum points up; -omega x h is then (-q h, p h, 0) with h = -J_TP Omega.
- 1.27, 1.29, 1.31: l b and d stand twice, U2 to U4 hold them already (1.18-1.20).

What small angles mean: 1.26-1.31 take the body rates p, q, r for the rates of the angles. Exactly,

    phi' = p + tan(theta) (q sin(phi) + r cos(phi)),    theta' = q cos(phi) - r sin(phi),
    psi' = (q sin(phi) + r cos(phi)) / cos(theta)

`exact=True` has these; then the model is the rigid body, and no approximation is left. `euler_departure` tells how far the
thesis's step is off along a flight: in first order yaw rate times tilt, and roll rate times pitch. In the flights of
`studies.lpv_control` it comes to 0.2 rad/s in a helix with a yaw rate of 1.2 rad/s, and to 0.9 rad/s at most in moves of 3 m
within 1.6 s. Nothing else is approximated. Left out, as in the thesis: the torque of rotors that speed up.

Reference: T. Bresciani, Modelling, identification and control of a quadrotor helicopter, Lund University, 2008.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import AirframeError
from rotorid.geometry.spaces import Scalar, Space, Vector
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.airframe.mass import mass_std
from rotorid.models.multirotor.rotors import torque_ratio_of
from rotorid.models.system import GRAVITY, Parameter, System, Values

PLUS = "quadrotor-plus"
"""The shipped airframe with the parameters of Bresciani's thesis, which Torren takes."""

ANGLES: tuple[str, ...] = ("roll", "pitch", "yaw")
RATES: tuple[str, ...] = ("roll_rate", "pitch_rate", "yaw_rate")
_UPRIGHT = 1e-9


@dataclasses.dataclass(frozen=True)
class Quadrotor(System):
    """The 12-state quadrotor of a vehicle. It is made by `quadrotor`.

    The states `roll_rate`, `pitch_rate` and `yaw_rate` are the body rates p, q, r in rad/s.

    parameters: of the vehicle. levers: x and y of each rotor from the centre of mass, m, body frame. spins: +1 for a rotor
    that turns counter-clockwise seen from above, else -1. exact: whether the rates of the angles are exact; otherwise they
    are the body rates, as in Torren 2014.
    """

    parameters: tuple[Parameter, ...]
    levers: tuple[tuple[float, float], ...]
    spins: tuple[float, ...]
    exact: bool = False

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        blocks = {}
        for angle, rate in zip(ANGLES, RATES, strict=True):
            blocks[angle] = Scalar("rad", std=0.3, noise=0.003)
            blocks[rate] = Scalar("rad/s", std=1.0, noise=0.03, frame="body")
        for axis in "xyz":
            blocks[f"position_{axis}"] = Scalar("m", std=10.0, noise=0.003, frame="world")
            blocks[f"velocity_{axis}"] = Scalar("m/s", std=3.0, noise=0.01, frame="world")
        return Space.of(**blocks)

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        n, hover = len(self.levers), hover_speed(self)
        return Space.of(rotor_speed=Vector(n, "rad/s", initial=(hover,) * n, std=0.3 * hover))

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        noise = {"rad": 0.01, "rad/s": 0.02, "m": 0.02, "m/s": 0.05}
        blocks = {name: Scalar(b.unit, frame=b.frame, noise=noise[b.unit]) for name, b in self.states.blocks}
        return Space.of(**blocks)

    def wrench(
        self, speed: Float[Array, " rotors"], p: Values
    ) -> tuple[Float[Array, ""], Float[Array, " 3"], Float[Array, ""]]:
        """Collective thrust U1 (N), torque about the centre of mass (N m, body frame), and angular momentum h of the rotors
        (N m s) at these rotor speeds (rad/s).
        """
        x, y = p["arm_scale"] * np.array(self.levers).T
        spins = np.array(self.spins)
        square = jnp.abs(speed) * speed
        thrust = p["thrust_coefficient"] * square
        drag = p["torque_coefficient"] * square
        torque = jnp.stack([jnp.sum(y * thrust), -jnp.sum(x * thrust), -jnp.sum(spins * drag)])
        return jnp.sum(thrust), torque, p["rotor_inertia"] * jnp.sum(spins * speed)

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        thrust, torque, h = self.wrench(u["rotor_speed"], p)
        roll, pitch, yaw = (x[name] for name in ANGLES)
        wx, wy, wz = (x[name] for name in RATES)
        ix, iy, iz = p["inertia"]
        rate = dict(zip(ANGLES, (wx, wy, wz), strict=True))
        if self.exact:
            departure = euler_departure(roll, pitch, jnp.stack([wx, wy, wz]))
            rate = {name: value + departure[k] for k, (name, value) in enumerate(rate.items())}
        kx, ky, kz = p["angular_drag"]
        rate["roll_rate"] = ((iy - iz) * wy * wz + torque[0] - wy * h - kx * wx) / ix
        rate["pitch_rate"] = ((iz - ix) * wz * wx + torque[1] + wx * h - ky * wy) / iy
        rate["yaw_rate"] = ((ix - iy) * wx * wy + torque[2] - kz * wz) / iz
        (sf, cf), (st, ct), (ss, cs) = ((jnp.sin(a), jnp.cos(a)) for a in (roll, pitch, yaw))
        thrust_direction = (cf * st * cs + sf * ss, cf * st * ss - sf * cs, cf * ct)
        for axis, along, gravity in zip("xyz", thrust_direction, (0.0, 0.0, GRAVITY), strict=True):
            velocity = x[f"velocity_{axis}"]
            rate[f"position_{axis}"] = velocity
            rate[f"velocity_{axis}"] = (along * thrust - p["drag"] * velocity) / p["mass"] - gravity
        return rate

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return dict(x)


def euler_departure(
    roll: Float[Array, "*batch"], pitch: Float[Array, "*batch"], body_rate: Float[Array, "*batch 3"]
) -> Float[Array, "*batch 3"]:
    """Exact rates of roll, pitch and yaw less the body rates that the thesis takes for them, rad/s. Angles in rad."""
    p, q, r = (body_rate[..., k] for k in range(3))
    s, c = jnp.sin(roll), jnp.cos(roll)
    rate = q * s + r * c
    exact = jnp.stack([p + jnp.tan(pitch) * rate, q * c - r * s, rate / jnp.cos(pitch)], axis=-1)
    return exact - body_rate


def hover_speed(system: Quadrotor) -> float:
    """Speed of each rotor in rad/s at which all of them together carry the weight."""
    mass, b = (system.parameter(name).values[0] for name in ("mass", "thrust_coefficient"))
    return math.sqrt(mass * GRAVITY / (b * len(system.levers)))


def quadrotor(airframe: Airframe | None = None, *, exact: bool = False) -> Quadrotor:
    """Make the 12-state quadrotor with gyroscopic rotors, driven by its rotor speeds.

    Args:
        airframe: airframe with four or more upright rotors; None: that of Bresciani, which Torren 2014 uses.
        exact: whether the rates of the angles are exact, or equal to the body rates, as in Torren 2014.
    Returns:
        The System; world frame ENU, body frame FLU.
    Raises:
        AirframeError: the airframe lacks rotors, inertia, thrust coefficient or torque, its rotors are tilted, or its body
            axes are not the principal ones.
    Source: Torren 2014, eqs. 1.1-1.37.
    """
    airframe = airframe or load_airframe(PLUS)
    source = airframe.source
    if len(airframe.rotors) < 4:
        raise AirframeError(
            f"{source}: {len(airframe.rotors)} [[rotor]]; this model needs four or more upright ones"
        )
    for k, rotor in enumerate(airframe.rotors):
        if abs(rotor.axis[2] - 1.0) > _UPRIGHT:
            raise AirframeError(f"{source}: [[rotor]] {k} is tilted; this model is of upright rotors alone")
    inertia, coefficient = airframe.get("inertia"), airframe.get("thrust_coefficient")
    if inertia is None:
        raise AirframeError(f"{source}: no [inertia], which the turning follows from; give it in kg m^2")
    if coefficient is None:
        raise AirframeError(
            f"{source}: no [thrust_coefficient], which ties rotor speeds to thrust; give it in N s^2 (a rotor's full thrust "
            "over its top speed in rad/s squared)"
        )
    products = airframe.get("products_of_inertia")
    if products is not None and any(products.value):
        raise AirframeError(
            f"{source}: [products_of_inertia] are not 0; this model is of a vehicle with its principal axes as body axes"
        )
    centre = airframe.get("centre_of_mass")
    cx, cy, _ = centre.value if centre else (0.0, 0.0, 0.0)

    mass, b = airframe.mass, coefficient.number * airframe.number("thrust_scale", 1.0)
    positive = (0.0, math.inf)
    parameters = (
        Parameter("mass", mass.number, mass_std(airframe), "kg", positive),
        Parameter("inertia", inertia.value, unit="kg m^2", frame="body"),
        Parameter("thrust_coefficient", b, unit="N s^2", bounds=positive),
        Parameter("torque_coefficient", torque_ratio_of(airframe) * b, unit="N m s^2", bounds=positive),
        Parameter("rotor_inertia", airframe.number("rotor_inertia", 0.0), unit="kg m^2"),
        Parameter("arm_scale", 1.0, bounds=positive),
        Parameter("drag", float(np.mean(airframe.vector("drag"))), unit="N s/m"),
        Parameter("angular_drag", airframe.vector("angular_drag"), unit="N m s", frame="body"),
    )
    return Quadrotor(
        parameters,
        tuple((r.position[0] - cx, r.position[1] - cy) for r in airframe.rotors),
        tuple(1.0 if r.direction == "ccw" else -1.0 for r in airframe.rotors),
        exact,
    )
