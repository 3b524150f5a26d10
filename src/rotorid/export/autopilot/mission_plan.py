"""A mission file of QGroundControl (.plan), for PX4 and ArduPilot: take off, fly to waypoints and yaw there, land.

Format: https://docs.qgroundcontrol.com/master/en/qgc-dev-guide/file_formats/plan.html. Commands are those of MAVLink. A mission
has no excitation of attitude and thrust: it is the part of a plan that can be flown without a script.

PX4 continues once the vehicle is within the acceptance radius of a waypoint and has the commanded heading; it rejects missions
with yaw commands (mavlink_mission.cpp). ArduPilot's copter needs them; a yaw command holds during a delay, and ends at the next
waypoint (mode_auto.cpp: `wp_start`, `do_nav_delay`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rotorid.errors import SettingError

MISSION: Final = "mission.plan"

_WAYPOINT, _LAND, _TAKEOFF, _DELAY, _YAW, _SPEED = 16, 21, 22, 93, 115, 178
_RELATIVE, _NO_FRAME = 3, 2  # frames: height above home; none
_FIRMWARE: Final = {"px4": 12, "ardupilot": 3}
_EARTH: Final = 6378137.0  # m
_NEAR: Final = (0.1, 0.5)  # m, limits of the acceptance radius, a quarter of the distance flown
_THIRD: Final = 2.0 * math.pi / 3.0  # rad, largest yaw step whose direction is unambiguous
_TURNING: Final = 45.0  # deg/s


class Stop(NamedTuple):
    """A waypoint. forward, left, up: m, relative to home. hold: s. turn: yaw angle there, rad, to the left. speed: on the way,
    m/s."""

    forward: float
    left: float
    up: float
    hold: float = 0.0
    turn: float = 0.0
    speed: float = 1.0


def mission_plan(
    stops: Sequence[Stop], home: tuple[float, float], heading: float, height: float, autopilot: str
) -> str:
    """Write the text of a .plan file.

    Args:
        stops: waypoints.
        home: latitude and longitude, deg.
        heading: of the forward direction, rad clockwise from north.
        height: of the take-off, m.
        autopilot: "px4" or "ardupilot".
    Raises:
        SettingError: `home` is not on Earth or at a pole, or the autopilot has no missions.
    """
    latitude, longitude = home
    if not (abs(latitude) < 89.0 and abs(longitude) <= 180.0):
        raise SettingError(f"home {latitude:g},{longitude:g}: must be latitude and longitude in degrees")
    if autopilot not in _FIRMWARE:
        raise SettingError(f"{autopilot} has no missions; omit --home")

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

    facing, speed = round(math.degrees(heading) % 360.0, 3), math.nan
    before = (0.0, 0.0, height)
    add(_TAKEOFF, _RELATIVE, [0, 0, 0, facing, *place(0.0, 0.0), height])
    for stop in stops:
        if stop.speed != speed:
            speed = stop.speed
            add(_SPEED, _NO_FRAME, [1, round(speed, 3), -1, 0, 0, 0, 0])
        here = stop.forward, stop.left, stop.up
        near = round(min(max(0.25 * math.dist(here, before), _NEAR[0]), _NEAR[1]), 3)
        before, where = here, [*place(stop.forward, stop.left), stop.up]
        add(_WAYPOINT, _RELATIVE, [stop.hold, near, 0, facing, *where])
        if autopilot == "px4":
            parts = math.ceil(abs(stop.turn) / _THIRD - 1e-9)
            for k in range(1, parts + 1):
                yaw = round((facing - math.degrees(stop.turn) * k / parts) % 360.0, 3)
                add(_WAYPOINT, _RELATIVE, [0, near, 0, yaw, *where])
        else:
            parts = math.ceil(abs(stop.turn) / math.pi - 1e-9)
            for _ in range(parts):
                angle = abs(math.degrees(stop.turn)) / parts
                add(_YAW, _NO_FRAME, [angle, _TURNING, -math.copysign(1, stop.turn), 1, 0, 0, 0])
                add(_DELAY, _NO_FRAME, [math.ceil(angle / _TURNING) + 1, -1, -1, -1, 0, 0, 0])
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
