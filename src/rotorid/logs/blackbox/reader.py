"""Blackbox logs of Betaflight, INAV and Cleanflight to flights.

Their body frame is FLU as ours: a positive pitch rate is nose down, a positive yaw rate is counter-clockwise from above. The
mixer shows it: positive pitch makes the rear motors stronger, positive yaw those that turn clockwise.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from typing import Final

import numpy as np

from rotorid.errors import LogFormatError
from rotorid.geometry.gravity import GRAVITY
from rotorid.logs.blackbox.frames import MainFrames, Session, decode, read_sessions
from rotorid.logs.blackbox.set_points import proportional_terms_agree, set_points_from_sticks
from rotorid.logs.flight import Flight
from rotorid.logs.reader_base import Collector, LogFile

_VERSION: Final = re.compile(r"(\w+) (\d+)\.(\d+)")
_HIGH_RESOLUTION: Final = 10.0  # blackbox_high_resolution: gyro and set points are logged in tenths
_THROTTLE: Final = 1000.0
_ADC_VOLT: Final = 330e-3 / 4095  # V per count and per unit of vbatscale, of a 12 bit converter of 3.3 V


def read_blackbox(file: LogFile) -> Flight:
    """The longest flight in a blackbox log. Raises LogFormatError for one with a damaged header or without a whole frame."""
    file.refuse_mapping()
    path = file.path
    sessions = read_sessions(file.content)
    if not sessions:
        raise LogFormatError(
            f"{path}: a blackbox log whose header is cut or damaged; copy it from the vehicle again"
        )
    session = max(sessions, key=lambda s: len(s.frames))
    frames = decode(session)
    if not len(frames.values):
        raise LogFormatError(f"{path}: a blackbox log without a whole frame; copy it from the vehicle again")
    start = float(frames.values[0, 1]) / 1e6
    collector = Collector(path, "blackbox", clock=start)
    if len(sessions) > 1:
        number = sessions.index(session) + 1
        collector.note(
            f"{len(sessions)} flights (from arming to disarming) in this file; the longest, number {number}, was read"
        )
    if frames.skipped:
        collector.note(
            f"{frames.skipped} damaged bytes were skipped, with what follows them up to the next complete frame"
        )
    if not frames.is_complete:
        collector.note(
            "the log has no end mark: it is cut, or the vehicle lost power; the complete part is used"
        )
    _collect(collector, session, frames, frames.values[:, 1] / 1e6 - start)
    return collector.flight(
        vehicle=_vehicle(session),
        parameters=_parameters(session),
        boot=_boot(session, start),
    )


def _collect(collector: Collector, session: Session, frames: MainFrames, times: np.ndarray) -> None:
    scale = 1.0 / _HIGH_RESOLUTION if session.number("blackbox_high_resolution") == 1 else 1.0
    gyro = _columns(frames, "gyroADC", 3)
    if gyro is None:
        gyro = _columns(frames, "gyroData", 3)
    if gyro is not None:
        collector.add("body_rate", times, gyro * (scale * _gyro_unit(session)), "gyroADC[0..2], deg/s")
        _collect_set_points(collector, session, frames, times, scale)
    force = _columns(frames, "accSmooth", 3)
    one_g = session.number("acc_1G")
    if force is not None and one_g > 0:
        collector.add("specific_force", times, force * (GRAVITY / one_g), f"accSmooth[0..2], {one_g} is 1 g")
    elif force is not None:
        collector.note("specific_force: not read, the accelerometer is off (acc_1G is 0)")
    _collect_rotors(collector, session, frames, times)
    throttle = _columns(frames, "setpoint[3]")
    if throttle is not None:
        collector.add(
            "collective_command", times, np.clip(throttle / _THROTTLE, 0.0, 1.0), "setpoint[3] / 1000"
        )
    for name in ("vbatLatest", "vbat"):
        voltage = _columns(frames, name)
        if voltage is not None and voltage.any():
            unit, words = _volt(session, name)
            collector.add("battery_voltage", times, voltage * unit, f"{name}, {words}")
    for name in ("amperageLatest", "amperage"):
        current = _columns(frames, name)
        if current is None or not current.any():
            continue
        if name == "amperage" or _has_units(session):
            collector.add("battery_current", times, current * 0.01, f"{name}, 0.01 A")
        else:
            collector.note(f"battery_current: not read, {name} is in counts of the converter")


def _collect_set_points(
    collector: Collector, session: Session, frames: MainFrames, times: np.ndarray, scale: float
) -> None:
    """Add the set points of the body rate. scale: of the gyro and of logged set points."""
    logged = _columns(frames, "setpoint")
    if logged is not None and logged.shape[1] >= 3:
        source = "setpoint[0..2], deg/s"
        collector.add("body_rate_setpoint", times, np.radians(scale * logged[:, :3]), source)
        return
    targets = _columns(frames, "axisRate", 3)
    if targets is not None:
        collector.add("body_rate_setpoint", times, np.radians(targets), "axisRate[0..2], deg/s")
        return
    sticks, terms, gyro = (_columns(frames, name) for name in ("rcCommand", "axisP", "gyroADC"))
    if sticks is None or sticks.shape[1] < 4 or terms is None or gyro is None:
        return
    set_points = set_points_from_sticks(session, sticks[:, :3], times)
    if set_points is None:
        return
    is_full = sticks[:, 3] < session.number("tpa_breakpoint", 1500)  # above it the throttle lowers the gain
    degrees = np.degrees(gyro * (scale * _gyro_unit(session)))
    if proportional_terms_agree(set_points[is_full], degrees[is_full], terms[is_full]):
        source = "rcCommand[0..2] by the rates of the header, deg/s, verified by axisP"
        collector.add("body_rate_setpoint", times, np.radians(set_points), source)
    else:
        collector.note(
            "body_rate_setpoint: not read, the set points of the sticks and the rates of the header do not agree with the "
            "proportional terms of the controller (axisP)"
        )


def _collect_rotors(collector: Collector, session: Session, frames: MainFrames, times: np.ndarray) -> None:
    motors = _columns(frames, "motor")
    if motors is not None:
        span, name = session.numbers("motorOutput"), "motorOutput"
        if len(span) != 2 or span[0] >= span[1]:
            span, name = (
                [session.number("minthrottle"), session.number("maxthrottle")],
                "minthrottle, maxthrottle",
            )
        if span[0] < span[1]:
            command = np.clip((motors - span[0]) / (span[1] - span[0]), 0.0, 1.0)
            source = f"motor[0..{motors.shape[1] - 1}], {span[0]} to {span[1]} ({name})"
            collector.add("rotor_command", times, command, source)
        else:
            collector.note("rotor_command: not read, the header has no range of the motor outputs")
    speeds = _columns(frames, "eRPM")
    if speeds is None:
        return
    poles = session.number("motor_poles")
    if poles < 2:
        collector.note("rotor_speed: not read, the header has no number of motor poles (motor_poles)")
        return
    factor = 100.0 / (poles / 2.0) * 2.0 * math.pi / 60.0
    source = f"eRPM[0..{speeds.shape[1] - 1}], 100 rpm electrical, {poles} poles"
    collector.add("rotor_speed", times, speeds * factor, source)


def _columns(frames: MainFrames, name: str, count: int = 0) -> np.ndarray | None:
    """The values of a field, or of the fields "name[0]", "name[1]" and so on; None where they are missing.

    count: how many there must be; 0: all that there are.
    """
    if name in frames.names:
        return frames.values[:, [frames.names.index(name)]].astype(np.float64)
    columns: list[int] = []
    while f"{name}[{len(columns)}]" in frames.names:
        columns.append(frames.names.index(f"{name}[{len(columns)}]"))
    if not columns or (count and len(columns) != count):
        return None
    return frames.values[:, columns].astype(np.float64)


def _gyro_unit(session: Session) -> float:
    """rad/s of one count of the gyro."""
    bits = session.number("gyro_scale", 0x3F800000) & 0xFFFFFFFF
    scale = struct.unpack("<f", struct.pack("<I", bits))[0]
    if session.headers.get("Firmware type", "").lower() == "baseflight":
        return 1e6 * scale  # its scale is in rad/us
    return math.radians(scale)


def _volt(session: Session, name: str) -> tuple[float, str]:
    """V of one count of the battery voltage, and its unit in words, which changed between versions."""
    firmware, version = _firmware(session)
    if name == "vbat" or (firmware == "Betaflight" and version >= (4, 0)):
        return 0.01, "0.01 V"
    if _has_units(session):
        return 0.1, "0.1 V"
    scale = session.number("vbatscale", 110)
    return _ADC_VOLT * scale, f"counts of the converter, vbatscale {scale}"


def _has_units(session: Session) -> bool:
    """Whether voltage and current are logged in units of them; before, they are counts of the converter."""
    firmware, version = _firmware(session)
    return (firmware == "Betaflight" and version >= (3, 1)) or (
        firmware == "Cleanflight" and version >= (2, 0)
    )


def _firmware(session: Session) -> tuple[str, tuple[int, int]]:
    match = _VERSION.match(session.headers.get("Firmware revision", ""))
    return (match[1], (int(match[2]), int(match[3]))) if match else ("", (0, 0))


def _vehicle(session: Session) -> str:
    """Craft name, firmware and board."""
    names = (session.headers.get(name, "") for name in ("Craft name", "Firmware revision"))
    return ", ".join(name for name in names if name)


def _parameters(session: Session) -> dict[str, float]:
    """The numeric settings of the header; those with several values by name[0], name[1] and so on."""
    parameters: dict[str, float] = {}
    for name, text in session.headers.items():
        if name.startswith(("Field ", "Firmware", "Product")) or name == "gyro_scale":
            continue
        values = text.split(",")
        for i, value in enumerate(values):
            try:
                number = float(value)
            except ValueError:
                continue
            if math.isfinite(number):
                parameters[name if len(values) == 1 else f"{name}[{i}]"] = number
    return parameters


def _boot(session: Session, start: float) -> float:
    """Unix time in s at which the log's clock reads 0; NaN where the vehicle had no clock."""
    try:
        begin = datetime.datetime.fromisoformat(session.headers.get("Log start datetime", ""))
    except ValueError:
        return math.nan
    return begin.timestamp() - start if begin.year > 2000 and begin.tzinfo is not None else math.nan
