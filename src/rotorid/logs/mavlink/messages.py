"""The MAVLink messages that are read: number, extra byte of the checksum, and layout on the wire.

Fields stand in the order of the wire, largest first, extensions last. https://mavlink.io/en/messages/common.html
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

import numpy as np


@dataclasses.dataclass(frozen=True)
class Message:
    """name, number: as in the protocol. crc_extra: the byte that its checksum ends with. dtype: its fields."""

    name: str
    number: int
    crc_extra: int
    dtype: np.dtype


_IMU: Final = "xacc:i2 yacc:i2 zacc:i2 xgyro:i2 ygyro:i2 zgyro:i2 xmag:i2 ymag:i2 zmag:i2"
_ESC_TELEMETRY: Final = "voltage:4u2 current:4u2 totalcurrent:4u2 rpm:4u2 count:4u2 temperature:4u1"

_LAYOUTS: Final = {
    "HEARTBEAT": (0, 50, "custom_mode:u4 type:u1 autopilot:u1 base_mode:u1 system_status:u1 mavlink_version:u1"),
    "SYS_STATUS": (1, 124, "sensors:3u4 load:u2 voltage_battery:u2 current_battery:i2 errors:6u2 battery_remaining:i1"),
    "SYSTEM_TIME": (2, 137, "time_unix_usec:u8 time_boot_ms:u4"),
    "PARAM_VALUE": (22, 220, "param_value:f4 param_count:u2 param_index:u2 param_id:S16 param_type:u1"),
    "SCALED_IMU": (26, 170, f"time_boot_ms:u4 {_IMU} temperature:i2"),
    "RAW_IMU": (27, 144, f"time_usec:u8 {_IMU} id:u1 temperature:i2"),
    "ATTITUDE": (30, 39, "time_boot_ms:u4 roll:f4 pitch:f4 yaw:f4 rollspeed:f4 pitchspeed:f4 yawspeed:f4"),
    "ATTITUDE_QUATERNION": (
        31, 246, "time_boot_ms:u4 q1:f4 q2:f4 q3:f4 q4:f4 rollspeed:f4 pitchspeed:f4 yawspeed:f4 repr_offset_q:4f4",
    ),
    "LOCAL_POSITION_NED": (32, 185, "time_boot_ms:u4 x:f4 y:f4 z:f4 vx:f4 vy:f4 vz:f4"),
    "GLOBAL_POSITION_INT": (
        33, 104, "time_boot_ms:u4 lat:i4 lon:i4 alt:i4 relative_alt:i4 vx:i2 vy:i2 vz:i2 hdg:u2",
    ),
    "SERVO_OUTPUT_RAW": (36, 222, "time_usec:u4 servo1_to_8:8u2 port:u1 servo9_to_16:8u2"),
    "VFR_HUD": (74, 20, "airspeed:f4 groundspeed:f4 alt:f4 climb:f4 heading:i2 throttle:u2"),
    "ATTITUDE_TARGET": (
        83, 22, "time_boot_ms:u4 q:4f4 body_roll_rate:f4 body_pitch_rate:f4 body_yaw_rate:f4 thrust:f4 type_mask:u1",
    ),
    "HIL_ACTUATOR_CONTROLS": (93, 47, "time_usec:u8 flags:u8 controls:16f4 mode:u1"),
    "HIGHRES_IMU": (
        105, 93, "time_usec:u8 xacc:f4 yacc:f4 zacc:f4 xgyro:f4 ygyro:f4 zgyro:f4 xmag:f4 ymag:f4 zmag:f4 abs_pressure:f4 "
        "diff_pressure:f4 pressure_alt:f4 temperature:f4 fields_updated:u2 id:u1",
    ),
    "SCALED_IMU2": (116, 76, f"time_boot_ms:u4 {_IMU} temperature:i2"),
    "SCALED_IMU3": (129, 46, f"time_boot_ms:u4 {_IMU} temperature:i2"),
    "BATTERY_STATUS": (
        147, 154, "current_consumed:i4 energy_consumed:i4 temperature:i2 voltages:10u2 current_battery:i2 id:u1 "
        "battery_function:u1 type:u1 battery_remaining:i1 time_remaining:i4 charge_state:u1 voltages_ext:4u2",
    ),
    "AUTOPILOT_VERSION": (
        148, 178, "capabilities:u8 uid:u8 flight_sw_version:u4 middleware_sw_version:u4 os_sw_version:u4 board_version:u4 "
        "vendor_id:u2 product_id:u2 custom_versions:24u1 uid2:18u1",
    ),
    "EKF_STATUS_REPORT": (
        193, 71, "velocity_variance:f4 pos_horiz_variance:f4 pos_vert_variance:f4 compass_variance:f4 "
        "terrain_alt_variance:f4 flags:u2 airspeed_variance:f4",
    ),
    "ESTIMATOR_STATUS": (
        230, 163, "time_usec:u8 vel_ratio:f4 pos_horiz_ratio:f4 pos_vert_ratio:f4 mag_ratio:f4 hagl_ratio:f4 tas_ratio:f4 "
        "pos_horiz_accuracy:f4 pos_vert_accuracy:f4 flags:u2",
    ),
    "EXTENDED_SYS_STATE": (245, 130, "vtol_state:u1 landed_state:u1"),
    "ESC_INFO": (
        290, 251, "time_usec:u8 error_count:4u4 counter:u2 failure_flags:4u2 temperature:4i2 index:u1 count:u1 "
        "connection_type:u1 info:u1",
    ),
    "ESC_STATUS": (291, 10, "time_usec:u8 rpm:4i4 voltage:4f4 current:4f4 index:u1"),
    "ODOMETRY": (
        331, 91, "time_usec:u8 x:f4 y:f4 z:f4 q:4f4 vx:f4 vy:f4 vz:f4 rollspeed:f4 pitchspeed:f4 yawspeed:f4 "
        "pose_covariance:21f4 velocity_covariance:21f4 frame_id:u1 child_frame_id:u1 reset_counter:u1 "
        "estimator_type:u1 quality:i1",
    ),
    "ACTUATOR_OUTPUT_STATUS": (375, 251, "time_usec:u8 active:u4 actuator:32f4"),
    "ESC_TELEMETRY_1_TO_4": (11030, 144, _ESC_TELEMETRY),
    "ESC_TELEMETRY_5_TO_8": (11031, 133, _ESC_TELEMETRY),
}  # fmt: skip
"""Name -> (number, crc_extra, fields). Where a layout ends early, what follows is not read."""

_FIELD: Final = re.compile(r"(\w+):(\d*)([uifS])(\d+)")


def _dtype(layout: str) -> np.dtype:
    fields: list[tuple] = []
    for text in layout.split():
        match = _FIELD.fullmatch(text)
        assert match is not None, text
        name, count, kind, size = match.groups()
        scalar = f"S{size}" if kind == "S" else f"<{kind}{size}"
        fields.append((name, scalar, (int(count),)) if count else (name, scalar))
    return np.dtype(fields)


MESSAGES: Final[Mapping[str, Message]] = {
    name: Message(name, number, crc_extra, _dtype(layout))
    for name, (number, crc_extra, layout) in _LAYOUTS.items()
}
"""By name."""

BY_NUMBER: Final[Mapping[int, Message]] = {m.number: m for m in MESSAGES.values()}
