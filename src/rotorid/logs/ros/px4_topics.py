"""Topics of PX4 in ROS bags (px4_msgs), as rows of a ULog, for the same reader.

PX4's stamps are us, since its boot or, where its clock is synchronised, since 1970. Where bag and stamps are more than
a day apart the stamps are moved onto the clock of the bag by the shortest delay between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rotorid.geometry.rotation_rows import multiply
from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu
from rotorid.logs.px4.reader import add_signals
from rotorid.logs.px4.ulog import ULogContents
from rotorid.logs.reader_base import Collector
from rotorid.logs.ros.bag import Messages
from rotorid.logs.ros.topics import Topics

_TOPICS: Final = {
    "vehicle_local_position": "VehicleLocalPosition",
    "vehicle_attitude": "VehicleAttitude",
    "vehicle_angular_velocity": "VehicleAngularVelocity",
    "vehicle_acceleration": "VehicleAcceleration",
    "sensor_combined": "SensorCombined",
    "actuator_motors": "ActuatorMotors",
    "esc_status": "EscStatus",
    "vehicle_thrust_setpoint": "VehicleThrustSetpoint",
    "vehicle_rates_setpoint": "VehicleRatesSetpoint",
    "battery_status": "BatteryStatus",
    "vehicle_land_detected": "VehicleLandDetected",
}
_ODOMETRY: Final = "px4_msgs/msg/VehicleOdometry"
_SIGNALS: Final = {
    "vehicle_local_position": ("position", "velocity"),
    "vehicle_attitude": ("attitude",),
    "vehicle_angular_velocity": ("body_rate",),
    "vehicle_acceleration": ("specific_force",),
    "sensor_combined": ("body_rate", "specific_force"),
    "actuator_motors": ("rotor_command",),
    "esc_status": ("rotor_speed",),
    "vehicle_thrust_setpoint": ("collective_command",),
    "vehicle_rates_setpoint": ("body_rate_setpoint",),
    "battery_status": ("battery_voltage", "battery_current", "battery_remaining"),
    "vehicle_land_detected": ("airborne",),
}
_DAY_US: Final = 86_400_000_000

PX4_TYPES: Final = frozenset(f"px4_msgs/msg/{name}" for name in _TOPICS.values()) | {_ODOMETRY}


def add_px4_topics(collector: Collector, topics: Topics) -> str:
    """Add the signals of PX4's topics, except those for which the user names other topics. Returns the vehicle's
    description."""
    rows: dict[tuple[str, int], np.ndarray] = {}
    for name, kind in _TOPICS.items():
        for signal in _SIGNALS[name]:
            topic = topics.topic(f"px4_msgs/msg/{kind}", signal)
            if topic is not None:
                rows[name, 0] = _records(collector, topics.messages(topic))
    skipped = frozenset(signal for signal in topics.mapping if _is_mapped_elsewhere(topics, signal))
    add_signals(collector, ULogContents(0, rows, {}, {}, (), (), 0, False), skipped)
    _add_odometry(collector, topics)
    return "PX4" if rows else ""


def _is_mapped_elsewhere(topics: Topics, signal: str) -> bool:
    """Whether the user names another topic for the signal."""
    return signal in topics.mapping and not any(
        topics.topic(f"px4_msgs/msg/{kind}", signal)
        for name, kind in _TOPICS.items()
        if signal in _SIGNALS[name]
    )


def _records(collector: Collector, messages: Messages) -> np.ndarray:
    """Messages as records with the fields of the uORB topic, stamps on the clock of the bag."""
    rows = _as_records(messages.content)
    if not messages.whole:
        collector.note(
            f"{messages.topic}: the bag is cut or damaged within it; only the complete part is used"
        )
    return _on_the_clock_of_the_bag(collector, rows, messages)


def _as_records(messages: Sequence[Any]) -> np.ndarray:
    """Any messages of one type whose fields are numbers, arrays of fixed size, and messages of such."""
    columns: dict[str, np.ndarray] = {}
    for name in (n for n in vars(messages[0]) if not n.startswith("_")):
        first = getattr(messages[0], name)
        if isinstance(first, list | tuple) and len(first) and hasattr(first[0], "__dict__"):
            parts = _as_records([part for m in messages for part in getattr(m, name)])
            columns[name] = parts.reshape(len(messages), -1)
        elif isinstance(first, int | float | np.generic | np.ndarray | bool):
            columns[name] = np.array([getattr(m, name) for m in messages])
    rows = np.empty(len(messages), [(n, c.dtype, c.shape[1:]) for n, c in columns.items()])
    for name, column in columns.items():
        rows[name] = column
    return rows


def _on_the_clock_of_the_bag(collector: Collector, rows: np.ndarray, messages: Messages) -> np.ndarray:
    received = np.array(messages.times, np.int64) // 1000
    delay = received - rows["timestamp"].astype(np.int64)
    if abs(int(np.median(delay))) > _DAY_US:
        shift = int(delay.min())
        for name in ("timestamp", "timestamp_sample"):
            if name in (rows.dtype.names or ()):
                stamps = rows[name].astype(np.int64)
                rows[name] = np.where(stamps > 0, stamps + shift, 0)
        collector.note("PX4's stamps are since its boot, they were moved onto the clock of the bag")
    return rows


def _add_odometry(collector: Collector, topics: Topics) -> None:
    """VehicleOdometry, for signals that are still missing."""
    for signal in ("position", "velocity", "attitude", "body_rate"):
        if signal in collector and topics.mapping.get(signal) is None:
            continue
        topic = topics.topic(_ODOMETRY, signal)
        if topic is None or (signal in topics.mapping and topics.mapping[signal] != topic):
            continue
        rows = _records(collector, topics.messages(topic))
        names = rows.dtype.names or ()
        values = _odometry(rows, signal) if "pose_frame" in names else None
        if values is None:
            collector.note(f"{topic}: not read, it is of a PX4 before 1.14")
            return
        stamp = "timestamp_sample" if (rows["timestamp_sample"] > 0).all() else "timestamp"
        times = (rows[stamp].astype(np.int64) - round(collector.clock * 1e6)) / 1e6
        collector.add(signal, times, values, f"{topic} of PX4, NED and FRD to ENU and FLU")


def odometry_signals(message: Any) -> dict[str, np.ndarray]:
    """The signals of one VehicleOdometry, a row each, NaN where not valid; none of one of a PX4 before 1.14."""
    rows = _as_records([message])
    if "pose_frame" not in (rows.dtype.names or ()):
        return {}
    return {
        signal: _odometry(rows, signal)[0] for signal in ("position", "velocity", "attitude", "body_rate")
    }


def _odometry(rows: np.ndarray, signal: str) -> np.ndarray:
    """NaN where the frame is not NED (1), or for velocity the body's FRD (3)."""
    ned = (rows["pose_frame"] == 1)[:, None]
    q = rows["q"].astype(np.float64)
    if signal == "position":
        return np.where(ned, ned_to_enu(rows["position"].astype(np.float64)), np.nan)
    if signal == "attitude":
        return np.where(ned, attitude_to_enu_flu(q), np.nan)
    if signal == "body_rate":
        return frd_to_flu(rows["angular_velocity"].astype(np.float64))
    v = rows["velocity"].astype(np.float64)
    pure = np.concatenate([np.zeros((len(v), 1)), v], axis=1)
    rotated = multiply(multiply(q, pure), q * np.array([1.0, -1.0, -1.0, -1.0]))[:, 1:]
    frame = rows["velocity_frame"][:, None]
    return np.where(frame == 1, ned_to_enu(v), np.where((frame == 3) & ned, ned_to_enu(rotated), np.nan))
