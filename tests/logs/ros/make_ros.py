"""ROS bags of each kind written with rosbags, and nothing of the readers: a vehicle that hovers and moves slowly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

START = 1_700_000_000  # s since 1970
STORE = {1: get_typestore(Stores.ROS1_NOETIC), 2: get_typestore(Stores.ROS2_HUMBLE)}

PX4_DEFINITIONS = {
    "VehicleLocalPosition": """
        uint64 timestamp
        uint64 timestamp_sample
        bool xy_valid
        bool z_valid
        bool v_xy_valid
        bool v_z_valid
        float32 x
        float32 y
        float32 z
        float32 vx
        float32 vy
        float32 vz""",
    "VehicleAttitude": "uint64 timestamp\nuint64 timestamp_sample\nfloat32[4] q",
    "VehicleOdometry": """
        uint64 timestamp
        uint64 timestamp_sample
        uint8 pose_frame
        float32[3] position
        float32[4] q
        uint8 velocity_frame
        float32[3] velocity
        float32[3] angular_velocity""",
    "SensorCombined": """
        uint64 timestamp
        float32[3] gyro_rad
        int32 accelerometer_timestamp_relative
        float32[3] accelerometer_m_s2""",
    "ActuatorMotors": "uint64 timestamp\nuint64 timestamp_sample\nuint16 reversible_flags\nfloat32[12] control",
    "EscReport": "uint64 timestamp\nint32 esc_rpm\nuint8 actuator_function",
    "EscStatus": "uint64 timestamp\nuint8 esc_count\npx4_msgs/EscReport[8] esc",
}
"""Of the fields of PX4's messages those that are read."""

_types: dict = {}
for _name, _text in PX4_DEFINITIONS.items():
    _types |= get_types_from_msg(
        "\n".join(line.strip() for line in _text.splitlines()), f"px4_msgs/msg/{_name}"
    )
STORE[2].register(_types)

Row = tuple[int, Any]
"""When the bag received a message, ns since 1970, and the message."""


def write_bag(path: Path, kind: str, topics: Mapping[str, tuple[str, list[Row]]]) -> Path:
    """A bag; kind: "ros1-bag" (a file), "ros2-db3" or "ros2-mcap" (folders). topics: name -> type, rows."""
    if kind == "ros1-bag":
        writer: Any = Writer1(path)
        store, serialize = STORE[1], STORE[1].serialize_ros1
    else:
        plugin = StoragePlugin.MCAP if kind == "ros2-mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
        store, serialize = STORE[2], STORE[2].serialize_cdr
    with writer:
        connections = {
            name: writer.add_connection(name, kind_, typestore=store) for name, (kind_, _) in topics.items()
        }
        rows = [(t, name, m) for name, (_, messages) in topics.items() for t, m in messages]
        for t, name, message in sorted(rows, key=lambda r: r[:2]):
            writer.write(connections[name], t, serialize(message, topics[name][0]))
    return path


def make(ros: int) -> Callable[..., Any]:
    """A maker of messages: make(2)("geometry_msgs/msg/Vector3", x=..., y=..., z=...)."""
    return lambda kind, **fields: STORE[ros].types[kind](**fields)


def header(ros: int, t_ns: int, frame: str) -> Any:
    new = make(ros)
    stamp = new("builtin_interfaces/msg/Time", sec=t_ns // 10**9, nanosec=t_ns % 10**9)
    more = {"seq": 0} if ros == 1 else {}
    return new("std_msgs/msg/Header", stamp=stamp, frame_id=frame, **more)


def odometry(
    ros: int, t_ns: int, position, q, v_body, rate, frame: str = "odom", child: str = "base_link"
) -> Any:
    """position: m. q: w x y z. v_body: m/s. rate: rad/s."""
    new = make(ros)
    vector, point = "geometry_msgs/msg/Vector3", "geometry_msgs/msg/Point"
    w, x, y, z = q
    pose = new(
        "geometry_msgs/msg/Pose",
        position=new(point, **dict(zip("xyz", position, strict=True))),
        orientation=new("geometry_msgs/msg/Quaternion", w=w, x=x, y=y, z=z),
    )
    twist = new(
        "geometry_msgs/msg/Twist",
        linear=new(vector, **dict(zip("xyz", v_body, strict=True))),
        angular=new(vector, **dict(zip("xyz", rate, strict=True))),
    )
    zeros = np.zeros(36)
    return new(
        "nav_msgs/msg/Odometry",
        header=header(ros, t_ns, frame),
        child_frame_id=child,
        pose=new("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=zeros),
        twist=new("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=zeros),
    )


def imu(ros: int, t_ns: int, rate, force, frame: str = "base_link") -> Any:
    new = make(ros)
    vector, none = "geometry_msgs/msg/Vector3", np.array([-1.0] + [0.0] * 8)
    return new(
        "sensor_msgs/msg/Imu",
        header=header(ros, t_ns, frame),
        orientation=new("geometry_msgs/msg/Quaternion", w=0.0, x=0.0, y=0.0, z=0.0),
        orientation_covariance=none,
        angular_velocity=new(vector, **dict(zip("xyz", rate, strict=True))),
        angular_velocity_covariance=np.zeros(9),
        linear_acceleration=new(vector, **dict(zip("xyz", force, strict=True))),
        linear_acceleration_covariance=np.zeros(9),
    )


def pose_stamped(ros: int, t_ns: int, position, q, frame: str = "map") -> Any:
    new = make(ros)
    w, x, y, z = q
    pose = new(
        "geometry_msgs/msg/Pose",
        position=new("geometry_msgs/msg/Point", **dict(zip("xyz", position, strict=True))),
        orientation=new("geometry_msgs/msg/Quaternion", w=w, x=x, y=y, z=z),
    )
    return new("geometry_msgs/msg/PoseStamped", header=header(ros, t_ns, frame), pose=pose)


def hover_topics(ros: int, n: int = 50) -> dict[str, tuple[str, list[Row]]]:
    """Nose east and level, flying east at 1 m/s from (0, 2, 3): odometry and an IMU at 100 Hz, received 3 ms late."""
    level = (1.0, 0.0, 0.0, 0.0)
    stamps = [START * 10**9 + 10_000_000 * i for i in range(n)]
    return {
        "/odom": (
            "nav_msgs/msg/Odometry",
            [
                (
                    t + 3_000_000,
                    odometry(ros, t, (0.01 * i, 2.0, 3.0), level, (1.0, 0.0, 0.0), (0.1, 0.2, 0.3)),
                )
                for i, t in enumerate(stamps)
            ],
        ),
        "/imu": (
            "sensor_msgs/msg/Imu",
            [(t + 3_000_000, imu(ros, t, (0.1, 0.2, 0.3), (0.5, 0.25, 9.81))) for t in stamps],
        ),
    }


def px4_topics(n: int = 50, boot: int | None = 7_000_000) -> dict[str, tuple[str, list[Row]]]:
    """The same vehicle, nose north, by PX4's messages. boot: us of its clock at the start; None: since 1970."""
    new, f4 = make(2), lambda *v: np.array(v, np.float32)
    zero = START * 1_000_000 if boot is None else boot
    stamps = [(START * 10**9 + 10_000_000 * i + 2_000_000, zero + 10_000 * i) for i in range(n)]
    nan = [np.nan] * 8
    esc = [
        new(
            "px4_msgs/msg/EscReport",
            timestamp=0,
            esc_rpm=100 * (k + 1),
            actuator_function=101 + k if k < 4 else 0,
        )
        for k in range(8)
    ]
    valid = dict.fromkeys(("xy_valid", "z_valid", "v_xy_valid", "v_z_valid"), True)
    fields: dict[str, Callable[[int, int], dict[str, Any]]] = {
        "VehicleLocalPosition": lambda i, t: (
            {"timestamp_sample": t, "x": 0.01 * i, "y": 2.0, "z": -3.0, "vx": 1.0, "vy": 0.0, "vz": 0.0}
            | valid
        ),
        "VehicleAttitude": lambda i, t: {"timestamp_sample": t, "q": f4(1, 0, 0, 0)},
        "SensorCombined": lambda i, t: {
            "gyro_rad": f4(0.1, 0.2, 0.3),
            "accelerometer_timestamp_relative": 0,
            "accelerometer_m_s2": f4(0.5, -0.25, -9.81),
        },
        "ActuatorMotors": lambda i, t: {
            "timestamp_sample": t,
            "reversible_flags": 0,
            "control": f4(0.1, 0.2, 0.3, 0.4, *nan),
        },
        "EscStatus": lambda i, t: {"esc_count": 4, "esc": esc},
    }
    return {
        f"/fmu/out/{name.lower()}": (
            f"px4_msgs/msg/{name}",
            [(r, new(f"px4_msgs/msg/{name}", timestamp=t, **of(i, t))) for i, (r, t) in enumerate(stamps)],
        )
        for name, of in fields.items()
    }
