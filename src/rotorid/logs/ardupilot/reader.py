"""ArduPilot logs (DataFlash .BIN) to flights.

Times are TimeUS, the autopilot's time since boot. World NED to ENU, body FRD to FLU. What a simulator logs of
its own truth (SIM, SIM2) is never read as a measurement.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from rotorid.errors import LogFormatError
from rotorid.geometry.rotation_rows import from_euler
from rotorid.logs.ardupilot.dataflash import DataflashContents, Messages, read_dataflash
from rotorid.logs.ardupilot.estimator_faults import add_estimator_faults
from rotorid.logs.ardupilot.rotors import add_rotors
from rotorid.logs.flight import Flight
from rotorid.logs.frames import attitude_to_enu_flu, frd_to_flu, ned_to_enu
from rotorid.logs.reader_base import Collector, LogFile

NAMES: Final = frozenset(
    "ATT BAT CTUN CURR ESC EV GPS IMU MSG NKF1 NKF4 PARM RATE RCOU XKF1 XKF4 XKQ".split(),  # noqa: SIM905
)

_LAND_COMPLETE, _NOT_LANDED, _DISARMED = 18, 28, 11  # of EV.Id
_EARTH_RADIUS: Final = 6_378_137.0
_GPS_EPOCH: Final = 315_964_800.0  # Unix time of 6 January 1980
_LEAP_SECONDS: Final = 18.0  # by which GPS is ahead of UTC since 2017
_SERIAL: Final = re.compile(rb"\w ((?:[0-9A-F]{8} ?){3})\s*$")


def read_ardupilot(file: LogFile) -> Flight:
    """The flight in a DataFlash file. Raises LogFormatError for one without a whole message."""
    file.refuse_mapping()
    path = file.path
    contents = read_dataflash(file.content, NAMES)
    messages = {n: m for n, m in contents.messages.items() if len(m) and ("TimeUS" in m or n == "PARM")}
    if not messages:
        raise LogFormatError(
            f"{path}: this DataFlash file has no complete message that rotorid uses; download it again"
        )
    stamped = [m.records["TimeUS"] for n, m in messages.items() if n not in ("PARM", "MSG")]
    start = float(np.median([s[0] for s in stamped])) if stamped else 0.0
    collector = Collector(path, "ardupilot-bin", clock=start / 1e6)
    _note_damage(collector, contents)
    parameters = _parameters(messages.get("PARM"))
    _add_attitude(collector, messages)
    _add_position_and_velocity(collector, messages)
    _add_inertial(collector, messages)
    add_rotors(collector, messages, parameters)
    _add_rate_set_point(collector, messages)
    _add_collective(collector, messages)
    _add_battery(collector, messages)
    _add_airborne(collector, messages)
    add_estimator_faults(collector, messages)
    return collector.flight(
        vehicle=_vehicle(messages.get("MSG")),
        parameters=parameters,
        identity=_identity(messages.get("MSG")),
        boot=_boot(messages.get("GPS")),
    )


def first_instance(collector: Collector, name: str, messages: Messages, columns: tuple[str, ...]) -> Messages:
    """The messages of the lowest instance, where a column says which sensor or estimator each is of."""
    column = next((c for c in columns if c in messages), None)
    if column is None:
        return messages
    instances, counts = np.unique(messages.records[column], return_counts=True)
    instances = instances[counts > 0.01 * len(messages)]
    if len(instances) > 1:
        collector.note(f"{name}: {len(instances)} instances in the log, instance {instances[0]} is read")
    return messages.where(messages.records[column] == instances[0])


def _add_attitude(collector: Collector, messages: dict[str, Messages]) -> None:
    if (rows := messages.get("ATT")) is not None and all(c in rows for c in ("Roll", "Pitch", "Yaw")):
        q = from_euler(np.radians(rows.values("Roll", "Pitch", "Yaw")))
        source = "ATT.Roll/Pitch/Yaw, deg, FRD to NED made FLU to ENU"
    elif (rows := messages.get("XKQ")) is not None and all(f"Q{i}" in rows for i in (1, 2, 3, 4)):
        rows = first_instance(collector, "XKQ", rows, ("C",))
        q = rows.values("Q1", "Q2", "Q3", "Q4")
        source = "XKQ.Q1..Q4, FRD to NED made FLU to ENU"
    else:
        return
    collector.add("attitude", rows.times(collector.clock), attitude_to_enu_flu(q), source)


def _add_position_and_velocity(collector: Collector, messages: dict[str, Messages]) -> None:
    for name in ("XKF1", "NKF1"):
        rows = messages.get(name)
        if rows is not None and all(c in rows for c in ("PN", "PE", "PD", "VN", "VE", "VD")):
            rows = first_instance(collector, name, rows, ("C",))
            _note_lane_switches(collector, messages)
            for signal, columns in (("position", ("PN", "PE", "PD")), ("velocity", ("VN", "VE", "VD"))):
                source = f"{name}.{'/'.join(columns)}, NED to ENU"
                collector.add(signal, rows.times(collector.clock), ned_to_enu(rows.values(*columns)), source)
            return
    rows = messages.get("GPS")
    if rows is None or not all(c in rows for c in ("Lat", "Lng", "Alt", "Spd", "GCrs", "VZ", "Status")):
        return
    rows = first_instance(collector, "GPS", rows, ("I",))
    rows = rows.where(rows.records["Status"] >= 3)
    if not len(rows):
        collector.note("GPS: not read, it never had a 3D fix")
        return
    collector.note("position and velocity are the GPS receiver's, which lag by 0.1 to 0.2 s; log XKF1")
    latitude, longitude, altitude = rows.values("Lat", "Lng", "Alt").T
    east = np.radians(longitude - longitude[0]) * _EARTH_RADIUS * np.cos(np.radians(latitude[0]))
    north = np.radians(latitude - latitude[0]) * _EARTH_RADIUS
    position = np.stack([east, north, altitude - altitude[0]], axis=1)
    collector.add("position", rows.times(collector.clock), position, "GPS.Lat/Lng/Alt, from the first fix")
    speed, course, down = rows.values("Spd", "GCrs", "VZ").T
    course = np.radians(course)
    velocity = np.stack([speed * np.sin(course), speed * np.cos(course), -down], axis=1)
    collector.add("velocity", rows.times(collector.clock), velocity, "GPS.Spd/GCrs/VZ")


def _note_lane_switches(collector: Collector, messages: dict[str, Messages]) -> None:
    lanes = messages.get("XKF4")
    if lanes is None or "PI" not in lanes:
        return
    switches = int(np.count_nonzero(np.diff(lanes.records["PI"].astype(int))))
    if switches:
        collector.note(f"number of EKF lane changes: {switches}; position and velocity are of lane 0")


def _add_inertial(collector: Collector, messages: dict[str, Messages]) -> None:
    rows = messages.get("IMU")
    if rows is not None and all(f"{s}{a}" in rows for s in ("Gyr", "Acc") for a in "XYZ"):
        rows = first_instance(collector, "IMU", rows, ("I",))
        clock = rows.times(collector.clock)
        rates = frd_to_flu(rows.values("GyrX", "GyrY", "GyrZ"))
        collector.add("body_rate", clock, rates, "IMU.GyrX/Y/Z, FRD to FLU")
        force = frd_to_flu(rows.values("AccX", "AccY", "AccZ"))
        collector.add("specific_force", clock, force, "IMU.AccX/Y/Z, FRD to FLU")
        return
    rows = messages.get("RATE")
    if rows is not None and all(c in rows for c in ("R", "P", "Y")):
        rates = frd_to_flu(np.radians(rows.values("R", "P", "Y")))
        collector.add("body_rate", rows.times(collector.clock), rates, "RATE.R/P/Y, deg/s, FRD to FLU")


def _add_rate_set_point(collector: Collector, messages: dict[str, Messages]) -> None:
    rows = messages.get("RATE")
    if rows is not None and all(c in rows for c in ("RDes", "PDes", "YDes")):
        rates = frd_to_flu(np.radians(rows.values("RDes", "PDes", "YDes")))
        source = "RATE.RDes/PDes/YDes, deg/s, FRD to FLU"
        collector.add("body_rate_setpoint", rows.times(collector.clock), rates, source)


def _add_collective(collector: Collector, messages: dict[str, Messages]) -> None:
    candidates = [(n, c, messages[n]) for n, c in (("CTUN", "ThO"), ("RATE", "AOut")) if n in messages]
    candidates = [(n, c, m) for n, c, m in candidates if c in m]
    if candidates:
        name, column, rows = max(candidates, key=lambda f: len(f[2]))
        collector.add(
            "collective_command", rows.times(collector.clock), rows.values(column), f"{name}.{column}"
        )


def _add_battery(collector: Collector, messages: dict[str, Messages]) -> None:
    for name in ("BAT", "CURR"):
        rows = messages.get(name)
        if rows is not None and "Volt" in rows:
            rows = first_instance(collector, name, rows, ("Inst", "Instance", "I"))
            voltage = rows.values("Volt")
            voltage = np.where(voltage > 0.0, voltage, np.nan)
            times = rows.times(collector.clock)
            collector.add("battery_voltage", times, voltage, f"{name}.Volt")
            if "Curr" in rows:
                current = rows.values("Curr")
                collector.add(
                    "battery_current", times, np.where(current >= 0.0, current, np.nan), f"{name}.Curr"
                )
            if "RemPct" in rows:
                share = rows.values("RemPct") / 100.0
                share = np.where((share >= 0.0) & (share <= 1.0), share, np.nan)
                collector.add("battery_remaining", times, share, f"{name}.RemPct, %")
            return


def _add_airborne(collector: Collector, messages: dict[str, Messages]) -> None:
    """From take-off and landing events; before the first of them the opposite held."""
    events = messages.get("EV")
    if events is None or "Id" not in events:
        return
    events = events.where(np.isin(events.records["Id"], (_LAND_COMPLETE, _NOT_LANDED, _DISARMED)))
    if not len(events) or not (events.records["Id"] == _NOT_LANDED).any():
        return
    is_airborne = (events.records["Id"] == _NOT_LANDED).astype(np.float64)
    first = min([events.times(collector.clock)[0] - 1e-6, *(s.times[0] for s in collector.signals.values())])
    clock = np.concatenate([[first], events.times(collector.clock)])
    source = "EV.Id 28 (not landed), 18 (landed), 11 (disarmed); holds until the next row"
    collector.add("airborne", clock, np.concatenate([[1.0 - is_airborne[0]], is_airborne]), source)


def _parameters(messages: Messages | None) -> dict[str, float]:
    if messages is None or "Name" not in messages or "Value" not in messages:
        return {}
    names = (name.decode("ascii", "replace") for name in messages.records["Name"].tolist())
    first: dict[str, float] = {}
    for name, value in zip(names, messages.values("Value")[:, 0].tolist(), strict=True):
        first.setdefault(name, value)
    return first


def _vehicle(messages: Messages | None) -> str:
    """Firmware and frame, from the texts that ArduPilot logs when a log begins."""
    if messages is None or "Message" not in messages:
        return ""
    texts = [text.decode("ascii", "replace") for text in messages.records["Message"].tolist()]
    firmware = next((t for t in texts if t.startswith(("Ardu", "APM"))), "")
    frame = next((t.removeprefix("Frame: ") for t in texts if t.startswith("Frame: ")), "")
    return ", ".join(t for t in (firmware, frame) if t)


def _identity(messages: Messages | None) -> str:
    """The 96 bits of the autopilot's processor, which it logs behind its board's name."""
    if messages is None or "Message" not in messages:
        return ""
    matches = (_SERIAL.search(text) for text in messages.records["Message"].tolist())
    return next((match[1].replace(b" ", b"").decode() for match in matches if match), "")


def _boot(messages: Messages | None) -> float:
    """Unix time in s at which the autopilot's clock read 0, from GPS week and time of week; NaN if unknown."""
    if messages is None or not all(c in messages for c in ("GWk", "GMS", "Status")):
        return float("nan")
    rows = messages.records[(messages.records["Status"] >= 3) & (messages.records["GWk"] > 0)]
    if not len(rows):
        return float("nan")
    utc = _GPS_EPOCH + 604_800.0 * rows["GWk"] + rows["GMS"] / 1e3 - _LEAP_SECONDS
    return float(np.median(utc - rows["TimeUS"] / 1e6))


def _note_damage(collector: Collector, contents: DataflashContents) -> None:
    if contents.truncated:
        collector.note("the file is cut at its end; only the complete part is used")
    if contents.skipped:
        collector.note(f"{contents.skipped} damaged bytes were skipped")
