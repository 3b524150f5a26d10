"""Selection of the vehicle and the airframe of a log.

The vehicle is the serial number of its autopilot if the log has it. Otherwise it is the folder of the log, followed by the name
in a flight table or a mapping, or by a MAVLink system other than 1. Other rules: "folder", "log" (the vehicle's name in the
log), or a regular expression, whose first group in the path of the log is the name.

The airframe is the given one, else that of the first pattern of the map that matches the vehicle or the name of the log, else a
shipped airframe if the log identifies its vehicle: the vehicle of a simulator by its parameters, a Crazyflie by its format.

A map is a TOML file

    [airframes]
    "quad-0*" = "our-quad.toml"          # relative to the map, or the name of a shipped airframe
    "*" = "crazyflie-2.1"

or a CSV with the columns vehicle and airframe.
"""

from __future__ import annotations

import csv
import dataclasses
import re
import tomllib
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from rotorid.errors import AirframeError, SettingError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, load_airframe, shipped_airframes

RULES: Final = ("auto", "folder", "log")

_SIH: Final = {"SIH_T_MAX": 5.0, "SIH_L_ROLL": 0.2, "SIH_L_PITCH": 0.2}
"""Parameters of PX4's simulated vehicle that the shipped airframe describes."""

_SIMULATED: Final = (
    10040.0,
    1100.0,
)  # SYS_AUTOSTART of that vehicle; a real vehicle may also have SIH_* parameters


@dataclasses.dataclass(frozen=True)
class Rules:
    """Rules that select vehicles and airframes. vehicle: one of `RULES` or a regular expression. airframe: for all logs. map:
    patterns and airframes, in order."""

    vehicle: str = "auto"
    airframe: str | None = None
    map: tuple[tuple[str, str], ...] = ()


def checked_rule(rule: str) -> str:
    """Return the rule. Raises SettingError if it is neither in `RULES` nor a regular expression with a group."""
    if rule in RULES:
        return rule
    try:
        groups = re.compile(rule).groups
    except re.error as error:
        raise SettingError(f"--vehicle-from {rule!r}: not a valid regular expression ({error})") from None
    if not groups:
        raise SettingError(
            f"--vehicle-from {rule!r}: must be {', '.join(RULES)}, or a regular expression with a group, like '(quad[0-9]+)/'"
        )
    return rule


def vehicle_of_name(name: str, path: Path, rule: str) -> str:
    """The vehicle of a log that cannot be read. name: path of the log relative to the source folder."""
    if rule in ("folder", "auto"):
        folder = PurePosixPath(name).parent.as_posix().removeprefix(".")
        return folder or path.absolute().parent.name or "/"
    found = None if rule == "log" else re.search(rule, name)
    return "unknown" if found is None else next((g for g in found.groups() if g), "unknown")


def vehicle_of(name: str, flight: Flight, rule: str) -> str:
    """The vehicle of a log. name: path of the log relative to the source folder."""
    if rule == "log" and flight.vehicle:
        return flight.vehicle
    if rule != "auto":
        return vehicle_of_name(name, flight.source, rule)
    folder = PurePosixPath(name).parent.as_posix().removeprefix(".")
    if flight.identity:
        return flight.identity
    system = flight.parameters.get("MAV_SYS_ID", flight.parameters.get("SYSID_THISMAV", 1.0))
    named = flight.vehicle if flight.format.startswith(("table", "mapped")) else ""
    if folder and _plainly(named) in shipped_airframes():
        named = ""  # a type, not a vehicle
    more = named or (f"system {system:g}" if system != 1.0 else "")
    return ": ".join(part for part in (folder, more) if part) or vehicle_of_name(name, flight.source, rule)


def airframe_of(name: str, vehicle: str, flight: Flight, rules: Rules) -> tuple[Airframe, str] | None:
    """The airframe and how it was chosen: "given", "map" or the reason for a guess; None without an airframe.

    Raises AirframeError if the airframe cannot be read.
    """
    if rules.airframe is not None:
        return load_once(rules.airframe), "given"
    for pattern, airframe in rules.map:
        if fnmatchcase(vehicle, pattern) or fnmatchcase(name, pattern):
            return load_once(airframe), "map"
    found = guess(flight)
    return None if found is None else (load_once(found[0]), found[1])


def no_airframe(name: str, flight: Flight) -> AirframeError:
    """The error for a log without an airframe."""
    what = flight.vehicle or flight.format
    return AirframeError(
        f"{name}: no airframe for {what}; give it with --airframe, or in a map with --airframes"
    )


def guess(flight: Flight) -> tuple[str, str] | None:
    """The shipped airframe that matches a log, and the reason; None if there is no match."""
    p = flight.parameters
    if p.get("SYS_AUTOSTART") in _SIMULATED and all(abs(p.get(k, 0.0) - v) < 1e-3 for k, v in _SIH.items()):
        return "px4-sih-quad", "PX4's simulated vehicle, by SYS_AUTOSTART and SIH_*"
    if "SIM_RATE_HZ" in p and p.get("FRAME_CLASS") == 1.0 and p.get("FRAME_TYPE") == 1.0:
        return "ardupilot-sitl-x", "ArduPilot's simulated vehicle, by SIM_* and frame QUAD/X"
    if flight.format == "crazyflie-usd" and "thrust" in flight and "control_torque" in flight:
        return "crazyflie-crazyswarm2", "a Crazyflie's log with the thrust of the Lee controller"
    if flight.format == "crazyflie-usd" and flight.rotors == 4:
        return "crazyflie-2.1", "a Crazyflie's log with rotor commands"
    named = _plainly(flight.vehicle)
    return (named, "the log names it") if named in shipped_airframes() else None


def _plainly(words: str) -> str:
    """Text in the form of airframe names."""
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


@lru_cache(maxsize=256)
def load_once(name: str) -> Airframe:
    """Load an airframe, once in a process."""
    return load_airframe(name)


def read_map(path: Path) -> tuple[tuple[str, str], ...]:
    """Read a map of vehicle patterns to airframes and check each airframe. Raises SettingError or AirframeError."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise SettingError(f"{path}: not a text file; a map is TOML or CSV") from None
    except OSError as error:
        raise SettingError(f"{path}: the map cannot be read: {error.strerror or error}") from None
    pairs = _csv_pairs(path, text) if path.suffix.lower() == ".csv" else _toml_pairs(path, text)
    if not pairs:
        raise SettingError(f"{path}: has no vehicle")
    found = []
    for pattern, airframe in pairs:
        beside = path.parent / airframe
        found.append((pattern, str(beside) if beside.is_file() else airframe))
        load_once(found[-1][1])
    return tuple(found)


def _toml_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    try:
        table = tomllib.loads(text).get("airframes")
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path}: not valid TOML: {error}") from None
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise SettingError(f'{path}: needs a table [airframes] with lines like "quad-0*" = "our-quad.toml"')
    return list(table.items())


def _csv_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    rows = csv.DictReader(text.splitlines())
    if not {"vehicle", "airframe"} <= set(rows.fieldnames or ()):
        raise SettingError(f"{path}: needs the columns vehicle and airframe")
    return [(row["vehicle"], row["airframe"]) for row in rows if row["vehicle"] and row["airframe"]]
