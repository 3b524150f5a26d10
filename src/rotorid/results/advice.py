"""After the flight: what could not be identified, why, and what to fly. A pure function of what a fit told."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rotorid.identification.fit import Direction
from rotorid.results.words import joined, label, percent, title

HARDLY: Final = 0.3
"""Share of the prior's standard deviation below which a flight has hardly told a quantity."""

PLANNED: Final = (
    "thrust_curve", "motor_time_constant", "motor_time_constant_down", "command_delay", "torque_ratio", "centre_of_mass",
    "inertia", "products_of_inertia", "drag", "rotor_drag", "drag_area", "angular_drag", "rotor_scale", "imu_position",
    "velocity_delay", "attitude_delay", "thrust_scale",
)  # fmt: skip
"""Parameters that `rotorid plan` plans manoeuvres for."""

_AXES: Final = {"x": "roll", "y": "pitch", "z": "yaw"}
_INDEXED: Final = re.compile(r"_(?:[xyz]{1,2}|\d+)$")
_SCALED: Final = frozenset(("mass", "thrust_scale", "thrust_curve", "inertia"))
_FORCES: Final = _SCALED | {"products_of_inertia", "drag", "rotor_drag", "drag_area", "angular_drag"}
_AIR: Final = frozenset(("drag", "rotor_drag", "drag_area"))
_LAGS: Final = frozenset(("motor_time_constant", "motor_time_constant_down", "command_delay"))
_TURNS: Final = frozenset(("inertia", "products_of_inertia", "angular_drag", "torque_ratio"))


@dataclasses.dataclass(frozen=True)
class _Answer:
    """because: why a flight does not tell a quantity. fly: what would."""

    because: str
    fly: str


_ANSWERS: Final[Mapping[str, _Answer]] = {
    "mass": _Answer(
        "forces show only beside each other, so a flight that does not know its thrust cannot weigh",
        "weigh the vehicle as it flies, and write its mass with a small std into the airframe file",
    ),
    "thrust_scale": _Answer(
        "without a known mass, more thrust looks like less mass",
        "weigh the vehicle as it flies, and identify with --known mass",
    ),
    "thrust_curve": _Answer(
        "the rotors pulled nearly alike all the time",
        "climb and sink quickly, with multisines on the thrust",
    ),
    "voltage_exponent": _Answer(
        "the voltage of the battery hardly changed",
        "fly the same once with a full and once with a nearly empty battery, and identify both flights together",
    ),
    "motor_time_constant": _Answer(
        "the commands changed slowly beside the lag of the motors", "fly quick chirps and doublets"
    ),
    "motor_time_constant_down": _Answer(
        "the rotors hardly had to slow down quickly",
        "fly quick doublets and multisines on the thrust, which brake the rotors",
    ),
    "command_delay": _Answer("the commands changed too slowly to show a delay", "fly quick multisines"),
    "torque_ratio": _Answer("the vehicle hardly turned about its vertical axis", "fly doublets of yaw"),
    "centre_of_mass": _Answer(
        "a centre of mass off the axis shows as a steady torque only", "fly multisines of roll, pitch and thrust"
    ),
    "inertia": _Answer("the vehicle hardly turned", "fly multisines and doublets of roll, pitch and yaw"),
    "products_of_inertia": _Answer(
        "the vehicle hardly turned about two axes at once", "fly multisines of all axes together"
    ),
    "drag": _Answer("the vehicle flew too slowly for the air to show", "fly legs to and fro at speed"),
    "rotor_drag": _Answer(
        "the thrust hardly changed at speed", "fly circles and legs at several speeds, with climbs"
    ),
    "drag_area": _Answer("the vehicle flew too slowly for a quadratic drag to show", "fly fast legs"),
    "angular_drag": _Answer("no turn lasted", "fly steady turns of yaw, and slow multisines of roll and pitch"),
    "rotor_scale": _Answer("the rotors always pulled together", "fly multisines of roll, pitch and yaw"),
    "imu_position": _Answer(
        "the vehicle turned too slowly for the accelerometer to feel where it sits", "fly quick turns of yaw, and chirps"
    ),
    "velocity_delay": _Answer("the velocity changed too slowly to show a delay", "fly position steps"),
    "attitude_delay": _Answer("the vehicle turned too slowly to show a delay", "fly quick multisines of roll and pitch"),
}  # fmt: skip


def advice(
    told: Mapping[str, float],
    untold: Sequence[Direction] = (),
    *,
    airframe: str = "AIRFRAME.toml",
    folder: str = "plan",
) -> tuple[str, ...]:
    """What flights could not tell, why, and what to fly or to measure: a sentence each; nothing where they told all.

    told: share of the prior's standard deviation that they removed, 0 to 1, by quantity ("mass", "inertia_x",
    "thrust_curve_2", ...), as `Fit.told`. untold: directions that they did not tell, as `Fit.untold`. airframe, folder: of the
    command line that the last sentence has, which makes the manoeuvres for all that a flight can still tell.
    """
    found, covered, wanted = [], set(), []
    for direction in untold:
        covered.update(direction.names)
        parameters = _parameters(direction.names)
        if len(parameters) == 1:
            found.append(_alone(direction.names, 1.0 - direction.share**0.5))
            wanted += parameters
        else:
            text, ask = _together(direction, parameters)
            found.append(text)
            wanted += ask
    for parameter in _parameters(told):
        names = [n for n in told if parameter_of(n) == parameter and n not in covered and told[n] < HARDLY]
        if names:
            found.append(_alone(names, min(told[n] for n in names)))
            wanted.append(parameter)
    ask = [name for name in PLANNED if name in wanted and name != "thrust_scale"]
    if ask:
        command = (
            f"rotorid plan --airframe {shlex.quote(airframe)} --for {','.join(ask)} -o {shlex.quote(folder)}"
        )
        found.append(f"Manoeuvres that tell {_list(ask)}: {command}")
    return tuple(found)


def parameter_of(quantity: str) -> str:
    """The parameter that a quantity belongs to: inertia_x -> inertia, thrust_curve_2 -> thrust_curve."""
    parameter = _INDEXED.sub("", quantity)
    return parameter if parameter in _ANSWERS else quantity


def _parameters(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parameter_of(name) for name in names))


def _alone(names: Sequence[str], told: float) -> str:
    """About one parameter, or some of its numbers."""
    parameter = parameter_of(names[0])
    what = title(_in_words(parameter, names))
    told_text = f"removed only {percent(told)} of its prior spread" if told >= 0.01 else "told nothing of it"
    answer = _ANSWERS.get(parameter)
    if answer is None:
        return f"{what}: the flights {told_text}, so its prior stands."
    because, fly = answer.because, answer.fly
    if parameter == "inertia" and len(names) < 3:
        axes = joined([_AXES[n[-1]] for n in names])
        because, fly = f"the vehicle hardly turned in {axes}", f"fly multisines and doublets of {axes}"
    return f"{what}: the flights {told_text}, since {because}; {fly}."


def _together(direction: Direction, parameters: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """About a combination of parameters, and which of them to plan for."""
    of, names = set(parameters), direction.names
    what = title(in_words(names))
    if (
        of <= _FORCES
        and of & {"mass", "thrust_scale", "thrust_curve"}
        and (direction.together or "mass" in of)
    ):
        return (
            f"{what} move together: the flights tell only their ratios, since forces show only beside each other, and no "
            "manoeuvre changes that; weigh the vehicle as it flies, and identify with --known mass.",
            (),
        )
    if of == {"inertia", "torque_ratio"}:
        return (
            f"{what} move together: a turn in yaw tells only their ratio; measure the torque of a rotor on a stand, or the "
            "inertia about the vertical axis with a bifilar pendulum, and write it with its std into the airframe file.",
            (),
        )
    if of == {"centre_of_mass", "rotor_scale"}:
        return (
            f"{what} move together: a centre of mass off the axis and rotors that pull unequally give the same steady torque; "
            "balance the vehicle on an edge to find its centre of mass, and write it with its std into the airframe file.",
            (),
        )
    if of <= _AIR:
        because, fly = (
            "speed and thrust went up and down together",
            "fly legs and circles at several speeds, with climbs",
        )
    elif of <= _LAGS:
        because, fly = "at slow commands a lag and a delay look alike", "fly quick chirps and multisines"
    elif of <= _TURNS:
        because, fly = "all turns were alike", "fly multisines, doublets and steady turns of each axis"
    else:
        because, fly = "they always acted together", "fly manoeuvres that move them apart"
    return f"{what} move together: the flights tell only their relation, since {because}; {fly}.", tuple(
        p for p in parameters if p in PLANNED
    )


def in_words(names: Sequence[str]) -> str:
    """Quantities by their parameters: "mass, inertia x and y and drag"."""
    return joined([_in_words(p, [n for n in names if parameter_of(n) == p]) for p in _parameters(names)])


def _in_words(parameter: str, names: Sequence[str]) -> str:
    """A parameter, with those of its numbers that are meant where it is not all of a vector."""
    ends = [n.removeprefix(f"{parameter}_") for n in names if n != parameter]
    if not ends or (len(ends) == 3 and not ends[0].isdigit()):
        return label(parameter)
    return f"{label(parameter)} {joined(ends)}"


def _list(parameters: Sequence[str]) -> str:
    return joined([label(p) for p in parameters])
