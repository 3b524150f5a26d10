"""ROS bags to flights: which message types give which signals.

Times are the stamps of the headers (or PX4's stamps), in s; without a stamp, the time at which the bag received the
message. World ENU and body FLU as REP 103 has them, unless a frame's name ends in `_ned` or `_frd` (REP 147, MAVROS).
Topics are found by type; where several have one, a mapping chooses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from rotorid.errors import LogFormatError, SignalError
from rotorid.geometry.rotation_rows import inverse, multiply
from rotorid.logs.flight import KINDS, Flight
from rotorid.logs.frames import body_frd_to_flu, frd_to_flu, ned_to_enu, world_ned_to_enu
from rotorid.logs.options import Options
from rotorid.logs.reader_base import Collector, LogFile
from rotorid.logs.ros.bag import Bag, Messages, format_of, open_bag
from rotorid.logs.ros.log_blocks import add_log_blocks, is_log_block, vehicle_of
from rotorid.logs.ros.px4_topics import PX4_TYPES, add_px4_topics
from rotorid.logs.ros.topics import Topics

_LATEST: Final = (1 << 62) - 1  # ns
_RPM: Final = 2.0 * np.pi / 60.0


@dataclasses.dataclass(frozen=True)
class _Source:
    """A message type that gives a signal: `values` of its messages, one row each, NaN where none is valid."""

    type: str
    values: Callable[[Sequence[Any]], np.ndarray]
    words: str


def read_ros(file: LogFile) -> Flight:
    """The flight in a bag. Raises LogError or LogFormatError for one that cannot be read, SignalError for a wrong mapping."""
    path, format = file.path, format_of(file)
    options = file.options("ros", "topics", "log_blocks")
    named = {k: options.text("topics", k) for k in KINDS} if options is not None else {}
    mapping = {k: v for k, v in named.items() if v is not None}
    folder = options.text("ros", "definitions") if options is not None else None
    definitions = None if folder is None or options is None else options.path.parent / folder
    robot = options.text("ros", "robot") if options is not None else None
    with open_bag(file, format, definitions) as bag:
        return _flight(bag if robot is None else _of_robot(bag, robot), path, format, mapping, options)


def _of_robot(bag: Bag, robot: str) -> Bag:
    """The bag without the topics of other vehicles with log blocks. Raises SignalError where it has no such vehicle."""
    vehicles = {vehicle_of(topic) for topic, kind in bag.topics.items() if is_log_block(kind)} - {""}
    if robot not in vehicles:
        listed = ", ".join(sorted(vehicles)) or "none"
        raise SignalError(
            f"{bag.path}: no vehicle {robot!r} with log blocks in this bag, it has {listed}; correct [ros] robot"
        )
    others = tuple(f"{vehicle}/" for vehicle in vehicles - {robot})
    topics = {topic: kind for topic, kind in bag.topics.items() if not topic.strip("/").startswith(others)}
    return dataclasses.replace(bag, topics=topics)


def _flight(bag: Bag, path: Path, format: str, mapping: dict[str, str], options: Options | None) -> Flight:
    topics = Topics(bag, path, mapping)
    collector = Collector(path, format, clock=topics.clock())
    vehicle = add_px4_topics(collector, topics)
    for signal, sources in _SOURCES.items():
        if signal in collector and signal not in mapping:
            continue
        for source in sources:
            topic = topics.topic(source.type, signal)
            if topic is None or (signal in mapping and mapping[signal] != topic):
                continue
            messages = topics.messages(topic)
            times = (_stamps(collector, messages) - round(collector.clock * 1e9)) / 1e9
            collector.add(signal, times, source.values(messages.content), f"{topic} {source.words}")
            if signal in collector:
                break
    vehicle = add_log_blocks(collector, topics, options) or vehicle
    for signal in mapping:
        if signal not in collector:
            kind = bag.topics[mapping[signal]]
            raise SignalError(f"{path}: {mapping[signal]} ({kind}) does not give {signal}")
    if bag.unknown:
        listed = ", ".join(f"{t} ({k})" for t, k in list(bag.unknown.items())[:3])
        collector.note(
            f"{len(bag.unknown)} topics not read, the bag does not define their types: {listed}; give the .msg files with a "
            'mapping: [ros] definitions = "px4_msgs/msg"'
        )
    if not collector.signals:
        topic_list = ", ".join(f"{t} ({k.replace('/msg/', '/')})" for t, k in bag.topics.items())
        reason = "; ".join(collector.notes)
        raise LogFormatError(
            f"{path}: a bag with nothing that rotorid reads; it has {topic_list[:160] or 'no messages'}"
            f"{f' ({reason})' if reason else ''}"
        )
    return collector.flight(vehicle=vehicle)


def _stamps(collector: Collector, messages: Messages) -> Int64[np.ndarray, " n"]:
    """Times of messages in ns: of their headers, or where those are not set of the bag."""
    received = np.array([min(t, _LATEST) for t in messages.times], np.int64)
    if not messages.whole:
        collector.note(
            f"{messages.topic}: the bag is cut or damaged within it; only the complete part is used"
        )
    if not hasattr(messages.content[0], "header"):
        return received
    stamps = [m.header.stamp for m in messages.content]
    header_stamps = np.array([s.sec * 10**9 + s.nanosec for s in stamps], np.int64)
    if (header_stamps > 0).mean() > 0.9:
        return header_stamps
    collector.note(f"{messages.topic}: its stamps are not set, the times of the bag are used")
    return received


def _rotate(q: Float64[np.ndarray, "n 4"], vector: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 3"]:
    """Body vectors in the world frame, by products: `rotation_rows.rotate` differs in the last bit."""
    pure = np.concatenate([np.zeros((len(vector), 1)), vector], axis=1)
    return multiply(multiply(q, pure), inverse(q))[:, 1:]


def _xyz(vectors: Sequence[Any]) -> Float64[np.ndarray, "n 3"]:
    return np.array([(v.x, v.y, v.z) for v in vectors], np.float64).reshape(-1, 3)


def _wxyz(quaternions: Sequence[Any]) -> Float64[np.ndarray, "n 4"]:
    return np.array([(q.w, q.x, q.y, q.z) for q in quaternions], np.float64).reshape(-1, 4)


def _ned(frame: str) -> bool:
    return frame.lower().endswith(("_ned", "/ned")) or frame.lower() == "ned"


def _frd(frame: str) -> bool:
    return frame.lower().endswith(("_frd", "/frd", "_ned")) or frame.lower() == "frd"


def _position(position_of: Callable[[Any], Any]) -> Callable[[Sequence[Any]], np.ndarray]:
    def values(messages: Sequence[Any]) -> np.ndarray:
        position = _xyz([position_of(m) for m in messages])
        return ned_to_enu(position) if _ned(messages[0].header.frame_id) else position

    return values


def _attitude(attitude_of: Callable[[Any], Any]) -> Callable[[Sequence[Any]], np.ndarray]:
    def values(messages: Sequence[Any]) -> np.ndarray:
        return _as_enu_flu(messages[0], _wxyz([attitude_of(m) for m in messages]))

    return values


def _as_enu_flu(message: Any, q: Float64[np.ndarray, "n 4"]) -> Float64[np.ndarray, "n 4"]:
    """Attitudes in our frames, by the names of the frames in a message."""
    q = world_ned_to_enu(q) if _ned(message.header.frame_id) else q
    return body_frd_to_flu(q) if _frd(getattr(message, "child_frame_id", "")) else q


def _odometry_velocity(messages: Sequence[Any]) -> np.ndarray:
    """Stated in the frame of the body, turned into the world."""
    q = _as_enu_flu(messages[0], _wxyz([m.pose.pose.orientation for m in messages]))
    return _rotate(q, _in_body(messages, [m.twist.twist.linear for m in messages]))


def _in_body(messages: Sequence[Any], vectors: Sequence[Any]) -> np.ndarray:
    v = _xyz(vectors)
    return frd_to_flu(v) if _frd(messages[0].child_frame_id) else v


def _imu(name: str) -> Callable[[Sequence[Any]], np.ndarray]:
    def values(messages: Sequence[Any]) -> np.ndarray:
        v = _xyz([getattr(m, name) for m in messages])
        return frd_to_flu(v) if _frd(messages[0].header.frame_id) else v

    return values


def _imu_attitude(messages: Sequence[Any]) -> np.ndarray:
    """NaN where the driver has no attitude: the first entry of the covariance is -1 then."""
    q = _wxyz([m.orientation for m in messages])
    has_attitude = np.array([m.orientation_covariance[0] != -1 for m in messages])
    return np.where(has_attitude[:, None] & (q**2).any(axis=1, keepdims=True), q, np.nan)


def _voltage(field: str) -> Callable[[Sequence[Any]], np.ndarray]:
    def values(messages: Sequence[Any]) -> np.ndarray:
        voltage = np.array([[getattr(m, field)] for m in messages], np.float64)
        return np.where(voltage > 0.0, voltage, np.nan)

    return values


def _battery_current(messages: Sequence[Any]) -> np.ndarray:
    """Negative while the battery supplies it, NaN where unknown."""
    current = -np.array([[m.current] for m in messages], np.float64)
    return np.where(current >= 0.0, current, np.nan)


def _battery_remaining(messages: Sequence[Any]) -> np.ndarray:
    """NaN where unknown."""
    share = np.array([[m.percentage] for m in messages], np.float64)
    return np.where((share >= 0.0) & (share <= 1.0), share, np.nan)


def _speeds(
    speeds_of: Callable[[Any], Sequence[float]], scale: float = 1.0
) -> Callable[[Sequence[Any]], np.ndarray]:
    """Speeds of the rotors in rad/s; messages with an unusual number of rotors are invalid."""

    def values(messages: Sequence[Any]) -> np.ndarray:
        rows = [np.abs(np.asarray(speeds_of(m), np.float64)) * scale for m in messages]
        sizes = np.array([len(r) for r in rows])
        size = int(np.bincount(sizes).argmax())
        return np.array([r if len(r) == size else np.full(size, np.nan) for r in rows]).reshape(
            len(rows), size
        )

    return values


_ODOMETRY: Final = "nav_msgs/msg/Odometry"
_POSE: Final = "geometry_msgs/msg/PoseStamped"
_POSE_COVARIANCE: Final = "geometry_msgs/msg/PoseWithCovarianceStamped"
_TRANSFORM: Final = "geometry_msgs/msg/TransformStamped"
_IMU: Final = "sensor_msgs/msg/Imu"
_SOURCES: Final[dict[str, tuple[_Source, ...]]] = {
    "position": (
        _Source(_ODOMETRY, _position(lambda m: m.pose.pose.position), "pose.pose.position"),
        _Source(_POSE, _position(lambda m: m.pose.position), "pose.position"),
        _Source(_POSE_COVARIANCE, _position(lambda m: m.pose.pose.position), "pose.pose.position"),
        _Source(_TRANSFORM, _position(lambda m: m.transform.translation), "transform.translation"),
    ),
    "velocity": (_Source(_ODOMETRY, _odometry_velocity, "twist.twist.linear, turned by its attitude"),),
    "attitude": (
        _Source(_ODOMETRY, _attitude(lambda m: m.pose.pose.orientation), "pose.pose.orientation"),
        _Source(_POSE, _attitude(lambda m: m.pose.orientation), "pose.orientation"),
        _Source(_POSE_COVARIANCE, _attitude(lambda m: m.pose.pose.orientation), "pose.pose.orientation"),
        _Source(_TRANSFORM, _attitude(lambda m: m.transform.rotation), "transform.rotation"),
        _Source(_IMU, _imu_attitude, "orientation"),
    ),
    "body_rate": (
        _Source(_IMU, _imu("angular_velocity"), "angular_velocity"),
        _Source(
            _ODOMETRY, lambda ms: _in_body(ms, [m.twist.twist.angular for m in ms]), "twist.twist.angular"
        ),
    ),
    "specific_force": (_Source(_IMU, _imu("linear_acceleration"), "linear_acceleration"),),
    "rotor_speed": (
        _Source(
            "mavros_msgs/msg/ESCStatus",
            _speeds(lambda m: [e.rpm for e in m.esc_status], _RPM),
            "rpm, to rad/s",
        ),
        _Source("mav_msgs/msg/Actuators", _speeds(lambda m: m.angular_velocities), "angular_velocities"),
        _Source("actuator_msgs/msg/Actuators", _speeds(lambda m: m.velocity), "velocity"),
    ),
    "battery_voltage": (
        _Source("sensor_msgs/msg/BatteryState", _voltage("voltage"), "voltage"),
        _Source("crazyflie_interfaces/msg/Status", _voltage("battery_voltage"), "battery_voltage"),
    ),
    "battery_current": (_Source("sensor_msgs/msg/BatteryState", _battery_current, "-current"),),
    "battery_remaining": (_Source("sensor_msgs/msg/BatteryState", _battery_remaining, "percentage"),),
}
"""Signal -> the types that give it, the best first; those of PX4 come before them."""

KNOWN_TYPES: Final = frozenset(s.type for sources in _SOURCES.values() for s in sources) | PX4_TYPES


def standard_signals(kind: str, message: Any) -> dict[str, Float64[np.ndarray, " k"]]:
    """The signals of one message of a type that is not PX4's, a row each, NaN where not valid.

    message: None for the names alone, with empty rows.
    """
    return {
        signal: np.zeros(0) if message is None else np.asarray(source.values([message]), np.float64)[0]
        for signal, sources in _SOURCES.items()
        for source in sources
        if source.type == kind
    }
