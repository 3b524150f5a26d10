"""Channels and schemas of a recording.

mavlink    bytes of the link: one datagram or read per message, stamped with its arrival time
estimates  JSON: snapshots with readings
events     JSON: events with code, severity, values and text
clock      JSON: offset and drift of the vehicle's clock, when they are updated
skipped    JSON: ranges of packets that the estimators did not use
"""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, Final

from mcap.records import Channel, Schema

from rotorid.live.link.clock import ClockState

AIRFRAME: Final = "airframe.toml"
"""Name of the attachment with the airframe."""

SETTINGS: Final = "rotorid live"
"""Name of the metadata record with the settings."""


class Topic(enum.IntEnum):
    """Id of each channel; its topic is the name in lower case."""

    MAVLINK = 1
    ESTIMATES = 2
    EVENTS = 3
    CLOCK = 4
    SKIPPED = 5

    @property
    def text(self) -> str:
        """The topic."""
        return self.name.lower()


_NUMBER: Final = {"type": "number"}
_STRING: Final = {"type": "string"}
_READING: Final = {
    "type": "object",
    "properties": {"value": _NUMBER, "std": _NUMBER, "unit": _STRING},
}
_PROPERTIES: Final[dict[str, dict[str, Any]]] = {
    "rotorid.Estimates": {
        "t": _NUMBER,
        "health": _STRING,
        "readings": {"type": "object", "additionalProperties": _READING},
        "attitude": {"type": "array", "items": _NUMBER},
        "position": {"type": "array", "items": _NUMBER},
    },
    "rotorid.Event": {
        "t": _NUMBER,
        "code": _STRING,
        "severity": _STRING,
        "source": _STRING,
        "values": {"type": "object"},
        "count": {"type": "integer"},
        "since": _NUMBER,
        "text": _STRING,
    },
    "rotorid.Clock": {f.name: _NUMBER for f in dataclasses.fields(ClockState)} | {"t": _NUMBER},
    "rotorid.Skipped": {"first": {"type": "integer"}, "count": {"type": "integer"}},
}

SCHEMAS: Final = tuple(
    Schema(
        id=k,
        name=name,
        encoding="jsonschema",
        data=json.dumps({"type": "object", "properties": properties}).encode(),
    )
    for k, (name, properties) in enumerate(_PROPERTIES.items(), 1)
)

CHANNELS: Final = {
    int(topic): Channel(
        id=int(topic),
        topic=topic.text,
        message_encoding="mavlink" if topic is Topic.MAVLINK else "json",
        schema_id=topic - Topic.MAVLINK,  # 0: none
        metadata={},
    )
    for topic in Topic
}
"""By id."""
