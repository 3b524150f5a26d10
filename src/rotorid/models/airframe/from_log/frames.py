"""Rotors of the frames that autopilots know by number: angle from the nose, clockwise seen from above, and direction.

The order is that of the motor numbers. Distances are relative to the longest arm. A frame is a text: one rotor after the other,
angle in degrees and "l" for counter-clockwise or "r" for clockwise; in brackets, forward and right instead of the angle.

References: ArduPilot, Connect ESCs and motors; PX4, Airframes reference.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

CLASSES: Final = {1: "QUAD", 2: "HEXA", 3: "OCTA", 4: "OCTAQUAD", 5: "Y6", 7: "TRI", 12: "DODECAHEXA"}
"""ArduPilot's FRAME_CLASS of multirotors."""

TYPES: Final = {
    0: "PLUS", 1: "X", 2: "V", 3: "H", 4: "VTAIL", 5: "ATAIL", 6: "PLUSREV", 10: "Y6B", 11: "Y6F", 12: "BF_X", 13: "DJI_X",
    14: "CW_X", 15: "I", 18: "BF_X_REV",
}  # fmt: skip
"""ArduPilot's FRAME_TYPE."""

_ARDUPILOT: Final = {
    "QUAD/PLUS": "90l -90l 0r 180r",
    "QUAD/X": "45l -135l -45r 135r",
    "QUAD/V": "45l -135l -45r 135r",
    "QUAD/H": "45r -135r -45l 135l",
    "QUAD/PLUSREV": "90r -90r 0l 180l",
    "QUAD/BF_X": "135r 45l -135l -45r",
    "QUAD/BF_X_REV": "135l 45r -135r -45l",
    "QUAD/DJI_X": "45l -45r -135l 135r",
    "QUAD/CW_X": "45l 135r -135l -45r",
    "HEXA/PLUS": "0r 180l -120r 60l -60l 120r",
    "HEXA/X": "90r -90l -30r 150l 30l -150r",
    "HEXA/DJI_X": "30l -30r -90l -150r 150l 90r",
    "HEXA/CW_X": "30l 90r 150l -150r -90l -30r",
    "HEXA/H": "(0,1)r (0,-1)l (1,-1)r (-1,1)l (1,1)l (-1,-1)r",
    "OCTA/PLUS": "0r 180r 45l 135l -45l -135l -90r 90r",
    "OCTA/X": "22.5r -157.5r 67.5l 157.5l -22.5l -112.5l -67.5r 112.5r",
    "OCTA/DJI_X": "22.5l -22.5r -67.5l -112.5r -157.5l 157.5r 112.5l 67.5r",
    "OCTA/CW_X": "22.5l 67.5r 112.5l 157.5r -157.5l -112.5r -67.5l -22.5r",
    "OCTAQUAD/PLUS": "0l -90r 180l 90r -90l 0r 90l 180r",
    "OCTAQUAD/X": "45l -45r -135l 135r -45l 45r 135l -135r",
    "OCTAQUAD/V": "45l -45r -135l 135r -45l 45r 135l -135r",
    "OCTAQUAD/H": "45r -45l -135r 135l -45r 45l 135r -135l",
    "Y6/Y6B": "(0.5,1)r (0.5,1)l (-1,0)r (-1,0)l (0.5,-1)r (0.5,-1)l",
    "Y6/Y6F": "(-1,0)l (0.5,1)l (0.5,-1)l (-1,0)r (0.5,1)r (0.5,-1)r",
    "Y6/": "(0.666,1)l (0.666,-1)r (0.666,-1)l (-1.333,0)r (0.666,1)r (-1.333,0)l",
    "DODECAHEXA/PLUS": "0l 0r 60r 60l 120l 120r 180r 180l -120l -120r -60r -60l",
    "DODECAHEXA/X": "30l 30r 90r 90l 150l 150r -150r -150l -90l -90r -30r -30l",
}

_PX4: Final = {
    (4, "x"): "45l -135l -45r 135r",
    (4, "+"): "90l -90l 0r 180r",
    (6, "x"): "90r -90l -30r 150l 30l -150r",
    (6, "+"): "0r 180l -120r 60l -60l 120r",
    (8, "x"): "22.5r -157.5r 67.5l 157.5l -22.5l -112.5l -67.5r 112.5r",
    (8, "+"): "0r 180r 45l 135l -45l -135l -90r 90r",
}

_ROTOR: Final = re.compile(r"(?:\(([-.\d]+),([-.\d]+)\)|([-.\d]+))([lr])")


class FrameRotor(NamedTuple):
    """A rotor of a frame. forward, left: position over the longest arm. direction: "ccw" or "cw", seen from above."""

    forward: float
    left: float
    direction: str


def ardupilot_frame(frame_class: int, frame_type: int) -> tuple[str, tuple[FrameRotor, ...]]:
    """Name and rotors of a frame of ArduPilot, in the order of its motor numbers; no rotors where the frame is none of
    multirotors whose rotors all thrust upwards."""
    shape, kind = (
        CLASSES.get(frame_class, f"class {frame_class}"),
        TYPES.get(frame_type, f"type {frame_type}"),
    )
    name = f"{shape}/{kind}"
    text = _ARDUPILOT.get(name, _ARDUPILOT["Y6/"] if shape == "Y6" else "")
    return name, _rotors(text)


def frames_of(rotors: int) -> dict[str, tuple[FrameRotor, ...]]:
    """The frames of ArduPilot with this number of rotors, by name ("QUAD/X"), in the order of its motor numbers."""
    frames = {name: _rotors(text) for name, text in _ARDUPILOT.items()}
    return {name: frame for name, frame in frames.items() if len(frame) == rotors}


def frame_parameters(name: str) -> dict[str, int]:
    """FRAME_CLASS and FRAME_TYPE of a frame of `frames_of`; without the type where the class has one frame only."""
    shape, _, kind = name.partition("/")
    numbers = {"FRAME_CLASS": next(n for n, text in CLASSES.items() if text == shape)}
    number = next((n for n, text in TYPES.items() if text == kind), None)
    return numbers if number is None else numbers | {"FRAME_TYPE": number}


def px4_frame(rotors: int, orientation: str) -> tuple[FrameRotor, ...]:
    """Rotors of PX4's generic frames. orientation: "x" or "+". None for another number of rotors."""
    return _rotors(_PX4.get((rotors, orientation), ""))


def _rotors(text: str) -> tuple[FrameRotor, ...]:
    places = []
    for forward, right, angle, side in _ROTOR.findall(text):
        if angle:
            x, y = math.cos(math.radians(float(angle))), -math.sin(math.radians(float(angle)))
        else:
            x, y = float(forward), -float(right)
        places.append((x, y, "ccw" if side == "l" else "cw"))
    longest = max((math.hypot(x, y) for x, y, _ in places), default=1.0)
    return tuple(FrameRotor(round(x / longest, 12), round(y / longest, 12), turn) for x, y, turn in places)
