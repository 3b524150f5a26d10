"""The sentences of a geometry conflict, and the rotors that fit as a line to paste into an airframe file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rotorid.errors import AirframeError
from rotorid.identification.rotor_geometry.conflict import GeometryConflict, WrongTorque
from rotorid.models.airframe.airframe import Airframe, Rotor, rotor_lines
from rotorid.models.airframe.from_log.frames import frame_parameters

_VERBS: Final = ("rolls", "pitches", "yaws")
_ENTRIES: Final = ("position y", "position x", "direction")


def conflict_error(conflict: GeometryConflict, airframe: Airframe, log: str) -> AirframeError:
    """The error of a command that needs the places of the rotors. log: name of the flight."""
    return AirframeError(f"{airframe.source}: in {log} {cause_text(conflict)}; {remedy_text(conflict)}")


def cause_text(conflict: GeometryConflict) -> str:
    """What is wrong with the rotors, a clause."""
    order, turned = conflict.order, conflict.turned
    moved = [i for i, j in enumerate(order) if i != j]
    if order and not turned and len(moved) == 2:
        a, b = moved
        return f"rotors {a} and {b} are exchanged: their order in the airframe or in the log is wrong"
    if order and moved:
        places = ", ".join(str(j) for j in order)
        also = f", and {_rotors(turned)} in the other direction" if turned else ""
        return f"the order of the rotors is wrong: those of the log are rotors {places} of the airframe{also}"
    first = _torque_text(conflict.wrong)
    if turned and len(turned) == len(order):
        return f"{first}: all rotors turn in the other direction"
    if turned:
        return f"{first}: {_rotors(turned)} in the other direction"
    return f"{first}: a position or a direction, the order or the frame is wrong"


def remedy_text(conflict: GeometryConflict) -> str:
    """What to do about it: the rotors that fit, where they are known."""
    if conflict.rotors is None:
        return (
            "the flight does not identify the order that fits; check position and direction of each [[rotor]], or give a "
            "livelier flight with faster rotor commands"
        )
    frame = ""
    if conflict.frame:
        parameters = ", ".join(f"{k} {v}" for k, v in frame_parameters(conflict.frame).items())
        frame = f" (ArduPilot's frame {conflict.frame}: {parameters})"
    return (
        f"these rotors fit{frame}: put this line at the top of the airframe file, in place of its [[rotor]] tables "
        f"(`rotorid airframe LOG --mass KG -o FILE.toml` writes one): {rotors_line(conflict.rotors)}"
    )


def rotors_line(rotors: Sequence[Rotor]) -> str:
    """Rotors as one line of TOML for the top of an airframe file."""
    tables = (f"{{ {', '.join(rotor_lines(rotor)[1:])} }}" for rotor in rotors)
    return f"rotor = [{', '.join(tables)}]"


def _rotors(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return f"rotor {indices[0]} turns"
    return f"rotors {', '.join(str(i) for i in indices[:-1])} and {indices[-1]} turn"


def _torque_text(wrong: Sequence[WrongTorque]) -> str:
    """The first wrong torque, and the other rotors with a wrong one about the same axis."""
    first = wrong[0]
    measured = f"{first.value:.3g} ± {first.std:.1g} N m per N"
    by_airframe = f"where its {_ENTRIES[first.axis]} gives {first.expected:.3g}"
    direction = " in the wrong direction" if first.has_wrong_sign else ""
    text = f"rotor {first.rotor} {_VERBS[first.axis]} the vehicle{direction} ({measured}, {by_airframe})"
    kind = (first.axis, first.has_wrong_sign)
    others = [str(w.rotor) for w in wrong[1:] if (w.axis, w.has_wrong_sign) == kind]
    return f"{text}, and so for rotor {', '.join(others)}" if others else text
