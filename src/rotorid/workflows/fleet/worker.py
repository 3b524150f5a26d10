"""What a worker process does with a log. It imports no more than the analysis of a log, so that a worker starts quickly."""

from __future__ import annotations

import functools
from pathlib import Path

from rotorid.workflows.fleet.flight_record import (
    AnalysisSettings,
    analyse_log,
    limit_to_one_core,
    lost_record,
)
from rotorid.workflows.fleet.log_files import record_line

LogKey = tuple[str, str, str]
"""Name, path, and hash of a log when it was analysed before ("" if it was not)."""


@functools.cache
def prepare_worker() -> None:
    """Prepare this process for its first log."""
    limit_to_one_core()


def analyse_in_worker(settings: AnalysisSettings, digest: str, limit: float, key: LogKey) -> bytes:
    """The record of a log as a line of the file of records; empty if the log has not changed."""
    prepare_worker()
    name, path, previous_hash = key
    record = analyse_log(name, Path(path), settings, digest, previous_hash, limit)
    return b"" if record is None else record_line(record)


def lost_in_worker(digest: str, limit: float, key: LogKey, is_late: bool) -> bytes:
    """The record of a log whose worker ended, as such a line. is_late: whether it exceeded the time limit."""
    return record_line(lost_record(key[0], Path(key[1]), digest, limit if is_late else None))
