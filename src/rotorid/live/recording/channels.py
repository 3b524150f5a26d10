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
import math
from typing import Any, Final

from mcap.records import Channel, Schema

from rotorid.live.events import EVENT_TYPES
from rotorid.live.link.clock import ClockState
from rotorid.live.snapshot import Event, Snapshot
from rotorid.live.text import event_text
from rotorid.results.files import to_plain

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
        "vehicle": _STRING,
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
        "vehicle": _STRING,
    },
    "rotorid.Clock": {f.name: _NUMBER for f in dataclasses.fields(ClockState)}
    | {"t": _NUMBER, "vehicle": _STRING},
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


def estimates_content(snapshot: Snapshot) -> dict[str, Any]:
    """The message of a snapshot with readings (`rotorid.Estimates`); numbers that are not finite are null."""
    return {
        "t": snapshot.t,
        "health": snapshot.health,
        "readings": {
            name: {"value": _number(r.value), "std": _number(r.std), "unit": r.unit}
            for name, r in snapshot.readings.items()
        },
        "attitude": snapshot.attitude,
        "position": snapshot.position,
    }


def event_content(event: Event) -> dict[str, Any]:
    """The message of an event (`rotorid.Event`)."""
    content = {
        "t": event.t,
        "code": event.code,
        "severity": event.severity,
        "source": EVENT_TYPES[event.code].source,
        "values": event.values,
        "count": event.count,
        "since": event.since,
        "text": event_text(event),
    }
    return to_plain(content)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
