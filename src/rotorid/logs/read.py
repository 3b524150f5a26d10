"""One door for all log formats: `read` looks at the content of a file, not at its name."""

from __future__ import annotations

from pathlib import Path

from rotorid.errors import LogError, LogFormatError
from rotorid.logs.flight import Flight


def read(path: str | Path, mapping: str | Path | None = None) -> Flight:
    """The flight in a log file.

    path: a PX4 ULog, an ArduPilot DataFlash .BIN, a Crazyflie micro-SD log, or a flight table (CSV, Parquet).
    mapping: a TOML file that says what the columns of any other CSV are.
    """
    path = Path(path)
    buffer = read_bytes(path)
    if mapping is not None:
        from rotorid.logs.mapped import read_mapped

        return read_mapped(path, buffer, Path(mapping))
    if buffer.startswith(b"ULog"):
        from rotorid.logs.px4 import read_px4

        return read_px4(path, buffer)
    if buffer.startswith(b"\xa3\x95"):
        from rotorid.logs.ardupilot import read_ardupilot

        return read_ardupilot(path, buffer)
    if buffer[0] == 0xBC:
        from rotorid.logs.crazyflie import read_crazyflie

        return read_crazyflie(path, buffer)
    raise LogFormatError(f"{path}: no log that rotorid reads")


def read_bytes(path: Path) -> bytes:
    """The content of a file that must exist and have some."""
    try:
        buffer = path.read_bytes()
    except FileNotFoundError:
        raise LogError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise LogError(f"{path}: is a folder; name one log file in it") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not buffer:
        raise LogFormatError(f"{path}: is empty; fetch it again from the vehicle")
    return buffer
