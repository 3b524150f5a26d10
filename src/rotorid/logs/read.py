"""One door for all log formats: `read` looks at the content of a file, not at its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rotorid.errors import LogError, LogFormatError
from rotorid.logs.flight import Flight, split_column

if TYPE_CHECKING:
    from rotorid.logs.options import Options

_READS: Final = (
    "rotorid reads PX4 .ulg, ArduPilot .BIN, MAVLink .tlog, ROS bags, Crazyflie micro-SD logs, and flight tables (CSV, "
    "Parquet, MCAP)"
)
_OTHERS: Final = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"PK\x03\x04": "a zip archive; unpack it and give the log in it",
    b"\x1f\x8b": "compressed with gzip; unpack it and give the log in it",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file; export it as CSV",
    b"FMT, 128": "an ArduPilot log as text; give the .BIN that it was made from",
}
_TRUTH_COLUMNS: Final = frozenset(("t_log_s", "mass_kg", "mass", "wind_n", "wind_e"))


def read(path: str | Path, mapping: str | Path | None = None) -> Flight:
    """The flight in a log file.

    path: a PX4 ULog, an ArduPilot DataFlash .BIN, a MAVLink recording, a ROS bag, a Crazyflie micro-SD log, or a flight table
    (CSV, Parquet, MCAP). mapping: a TOML file that says what the columns of any other CSV are (see `rotorid.logs.mapped`), or
    which vehicle of a recording, which topics of a bag are read (see `rotorid.logs.options`).
    """
    path = Path(path)
    path = _only_store(path) or path
    if (bag := _bag(path)) is not None:
        from rotorid.logs.ros import read_ros

        with np.errstate(invalid="ignore", over="ignore"):
            return read_ros(*bag, _options(mapping, "ros", "topics"))
    buffer = read_bytes(path)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is left out later, and said
        return _read(path, buffer, mapping)


def _only_store(path: Path) -> Path | None:
    """The one file of a folder that is a bag of ROS 2 without its metadata."""
    if not path.is_dir() or (path / "metadata.yaml").is_file():
        return None
    from rotorid.logs.ros_bag import stores

    files = stores(path)
    if len(files) > 1:
        names = ", ".join(p.name for p in files[:4])
        raise LogError(f"{path}: a ROS 2 bag without metadata.yaml; name one of its files ({names})")
    return files[0] if files else None


def _bag(path: Path) -> tuple[Path, str] | None:
    """What to open of a ROS bag, and its format; None of anything else. An MCAP says in its header that it is of ROS."""
    try:
        if path.is_dir():
            from rotorid.logs.ros_bag import stores

            files = stores(path)
            return (path, f"ros2-{files[0].suffix[1:]}") if files else None
        if not path.is_file():  # a pipe is read once
            return None
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return None  # said in `read_bytes`
    if head.startswith(b"#ROSBAG V2.0"):
        return path, "ros1-bag"
    if head.startswith(b"SQLite format 3\0"):
        return path, "ros2-db3"
    return (path, "ros2-mcap") if head.startswith(b"\x89MCAP") and head[17:25] == b"\x04\0\0\0ros2" else None


def _read(path: Path, buffer: bytes, mapping: str | Path | None) -> Flight:
    if is_tlog(buffer):
        from rotorid.logs.tlog import read_tlog

        return read_tlog(path, buffer, _options(mapping, "mavlink"))
    if buffer.startswith(b"\x89MCAP"):
        return _read_mcap(path, buffer, mapping)
    if mapping is not None:
        if buffer.startswith((b"ULog", b"PAR1")) or b"\xa3\x95\x80" in buffer[:4096] or buffer[0] == 0xBC:
            raise LogFormatError(f"{path}: a log that needs no mapping; leave the mapping out")
        _refuse_unless_table(path, buffer)
        from rotorid.logs.mapped import read_mapped

        return read_mapped(path, buffer, Path(mapping))
    if buffer.startswith(b"ULog"):
        from rotorid.logs.px4 import read_px4

        return read_px4(path, buffer)
    if b"\xa3\x95\x80" in buffer[:4096]:
        from rotorid.logs.ardupilot import read_ardupilot

        return read_ardupilot(path, buffer)
    if buffer[0] == 0xBC:
        from rotorid.logs.crazyflie import read_crazyflie

        return read_crazyflie(path, buffer)
    if buffer.startswith(b"PAR1"):
        from rotorid.logs.table import read_table_parquet

        return read_table_parquet(path, buffer)
    names = _refuse_unless_table(path, buffer)
    if not any(split_column(name) for name in names):
        if _TRUTH_COLUMNS & set(names):
            raise LogFormatError(
                f"{path}: a table of truth, not a log; give the log here and this file as its truth"
            )
        raise LogFormatError(
            f"{path}: a table with none of the columns of a flight table; give a mapping (TOML) that "
            f"says what {', '.join(names)[:80]} are"
        )
    from rotorid.logs.table import read_table_csv

    return read_table_csv(path, buffer)


def _read_mcap(path: Path, buffer: bytes, mapping: str | Path | None) -> Flight:
    from rotorid.logs.mcap_file import read_mcap
    from rotorid.logs.mcap_flight import FLIGHT, is_flight, read_flight_mcap

    contents = read_mcap(
        buffer, lambda c: c.encoding == "mavlink" or (c.encoding == "json" and c.topic.startswith(FLIGHT))
    )
    if is_flight(contents):
        _options(mapping)
        return read_flight_mcap(path, contents)
    if recorded := [m for c in contents.channels if c.encoding == "mavlink" for m in c.messages]:
        from rotorid.logs.tlog import read_mavlink

        options = _options(mapping, "mavlink")
        return read_mavlink(path, b"".join(recorded), options, "mavlink-mcap", contents.notes)
    topics = ", ".join(f"{c.topic} ({c.schema or c.encoding})" for c in contents.channels)
    raise LogFormatError(
        f"{path}: an MCAP file with nothing that rotorid reads; it has {topics[:200] or 'no channel'}"
    )


def read_bytes(path: Path) -> bytes:
    """The content of a file that must exist and have some."""
    try:
        buffer = path.read_bytes()
    except FileNotFoundError:
        raise LogError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise LogError(f"{path}: is a folder; name one log file in it") from None
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not buffer:
        raise LogFormatError(f"{path}: is empty; fetch it again from the vehicle")
    return buffer


def _refuse_unless_table(path: Path, buffer: bytes) -> list[str]:
    """The names in the header of a table in text; an error in words for all that is none."""
    for magic, what in _OTHERS.items():
        if buffer.startswith(magic):
            raise LogFormatError(f"{path}: is {what}; {_READS}")
    head = buffer[:65536]
    if b"\x00" in head or _undecodable(head):
        raise LogFormatError(f"{path}: no log that rotorid knows, or damaged at its start; {_READS}")
    from rotorid.logs.cells import read_header

    header = read_header(buffer)
    rows = buffer[header.skip : header.skip + 65536].splitlines()
    separators = max(buffer[: header.skip].rsplit(b"\n", 2)[-2:], key=len, default=b"")
    delimiter = next((d for d in (b",", b";", b"\t") if d in separators), None)
    if delimiter is None or not rows or rows[0].count(delimiter) != separators.count(delimiter):
        raise LogFormatError(f"{path}: is text but no log and no table; {_READS}")
    return header.names


def _options(mapping: str | Path | None, *tables: str) -> Options | None:
    if mapping is None:
        return None
    from rotorid.logs.options import read_options

    return read_options(Path(mapping), tables)


def is_tlog(buffer: bytes) -> bool:
    """Each MAVLink message of a recording follows 8 bytes of UTC in us, high byte first."""
    stamp = int.from_bytes(buffer[:8], "big")
    return len(buffer) > 8 and buffer[8] in (0xFD, 0xFE) and 10**14 < stamp < 10**16


def _undecodable(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end < len(head) - 4
    return False
