"""Airframes from a frame file of ArduPilot's simulator (equations: `ardupilot_frame`)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from rotorid.errors import AirframeError
from rotorid.export.autopilot.ardupilot_frame import ROTATION, YAW_SCALE, body_area
from rotorid.geometry.gravity import STANDARD_GRAVITY
from rotorid.models.airframe.airframe import QUANTITIES, Airframe, Quantity, Rotor, text_of
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import FRD
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY

_PWM = (1000.0, 1000.0)  # pulse width of command 0, and range, us
_LAPSE, _POWER = 2.25577e-5, 4.25588  # of the standard atmosphere: rho = rho_0 (1 - lapse h)^power


def read_ardupilot_frame(path: str | Path) -> Airframe:
    """Read an airframe from a frame file of ArduPilot's SITL that has motor positions.

    The properties hold in still air at the altitude `refAlt`. The torque ratio is the one in hover.

    Args:
        path: a JSON file; comments after # are skipped.
    Returns:
        The airframe.
    Raises:
        AirframeError: the file cannot be read, or lacks a value.
    """
    path = Path(path)
    table = _table(path)

    def number(name: str) -> float:
        value = table.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise AirframeError(f"{path}: {name} must be a number, not {value!r}")
        return float(value)

    def vector(name: str) -> np.ndarray:
        value = table.get(name)
        if (
            not isinstance(value, list)
            or len(value) != 3
            or not all(isinstance(v, (int, float)) for v in value)
        ):
            raise AirframeError(f"{path}: {name} must be three numbers, not {value!r}")
        return np.array(value, dtype=float)

    mass, expo, count = number("mass"), number("propExpo"), int(number("num_motors"))
    if min(mass, count, number("hoverThrOut"), number("maxVoltage"), number("refSpd")) <= 0:
        raise AirframeError(f"{path}: mass, num_motors, hoverThrOut, maxVoltage and refSpd must be positive")
    rho = AIR_DENSITY * (1.0 - _LAPSE * number("refAlt")) ** _POWER
    full = mass * STANDARD_GRAVITY / number("hoverThrOut") / count
    span = number("pwmMax") - number("pwmMin")
    zero, top = (
        (number("pwmMin") + number(name) * span - _PWM[0]) / _PWM[1] for name in ("spin_min", "spin_max")
    )
    axes = [FRD * vector(f"motor{k + 1}_vector") + 0.0 for k in range(count)]
    places = [FRD * vector(f"motor{k + 1}_position") + 0.0 for k in range(count)]
    yaws = np.array([number(f"motor{k + 1}_yaw") for k in range(count)])
    rotors = tuple(
        Rotor(tuple(place), "ccw" if (yaw > 0) == (axis[2] >= 0) else "cw", tuple(axis))
        for place, axis, yaw in zip(places, axes, yaws, strict=True)
    )
    share = mass * GRAVITY / (full * float(sum(axis[2] for axis in axes)))
    root = math.sqrt((1.0 - expo) ** 2 + 4.0 * expo * share)
    hover = (root - (1.0 - expo)) / (2.0 * expo) if expo else share
    inertia = vector("moment_inertia")
    momentum, disc = number("mdrag_coef"), number("disc_area")
    angle = math.radians(number("refAngle"))
    quantities: dict[str, tuple[float, ...]] = {
        "mass": (mass,),
        "inertia": tuple(inertia),
        "torque_ratio": (float(np.abs(yaws).mean()) * YAW_SCALE * number("diagonal_size") * hover,),
    }
    for name, value in (
        ("rotor_drag", momentum * math.sqrt(rho * disc / count)),
        ("drag_area", body_area(mass, number("refSpd"), angle, momentum, disc, rho) * rho / AIR_DENSITY),
    ):
        if value > 0:
            quantities[name] = (value,)
    if number("refRotRate") > 0:  # one decay rate about all axes
        quantities["angular_drag"] = tuple(inertia * ROTATION / number("refRotRate"))
    return Airframe(
        name=path.stem,
        description=f"Read from the frame of ArduPilot's simulator in {path.name}",
        quantities={n: Quantity(v, QUANTITIES[n][0], source=str(path)) for n, v in quantities.items()},
        rotors=rotors,
        thrust_curve=ThrustCurve(
            (0.0, (1.0 - expo) * full, expo * full), zero, top, number("maxVoltage"), 2.0, str(path)
        ),
        source=str(path),
    )


def _table(path: Path) -> dict[str, Any]:
    text = text_of(path, "a frame is a JSON file")
    try:
        table = json.loads(re.sub("#.*", "", text))
    except json.JSONDecodeError as error:
        raise AirframeError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(table, dict):
        raise AirframeError(f"{path}: a frame is a JSON object")
    return table
