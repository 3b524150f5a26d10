"""MAVLink messages to pieces of signals, in ENU and FLU; message by message, or a whole recording at once.

Times are in s since the vehicle's boot: the stamp of the message, or of the latest stamped message before it. Both ways give
the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.geometry.gravity import STANDARD_GRAVITY
from rotorid.geometry.rotation_rows import from_euler, multiply
from rotorid.logs.ardupilot.rotors import motor_outputs
from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu
from rotorid.logs.mavlink.vehicle import ARDUPILOT, Vehicle, unwrapped
from rotorid.logs.records import columns

_EARTH_RADIUS: Final = 6_378_137.0
_RPM: Final = 2.0 * np.pi / 60.0
_BODY_FRAMES: Final = (8, 12)  # MAV_FRAME_BODY_NED, MAV_FRAME_BODY_FRD


class Piece(NamedTuple):
    """Some samples of one signal.

    signal: a key of `KINDS`. message: the message that it was in. times: s since the vehicle's boot, as they came.
    values: one row a time, NaN where a sample is not valid. source: in words.
    """

    signal: str
    message: str
    times: Float64[np.ndarray, " n"]
    values: Float64[np.ndarray, "n k"]
    source: str


def times(name: str, rows: np.ndarray, clock: Float64[np.ndarray, " n"], vehicle: Vehicle) -> np.ndarray:
    """Times of messages in s since the vehicle's boot; NaN before the first stamp.

    clock: the latest stamp before each (see `vehicle.Clock`).
    """
    stamps = own_times(name, rows, clock, vehicle)
    return clock if stamps is None else stamps


def own_times(
    name: str, rows: np.ndarray, clock: Float64[np.ndarray, " n"], vehicle: Vehicle
) -> Float64[np.ndarray, " n"] | None:
    """Times in the messages themselves, in s since boot; None of messages without a stamp."""
    names = rows.dtype.names or ()
    if "time_boot_ms" in names:
        return rows["time_boot_ms"].astype(np.float64) / 1e3
    if name == "SERVO_OUTPUT_RAW":
        return unwrapped(rows["time_usec"], clock)
    return vehicle.since_boot(rows["time_usec"]) if "time_usec" in names else None


def convert(name: str, rows: np.ndarray, clock: Float64[np.ndarray, " n"], vehicle: Vehicle) -> list[Piece]:
    """The signals in messages of one name.

    rows: records of `frames.decode` or `frames.records`, one or many. clock: the latest stamp before each, s. vehicle: state
    of the sender; the caller updates it first (`Vehicle.learn`). Numbers that are not finite stay so, without a warning.
    """
    with np.errstate(all="ignore"):
        return _convert(name, rows, clock, vehicle)


def _convert(name: str, rows: np.ndarray, clock: Float64[np.ndarray, " n"], vehicle: Vehicle) -> list[Piece]:
    conversions, pieces = _CONVERSIONS.get(name, ()), []
    stamps_of_rows = times(name, rows, clock, vehicle) if conversions else clock
    for conversion in conversions:
        converted = conversion(rows, stamps_of_rows, vehicle)
        if converted is not None:
            signal, stamps, values, description = converted
            pieces.append(Piece(signal, name, stamps, values, f"{name}.{description}"))
    return pieces


def choose(counts: Mapping[tuple[str, str], float]) -> dict[str, str]:
    """The message for each signal, from the number or rate of valid samples of each (signal, message): the first of
    `SOURCES`, or a later one with over four times as many samples."""
    choice = {}
    for signal, messages in SOURCES.items():
        available = {m: counts[signal, m] for m in messages if counts.get((signal, m), 0) > 0}
        if available:
            choice[signal] = next(m for m in messages if 4 * available.get(m, 0) >= max(available.values()))
    return choice


SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "position": ("LOCAL_POSITION_NED", "ODOMETRY", "GLOBAL_POSITION_INT"),
    "velocity": ("LOCAL_POSITION_NED", "ODOMETRY", "GLOBAL_POSITION_INT"),
    "attitude": ("ATTITUDE_QUATERNION", "ODOMETRY", "ATTITUDE"),
    "body_rate": (
        "HIGHRES_IMU", "ATTITUDE_QUATERNION", "ATTITUDE", "ODOMETRY", "SCALED_IMU", "RAW_IMU", "SCALED_IMU2", "SCALED_IMU3",
    ),
    "specific_force": ("HIGHRES_IMU", "SCALED_IMU", "RAW_IMU", "SCALED_IMU2", "SCALED_IMU3"),
    "collective_command": ("ATTITUDE_TARGET", "VFR_HUD"),
    "rotor_speed": ("ESC_STATUS", "ESC_TELEMETRY_1_TO_4"),
    "rotor_command": ("HIL_ACTUATOR_CONTROLS", "ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW"),
    "battery_voltage": ("BATTERY_STATUS", "SYS_STATUS"),
    "battery_current": ("BATTERY_STATUS", "SYS_STATUS"),
    "battery_remaining": ("BATTERY_STATUS", "SYS_STATUS"),
    "airborne": ("EXTENDED_SYS_STATE",),
}  # fmt: skip
"""Signal -> the messages that have it, the best first."""

_Found = tuple[str, np.ndarray, np.ndarray, str] | None
_Conversion = Callable[[np.ndarray, np.ndarray, Vehicle], _Found]


def _direct(signal: str, values: Callable[[np.ndarray], np.ndarray], description: str) -> _Conversion:
    return lambda rows, stamps, vehicle: (signal, stamps, values(rows), description)


def _world(*names: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: ned_to_enu(columns(rows, *names))


def _body(*names: str, scale: float = 1.0) -> Callable[[np.ndarray], np.ndarray]:
    if scale == 1.0:
        return lambda rows: frd_to_flu(columns(rows, *names))
    return lambda rows: frd_to_flu(columns(rows, *names) * scale)


def _quaternion(rows: np.ndarray) -> np.ndarray:
    return attitude_to_enu_flu(columns(rows, "q1", "q2", "q3", "q4"))


def _euler(rows: np.ndarray) -> np.ndarray:
    return attitude_to_enu_flu(from_euler(columns(rows, "roll", "pitch", "yaw")))


def _where(condition: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(condition[:, None], values, np.nan)


def _odometry_position(rows: np.ndarray) -> np.ndarray:
    return _where(rows["frame_id"] == 1, ned_to_enu(columns(rows, "x", "y", "z")))


def _odometry_attitude(rows: np.ndarray) -> np.ndarray:
    return _where(rows["frame_id"] == 1, attitude_to_enu_flu(rows["q"].astype(np.float64)))


def _odometry_velocity(rows: np.ndarray) -> np.ndarray:
    """In the world, or in the body and turned into the world by the attitude of the same message."""
    v, q = columns(rows, "vx", "vy", "vz"), rows["q"].astype(np.float64)
    pure = np.concatenate([np.zeros((len(v), 1)), v], axis=1)
    rotated = multiply(multiply(q, pure), q * np.array([1.0, -1.0, -1.0, -1.0]))[:, 1:]
    in_body = np.isin(rows["child_frame_id"], _BODY_FRAMES)
    is_known = (rows["frame_id"] == 1) & (in_body | (rows["child_frame_id"] == 1))
    return _where(is_known, ned_to_enu(np.where(in_body[:, None], rotated, v)))


def _global_position(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    place = columns(rows, "lat", "lon") / 1e7
    has_fix = (place != 0.0).any(axis=1)
    if vehicle.origin is None and not has_fix.any():
        return None
    origin = vehicle.origin = place[has_fix][0] if vehicle.origin is None else vehicle.origin
    north, east = np.radians(place - origin).T * _EARTH_RADIUS
    up = rows["relative_alt"] / 1e3
    values = np.stack([east * np.cos(np.radians(origin[0])), north, up], axis=1)
    return "position", stamps, _where(has_fix, values), "lat/lon/relative_alt, from the first fix"


def _global_velocity(rows: np.ndarray) -> np.ndarray:
    """Without a fix, senders fill in zeros."""
    has_fix = (columns(rows, "lat", "lon") != 0.0).any(axis=1)
    return _where(has_fix, ned_to_enu(columns(rows, "vx", "vy", "vz") / 100.0))


def _highres(signal: str, bits: int, names: tuple[str, ...]) -> _Conversion:
    """Rows in which these fields are new, by the bits of `fields_updated`; a sender that never sets a bit is accepted."""
    values, description = _body(*names), "/".join(names) + ", FRD to FLU"

    def found(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
        updated = rows["fields_updated"]
        is_new = (updated == 0) | ((updated & bits) == bits)
        return signal, stamps, _where(is_new, values(rows)), description

    return found


def _raw_force(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    """The unit of RAW_IMU is the sensor's own; ArduPilot sends milli-g and mrad/s."""
    if vehicle.autopilot != ARDUPILOT:
        return None
    return (
        "specific_force",
        stamps,
        _body("xacc", "yacc", "zacc", scale=STANDARD_GRAVITY / 1e3)(rows),
        "acc, mg, FRD to FLU",
    )


def _raw_rate(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    if vehicle.autopilot != ARDUPILOT:
        return None
    return "body_rate", stamps, _body("xgyro", "ygyro", "zgyro", scale=1e-3)(rows), "gyro, mrad/s, FRD to FLU"


def _collective(rows: np.ndarray) -> np.ndarray:
    thrust = columns(rows, "thrust")
    return np.where((rows["type_mask"] & 64)[:, None] == 0, thrust, np.nan)  # 64: thrust is to be ignored


def _hil(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    motors = vehicle.motors("HIL_ACTUATOR_CONTROLS")
    if motors is None:
        return None
    command = np.clip(rows["controls"].astype(np.float64)[:, motors.columns], 0.0, 1.0)
    return "rotor_command", stamps, command, f"controls{motors.columns.tolist()}"


def _outputs(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    name, field = "ACTUATOR_OUTPUT_STATUS", "actuator"
    if field in (rows.dtype.names or ()):
        pwm = rows["actuator"].astype(np.float64)
    else:
        name, field = "SERVO_OUTPUT_RAW", "servo"
        pwm = np.concatenate([rows["servo1_to_8"], rows["servo9_to_16"]], axis=1).astype(np.float64)
    motors = vehicle.motors(name)
    if motors is None:
        return None
    if not motors.words:
        vehicle.note(name, f"{name}: not read, the outputs are DShot and no PWM; give the vehicle's own log")
        return None
    if motors.words.startswith("assumed"):
        vehicle.note(name, f"rotor_command: the recording has no PWM range, {motors.words[8:]} is taken")
    if "port" in (rows.dtype.names or ()):
        pwm = _where(rows["port"] == motors.port, pwm)
    motor_pwm = pwm[:, motors.columns]
    command = np.minimum(np.maximum((motor_pwm - motors.low) / (motors.high - motors.low), 0.0), 1.0)
    no_pulse = (motor_pwm <= 0.0) | (motor_pwm > 2500.0)
    command[no_pulse.any(axis=1)] = np.nan
    numbers = ", ".join(str(c + 1) for c in motors.columns.tolist())
    return "rotor_command", stamps, command, f"{field} {numbers}, PWM {motors.words}"


def _esc_status(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    """ESCs report four at a time: a sample is complete with the last group, and no part of it is older than 50 ms.

    PX4 numbers them as the outputs that they are on, whose motors its parameters name."""
    outputs = vehicle.escs_of_motors
    order = [n - 1 for n in outputs] or list(range(vehicle.escs or vehicle.rotors))
    if not order:
        return None
    groups = sorted({4 * (n // 4) for n in order})
    complete: list[int] = []
    speeds: list[np.ndarray] = []
    for i, (index, rpm) in enumerate(zip(rows["index"].tolist(), rows["rpm"], strict=True)):
        vehicle.esc_reports[index] = float(stamps[i]), np.abs(rpm.astype(np.float64)) * _RPM
        if index == groups[-1] and all(g in vehicle.esc_reports for g in groups):
            reports = [vehicle.esc_reports[g] for g in groups]
            if max(abs(t - stamps[i]) for t, _ in reports) < 0.05:
                complete.append(i)
                speeds.append(np.array([vehicle.esc_reports[4 * (n // 4)][1][n % 4] for n in order]))
    if not complete:
        return None
    words = f"rpm of outputs {', '.join(str(n) for n in outputs)}, to rad/s" if outputs else "rpm, to rad/s"
    return "rotor_speed", stamps[complete], np.stack(speeds), words


def _esc_telemetry(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    """The ESCs are numbered as the outputs that they are on."""
    if not 0 < vehicle.rotors <= 4:
        return None
    order = [n - 1 for n in motor_outputs(vehicle.parameters)]
    if sorted(order) != list(range(vehicle.rotors)):
        order = list(range(vehicle.rotors))
    speeds = rows["rpm"].astype(np.float64)[:, order] * _RPM
    return "rotor_speed", stamps, speeds, f"rpm{order}, to rad/s; at the latest stamp before"


def _battery(rows: np.ndarray, stamps: np.ndarray, vehicle: Vehicle) -> _Found:
    """The first battery: the sum of its cells, or the single voltage of a sender without cells."""
    cells = np.concatenate(
        [rows["voltages"], np.where(rows["voltages_ext"] == 0, 65535, rows["voltages_ext"])], axis=1
    )
    voltage = np.where(cells == 65535, 0, cells).sum(axis=1) / 1e3
    valid = (voltage > 0.0) & (rows["id"] == 0)
    return "battery_voltage", stamps, _where(valid, voltage[:, None]), "voltages of battery 0, mV"


def _battery_current(rows: np.ndarray) -> np.ndarray:
    """-1 without a sensor."""
    current = columns(rows, "current_battery")
    return np.where((current >= 0.0) & _is_first_battery(rows), current / 100.0, np.nan)


def _battery_remaining(rows: np.ndarray) -> np.ndarray:
    """-1 where unknown."""
    remaining = columns(rows, "battery_remaining")
    valid = (remaining >= 0.0) & (remaining <= 100.0) & _is_first_battery(rows)
    return np.where(valid, remaining / 100.0, np.nan)


def _is_first_battery(rows: np.ndarray) -> np.ndarray:
    """A column. SYS_STATUS has only the first one."""
    return columns(rows, "id") == 0.0 if "id" in (rows.dtype.names or ()) else np.ones((len(rows), 1), bool)


def _system_battery(rows: np.ndarray) -> np.ndarray:
    voltage = columns(rows, "voltage_battery")
    return np.where((voltage > 0.0) & (voltage < 65535.0), voltage / 1e3, np.nan)


def _landed(rows: np.ndarray) -> np.ndarray:
    state = columns(rows, "landed_state")
    return np.where(state == 0.0, np.nan, (state >= 2.0).astype(np.float64))


_FRD: Final = ", FRD to FLU"
_RATES: Final = ("rollspeed", "pitchspeed", "yawspeed")
_GYRO: Final = ("xgyro", "ygyro", "zgyro")
_ACC: Final = ("xacc", "yacc", "zacc")
_SCALED: Final = (
    _direct("body_rate", _body(*_GYRO, scale=1e-3), "gyro, mrad/s" + _FRD),
    _direct("specific_force", _body(*_ACC, scale=STANDARD_GRAVITY / 1e3), "acc, mg" + _FRD),
)
_CHARGE: Final = (
    _direct("battery_current", _battery_current, "current_battery, cA"),
    _direct("battery_remaining", _battery_remaining, "battery_remaining, %"),
)
_CONVERSIONS: Final[Mapping[str, tuple[_Conversion, ...]]] = {
    "LOCAL_POSITION_NED": (
        _direct("position", _world("x", "y", "z"), "x/y/z, NED to ENU"),
        _direct("velocity", _world("vx", "vy", "vz"), "vx/vy/vz, NED to ENU"),
    ),
    "ODOMETRY": (
        _direct("position", _odometry_position, "x/y/z, NED to ENU"),
        _direct("velocity", _odometry_velocity, "vx/vy/vz, to ENU"),
        _direct("attitude", _odometry_attitude, "q, FRD to NED made FLU to ENU"),
        _direct("body_rate", _body(*_RATES), "/".join(_RATES) + _FRD),
    ),
    "GLOBAL_POSITION_INT": (
        _global_position,
        _direct("velocity", _global_velocity, "vx/vy/vz, cm/s, NED to ENU"),
    ),
    "ATTITUDE_QUATERNION": (
        _direct("attitude", _quaternion, "q1..q4, FRD to NED made FLU to ENU"),
        _direct("body_rate", _body(*_RATES), "/".join(_RATES) + _FRD),
    ),
    "ATTITUDE": (
        _direct("attitude", _euler, "roll/pitch/yaw, FRD to NED made FLU to ENU"),
        _direct("body_rate", _body(*_RATES), "/".join(_RATES) + _FRD),
    ),
    "HIGHRES_IMU": (
        _highres("body_rate", 0b111000, _GYRO),
        _highres("specific_force", 0b111, _ACC),
    ),
    "SCALED_IMU": _SCALED,
    "SCALED_IMU2": _SCALED,
    "SCALED_IMU3": _SCALED,
    "RAW_IMU": (_raw_rate, _raw_force),
    "ATTITUDE_TARGET": (_direct("collective_command", _collective, "thrust"),),
    "VFR_HUD": (
        _direct("collective_command", lambda rows: columns(rows, "throttle") / 100.0, "throttle, %"),
    ),
    "HIL_ACTUATOR_CONTROLS": (_hil,),
    "ACTUATOR_OUTPUT_STATUS": (_outputs,),
    "SERVO_OUTPUT_RAW": (_outputs,),
    "ESC_STATUS": (_esc_status,),
    "ESC_TELEMETRY_1_TO_4": (_esc_telemetry,),
    "BATTERY_STATUS": (_battery, *_CHARGE),
    "SYS_STATUS": (_direct("battery_voltage", _system_battery, "voltage_battery, mV"), *_CHARGE),
    "EXTENDED_SYS_STATE": (_direct("airborne", _landed, "landed_state; holds until the next"),),
}
