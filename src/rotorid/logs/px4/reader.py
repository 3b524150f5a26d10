"""PX4 logs (ULog) to flights.

Measurements carry the time at which they were taken (`timestamp_sample` where the topic has it, else
`timestamp`), commands the time at which they were given (`timestamp`). World NED to ENU, body FRD to FLU.
Ground-truth topics of simulators are never read as measurements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError
from rotorid.logs.flight import Flight
from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu
from rotorid.logs.px4.estimator_faults import add_estimator_faults
from rotorid.logs.px4.rotors import add_rotors
from rotorid.logs.px4.ulog import ULogContents, read_ulog
from rotorid.logs.reader_base import Collector, LogFile
from rotorid.logs.records import columns

TOPICS: Final = frozenset(
    {
        "actuator_controls_0",
        "actuator_motors",
        "actuator_outputs",
        "battery_status",
        "esc_status",
        "estimator_status",
        "sensor_combined",
        "sensor_gps",
        "vehicle_acceleration",
        "vehicle_angular_velocity",
        "vehicle_attitude",
        "vehicle_gps_position",
        "vehicle_land_detected",
        "vehicle_local_position",
        "vehicle_rates_setpoint",
        "vehicle_thrust_setpoint",
    }
)

_INVALID_RELATIVE_TIME: Final = 0x7FFFFFFF


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """One place where a signal may be found; `values` gives one row a record, NaN where none is valid."""

    topic: str
    fields: tuple[str, ...]
    values: Callable[[np.ndarray], np.ndarray]
    words: str
    command: bool = False


def read_px4(file: LogFile) -> Flight:
    """The flight in a ULog file. Raises LogFormatError for one that is damaged at its start."""
    file.refuse_mapping()
    path = file.path
    contents = read_ulog(file.content, TOPICS)
    if contents is None:
        raise LogFormatError(f"{path}: a ULog file whose header is cut or damaged; fetch it again")
    collector = Collector(path, "px4-ulog", clock=contents.start / 1e6)
    _note_damage(collector, contents)
    add_signals(collector, contents)
    _note_resets(collector, contents)
    add_estimator_faults(collector, contents)
    parts = (contents.information.get("sys_name", "PX4"), contents.information.get("ver_hw", ""))
    return collector.flight(
        vehicle=" ".join(w for w in parts if w),
        parameters=contents.parameters,
        identity=contents.information.get("sys_uuid", ""),
        boot=_boot(contents),
    )


def _boot(contents: ULogContents) -> float:
    """Unix time in s at which the vehicle's clock read 0, from its GPS receiver; NaN if unknown."""
    for topic in ("vehicle_gps_position", "sensor_gps"):
        rows = contents.topics.get((topic, 0))
        if rows is not None and "time_utc_usec" in (rows.dtype.names or ()):
            rows_with_time = rows[rows["time_utc_usec"] > 10**15]
            if len(rows_with_time):
                offsets = rows_with_time["time_utc_usec"].astype(np.int64) - rows_with_time[
                    "timestamp"
                ].astype(np.int64)
                return float(np.median(offsets)) / 1e6
    return float("nan")


def add_signals(collector: Collector, contents: ULogContents, skip: frozenset[str] = frozenset()) -> None:
    """Add the signals of the topics, except these."""
    for signal, candidates in _CANDIDATES.items():
        if signal not in skip:
            _add_best(collector, contents, signal, candidates)
    rotors = {"rotor_command": ("actuator_motors", "actuator_outputs"), "rotor_speed": ("esc_status",)}
    unused = {topic for signal in skip for topic in rotors.get(signal, ())}
    topics = {key: rows for key, rows in contents.topics.items() if key[0] not in unused}
    add_rotors(collector, dataclasses.replace(contents, topics=topics))


def sample_times(
    collector: Collector, rows: np.ndarray, topic: str, command: bool
) -> Float64[np.ndarray, " n"]:
    """Times of records in s after the start of logging; see the top of this file for which stamp."""
    stamps = rows["timestamp"].astype(np.int64)
    if not command and "timestamp_sample" in (rows.dtype.names or ()):
        samples = rows["timestamp_sample"].astype(np.int64)
        delays = stamps - samples
        if ((delays >= 0) & (delays < 1_000_000)).mean() > 0.9:
            stamps = samples
        else:
            collector.note(f"{topic}: its timestamp_sample is not set, timestamp is used")
    return (stamps - round(collector.clock * 1e6)) / 1e6


def _add_best(
    collector: Collector, contents: ULogContents, signal: str, candidates: tuple[_Candidate, ...]
) -> None:
    """Add the first candidate that the log has, or a later one where that is over four times as dense."""
    candidates_found: list[tuple[_Candidate, np.ndarray]] = []
    for candidate in candidates:
        rows = contents.topics.get((candidate.topic, 0))
        if rows is not None and len(rows) and set(candidate.fields) <= set(rows.dtype.names or ()):
            candidates_found.append((candidate, rows))
    if not candidates_found:
        return
    densest = max(len(rows) for _, rows in candidates_found)
    candidate, rows = next((c, r) for c, r in candidates_found if 4 * len(r) >= densest)
    instances = sum(name == candidate.topic and len(r) > 0 for (name, _), r in contents.topics.items())
    if instances > 1:
        collector.note(f"{candidate.topic}: {instances} instances in the log, instance 0 is read")
    times = sample_times(collector, rows, candidate.topic, candidate.command)
    if "accelerometer_timestamp_relative" in candidate.fields:
        times = times + _relative(rows)
    collector.add(signal, times, candidate.values(rows), f"{candidate.topic}.{candidate.words}")


def _relative(rows: np.ndarray) -> Float64[np.ndarray, " n"]:
    offset = rows["accelerometer_timestamp_relative"].astype(np.int64)
    return np.where(offset == _INVALID_RELATIVE_TIME, np.nan, offset / 1e6)


def _valid(rows: np.ndarray, *flags: str) -> np.ndarray:
    """1 where all of the flags that the topic has are set, NaN elsewhere; a column."""
    valid = np.ones(len(rows), bool)
    for flag in flags:
        if flag in (rows.dtype.names or ()):
            valid &= rows[flag].astype(bool)
    return np.where(valid, 1.0, np.nan)[:, None]


def _position(rows: np.ndarray) -> np.ndarray:
    return ned_to_enu(columns(rows, "x", "y", "z")) * _valid(rows, "xy_valid", "z_valid")


def _velocity(rows: np.ndarray) -> np.ndarray:
    return ned_to_enu(columns(rows, "vx", "vy", "vz")) * _valid(rows, "v_xy_valid", "v_z_valid")


def _battery(field: str) -> Callable[[np.ndarray], np.ndarray]:
    def values(rows: np.ndarray) -> np.ndarray:
        voltage = columns(rows, field) * _valid(rows, "connected")
        return np.where(voltage > 0.0, voltage, np.nan)

    return values


def _battery_current(field: str) -> Callable[[np.ndarray], np.ndarray]:
    """-1 without a sensor."""

    def values(rows: np.ndarray) -> np.ndarray:
        current = columns(rows, field) * _valid(rows, "connected")
        return np.where(current >= 0.0, current, np.nan)

    return values


def _battery_remaining(rows: np.ndarray) -> np.ndarray:
    """-1 where unknown."""
    remaining = columns(rows, "remaining") * _valid(rows, "connected")
    return np.where((remaining >= 0.0) & (remaining <= 1.0), remaining, np.nan)


def _body(field: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: frd_to_flu(rows[field].astype(np.float64))


def _thrust(field: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: -rows[field].astype(np.float64)[:, 2:3]


_CANDIDATES: Final[dict[str, tuple[_Candidate, ...]]] = {
    "position": (_Candidate("vehicle_local_position", ("x", "y", "z"), _position, "x/y/z, NED to ENU"),),
    "velocity": (
        _Candidate("vehicle_local_position", ("vx", "vy", "vz"), _velocity, "vx/vy/vz, NED to ENU"),
    ),
    "attitude": (
        _Candidate(
            "vehicle_attitude",
            ("q",),
            lambda rows: attitude_to_enu_flu(rows["q"].astype(np.float64)),
            "q, FRD to NED made FLU to ENU",
        ),
    ),
    "body_rate": (
        _Candidate("vehicle_angular_velocity", ("xyz",), _body("xyz"), "xyz, FRD to FLU"),
        _Candidate("sensor_combined", ("gyro_rad",), _body("gyro_rad"), "gyro_rad, FRD to FLU"),
        _Candidate(
            "vehicle_attitude",
            ("rollspeed", "pitchspeed", "yawspeed"),
            lambda rows: frd_to_flu(columns(rows, "rollspeed", "pitchspeed", "yawspeed")),
            "rollspeed/pitchspeed/yawspeed, FRD to FLU",
        ),
    ),
    "body_rate_setpoint": (
        _Candidate(
            "vehicle_rates_setpoint",
            ("roll", "pitch", "yaw"),
            lambda rows: frd_to_flu(columns(rows, "roll", "pitch", "yaw")),
            "roll/pitch/yaw, FRD to FLU",
            command=True,
        ),
    ),
    "specific_force": (
        _Candidate("vehicle_acceleration", ("xyz",), _body("xyz"), "xyz, FRD to FLU"),
        _Candidate(
            "sensor_combined",
            ("accelerometer_m_s2", "accelerometer_timestamp_relative"),
            _body("accelerometer_m_s2"),
            "accelerometer_m_s2, FRD to FLU",
        ),
    ),
    "collective_command": (
        _Candidate("vehicle_thrust_setpoint", ("xyz",), _thrust("xyz"), "-xyz[2]", command=True),
        _Candidate(
            "actuator_controls_0",
            ("control",),
            lambda rows: rows["control"].astype(np.float64)[:, 3:4],
            "control[3]",
            command=True,
        ),
        _Candidate(
            "vehicle_rates_setpoint",
            ("thrust_body",),
            _thrust("thrust_body"),
            "-thrust_body[2]",
            command=True,
        ),
    ),
    "battery_voltage": (
        _Candidate(
            "battery_status", ("voltage_filtered_v",), _battery("voltage_filtered_v"), "voltage_filtered_v"
        ),
        _Candidate("battery_status", ("voltage_v",), _battery("voltage_v"), "voltage_v"),
    ),
    "battery_current": (
        _Candidate(
            "battery_status",
            ("current_filtered_a",),
            _battery_current("current_filtered_a"),
            "current_filtered_a",
        ),
        _Candidate("battery_status", ("current_a",), _battery_current("current_a"), "current_a"),
    ),
    "battery_remaining": (_Candidate("battery_status", ("remaining",), _battery_remaining, "remaining"),),
    "airborne": (
        _Candidate(
            "vehicle_land_detected",
            ("landed",),
            lambda rows: 1.0 - columns(rows, "landed"),
            "landed, negated; holds until the next row",
        ),
    ),
}


def _note_damage(collector: Collector, contents: ULogContents) -> None:
    if not contents.has_start:
        collector.note("the time at which logging began is damaged; times are those of the vehicle's clock")
    if contents.truncated:
        collector.note("the file is cut at its end; only the complete part is used")
    if contents.skipped:
        collector.note(f"{contents.skipped} damaged bytes were skipped")
    if contents.dropouts:
        total = sum(contents.dropouts) / 1e3
        collector.note(f"{len(contents.dropouts)} dropouts of the logger, {total:.2f} s in all")
    if contents.changed:
        collector.note(
            f"parameters changed during the log (first values are kept): {', '.join(contents.changed)}"
        )


def _note_resets(collector: Collector, contents: ULogContents) -> None:
    """Add a note when the autopilot's estimator reset its origin or attitude."""
    for topic, counter, description in (
        ("vehicle_local_position", "xy_reset_counter", "horizontal position"),
        ("vehicle_local_position", "z_reset_counter", "vertical position"),
        ("vehicle_local_position", "vxy_reset_counter", "horizontal velocity"),
        ("vehicle_local_position", "vz_reset_counter", "vertical velocity"),
        ("vehicle_attitude", "quat_reset_counter", "attitude"),
    ):
        rows = contents.topics.get((topic, 0))
        if rows is None or counter not in (rows.dtype.names or ()):
            continue
        jumps = np.flatnonzero(np.diff(rows[counter].astype(np.int64)))
        if len(jumps):
            times = rows["timestamp"][jumps + 1] / 1e6 - collector.clock
            collector.note_times(
                f"the autopilot reset its {description} at {{times}} s: the estimate jumps", times
            )
