"""Set points of a flight as a table for the scripts of autopilots, and these scripts.

One row every 20 ms, relative to the position and heading of the vehicle at the start: forward, right and down, level. Positions
and velocities are those of the simulated vehicle; accelerations and yaw rates are the commanded ones. These carry the
excitation, and position control does not act against it.
"""

from __future__ import annotations

import dataclasses
import io
from importlib import resources
from typing import Final

import numpy as np
from jaxtyping import Float

CSV: Final = "setpoints.csv"
RATE: Final = 50.0
"""Rows per second."""

COLUMNS: Final = (
    "t_s", "forward_m", "right_m", "down_m", "forward_m_s", "right_m_s", "down_m_s", "forward_m_s2", "right_m_s2", "down_m_s2",
    "yaw_right_rad", "yaw_rate_right_rad_s",
)  # fmt: skip
"""Columns of the table."""

_FRD: Final = np.array([1.0, -1.0, -1.0])  # from forward, left, up


@dataclasses.dataclass(frozen=True)
class SetPoints:
    """t: s. position (m), velocity (m/s), acceleration (m/s^2): forward, left, up, relative to the start. yaw (rad), yaw_rate
    (rad/s): positive to the left."""

    t: Float[np.ndarray, " n"]
    position: Float[np.ndarray, "n 3"]
    velocity: Float[np.ndarray, "n 3"]
    acceleration: Float[np.ndarray, "n 3"]
    yaw: Float[np.ndarray, " n"]
    yaw_rate: Float[np.ndarray, " n"]

    def as_csv(self) -> str:
        """The table as CSV."""
        columns = [
            self.t,
            *(self.position * _FRD).T,
            *(self.velocity * _FRD).T,
            *(self.acceleration * _FRD).T,
            -self.yaw,
            -self.yaw_rate,
        ]
        text = io.StringIO()
        np.savetxt(
            text,
            np.stack(columns, axis=1) + 0.0,
            fmt="%.4f",
            delimiter=",",
            header=",".join(COLUMNS),
            comments="",
        )
        return text.getvalue().replace("-0.0000", "0.0000")


@dataclasses.dataclass(frozen=True)
class Logging:
    """Settings for logs that identification can use. parameters: name and value. reasons: of each. notes: further advice."""

    parameters: tuple[tuple[str, int], ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()


PX4_PROFILE: Final = {"default": 0, "system identification": 3, "high rate": 4}
"""Bits of SDLOG_PROFILE (PX4, src/modules/logger/logged_topics.h)."""

ARDUPILOT_BITS: Final = {
    "fast attitude": 0, "attitude": 1, "GPS": 2, "performance": 3, "control": 4, "navigation": 5, "RC in": 6, "IMU": 7,
    "mission": 8, "battery": 9, "RC out": 10, "optical flow": 11, "compass": 13, "camera": 15, "motors": 17, "fast IMU": 18,
}  # fmt: skip
"""Bits of LOG_BITMASK of ArduPilot's copter (ArduCopter/defines.h)."""

LOGGING: Final = {
    "px4": Logging(
        (("SDLOG_PROFILE", sum(1 << bit for bit in PX4_PROFILE.values())), ("SDLOG_MODE", 0)),
        (
            "default topics (bit 0), system identification (bit 3) and high rate (bit 4): motors, rates and accelerations",
            "a log from arming to disarming",
        ),
        ("restart the autopilot after changing SDLOG_PROFILE, and use a fast SD card",),
    ),
    "ardupilot": Logging(
        (
            ("LOG_BITMASK", sum(1 << bit for bit in ARDUPILOT_BITS.values())),
            ("LOG_FILE_RATEMAX", 0),
            ("LOG_DISARMED", 0),
            ("SCR_ENABLE", 1),
        ),
        (
            "default messages, with fast attitude (bit 0) and fast IMU (bit 18): RATE, ATT and IMU at loop rate",
            "no limit on the logging rate",
            "a log from arming to disarming",
            "enables scripts, which play the set points",
        ),
        (
            "rotor commands (RCOU) are logged at 10 Hz, too slowly to identify motor lag and inertia: connect ESC telemetry "
            "(bidirectional DShot or CAN), which logs rotor speeds",
            "the position controller smooths fast set points (PSC_JERK_XY, PSC_JERK_NE): for faster excitation, also fly "
            "ArduPilot's System ID mode (SID_AXIS 7 to 9 for rates, 13 for thrust)",
        ),
    ),
    "crazyflie": Logging(
        (),
        (),
        (
            "log motor.m1 to motor.m4, gyro.x, y, z, acc.x, y, z and the state estimate at 250 Hz or more: list them in "
            "config.txt on the card of the micro-SD deck",
        ),
    ),
}
"""Logging settings by autopilot."""


def script(name: str) -> str:
    """The text of a script in `scripts/`."""
    return (resources.files("rotorid.export.autopilot") / "scripts" / name).read_text("utf-8")


def player_files(points: SetPoints, autopilot: str) -> dict[str, bytes]:
    """The table, the script that plays it, and the logging parameters, by file name.

    Args:
        points: the set points.
        autopilot: a key of `LOGGING`.
    """
    files = {CSV: points.as_csv().encode()}
    parameters = LOGGING[autopilot].parameters
    if autopilot == "px4":
        files["px4_offboard.py"] = script("px4_offboard.py.txt").encode()
        files["px4_logging.params"] = _qgroundcontrol(parameters).encode()
    if autopilot == "ardupilot":
        files["ardupilot_setpoints.lua"] = script("ardupilot_setpoints.lua").encode()
        files["ardupilot_logging.param"] = "".join(f"{name},{value}\n" for name, value in parameters).encode()
    return files


def _qgroundcontrol(parameters: tuple[tuple[str, int], ...]) -> str:
    """A parameter file as QGroundControl loads it: vehicle, component, name, value and type (6: 32-bit integer), by tabs."""
    lines = ["# Vehicle-Id Component-Id Name Value Type"]
    return "\n".join([*lines, *(f"1\t1\t{name}\t{value}\t6" for name, value in parameters)]) + "\n"
