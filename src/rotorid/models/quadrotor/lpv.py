"""The quadrotor as an LPV model: the eight states of the thesis (phi, theta, psi, z and their rates), and all twelve
(Torren 2014, eq. 1.45).

The parameters rho and where they stand (b_j, d_j: per rotor; s_j, x_j, y_j: see `quadrotor`):

    p, q, r                           A: half of each product of two rates at either rate (the thesis's a_1 to a_6)
                                      B: q at p': -J s_j / Ixx, p at q': +J s_j / Iyy         (part of b_1 to b_8)
    |W_j|                             B: y_j b / Ixx at p', -x_j b / Iyy at q', -s_j d / Izz at r'     (b_1 to b_12)
    cos(phi) cos(theta) |W_j| / m     B: b at z''                                                     (b_13 to b_16)
    U1/m cos(phi) cos(psi) sinc(theta),  U1/m sin(psi) sinc(phi)     A: x'' at theta and at phi
    U1/m cos(phi) sin(psi) sinc(theta), -U1/m cos(psi) sinc(phi)     A: y'' at theta and at phi
    1 / m                             A: -k at x'', y'', z''; only with drag

so 11 parameters for eight states where the thesis's list has 22, and 15 for twelve: its a_i and b_i are sums of these. The
sideways pull stands in A, at the angles: at hover, a B whose entries vanish would leave x and y without any input.

What was mended in the thesis's list of 1.45: b_7 stands twice, b_8 (equal to b_6) lacks, and the rows of B hold b_9 to b_12
and b_13 to b_16; b_9 and b_11 have a minus (1.20); b_1 to b_8 have the gyroscopic signs of `quadrotor`. The bound
25 b / m of the last row is right: cos^2(pi/3) 100 = 25.
"""

from __future__ import annotations

from typing import Any, Literal

from rotorid.errors import SettingError
from rotorid.models.lpv.intervals import cos, magnitude, sin, sinc
from rotorid.models.lpv.model import Function, Lpv, Term, lpv
from rotorid.models.quadrotor.quadrotor import ANGLES, RATES, Quadrotor

Subsystem = Literal["attitude-altitude", "full"]

EIGHT: tuple[str, ...] = (
    *(name for pair in zip(ANGLES, RATES, strict=True) for name in pair),
    "position_z",
    "velocity_z",
)
"""The states of the thesis's 1.45."""


def quadrotor_lpv(system: Quadrotor, subsystem: Subsystem = "attitude-altitude") -> Lpv:
    """Write a quadrotor in LPV form, with a mass that may vary.

    Args:
        system: quadrotor with `exact=False`.
        subsystem: "attitude-altitude", eight states, or "full", twelve.
    Returns:
        The model `x' = A(rho) x + B(rho) u + c(rho)`, equal to the quadrotor.
    Raises:
        SettingError: the quadrotor has exact angles, whose rates have no such form, or the subsystem is unknown.
    Source: Torren 2014, eq. 1.45.
    """
    if system.exact:
        raise SettingError(
            "the quadrotor with exact=True has no LPV form here; take the simplified one, exact=False"
        )
    if subsystem not in ("attitude-altitude", "full"):
        raise SettingError(f"no subsystem {subsystem!r}; there are attitude-altitude, full")
    is_full = subsystem == "full"
    terms = (
        *_rotation_terms(system),
        *_rotors(system),
        *(_sideways(system) if is_full else ()),
        *_drag(system, is_full),
    )
    return lpv(system, terms, states=None if is_full else EIGHT, varying=("mass",))


def _value(system: Quadrotor, name: str) -> float:
    return system.parameter(name).values[0]


def _speeds(system: Quadrotor) -> list[str]:
    return [f"rotor_speed_{j}" for j in range(len(system.levers))]


def _value_of(name: str) -> Function:
    return lambda v: v[name]


def _rotation_terms(system: Quadrotor) -> list[Term]:
    ix, iy, iz = system.parameter("inertia").values
    J, W, spins = _value(system, "rotor_inertia"), _speeds(system), system.spins
    about_x, about_y, about_z = 0.5 * (iy - iz) / ix, 0.5 * (iz - ix) / iy, 0.5 * (ix - iy) / iz
    p, q, r = RATES
    rolls = [(q, w, J * s / iy) for w, s in zip(W, spins, strict=True)]
    pitches = [(p, w, -J * s / ix) for w, s in zip(W, spins, strict=True)]
    return [
        Term(p, _value_of(p), ((q, r, about_y), (r, q, about_z), *rolls), "rad/s"),
        Term(q, _value_of(q), ((p, r, about_x), (r, p, about_z), *pitches), "rad/s"),
        Term(r, _value_of(r), ((p, q, about_x), (q, p, about_y)), "rad/s"),
    ]


def _rotors(system: Quadrotor) -> list[Term]:
    ix, iy, iz = system.parameter("inertia").values
    b, d, scale = (_value(system, n) for n in ("thrust_coefficient", "torque_coefficient", "arm_scale"))
    p, q, r = RATES
    terms = []
    for name, (x, y), s in zip(_speeds(system), system.levers, system.spins, strict=True):
        places = ((p, name, scale * y * b / ix), (q, name, -scale * x * b / iy), (r, name, -s * d / iz))
        terms.append(Term(name, _speed(name), places, "rad/s"))
    for j, name in enumerate(_speeds(system)):
        terms.append(Term(f"lift_{j}", _lift(name), (("velocity_z", name, b),), "rad/(s kg)"))
    return terms


def _speed(name: str) -> Function:
    return lambda v: magnitude(v[name])


def _lift(name: str) -> Function:
    return lambda v: cos(v["roll"]) * cos(v["pitch"]) * magnitude(v[name]) / v["mass"]


def _pull(system: Quadrotor) -> Function:
    """U1 / m, in m/s^2."""
    b, W = _value(system, "thrust_coefficient"), _speeds(system)

    def pull(v: Any) -> Any:
        total = 0.0
        for name in W:
            total = total + v[name] * magnitude(v[name])
        return b * total / v["mass"]

    return pull


def _sideways(system: Quadrotor) -> list[Term]:
    a = _pull(system)
    unit = "m/s^2"
    return [
        Term(
            "pull_x_pitch",
            lambda v: a(v) * cos(v["roll"]) * cos(v["yaw"]) * sinc(v["pitch"]),
            (("velocity_x", "pitch", 1.0),),
            unit,
        ),
        Term(
            "pull_x_roll",
            lambda v: a(v) * sin(v["yaw"]) * sinc(v["roll"]),
            (("velocity_x", "roll", 1.0),),
            unit,
        ),
        Term(
            "pull_y_pitch",
            lambda v: a(v) * cos(v["roll"]) * sin(v["yaw"]) * sinc(v["pitch"]),
            (("velocity_y", "pitch", 1.0),),
            unit,
        ),
        Term(
            "pull_y_roll",
            lambda v: -(a(v) * cos(v["yaw"]) * sinc(v["roll"])),
            (("velocity_y", "roll", 1.0),),
            unit,
        ),
    ]


def _drag(system: Quadrotor, is_full: bool) -> list[Term]:
    k = _value(system, "drag")
    if k == 0.0:
        return []
    places = tuple((f"velocity_{a}", f"velocity_{a}", -k) for a in ("xyz" if is_full else "z"))
    return [Term("inverse_mass", lambda v: 1.0 / v["mass"], places, "1/kg")]
