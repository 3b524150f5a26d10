"""Positions, axes and directions of the rotors, from the parameters of the autopilot.

PX4 has them in m, forward, right and down (CA_ROTORi_*), older versions by the number of the airframe only. ArduPilot has a
frame without sizes. The sizes that a log lacks, or that cannot be (PX4's unit arms), are given or have the prior of
`arm_length_prior`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rotorid.errors import AirframeError
from rotorid.logs.px4.rotors import ROTORS_OF_MAV_TYPE
from rotorid.models.airframe.airframe import Quantity, Rotor
from rotorid.models.airframe.from_log.frames import CLASSES, FrameRotor, ardupilot_frame, px4_frame
from rotorid.models.airframe.size_priors import arm_length_prior

_UNIT_ARM: Final = 0.9  # m: PX4 normalises the generic frames to arms of 1 m
_POSSIBLE: Final = 3.0  # standard deviations of the arm length's prior
_PLUS: Final = (5001, 7001, 9001)  # SYS_AUTOSTART of generic frames with an arm along the nose
_GENERIC_MOMENT: Final = 0.05  # KM of PX4's generic frames
_DIGITS: Final = 6


PARAMETERS: Final = {
    "px4": (
        "MAV_TYPE", "SYS_AUTOSTART", "CA_ROTOR_COUNT", "THR_MDL_FAC", "MPC_THR_HOVER", "SIH_MASS", "SIH_IXX", "SIH_IYY",
        "SIH_IZZ", "SIH_T_MAX", "SIH_Q_MAX", "SIH_L_ROLL", "SIH_L_PITCH", "SIH_T_TAU",
    ),
    "px4 rotor": ("PX", "PY", "PZ", "AX", "AY", "AZ", "KM"),
    "ardupilot": (
        "FRAME_CLASS", "FRAME_TYPE", "FRAME", "MOT_THST_EXPO", "MOT_THST_HOVER", "MOT_SPIN_MIN", "MOT_SPIN_MAX",
    ),
}  # fmt: skip
"""Parameters that an airframe is made of, by autopilot; of PX4 also those of each rotor, CA_ROTORi_*."""


class Geometry(NamedTuple):
    """Rotors of a vehicle.

    Attributes:
        rotors: body frame FLU, m, in the order of the log.
        source: where places and directions are from.
        size_source: where the length of the arms is from.
        arm_std: standard deviation of the arms over their length, 0 where they are measured.
        torque_ratio: m, where the parameters have one; 0 where not.
    """

    rotors: tuple[Rotor, ...]
    source: str
    size_source: str
    arm_std: float
    torque_ratio: float = 0.0


def rotors_from_parameters(
    parameters: Mapping[str, float], mass: float, count: int, span: float | None = None
) -> Geometry:
    """The rotors, from the parameters of PX4 or ArduPilot.

    Args:
        parameters: of the log.
        mass: of the vehicle, kg.
        count: number of rotors that the log has commands or speeds of; 0: unknown.
        span: distance of opposite motors, m; None: unknown.
    Raises:
        AirframeError: the parameters do not say where the rotors are, or of another number of rotors than the log has.
    """
    if parameters.get("CA_ROTOR_COUNT", 0.0) > 0.0:
        return _px4(parameters, mass, count, span)
    if "FRAME_CLASS" in parameters or "FRAME" in parameters:
        return _ardupilot(parameters, mass, count, span)
    if "MAV_TYPE" in parameters and "SYS_AUTOSTART" in parameters:
        return _old_px4(parameters, mass, count, span)
    raise AirframeError(
        "the log has no parameters that say where the rotors are; give an airframe by --airframe (`rotorid airframes` lists "
        "those that come with rotorid)"
    )


def _px4(parameters: Mapping[str, float], mass: float, count: int, span: float | None) -> Geometry:
    number = int(parameters["CA_ROTOR_COUNT"])
    _check_count(number, count, "CA_ROTOR_COUNT")
    places, axes, directions, moments = [], [], [], []
    for i in range(number):

        def of(name: str, default: float = 0.0, i: int = i) -> float:
            return float(parameters.get(f"CA_ROTOR{i}_{name}", default))

        places.append((of("PX"), -of("PY"), -of("PZ")))
        axes.append((of("AX"), -of("AY"), -of("AZ", -1.0)))
        moments.append(of("KM", _GENERIC_MOMENT))
        directions.append("ccw" if moments[-1] > 0.0 else "cw")
    if not all(math.hypot(*axis) > 0.0 for axis in axes):
        raise AirframeError("CA_ROTORi_AX, AY and AZ are all 0 of a rotor; give an airframe by --airframe")
    sizes = [abs(m) for m in moments]
    is_generic = max(sizes) == min(sizes) and abs(sizes[0] - _GENERIC_MOMENT) < 1e-6
    ratio = 0.0 if is_generic else float(np.mean(sizes))
    return _scaled(places, axes, directions, "CA_ROTORi_PX, PY, AX, AY, KM", mass, span, ratio)


def _old_px4(parameters: Mapping[str, float], mass: float, count: int, span: float | None) -> Geometry:
    kind, airframe = int(parameters["MAV_TYPE"]), int(parameters["SYS_AUTOSTART"])
    number = ROTORS_OF_MAV_TYPE.get(kind, 0)
    orientation = "+" if airframe in _PLUS else "x"
    frame = px4_frame(number, orientation)
    if not frame:
        raise AirframeError(
            f"MAV_TYPE {kind} is not a multirotor with 4, 6 or 8 rotors; give an airframe by --airframe"
        )
    _check_count(number, count, f"MAV_TYPE {kind}")
    name = f"SYS_AUTOSTART {airframe}: PX4's frame of {number} rotors in {orientation}"
    return _of_frame(frame, name, mass, span)


def _ardupilot(parameters: Mapping[str, float], mass: float, count: int, span: float | None) -> Geometry:
    by_count = {4: 1, 6: 2, 8: 3}.get(count, 0)  # before version 3.5, each number of rotors had its firmware
    kind = int(parameters.get("FRAME_CLASS", by_count))
    name, frame = ardupilot_frame(kind, int(parameters.get("FRAME_TYPE", parameters.get("FRAME", 1.0))))
    if not frame:
        known = ", ".join(CLASSES.values())
        raise AirframeError(
            f"FRAME_CLASS and FRAME_TYPE {name}: no multirotor whose rotors all thrust upwards ({known}); give an airframe by "
            "--airframe"
        )
    _check_count(len(frame), count, f"FRAME_CLASS {name}")
    return _of_frame(frame, f"FRAME_CLASS, FRAME_TYPE: {name}", mass, span)


def check_rotor_count(parameters: Mapping[str, float], count: int, source: str) -> None:
    """Raise AirframeError where CA_ROTOR_COUNT is not the number of rotors of a log. count: 0 if unknown. source: the log."""
    number = int(parameters.get("CA_ROTOR_COUNT", 0.0))
    try:
        _check_count(number or count, count, "CA_ROTOR_COUNT")
    except AirframeError as error:
        raise AirframeError(f"{source}: {error}") from None


def _check_count(number: int, count: int, name: str) -> None:
    if count and number != count:
        raise AirframeError(
            f"{name} is a vehicle with {number} rotors, and the log has commands of {count}; give an airframe by --airframe"
        )


def _of_frame(frame: tuple[FrameRotor, ...], source: str, mass: float, span: float | None) -> Geometry:
    places = [(r.forward, r.left, 0.0) for r in frame]
    upwards = [(0.0, 0.0, 1.0)] * len(frame)
    return _scaled(places, upwards, [r.direction for r in frame], source, mass, span, 0.0, is_relative=True)


def _scaled(
    places: list[tuple[float, float, float]],
    axes: list[tuple[float, float, float]],
    directions: list[str],
    source: str,
    mass: float,
    span: float | None,
    torque_ratio: float,
    *,
    is_relative: bool = False,
) -> Geometry:
    """The rotors with arms of the right length. is_relative: whether places are relative to the longest arm."""
    distances = [math.hypot(x, y) for x, y, _ in places]
    longest = max(distances)
    if not longest > 0.0:
        raise AirframeError(f"{source}: all rotors are at one place; give an airframe by --airframe")
    prior = arm_length_prior(mass, len(places))
    arm, std = prior.number * longest / math.sqrt(float(np.mean(np.square(distances)))), _std_of(prior)
    arm_std = std / prior.number
    if span is not None:
        size_source, arm, arm_std = "given span", 0.5 * span, 0.0
    elif is_relative:
        size_source = prior.source
    elif longest >= _UNIT_ARM and abs(math.log(longest / arm)) > _POSSIBLE * math.log1p(arm_std):
        size_source = f"{prior.source}, since arms of {longest:.3g} m cannot be those of {mass:.3g} kg"
    else:
        size_source, arm, arm_std = source, longest, 0.0
    scale = arm / longest
    rotors = tuple(
        Rotor(_rounded(place, scale), direction, _rounded(axis, 1.0 / math.hypot(*axis)))
        for place, axis, direction in zip(places, axes, directions, strict=True)
    )
    return Geometry(rotors, source, size_source, arm_std, torque_ratio)


def _std_of(quantity: Quantity) -> float:
    return quantity.std[0] if quantity.std else 0.0


def _rounded(vector: tuple[float, float, float], scale: float) -> tuple[float, float, float]:
    x, y, z = (round(scale * v, _DIGITS) + 0.0 for v in vector)
    return (x, y, z)
