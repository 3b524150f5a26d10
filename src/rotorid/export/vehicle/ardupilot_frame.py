"""The frame of ArduPilot's simulator (SITL) of an airframe.

What it computes (its sources: SIM_Frame.cpp, SIM_Motor.cpp; g = 9.80665 m/s^2), FRD:

    thrust / full thrust = e c^2 + (1 - e) c      c: from spin_min to spin_max of the range of PWM, e: propExpo
    full thrust of all = m g / hoverThrOut        at maxVoltage and the air of refAlt, times (V / maxVoltage)^2
    torque about a rotor's axis = -yaw 0.05 diagonal_size c T
    drag of a rotor = mdrag_coef sqrt(rho disc_area / n) sqrt(T) v,   of the body areaCd 1/2 rho v_i |v_i|, axis by axis, where
    m g tan(refAngle) = areaCd 1/2 rho refSpd^2 + mdrag_coef refSpd cos(refAngle)^2 sqrt(m g / cos(refAngle) rho disc_area)
    omega' loses (400 deg) / refRotRate omega;   c may change by slew_max in a second
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.vehicle.curve_fit import Shape, curve_sentence, mismatch, modelled, thrust_factor
from rotorid.export.vehicle.facts import FRD, Facts, facts_of, rotor_drag_sentence
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor_air import AIR_DENSITY

GRAVITY_MSS = 9.80665
"""ArduPilot's gravity, m/s^2."""

PWM: Final = (1000.0, 2000.0)
"""Of commands 0 and 1, us."""

YAW_SCALE = 0.05
ROTATION = math.radians(400.0)
MOST_ROTORS = 12

_MOMENTUM = 0.2  # SITL's own mdrag_coef
_MERIT = 0.5  # of a rotor: the power of hover by momentum theory over the power that it takes
_REFERENCE_SPEED = 10.0  # m/s
_SLEW = 0.5585  # 1 / s of slew_max times the lag: the ramp that is nearest to 1 - exp(-t / lag), in least squares over all t
_CLIMB = 3.0  # m/s
_HALVINGS = 60
_SMALL = 1e-9


def frame_values(airframe: Airframe) -> Mapping[str, float]:
    """Numbers of the simulator's frame by name; those of a vector with _0, _1 and _2 after it."""
    f = facts_of(airframe, torque=False)
    if f.count > MOST_ROTORS:
        raise AirframeError(f"{airframe.source}: {f.count} rotors; ArduPilot's simulator takes {MOST_ROTORS}")
    hover = f.hover()
    rotor_drag = f.rotor_drag + f.drag / np.sqrt(hover.thrust).sum()
    momentum = _MOMENTUM if rotor_drag else 0.0
    disc = f.count * (rotor_drag / _MOMENTUM) ** 2 / AIR_DENSITY if rotor_drag else _disc_area(f)
    voltage = f.curve.voltage if math.isfinite(f.curve.voltage) else 12.6
    power = f.weight**1.5 / math.sqrt(2.0 * AIR_DENSITY * disc) / _MERIT
    size = float(np.linalg.norm(f.places, axis=1).max())
    damping = f.angular_drag * np.trace(np.linalg.inv(f.inertia)) / 3.0
    values: dict[str, float] = {
        "mass": f.mass,
        "diagonal_size": size,
        "num_motors": f.count,
        "refSpd": _REFERENCE_SPEED,
        "refAngle": math.degrees(_reference_angle(f, momentum, disc)),
        "refVoltage": voltage,
        "refCurrent": power / voltage,
        "refAlt": 0.0,
        "refTempC": 15.0,
        "refBatRes": 0.0,
        "maxVoltage": voltage,
        "battCapacityAh": 0.0,
        "propExpo": thrust_factor(share_over_c(f)),
        "refRotRate": ROTATION / damping if damping else 0.0,
        "hoverThrOut": f.mass * GRAVITY_MSS / float(f.full.sum()),
        "pwmMin": PWM[0],
        "pwmMax": PWM[1],
        "spin_min": f.curve.zero,
        "spin_max": f.curve.full,
        "slew_max": _SLEW / f.lag,
        "disc_area": disc,
        "mdrag_coef": momentum,
        **{f"moment_inertia_{k}": f.inertia[k, k] for k in range(3)},
    }
    share = _command(f, hover.command)
    for k in range(f.count):
        values |= {f"motor{k + 1}_position_{a}": v for a, v in enumerate(FRD * f.places[k])}
        values |= {f"motor{k + 1}_vector_{a}": v for a, v in enumerate(FRD * f.axes[k])}
        yaw = f.spins[k]
        if math.isfinite(f.torque_ratio):
            yaw *= f.torque_ratio / (YAW_SCALE * size * float(share.mean()))
        values[f"motor{k + 1}_yaw"] = yaw
    return values


def body_area(mass: float, speed: float, angle: float, momentum: float, disc: float, rho: float) -> float:
    """areaCd in m^2 of SITL. angle: rad. momentum: mdrag_coef. disc: m^2."""
    lost = mass * GRAVITY_MSS * math.tan(angle)
    root = math.sqrt(mass * GRAVITY_MSS / math.cos(angle) * rho * disc)
    taken = momentum * speed * math.cos(angle) ** 2 * root
    return max(0.0, lost - taken) / (0.5 * rho * speed**2)


def _reference_angle(f: Facts, momentum: float, disc: float) -> float:
    """The tilt at which SITL finds the drag area, by halving; a little above where the rotors' drag alone is met."""
    low, high = 0.0, 0.5 * math.pi - 1e-6
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        area = body_area(f.mass, _REFERENCE_SPEED, middle, momentum, disc, AIR_DENSITY)
        low, high = (middle, high) if area <= f.drag_area else (low, middle)
    return high


def _disc_area(f: Facts) -> float:
    """Of propellers that nearly touch their neighbours, m^2; 0.1 m of radius where there is one alone."""
    apart = np.linalg.norm(f.places[:, None, :2] - f.places[None, :, :2], axis=2)
    apart = apart[apart > _SMALL]
    return f.count * math.pi * (0.45 * float(apart.min()) if apart.size else 0.1) ** 2


def _command(f: Facts, command: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """c of commands."""
    return (command - f.curve.zero) / (f.curve.full - f.curve.zero)


def share_over_c(f: Facts) -> Shape:
    """Share of the full thrust over c."""
    return lambda c: f.shape(f.curve.zero + (f.curve.full - f.curve.zero) * c)


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


def frame_sentences(f: Facts, values: Mapping[str, float]) -> list[str]:
    """What SITL cannot say of this airframe, and how large that is."""
    e, hover = values["propExpo"], f.hover()
    found = curve_sentence("propExpo", e, share_over_c(f))
    spread = np.ptp(f.scales) / f.scales.mean()
    if spread > _SMALL:
        found.append(f"rotors are of one strength; those of the airframe differ by {100 * spread:.2g} %")
    if f.curve.voltage_exponent not in (0.0, 2.0):
        found.append(
            f"thrust goes with the voltage squared, the airframe's with its power {f.curve.voltage_exponent:g}"
        )
    if not math.isfinite(f.curve.voltage):
        found.append("maxVoltage: the airframe says none; keep SIM_BATT_VOLTAGE at the value that is here")
    found.append(
        "refAlt 0: the curve is taken to hold in the air of the sea level. If it was flown at some height, write that "
        "height; 500 m more are 4.7 % less thrust"
    )
    products = np.abs(f.inertia[np.triu_indices(3, 1)]).max()
    if products:
        found.append(
            f"products of inertia: none here; the largest is {100 * products / np.diag(f.inertia).min():.2g} % of the "
            "least moment"
        )
    c = _command(f, hover.command)
    if math.isfinite(f.torque_ratio):
        found.append(
            f"motorN_yaw: the torque per newton grows with the command, and is right at hover, c = {c.mean():.3g}; "
            f"at c = 1 it is {1.0 / c.mean():.3g} times as large"
        )
    else:
        found.append("motorN_yaw: the airframe has no [torque_ratio]; the simulator's own is left")
    found.append(
        f"slew_max: a ramp, the nearest to the motors' lag of {1000 * f.lag:.3g} ms for a step from 0 to 1; small steps "
        "do not lag"
    )
    if f.lag != f.lag_down:
        found.append(f"slew_max: the same up and down; rotors slow down in {1000 * f.lag_down:.3g} ms")
    area = f.weight / (
        0.5 * AIR_DENSITY * (2.0 * values["refVoltage"] * values["refCurrent"] / f.weight) ** 2
    )
    found.append(
        "refCurrent: by momentum theory, half of the power lost. The simulator takes thrust away in a climb, "
        f"{0.5 * AIR_DENSITY * area * _CLIMB**2:.2g} of {f.weight:.3g} N at {_CLIMB:g} m/s, which the airframe does not say"
    )
    if f.drag:
        found.append(
            "mdrag_coef has the linear drag, too, by the thrust of hover: it grows here with the root of the thrust, "
            "1.41 at twice"
        )
    found += rotor_drag_sentence(f)
    if f.rotor_drag or f.drag:
        found.append(
            "mdrag_coef, disc_area: only mdrag_coef sqrt(disc_area) is known. It acts along the rotors' axes, too"
        )
    if f.drag_area:
        found.append(
            "refAngle: the body's drag acts axis by axis; at 45 deg between two axes it is 29 % less than the airframe's"
        )
    if f.angular_drag:
        rates = f.angular_drag / np.diag(f.inertia)
        found.append(
            f"refRotRate: one rate of decay, {ROTATION / values['refRotRate']:.3g} 1/s; the airframe's are "
            f"{', '.join(f'{rate:.3g}' for rate in rates)} 1/s about x, y and z"
        )
    worst = mismatch(share_over_c(f), lambda s: np.asarray(modelled(e, s)))
    if worst > _SMALL:
        at_hover = abs(modelled(e, float(c.mean())) - float(share_over_c(f)(c.mean())))
        found.append(
            f"at hover the thrust is {100 * at_hover * f.full.mean() / hover.thrust.mean():.2g} % off"
        )
    return found + delay_sentence(f)


def delay_sentence(f: Facts) -> list[str]:
    """What ArduPilot does not know of late commands."""
    late = f"commands arrive {1000 * f.delay:.3g} ms late; ArduPilot has no number for it"
    return [late] if f.delay else []
