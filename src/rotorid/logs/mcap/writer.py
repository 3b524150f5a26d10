"""MCAP files of JSON messages, written in memory in the order of time: the same content gives the same bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final

_CHUNK: Final = 1 << 18  # bytes


class McapWriter:
    """clock: what the log's own clock reads, in s, where the times given to `message` are zero."""

    def __init__(self, clock: float = 0.0):
        self.clock = clock
        self._channels: list[tuple[str, str, bytes]] = []
        self._messages: list[tuple[int, int, bytes]] = []
        self._metadata: list[tuple[str, dict[str, str]]] = []
        self._encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

    def metadata(self, name: str, values: Mapping[str, str]) -> None:
        """What belongs to the whole file."""
        self._metadata.append((name, dict(values)))

    def channel(self, topic: str, schema: str, definition: Mapping[str, Any]) -> int:
        """A new channel with its JSON schema; its number."""
        self._channels.append((topic, schema, json.dumps(definition).encode()))
        return len(self._channels) - 1

    def message(self, channel: int, t: float, content: Mapping[str, Any]) -> None:
        """A message at `t`, s after `clock`."""
        self._messages.append((self.stamp(t), channel, self._encode(content).encode()))

    def stamp(self, t: float) -> int:
        """The log time of `t`, in ns; 0 where the clock did not run yet."""
        return max(0, round((self.clock + t) * 1e9))

    def content(self) -> bytes:
        """The whole file."""
        from mcap.writer import Writer

        buffer = io.BytesIO()
        writer = Writer(buffer, chunk_size=_CHUNK)
        writer.start(library="rotorid")
        for name, values in self._metadata:
            writer.add_metadata(name, values)
        numbers = []
        for topic, schema, definition in self._channels:
            schema_id = writer.register_schema(schema, "jsonschema", definition)
            numbers.append(writer.register_channel(topic, "json", schema_id))
        self._messages.sort(key=lambda m: m[:2])
        for sequence, (stamp, channel, data) in enumerate(self._messages):
            writer.add_message(numbers[channel], stamp, data, stamp, sequence)
        writer.finish()
        return buffer.getvalue()
