"""Requests of the page, checked, and the arguments of the commands that they ask for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rotorid.errors import SettingError
from rotorid.estimators.registry import ESTIMATORS, FLIGHT_OBSERVERS, check_observer, estimator_label
from rotorid.terminal.arguments import estimator_names, mass_and_std

COMMANDS: Final = {
    "track": "Mass, drag and wind over the flight",
    "identify": "The whole airframe, validated on a part of the flight that was not fitted",
    "wrench": "External force and torque, and contacts",
    "compare": "Scores of several estimators of the mass",
}
"""The commands that the page runs, with what they give."""

_TEXT: Final = 200  # characters of a field


@dataclasses.dataclass(frozen=True)
class Vehicle:
    """The form of the vehicle of a log, as the user filled it in.

    airframe: "" for that of the log's parameters, "shipped:NAME" or "file:NAME". mass: kg, as of `--mass`. span: m.
    """

    airframe: str = ""
    mass: str = ""
    span: str = ""


@dataclasses.dataclass(frozen=True)
class Run:
    """A command to be run. logs: their ids. estimators, observer: "" for the default of the command."""

    command: str
    logs: tuple[str, ...]
    estimators: str = ""
    observer: str = ""


def choices() -> dict[str, Any]:
    """What the page offers: commands, estimators and observers, texts by name."""
    return {
        "commands": COMMANDS,
        "estimators": {name: estimator_label(name) for name in ESTIMATORS},
        "observers": {name: estimator_label(name) for name in FLIGHT_OBSERVERS},
    }


def to_vehicle(data: Mapping[str, Any], shipped: Sequence[str], dropped: Sequence[str]) -> Vehicle:
    """The form of a request. Raises SettingError for a number or a name that is not valid."""
    vehicle = Vehicle(*(_text(data, name) for name in ("airframe", "mass", "span")))
    kind, _, name = vehicle.airframe.partition(":")
    known = {"": [""], "shipped": shipped, "file": dropped}.get(kind, ())
    if name not in known:
        raise SettingError(f"airframe {vehicle.airframe!r}: there is none of this name")
    mass_and_std(vehicle.mass or None, "mass")
    if vehicle.span:
        if vehicle.airframe:
            raise SettingError("the span is for an airframe made from the log's parameters; leave it empty")
        try:
            span = float(vehicle.span)
        except ValueError:
            span = math.nan
        if not (math.isfinite(span) and span > 0.0):
            raise SettingError(f"span {vehicle.span}: give a distance in m above 0, such as 0.45")
    return vehicle


def to_run(data: Mapping[str, Any], known_logs: Mapping[str, Any]) -> Run:
    """The command of a request. Raises SettingError for what is not valid."""
    command, logs = _text(data, "command"), data.get("logs")
    if command not in COMMANDS:
        raise SettingError(f"command {command!r}: give one of {', '.join(COMMANDS)}")
    if not isinstance(logs, list) or not logs or any(log not in list(known_logs) for log in logs):
        raise SettingError("choose a log")
    logs = tuple(dict.fromkeys(logs))
    if len(logs) > 1 and command != "identify":
        raise SettingError(f"{command} takes one log")
    estimators, observer = _text(data, "estimators"), _text(data, "observer")
    if estimators:
        estimators = ",".join(estimator_names(estimators))
    if observer:
        check_observer(observer)
    return Run(command, logs, estimators, observer)


def run_arguments(
    run: Run, vehicle: Vehicle, logs: Sequence[Path], airframe: Path | None, output: Path
) -> list[str]:
    """The arguments of the command.

    Args:
        run: what to run.
        vehicle: of the first log.
        logs: their files.
        airframe: the file that was dropped; None for one that ships.
        output: folder for the results.
    """
    arguments = [run.command, *map(str, logs)]
    if vehicle.airframe:
        name = vehicle.airframe.partition(":")[2] if airframe is None else str(airframe)
        arguments += ["--airframe", name]
    arguments += mass_arguments(vehicle)
    if run.estimators and run.command in ("track", "compare"):
        arguments += ["--estimators", run.estimators]
    if run.observer and run.command == "wrench":
        arguments += ["--observer", run.observer]
    return [*arguments, "-o", str(output)]


def mass_arguments(vehicle: Vehicle) -> list[str]:
    """`--mass` and `--span`, where they are given."""
    mass = ["--mass", vehicle.mass] if vehicle.mass else []
    return mass + (["--span", vehicle.span] if vehicle.span else [])


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > _TEXT:
        raise SettingError(f"{name}: not valid")
    return value.strip()
