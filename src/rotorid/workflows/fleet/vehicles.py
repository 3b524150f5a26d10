"""Selection of the vehicle and the airframe of a log.

By default, the name of the vehicle is the serial number of its autopilot if the log has it. Otherwise it is the folder of the
log, followed by the name in a flight table or a mapping, or by a MAVLink system other than 1. Other rules: "folder", "log" (the
vehicle's name in the log), or a regular expression, whose first group in the path of the log is the name.

The airframe is the given one, else that of the first pattern of the map that matches the vehicle or the name of the log, else a
shipped airframe if the log identifies its vehicle: a simulated vehicle by its parameters, a Crazyflie by its format.

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

from rotorid.documents import parse_toml, read_text
from rotorid.errors import AirframeError, SettingError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, load_airframe, shipped_airframes

VEHICLE_RULES: Final = ("auto", "folder", "log")

_SIH_PARAMETERS: Final = {"SIH_T_MAX": 5.0, "SIH_L_ROLL": 0.2, "SIH_L_PITCH": 0.2}
"""Parameters of PX4's simulated vehicle that the shipped airframe describes. A real vehicle may also have them."""

_SIH_AUTOSTART: Final = (10040.0, 1100.0)
"""Values of SYS_AUTOSTART of that simulated vehicle."""


@dataclasses.dataclass(frozen=True)
class SelectionRules:
    """SelectionRules that select vehicles and airframes.

    vehicle: one of `VEHICLE_RULES` or a regular expression. airframe: for all logs. map: patterns and airframes, in order.
    """

    vehicle: str = "auto"
    airframe: str | None = None
    map: tuple[tuple[str, str], ...] = ()


def check_vehicle_rule(rule: str) -> str:
    """Return the rule. Raises SettingError if it is neither in `VEHICLE_RULES` nor a regular expression with a group."""
    if rule in VEHICLE_RULES:
        return rule
    try:
        groups = re.compile(rule).groups
    except re.error as error:
        raise SettingError(f"--vehicle-from {rule!r}: not a valid regular expression ({error})") from None
    if not groups:
        raise SettingError(
            f"--vehicle-from {rule!r}: must be {', '.join(VEHICLE_RULES)}, or a regular expression with a group, like "
            "'(quad[0-9]+)/'"
        )
    return rule


def vehicle_from_path(name: str, path: Path, rule: str) -> str:
    """The vehicle of a log by its path alone. name: path of the log relative to the source folder. rule: see the module."""
    if rule in ("folder", "auto"):
        folder = _folder(name)
        return folder or path.absolute().parent.name or "/"
    match = None if rule == "log" else re.search(rule, name)
    return "unknown" if match is None else next((group for group in match.groups() if group), "unknown")


def select_vehicle(name: str, flight: Flight, rule: str) -> str:
    """The vehicle of a log. name: path of the log relative to the source folder. rule: see the module."""
    if rule == "log" and flight.vehicle:
        return flight.vehicle
    if rule != "auto":
        return vehicle_from_path(name, flight.source, rule)
    if flight.identity:
        return flight.identity
    folder = _folder(name)
    system = flight.parameters.get("MAV_SYS_ID", flight.parameters.get("SYSID_THISMAV", 1.0))
    own_name = flight.vehicle if flight.format.startswith(("table", "mapped")) else ""
    if folder and own_name and _to_airframe_name(own_name) in shipped_airframes():
        own_name = ""  # the name of a type, not of a vehicle
    suffix = own_name or (f"system {system:g}" if system != 1.0 else "")
    return ": ".join(part for part in (folder, suffix) if part) or vehicle_from_path(
        name, flight.source, rule
    )


def _folder(name: str) -> str:
    """The folder of a log; empty for a log in the source folder."""
    return PurePosixPath(name).parent.as_posix().removeprefix(".")


def select_airframe(
    name: str, vehicle: str, flight: Flight, rules: SelectionRules
) -> tuple[Airframe, str] | None:
    """The airframe of a log.

    Args:
        name: path of the log relative to the source folder.
        vehicle: its vehicle.
        flight: its content.
        rules: of the selection.
    Returns:
        The airframe, and how it was chosen: "given", "map", or as of `airframe_from_log`; None without an airframe.
    Raises:
        AirframeError: the airframe cannot be read.
    """
    if rules.airframe is not None:
        return load_cached_airframe(rules.airframe), "given"
    for pattern, airframe in rules.map:
        if fnmatchcase(vehicle, pattern) or fnmatchcase(name, pattern):
            return load_cached_airframe(airframe), "map"
    match = airframe_from_log(flight)
    return None if match is None else (load_cached_airframe(match[0]), match[1])


def missing_airframe_error(name: str, flight: Flight) -> AirframeError:
    """The error for a log without an airframe."""
    vehicle = flight.vehicle or flight.format
    return AirframeError(
        f"{name}: no airframe for {vehicle}; give it with --airframe, or in a map with --airframes"
    )


def airframe_from_log(flight: Flight) -> tuple[str, str] | None:
    """The shipped airframe that matches a log, and the reason, a key of `text.AIRFRAME_SOURCES`; None without a match."""
    p = flight.parameters
    if p.get("SYS_AUTOSTART") in _SIH_AUTOSTART and all(
        abs(p.get(name, 0.0) - value) < 1e-3 for name, value in _SIH_PARAMETERS.items()
    ):
        return "px4-sih-quad", "px4_simulation"
    if "SIM_RATE_HZ" in p and p.get("FRAME_CLASS") == 1.0 and p.get("FRAME_TYPE") == 1.0:
        return "ardupilot-sitl-x", "ardupilot_simulation"
    if flight.format == "crazyflie-usd" and "thrust" in flight and "control_torque" in flight:
        return "crazyflie-crazyswarm2", "crazyflie_lee"
    if flight.format == "crazyflie-usd" and flight.rotors == 4:
        return "crazyflie-2.1", "crazyflie_rotors"
    name = _to_airframe_name(flight.vehicle)
    return (name, "log_name") if name in shipped_airframes() else None


def _to_airframe_name(text: str) -> str:
    """A text in the form of airframe names: "Crazyflie 2.1" -> "crazyflie-2.1"."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


@lru_cache(maxsize=256)
def load_cached_airframe(name: str) -> Airframe:
    """Load an airframe; a process loads it once only."""
    return load_airframe(name)


def read_map(path: Path) -> tuple[tuple[str, str], ...]:
    """Read a map of vehicle patterns to airframes and check each airframe. Raises SettingError or AirframeError."""
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        raise SettingError(f"{path}: not a text file; a map is TOML or CSV") from None
    except OSError as error:
        raise SettingError(f"{path}: the map cannot be read: {error.strerror or error}") from None
    pairs = _csv_pairs(path, text) if path.suffix.lower() == ".csv" else _toml_pairs(path, text)
    if not pairs:
        raise SettingError(f"{path}: the map has no entries")
    entries = []
    for pattern, airframe in pairs:
        relative = path.parent / airframe
        entries.append((pattern, str(relative) if relative.is_file() else airframe))
        load_cached_airframe(entries[-1][1])
    return tuple(entries)


def _toml_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    try:
        table = parse_toml(text).get("airframes")
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
