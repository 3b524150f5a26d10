"""The quadrotor as a controller sees it: errors in a frame that turns with its heading, wrench as input, integrals as states.

    e = Rz(psi)' (position - wanted)     e' = v + r (e_left, -e_forward)     the integral of the error turns alike
    v = Rz(psi)' (velocity - wanted)     v' = (cos(phi) sin(theta) U1, -sin(phi) U1) / m - k v / m + r (v_left, -v_forward)
    z'' = cos(phi) cos(theta) U1 / m - k z' / m - g,     rates as in `quadrotor`, with (U1, tau) as inputs and r for psi'

The yaw itself falls out, and so do the rotor speeds from B: U1 and tau are linear in the squares of the speeds, and
`rotor_speeds` solves for these. The parameters rho of its LPV form (`heading_lpv`) are

    lift          cos(phi) cos(theta) / m        B: z'' at U1
    pull_pitch    U1/m cos(phi) sinc(theta)      A: forward acceleration at theta
    pull_roll     U1/m sinc(phi)                 A: acceleration to the left at phi, negative
    yaw_rate      r                              A: p' at q, q' at p, and the turning frame
    rotor_momentum   h, in N m s                 A: -1/Ixx at q, 1/Iyy at p; only where rotors have inertia
    roll_rate     p                              A: r' at q; only where Ixx and Iyy differ
    inverse_mass  1/m                            A: -k; only with drag

This is `quadrotor` exactly, but for the wanted accelerations, which act as disturbances. Without payload and tilt, lift is
1/m and the pulls are g.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.lpv.bounds import Box, parameter_box
from rotorid.models.lpv.intervals import cos, sinc
from rotorid.models.lpv.model import Lpv, Term, lpv
from rotorid.models.quadrotor.quadrotor import ANGLES, RATES, Quadrotor
from rotorid.models.system import GRAVITY, Parameter, System, Values

TORQUES: tuple[str, ...] = ("torque_roll", "torque_pitch", "torque_yaw")
INTEGRALS: tuple[str, ...] = ("integral_forward", "integral_left", "integral_z", "integral_yaw")


@dataclasses.dataclass(frozen=True)
class HeadingQuadrotor(System):
    """The error system of a `Quadrotor`: 12 states and 4 integrals of position and yaw errors."""

    vehicle: Quadrotor

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (*self.vehicle.parameters, Parameter("rotor_momentum", 0.0, unit="N m s"))

    @cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        angles = {name: Scalar("rad", std=0.3) for name in ANGLES}
        rates = {name: Scalar("rad/s") for name in RATES}
        translation_blocks = {
            f"{kind}_{axis}": Scalar(unit, frame="heading")
            for axis in ("forward", "left", "z")
            for kind, unit in (("position", "m"), ("velocity", "m/s"))
        }
        integrals = {name: Scalar("rad s" if name.endswith("yaw") else "m s") for name in INTEGRALS}
        rotation_blocks = {n: b for pair in zip(angles.items(), rates.items(), strict=True) for n, b in pair}
        return Space.of(**rotation_blocks, **translation_blocks, **integrals)

    @cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        weight = self.vehicle.parameter("mass").values[0] * GRAVITY
        torques = {name: Scalar("N m") for name in TORQUES}
        return Space.of(thrust=Scalar("N", initial=weight, std=0.3 * weight), **torques)

    @cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.states

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        wx, wy, wz = (x[name] for name in RATES)
        ix, iy, iz = p["inertia"]
        h, (kx, ky, kz) = p["rotor_momentum"], p["angular_drag"]
        rate = {name: x[rate_name] for name, rate_name in zip(ANGLES, RATES, strict=True)}
        rate["roll_rate"] = ((iy - iz) * wy * wz + u["torque_roll"] - wy * h - kx * wx) / ix
        rate["pitch_rate"] = ((iz - ix) * wz * wx + u["torque_pitch"] + wx * h - ky * wy) / iy
        rate["yaw_rate"] = ((ix - iy) * wx * wy + u["torque_yaw"] - kz * wz) / iz
        (sf, cf), (st, ct) = ((jnp.sin(x[a]), jnp.cos(x[a])) for a in ("roll", "pitch"))
        specific_thrust = {"forward": cf * st, "left": -sf, "z": cf * ct}
        gravity = {"forward": 0.0, "left": 0.0, "z": GRAVITY}
        for axis, along in specific_thrust.items():
            velocity = x[f"velocity_{axis}"]
            rate[f"position_{axis}"] = velocity
            rate[f"velocity_{axis}"] = (along * u["thrust"] - p["drag"] * velocity) / p["mass"] - gravity[
                axis
            ]
            rate[f"integral_{axis}"] = x[f"position_{axis}"]
        for kind in ("position", "velocity", "integral"):
            ahead, left = f"{kind}_forward", f"{kind}_left"
            rate[ahead] = rate[ahead] + wz * x[left]
            rate[left] = rate[left] - wz * x[ahead]
        rate["integral_yaw"] = x["yaw"]
        return rate

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return dict(x)


@functools.cache
def heading_lpv(vehicle: Quadrotor) -> Lpv:
    """The LPV form that a controller of this vehicle is designed on; mass and rotor momentum may vary."""
    system = HeadingQuadrotor(dataclasses.replace(vehicle, exact=False))
    ix, iy, iz = vehicle.parameter("inertia").values
    k = vehicle.parameter("drag").values[0]
    p, q, r = RATES
    around = [
        (f"{kind}_{a}", f"{kind}_{b}", sign)
        for kind in ("position", "velocity", "integral")
        for a, b, sign in (("forward", "left", 1.0), ("left", "forward", -1.0))
    ]
    terms = [
        Term(
            "lift",
            lambda v: cos(v["roll"]) * cos(v["pitch"]) / v["mass"],
            (("velocity_z", "thrust", 1.0),),
            "1/kg",
        ),
        Term(
            "pull_pitch",
            lambda v: v["thrust"] / v["mass"] * cos(v["roll"]) * sinc(v["pitch"]),
            (("velocity_forward", "pitch", 1.0),),
            "m/s^2",
        ),
        Term(
            "pull_roll",
            lambda v: v["thrust"] / v["mass"] * sinc(v["roll"]),
            (("velocity_left", "roll", -1.0),),
            "m/s^2",
        ),
        Term("yaw_rate", lambda v: v[r], ((p, q, (iy - iz) / ix), (q, p, (iz - ix) / iy), *around), "rad/s"),
    ]
    has_rotor_inertia = vehicle.parameter("rotor_inertia").values[0] > 0
    if has_rotor_inertia:
        terms.append(
            Term(
                "rotor_momentum",
                lambda v: v["rotor_momentum"],
                ((p, q, -1.0 / ix), (q, p, 1.0 / iy)),
                "N m s",
            )
        )
    if ix != iy:
        terms.append(Term("roll_rate", lambda v: v[p], ((r, q, (ix - iy) / iz),), "rad/s"))
    if k > 0:
        drag_places = tuple((f"velocity_{a}", f"velocity_{a}", -k) for a in ("forward", "left", "z"))
        terms.append(Term("inverse_mass", lambda v: 1.0 / v["mass"], drag_places, "1/kg"))
    return lpv(system, terms, varying=("mass", "rotor_momentum") if has_rotor_inertia else ("mass",))


def heading_box(
    model: Lpv, ranges: Mapping[str, tuple[float, float]], specific_thrust: tuple[float, float]
) -> Box:
    """Bounds of the parameters of `heading_lpv`.

    ranges: of roll, pitch (rad), yaw_rate (rad/s), mass (kg), and where the model has them roll_rate (rad/s) and rotor_momentum
    (N m s). specific_thrust: range of U1 / m in m/s^2, which is far narrower than that of U1 over that of m.
    """
    if not 0.0 < specific_thrust[0] <= specific_thrust[1]:
        raise SettingError(
            f"specific thrust from {specific_thrust[0]:g} to {specific_thrust[1]:g} m/s^2; give two positive "
            "numbers, the lower first"
        )
    used_ranges = {name: ends for name, ends in ranges.items() if name in (*model.states, *model.values)}
    box = parameter_box(model, {**used_ranges, "thrust": specific_thrust})
    alone = parameter_box(model, {**used_ranges, "thrust": specific_thrust, "mass": (1.0, 1.0)})
    is_pull = np.array([name.startswith("pull") for name in box.names])
    return Box(
        box.names, np.where(is_pull, alone.lower, box.lower), np.where(is_pull, alone.upper, box.upper)
    )


def rotor_allocation(vehicle: Quadrotor) -> Float[np.ndarray, "4 rotors"]:
    """(U1, tau) in N and N m per squared rotor speed."""
    value = lambda name: vehicle.parameter(name).values[0]  # noqa: E731
    b, d = value("thrust_coefficient"), value("torque_coefficient")
    x, y = value("arm_scale") * np.array(vehicle.levers).T
    return np.stack([np.full_like(x, b), b * y, -b * x, -d * np.array(vehicle.spins)])


def rotor_speeds(
    inverse: Float[np.ndarray, "rotors 4"], wrench: Float[np.ndarray, "*batch 4"], limits: tuple[float, float]
) -> Float[np.ndarray, "*batch rotors"]:
    """Rotor speeds in rad/s, within limits, that give this thrust (N) and torque (N m). inverse: of `rotor_allocation`."""
    return np.sqrt(np.clip(wrench @ inverse.T, limits[0] ** 2, limits[1] ** 2))


def momentum_range(vehicle: Quadrotor, rotor_speed: tuple[float, float]) -> tuple[float, float]:
    """Range of the rotors' angular momentum in N m s where each rotor's speed is in this range, rad/s."""
    J = vehicle.parameter("rotor_inertia").values[0]
    low, high = rotor_speed
    ends = [[J * s * w for w in (low, high)] for s in vehicle.spins]
    return math.fsum(min(e) for e in ends), math.fsum(max(e) for e in ends)
