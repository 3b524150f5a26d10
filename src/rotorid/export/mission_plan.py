"""A mission as QGroundControl opens it (a .plan file), for PX4 and ArduPilot: take off, fly to places and turn there, land.

Format: https://docs.qgroundcontrol.com/master/en/qgc-dev-guide/file_formats/plan.html. Commands are those of MAVLink. A mission
has no excitation of attitude and thrust: it is the part of a plan that can be flown without a script.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rotorid.errors import SettingError

MISSION: Final = "mission.plan"

_WAYPOINT, _LAND, _TAKEOFF, _YAW, _SPEED = 16, 21, 22, 115, 178
_RELATIVE, _NO_FRAME = 3, 2  # frames: height above home; none
_FIRMWARE: Final = {"px4": 12, "ardupilot": 3}
_EARTH: Final = 6378137.0  # m


class Stop(NamedTuple):
    """forward, left, up: m, from above home. hold: s. turn: yaw that is turned there, rad, to the left. speed: m/s on the
    way."""

    forward: float
    left: float
    up: float
    hold: float = 0.0
    turn: float = 0.0
    speed: float = 1.0


def mission_plan(
    stops: Sequence[Stop], home: tuple[float, float], heading: float, height: float, autopilot: str
) -> str:
    """The .plan text. home: latitude and longitude, degrees. heading: of forward, rad clockwise from north. height: m, to
    which it takes off. Raises SettingError for a home that cannot be, or an autopilot that takes no missions."""
    latitude, longitude = home
    if not (abs(latitude) < 89.0 and abs(longitude) <= 180.0):
        raise SettingError(f"home {latitude:g},{longitude:g}: latitude and longitude are needed, in degrees")
    if autopilot not in _FIRMWARE:
        raise SettingError(f"{autopilot} takes no missions; leave out --home")

    def place(forward: float, left: float) -> list[float]:
        north = forward * math.cos(heading) + left * math.sin(heading)
        east = forward * math.sin(heading) - left * math.cos(heading)
        per_degree = math.radians(_EARTH)
        return [
            latitude + north / per_degree,
            longitude + east / (per_degree * math.cos(math.radians(latitude))),
        ]

    items: list[dict[str, Any]] = []

    def add(command: int, frame: int, params: list[float | None]) -> None:
        items.append(
            {
                "autoContinue": True,
                "command": command,
                "doJumpId": len(items) + 1,
                "frame": frame,
                "params": params,
                "type": "SimpleItem",
            }
        )

    facing, speed = math.degrees(heading) % 360.0, math.nan
    add(_TAKEOFF, _RELATIVE, [0, 0, 0, facing, *place(0.0, 0.0), height])
    for stop in stops:
        if stop.speed != speed:
            speed = stop.speed
            add(_SPEED, _NO_FRAME, [1, round(speed, 3), -1, 0, 0, 0, 0])
        add(_WAYPOINT, _RELATIVE, [stop.hold, 0, 0, facing, *place(stop.forward, stop.left), stop.up])
        if stop.turn:
            half = -math.copysign(180.0, stop.turn)
            for _ in range(round(abs(stop.turn) / math.pi)):
                add(_YAW, _NO_FRAME, [180, 0, math.copysign(1, half), 1, 0, 0, 0])
    add(_LAND, _RELATIVE, [0, 0, 0, facing, *place(0.0, 0.0), 0])
    plan = {
        "fileType": "Plan",
        "geoFence": {"circles": [], "polygons": [], "version": 2},
        "groundStation": "QGroundControl",
        "mission": {
            "cruiseSpeed": 5,
            "firmwareType": _FIRMWARE[autopilot],
            "hoverSpeed": 1,
            "items": items,
            "plannedHomePosition": [latitude, longitude, 0],
            "vehicleType": 2,
            "version": 2,
        },
        "rallyPoints": {"points": [], "version": 2},
        "version": 1,
    }
    return json.dumps(plan, indent=2, sort_keys=True) + "\n"
