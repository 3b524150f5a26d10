"""Messages of ROS 2 to measurements: world ENU, body FLU, SI units.

Standard messages and those of MAVROS are decoded as in a bag (`logs.ros.reader`), with frames by the names of their frame ids.
Those of PX4 (px4_msgs: NED, FRD) are decoded here, field by field. Rotor commands of MAVROS are pulse widths:

    c = clip((PWM - 1000) / 1000, 0, 1)

Time stamps are those of the header, or PX4's stamps in us; 0 counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu
from rotorid.logs.ros.px4_topics import odometry_signals
from rotorid.logs.ros.reader import standard_signals

Values = Mapping[str, Float64[np.ndarray, " k"]]
"""By signal, one row each."""

_PWM: Final = (1000.0, 1000.0)  # us: lowest, and range


def _vector(values: Any) -> Float64[np.ndarray, ...]:
    return np.asarray(values, np.float64)


def _local_position(m: Any, rotors: int) -> dict[str, np.ndarray]:
    found = {}
    if m.xy_valid and m.z_valid:
        found["position"] = ned_to_enu(_vector([[m.x, m.y, m.z]]))[0]
    if m.v_xy_valid and m.v_z_valid:
        found["velocity"] = ned_to_enu(_vector([[m.vx, m.vy, m.vz]]))[0]
    return found


def _rotors(values: Any, rotors: int) -> dict[str, np.ndarray]:
    """The first commands, one a rotor; none where one of them is missing (NaN: the motor is off)."""
    command = _vector(values)[:rotors]
    return {"rotor_command": np.clip(command, 0.0, 1.0)} if len(command) == rotors else {}


_DECODERS: Final[dict[str, Callable[[Any, int], dict[str, np.ndarray]]]] = {
    "px4_msgs/msg/VehicleLocalPosition": _local_position,
    "px4_msgs/msg/VehicleAttitude": lambda m, _: {"attitude": attitude_to_enu_flu(_vector([m.q]))[0]},
    "px4_msgs/msg/VehicleAngularVelocity": lambda m, _: {"body_rate": frd_to_flu(_vector([m.xyz]))[0]},
    "px4_msgs/msg/VehicleAcceleration": lambda m, _: {"specific_force": frd_to_flu(_vector([m.xyz]))[0]},
    "px4_msgs/msg/SensorCombined": lambda m, _: {
        "body_rate": frd_to_flu(_vector([m.gyro_rad]))[0],
        "specific_force": frd_to_flu(_vector([m.accelerometer_m_s2]))[0],
    },
    "px4_msgs/msg/ActuatorMotors": lambda m, rotors: _rotors(m.control, rotors),
    "px4_msgs/msg/BatteryStatus": lambda m, _: {"battery_voltage": _vector([m.voltage_v])},
    "px4_msgs/msg/VehicleLandDetected": lambda m, _: {"airborne": _vector([0.0 if m.landed else 1.0])},
    "px4_msgs/msg/VehicleOdometry": lambda m, _: odometry_signals(m),
    "mavros_msgs/msg/RCOut": lambda m, rotors: _rotors((_vector(m.channels) - _PWM[0]) / _PWM[1], rotors),
}

_ACTUATORS: Final = "actuator_msgs/msg/Actuators"


def is_known(kind: str) -> bool:
    """Whether messages of a type ("px4_msgs/msg/VehicleAttitude") contain measurements."""
    return kind in _DECODERS or kind == _ACTUATORS or bool(standard_signals(kind, None))


def measurements(kind: str, message: Any, rotors: int) -> Values:
    """The valid measurements in a message.

    Args:
        kind: its type.
        message: with the fields of that type.
        rotors: number of rotors of the airframe.
    """
    if kind in _DECODERS:
        found = _DECODERS[kind](message, rotors)
    else:
        found = {name: row for name, row in standard_signals(kind, message).items() if name != "rotor_speed"}
        if kind == _ACTUATORS:
            found |= _rotors(message.normalized, rotors)
    return {name: row for name, row in found.items() if np.isfinite(row).all()}


def stamp_of(message: Any) -> float:
    """Time stamp of a message, s by the clock of its sender; 0 without one."""
    header = getattr(message, "header", None)
    if header is not None:
        return float(header.stamp.sec) + 1e-9 * float(header.stamp.nanosec)
    for name in ("timestamp_sample", "timestamp"):
        stamp = int(getattr(message, name, 0))
        if stamp > 0:
            return 1e-6 * stamp
    return 0.0
