"""MCAP logs: flight tables, and recordings of a MAVLink link."""

from __future__ import annotations

from rotorid.errors import LogFormatError
from rotorid.logs.flight import Flight
from rotorid.logs.mavlink.tlog import read_mavlink
from rotorid.logs.mcap.container import read_mcap
from rotorid.logs.mcap.flight import FLIGHT, is_flight, read_flight_mcap
from rotorid.logs.reader_base import LogFile


def read_mcap_log(file: LogFile) -> Flight:
    """The flight in an MCAP file. Raises LogFormatError for one without a flight, SignalError for a wrong mapping."""
    try:
        contents = read_mcap(
            file.content,
            lambda c: c.encoding == "mavlink" or (c.encoding == "json" and c.topic.startswith(FLIGHT)),
        )
    except LogFormatError as error:
        raise LogFormatError(f"{file.path}: {error}") from None
    if is_flight(contents):
        file.options()
        return read_flight_mcap(file.path, contents)
    if messages := [m for c in contents.channels if c.encoding == "mavlink" for m in c.messages]:
        options = file.options("mavlink")
        return read_mavlink(file.path, b"".join(messages), options, "mavlink-mcap", contents.notes)
    topics = ", ".join(f"{c.topic} ({c.schema or c.encoding})" for c in contents.channels)
    raise LogFormatError(
        f"{file.path}: an MCAP file with nothing that rotorid reads; it has {topics[:200] or 'no channel'}"
    )
