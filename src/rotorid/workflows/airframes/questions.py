"""An airframe without a log: what it needs is asked for, question by question.

The answers are taken as the parameters that PX4 or ArduPilot would have for such a vehicle; all else follows as from a log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.from_log.make import airframe_from_parameters
from rotorid.models.airframe.size_priors import arm_length_prior
from rotorid.terminal.arguments import mass_and_std

Ask = Callable[[str, str], str]
"""Called with a question and the answer that is taken for an empty one; returns the answer."""

_MAV_TYPES: Final = {4: 2.0, 6: 13.0, 8: 14.0}
_FRAME_CLASSES: Final = {4: 1.0, 6: 2.0, 8: 3.0}
_AUTOSTART: Final = {
    (4, "x"): 4001.0,
    (4, "+"): 5001.0,
    (6, "x"): 6001.0,
    (6, "+"): 7001.0,
    (8, "x"): 8001.0,
    (8, "+"): 9001.0,
}
_HOVER: Final = "0.5"


def ask_for_airframe(
    ask: Ask, mass: tuple[float, float] | None = None, span: float | None = None
) -> Airframe:
    """The airframe of the vehicle that the user describes.

    Args:
        ask: puts a question.
        mass: and its standard deviation, kg; None: asked for.
        span: distance of opposite motors, m; None: asked for.
    Raises:
        SettingError: an answer is none of the possible ones.
    """
    name = ask("Name of the vehicle", "mine")
    autopilot = _choice(
        ask, "Autopilot, which numbers the motors in its order (px4, ardupilot)", ("px4", "ardupilot")
    )
    rotors = int(_choice(ask, "Number of rotors (4, 6, 8)", ("4", "6", "8")))
    frame = _choice(ask, "Frame (x: no arm points forward; +: one does)", ("x", "+"))
    weighed = mass or mass_and_std(
        ask("Mass as it flies, with its battery, kg (1.52 or 1.52+-0.01)", ""), "mass"
    )
    assert weighed is not None
    prior = arm_length_prior(weighed[0], rotors)
    usual = f"{2.0 * prior.number:.2f} +- {2.0 * (prior.std or (0.0,))[0]:.2f} by the mass"
    distance = span or _number(ask, "Distance between opposite motors, m", usual, 100.0)
    hover = _number(ask, "Throttle in hover, 0 to 1", _HOVER, 1.0) or float(_HOVER)
    if autopilot == "px4":
        parameters = {
            "MAV_TYPE": _MAV_TYPES[rotors],
            "SYS_AUTOSTART": _AUTOSTART[rotors, frame],
            "MPC_THR_HOVER": hover,
        }
    else:
        parameters = {
            "FRAME_CLASS": _FRAME_CLASSES[rotors],
            "FRAME_TYPE": float(frame == "x"),
            "MOT_THST_HOVER": hover,
        }
    return airframe_from_parameters(
        parameters, weighed, distance, source=name, vehicle=f"{rotors} rotors in {frame}"
    )


def _choice(ask: Ask, question: str, choices: tuple[str, ...]) -> str:
    answer = ask(question, choices[0]).strip().lower()
    if answer not in choices:
        raise SettingError(f"{question}: {answer!r} is none of {', '.join(choices)}")
    return answer


def _number(ask: Ask, question: str, default: str, largest: float) -> float | None:
    """The number above 0 of an answer; None where it is the default."""
    answer = ask(question, default).strip()
    if answer == default:
        return None
    try:
        value = float(answer)
    except ValueError:
        value = -1.0
    if not 0.0 < value < largest:
        raise SettingError(f"{question}: {answer!r} is no number above 0 and below {largest:g}")
    return value
