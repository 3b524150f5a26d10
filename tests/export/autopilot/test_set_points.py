"""Set points as files, and the script that plays them, against a vehicle that takes them."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from pymavlink import mavutil

from rotorid.errors import SettingError
from rotorid.export.autopilot.mission_plan import Stop, mission_plan
from rotorid.export.autopilot.set_points import COLUMNS, CSV, LOGGING, SetPoints, player_files

OFFBOARD, POSITION, AUTO = 6, 3, 4


def some(n: int = 16) -> SetPoints:
    t = 0.02 * np.arange(n)
    place = np.stack([0.1 * t, 0.2 * t, 0.3 * t], axis=1)
    return SetPoints(t, place, place + 1.0, place + 2.0, 0.5 * t, 0.0 * t + 0.25)


def test_table_is_forward_right_down() -> None:
    points = some()
    files = player_files(points, "crazyflie")
    assert list(files) == [CSV]
    head, *rows = files[CSV].decode().splitlines()
    assert tuple(head.split(",")) == COLUMNS
    back = np.array([[float(v) for v in row.split(",")] for row in rows])
    np.testing.assert_allclose(back[:, 1:4] * (1.0, -1.0, -1.0), points.position, atol=1e-4)
    np.testing.assert_allclose(back[:, 7:10] * (1.0, -1.0, -1.0), points.acceleration, atol=1e-4)
    np.testing.assert_allclose(back[:, 10:], -np.stack([points.yaw, points.yaw_rate], axis=1), atol=1e-4)


def test_parameters_of_the_logs() -> None:
    assert dict(LOGGING["px4"].parameters)["SDLOG_PROFILE"] == 25
    mask = dict(LOGGING["ardupilot"].parameters)["LOG_BITMASK"]
    assert mask == 176126 | 1 << 0 | 1 << 18, "ArduPilot's own default, with fast attitude and fast IMU"
    assert b"1\t1\tSDLOG_PROFILE\t25\t6\n" in player_files(some(), "px4")["px4_logging.params"]
    assert b"LOG_BITMASK,438271\n" in player_files(some(), "ardupilot")["ardupilot_logging.param"]


class Vehicle(threading.Thread):
    """Hovers at a place with a heading, takes modes and set points, and leaves Offboard after so many of them."""

    def __init__(self, port: int, leaves_after: int = 10**6) -> None:
        super().__init__(daemon=True)
        self.link = mavutil.mavlink_connection(f"udpout:127.0.0.1:{port}", source_system=1, dialect="common")
        self.leaves_after, self.mode = leaves_after, POSITION
        self.targets: list = []
        self.modes: list[tuple[float, float]] = []
        self.over = threading.Event()

    def run(self) -> None:
        sent = 0.0
        while not self.over.is_set():
            if time.monotonic() - sent > 0.1:
                sent = time.monotonic()
                self.link.mav.heartbeat_send(2, 12, 1, self.mode << 16, 4)
                self.link.mav.local_position_ned_send(0, 10.0, 20.0, -3.0, 0, 0, 0)
                self.link.mav.attitude_send(0, 0, 0, 0.5 * math.pi, 0, 0, 0)
            message = self.link.recv_match(blocking=True, timeout=0.02)
            if message is None:
                continue
            if message.get_type() == "COMMAND_LONG":
                self.mode = int(message.param2)
                self.modes.append((message.param2, message.param3))
            elif message.get_type() == "SET_POSITION_TARGET_LOCAL_NED" and self.mode == OFFBOARD:
                self.targets.append(message)
                if len(self.targets) == self.leaves_after:
                    self.mode = POSITION


@pytest.mark.parametrize("leaves_after", [10**6, 20])
def test_px4_plays_the_table_until_its_end_or_until_the_pilot_takes_over(
    tmp_path: Path, leaves_after: int
) -> None:
    for name, content in player_files(some(60), "px4").items():
        (tmp_path / name).write_bytes(content)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    vehicle = Vehicle(port, leaves_after)
    vehicle.start()
    command = [sys.executable, str(tmp_path / "px4_offboard.py"), f"udpin:127.0.0.1:{port}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    vehicle.over.set()
    vehicle.join()
    vehicle.link.close()
    assert result.returncode == 0, result.stderr
    assert vehicle.modes[0][0] == OFFBOARD
    ended = leaves_after > 1000
    assert ("done" if ended else "the pilot has taken over") in result.stdout
    assert (vehicle.modes[-1] == (AUTO, 3)) is ended
    last = vehicle.targets[-1]
    assert last.type_mask == 0
    # the nose points east: forward is east, right is south
    t = (last.y - 20.0) / 0.1
    assert 0.0 < t <= 1.2
    assert (last.x, last.z) == pytest.approx((10.0 + 0.2 * t, -3.0 - 0.3 * t), abs=1e-3)
    assert (last.afy, last.afz) == pytest.approx((2.0 + 0.1 * t, -2.0 - 0.3 * t), abs=1e-3)
    assert (last.yaw, last.yaw_rate) == pytest.approx((0.5 * math.pi - 0.5 * t, -0.25), abs=1e-3)


def test_missions_go_where_they_shall() -> None:
    home, heading = (47.0, 8.0), math.radians(90.0)
    plan = json.loads(
        mission_plan([Stop(10.0, 5.0, 4.0, 0.0, 2.0 * math.pi, 2.0)], home, heading, 3.0, "px4")
    )
    items = plan["mission"]["items"]
    assert [i["command"] for i in items] == [22, 178, 16, 16, 16, 16, 21], (
        "PX4 knows no command for the yaw alone"
    )
    assert [i["doJumpId"] for i in items] == [1, 2, 3, 4, 5, 6, 7]
    assert items[0]["params"][6] == 3.0
    latitude, longitude, up = items[2]["params"][4:]
    metres = 6378137.0 * math.pi / 180.0
    assert (latitude - 47.0) * metres == pytest.approx(5.0, rel=1e-6), "left of east is north"
    assert (longitude - 8.0) * metres * math.cos(math.radians(47.0)) == pytest.approx(10.0, rel=1e-6)
    assert up == 4.0
    assert items[1]["params"][1] == 2.0
    assert [i["params"][3] for i in items[2:6]] == [90.0, 330.0, 210.0, 90.0], (
        "to the left is counter-clockwise"
    )
    assert {tuple(i["params"][4:]) for i in items[2:6]} == {(latitude, longitude, up)}
    assert {i["params"][1] for i in items[2:6]} == {0.5}
    small = [Stop(0.2, 0.0, 3.0), Stop(0.2, 0.0, 4.0, turn=-2.0 * math.pi)]
    plan = json.loads(mission_plan(small, home, heading, 3.0, "ardupilot"))
    items = plan["mission"]["items"]
    assert [i["command"] for i in items] == [22, 178, 16, 16, 115, 93, 115, 93, 21]
    assert [i["params"][1] for i in items[2:4]] == [0.1, 0.25], "nearer than the places are to each other"
    assert items[4]["params"][:4] == [180.0, 45.0, 1.0, 1], "to the right, from where it looks"
    assert items[5]["params"][0] > 180.0 / 45.0, "and the next command waits for it"
    with pytest.raises(SettingError, match="latitude and longitude"):
        mission_plan([], (120.0, 8.0), 0.0, 3.0, "px4")
    with pytest.raises(SettingError, match="has no missions"):
        mission_plan([], home, 0.0, 3.0, "crazyflie")
