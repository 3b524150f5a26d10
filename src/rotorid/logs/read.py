"""`read`: one function for all log formats. A file is recognised by its content, not by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rotorid.logs.flight import Flight
from rotorid.logs.log_file import LogFile
from rotorid.logs.registry import FORMATS


def read(path: str | Path, mapping: str | Path | None = None) -> Flight:
    """The flight in a log file.

    Args:
        path: a PX4 ULog, an ArduPilot DataFlash .BIN, a MAVLink recording, a ROS bag, a Crazyflie micro-SD log, a flight
            table (CSV, Parquet, MCAP), or any other CSV with a mapping.
        mapping: a TOML file that describes the columns of any other CSV (see `rotorid.logs.tables.mapped`), or chooses the
            vehicle of a recording or the topics of a bag (see `rotorid.logs.options`).
    Returns:
        The signals of the log: SI units, world ENU, body FLU, each on its own clock in s from the start of the flight.
    Raises:
        LogError: the file cannot be read.
        LogFormatError: its format is unknown, or it is damaged.
        SignalError: the mapping does not fit the file.
    """
    path = Path(path)
    if path.is_dir():
        from rotorid.logs.ros.bag import storage_file

        path = storage_file(path)
    file = LogFile(path, None if mapping is None else Path(mapping))
    log_format = next(entry for entry in FORMATS if entry.recognise(file))
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # values that are not finite are left out later, with a note
        return log_format.read(file)
