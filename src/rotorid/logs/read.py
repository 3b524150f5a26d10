"""`read`: one function for all log formats, and the table of the formats. A file is recognised by its content, not by its name.

Other packages add formats by entry points (see `rotorid.logs.plugins` and docs/add-log-format.md). To add a format here:

1. write a file with a reader, `read_x(file: LogFile) -> Flight` (see docs/extend.md);
2. add an entry to `FORMATS` here, before those that would recognise its files, too;
3. describe it in docs/formats.md, with its names of `Flight.format` in the table (a test fails without it).

Readers are imported when they are called, so that `rotorid --help` stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import numpy as np

from rotorid.errors import SettingError
from rotorid.logs.archives import is_archive, unpack
from rotorid.logs.flight import Flight
from rotorid.logs.plugins import plugin_formats
from rotorid.logs.reader_base import LogFile, LogFormat


def _starts_with(magic: bytes) -> Callable[[LogFile], bool]:
    return lambda file: file.head.startswith(magic)


def _is_ros_bag(file: LogFile) -> bool:
    """By the header of a bag; an MCAP of the profile "ros2"; or a folder, which is decided by its files."""
    head = file.head
    if file.path.is_dir():
        from rotorid.logs.ros.bag import storage_files

        return bool(storage_files(file.path))
    if head.startswith(b"\x89MCAP"):
        return head[17:25] == b"\x04\0\0\0ros2"
    return head.startswith((b"#ROSBAG V2.0", b"SQLite format 3\0"))


def is_tlog(head: bytes) -> bool:
    """Whether these are the first bytes of a .tlog: 8 bytes of Unix time in us, high byte first, and a MAVLink frame."""
    stamp = int.from_bytes(head[:8], "big")
    return len(head) > 8 and head[8] in (0xFD, 0xFE) and 10**14 < stamp < 10**16


FORMATS: Final = (
    LogFormat(
        label="ROS bags",
        names=("ros1-bag", "ros2-db3", "ros2-mcap"),
        recognise=_is_ros_bag,
        reader="rotorid.logs.ros.reader:read_ros",
        suffixes=(".bag", ".db3"),
    ),
    LogFormat(
        label="MAVLink .tlog",
        names=("mavlink-tlog",),
        recognise=lambda file: is_tlog(file.head),
        reader="rotorid.logs.mavlink.tlog:read_tlog",
        suffixes=(".tlog",),
    ),
    LogFormat(
        label="MCAP",
        names=("table-mcap", "mavlink-mcap"),
        recognise=_starts_with(b"\x89MCAP"),
        reader="rotorid.logs.mcap.reader:read_mcap_log",
        suffixes=(".mcap",),
    ),
    LogFormat(
        label="PX4 .ulg",
        names=("px4-ulog",),
        recognise=_starts_with(b"ULog"),
        reader="rotorid.logs.px4.reader:read_px4",
        suffixes=(".ulg", ".ulog"),
    ),
    LogFormat(
        label="ArduPilot .BIN",
        names=("ardupilot-bin",),
        recognise=lambda file: b"\xa3\x95\x80" in file.head[:4096],
        reader="rotorid.logs.ardupilot.reader:read_ardupilot",
        suffixes=(".bin",),
    ),
    LogFormat(
        label="Crazyflie micro-SD logs",
        names=("crazyflie-usd",),
        recognise=_starts_with(b"\xbc"),
        reader="rotorid.logs.crazyflie.reader:read_crazyflie",
    ),
    LogFormat(
        label="Betaflight and INAV blackbox",
        names=("blackbox",),
        recognise=lambda file: b"H Product:Blackbox" in file.head[:4096],
        reader="rotorid.logs.blackbox.reader:read_blackbox",
        suffixes=(".bbl", ".bfl"),
    ),
    LogFormat(
        label="Parquet",
        names=("table-parquet", "mapped-parquet"),
        recognise=_starts_with(b"PAR1"),
        reader="rotorid.logs.tables.table:read_table_parquet",
    ),
    LogFormat(
        label="CSV",
        names=("table-csv", "mapped-csv"),
        recognise=lambda file: True,
        reader="rotorid.logs.tables.text_table:read_text_table",
    ),
)
"""In the order in which a file is compared with them; the last takes what is left."""


def installed_formats() -> tuple[LogFormat, ...]:
    """The formats of other packages, which take what none of rotorid's but CSV does."""
    return plugin_formats({name for entry in FORMATS for name in entry.names})


def format_list() -> str:
    """The formats, as a message names them."""
    labels = [entry.label for entry in (*installed_formats(), *FORMATS)]
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def _is_log(file: LogFile) -> bool:
    """Whether a file of an archive is a log, by its first bytes or its name."""
    suffix = file.path.suffix.lower()
    return suffix == ".csv" or any(
        suffix in entry.suffixes or entry.recognise(file) for entry in (*FORMATS[:-1], *installed_formats())
    )


def _format_of(file: LogFile) -> LogFormat:
    *binary, text = FORMATS
    known = next((entry for entry in binary if entry.recognise(file)), None)
    if known is not None:
        return known
    return next((entry for entry in installed_formats() if entry.recognise(file)), text)


def read(path: str | Path, mapping: str | Path | None = None) -> Flight:
    """The flight in a log file.

    Args:
        path: a PX4 ULog, an ArduPilot DataFlash .BIN, a MAVLink recording, a ROS bag, a Crazyflie micro-SD log, a blackbox
            log of Betaflight or INAV, a flight table (CSV, Parquet, MCAP), any other CSV or Parquet table with a mapping, or
            a log of a format that an installed package adds; also compressed (.gz, .xz), or the only log in a .zip.
        mapping: a TOML file that describes the columns of any other table (see `rotorid.logs.tables.mapped`), or chooses the
            vehicle of a recording or the topics of a bag (see `rotorid.logs.options`).
    Returns:
        The signals of the log in SI units, world ENU and body FLU, each on its own clock in s from the start of the flight.
    Raises:
        LogError: the file cannot be read.
        LogFormatError: the format of the file is unknown, or the file is damaged.
        SignalError: the mapping does not fit the file.
    """
    path = Path(path)
    if path.is_dir():
        from rotorid.logs.ros.bag import storage_file

        path = storage_file(path)
    file = LogFile(path, None if mapping is None else Path(mapping))
    if is_archive(file.head):
        file = unpack(file, _is_log)
    log_format = _format_of(file)
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # values that are not finite are left out later, with a note
        return log_format.read(file)


def to_flight(log: object) -> Flight:
    """The flight of a log that is given as a Flight or as the path of its file.

    Raises:
        LogError: the file cannot be read, see `read`.
        SettingError: neither a Flight nor a path.
    """
    if isinstance(log, Flight):
        return log
    if isinstance(log, (str, os.PathLike)):
        return read(os.fspath(log))
    raise SettingError(f"a log must be a Flight or the path of a log file, not {type(log).__name__}")


def to_flights(logs: object) -> list[Flight]:
    """The flights of one log or of several, each as for `to_flight`. Raises LogError or SettingError as it does."""
    if isinstance(logs, (Flight, str, os.PathLike)):
        return [to_flight(logs)]
    if not isinstance(logs, Iterable):
        raise SettingError(
            f"logs must be Flights or paths of log files, one or a list of them, not {type(logs).__name__}"
        )
    return [to_flight(log) for log in logs]
