"""The recording of a session: an MCAP file that only grows, and is readable up to its last chunk wherever it is cut.

Channels: `mavlink`, the bytes as they came, one message a datagram or read, stamped with their arrival; `estimates`,
`events` and `clock` as JSON; `skipped`, which messages of `mavlink` were not estimated with, as JSON. An attachment
holds the airframe, and metadata the settings, so that a replay needs nothing else. Chunks hold `CHUNK` s each and go to
the operating system whole, so that a process that is killed loses no more than that; after a loss of power it is what
the file system had not written yet. https://mcap.dev/spec"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import mmap
import struct
import threading
import time
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)

from rotorid.errors import LogError, LogFormatError, OutputError
from rotorid.live.clock import ClockState
from rotorid.live.moment import Event, Moment
from rotorid.logs.mcap_file import MAGIC, McapWalk

CHUNK: Final = 0.04
"""s: a chunk is written when its first message is this old."""

TOPIC: Final = "mavlink"
"""Of the channel that holds the bytes of the link."""

AIRFRAME: Final = "airframe.toml"
SETTINGS: Final = "rotorid live"
_LARGEST: Final = 1 << 18  # bytes of a chunk
_MAVLINK, _ESTIMATES, _EVENTS, _CLOCK, _SKIPPED = 1, 2, 3, 4, 5
_HEAD: Final = struct.Struct("<BQHIQQ")  # of a Message record
_ESTIMATE: Final = {
    "type": "object",
    "properties": {
        "t": {"type": "number"},
        "health": {"type": "string"},
        "readings": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "value": {"type": "number"},
                    "std": {"type": "number"},
                    "unit": {"type": "string"},
                },
            },
        },
        "attitude": {"type": "array", "items": {"type": "number"}},
        "position": {"type": "array", "items": {"type": "number"}},
    },
}
_EVENT: Final = {
    "type": "object",
    "properties": {k: {"type": "string"} for k in ("kind", "text")} | {"t": {"type": "number"}},
}
_SKIPS: Final = {"type": "object", "properties": {k: {"type": "integer"} for k in ("first", "count")}}
_CLOCKS: Final = {
    "type": "object",
    "properties": {f.name: {"type": "number"} for f in dataclasses.fields(ClockState)}
    | {"t": {"type": "number"}},
}


class Recorder:
    """Writes a recording; threads may share it, and none of them waits for the disk: a thread of its own writes, twice
    every `CHUNK`.

    airframe: the text of its TOML. settings: what a replay needs beside it. Raises OutputError where the file exists,
    or cannot be written."""

    def __init__(self, path: Path, airframe: str, settings: Mapping[str, str]) -> None:
        self.path = path
        self.error: OutputError | None = None
        self._lock, self._writing, self._ends = threading.Lock(), threading.Lock(), threading.Event()
        self._body = bytearray()
        self._index: dict[int, array[int]] = {}  # stamp and offset of each message, in turn
        self._first: float | None = None
        self._chunks = bytearray()  # their index
        self._written = 0
        self._whole = [1 << 63, 0]
        self._counts = {_MAVLINK: 0, _ESTIMATES: 0, _EVENTS: 0, _CLOCK: 0, _SKIPPED: 0}
        self._clock: ClockState | None = None
        self._schemas = [
            Schema(
                id=1, name="rotorid.Estimates", encoding="jsonschema", data=json.dumps(_ESTIMATE).encode()
            ),
            Schema(id=2, name="rotorid.Event", encoding="jsonschema", data=json.dumps(_EVENT).encode()),
            Schema(id=3, name="rotorid.Clock", encoding="jsonschema", data=json.dumps(_CLOCKS).encode()),
            Schema(id=4, name="rotorid.Skipped", encoding="jsonschema", data=json.dumps(_SKIPS).encode()),
        ]
        self._channels = [
            Channel(id=_MAVLINK, topic=TOPIC, message_encoding="mavlink", schema_id=0, metadata={}),
            Channel(id=_ESTIMATES, topic="estimates", message_encoding="json", schema_id=1, metadata={}),
            Channel(id=_EVENTS, topic="events", message_encoding="json", schema_id=2, metadata={}),
            Channel(id=_CLOCK, topic="clock", message_encoding="json", schema_id=3, metadata={}),
            Channel(id=_SKIPPED, topic="skipped", message_encoding="json", schema_id=4, metadata={}),
        ]
        try:
            self._file: IO[bytes] = open(path, "xb", buffering=0)  # noqa: SIM115
        except FileExistsError:
            raise OutputError(
                f"{path}: exists already; a recording is never written over, give another name with --record"
            ) from None
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
        self._size = 0
        try:
            self._begin(airframe, settings)
        except OutputError:
            self._file.close()
            raise
        self._thread = threading.Thread(target=self._flushes, name="rotorid recording", daemon=True)
        self._thread.start()

    def _begin(self, airframe: str, settings: Mapping[str, str]) -> None:
        self._append(MAGIC + _bytes(Header(profile="", library="rotorid"), *self._schemas, *self._channels))
        now, at = time.time_ns(), self._size
        text = airframe.encode()
        self._append(
            _bytes(
                Attachment(
                    create_time=0, log_time=now, name=AIRFRAME, media_type="application/toml", data=text
                )
            )
        )
        self._attachment = AttachmentIndex(
            offset=at, length=self._size - at, log_time=now, create_time=0, data_size=len(text), name=AIRFRAME,
            media_type="application/toml",
        )  # fmt: skip
        at = self._size
        self._append(_bytes(Metadata(name=SETTINGS, metadata=dict(settings))))
        self._metadata = MetadataIndex(offset=at, length=self._size - at, name=SETTINGS)

    @property
    def count(self) -> int:
        """Pieces of bytes in it."""
        return self._counts[_MAVLINK]

    def received(self, arrival: int, data: bytes) -> None:
        """Bytes of the link. arrival: ns since 1970."""
        self._add(_MAVLINK, arrival, data)

    def moment(self, arrival: int, moment: Moment) -> None:
        """An estimate, the events that came with it, and how the clocks stand where more is known of that. arrival: of the
        bytes that it followed from, ns since 1970."""
        for event in moment.events:
            self.event(arrival, event)
        clock = moment.link.clock
        if clock is not None and clock is not self._clock:
            self._clock = clock
            self._add(_CLOCK, arrival, json.dumps({"t": moment.t} | dataclasses.asdict(clock)).encode())
        if moment.readings:
            said = {
                "t": moment.t,
                "health": moment.health,
                "readings": {
                    name: {"value": _number(r.value), "std": _number(r.std), "unit": r.unit}
                    for name, r in moment.readings.items()
                },
                "attitude": moment.attitude,
                "position": moment.position,
            }
            self._add(_ESTIMATES, arrival, json.dumps(said).encode())

    def event(self, arrival: int, event: Event) -> None:
        """Something that happened. arrival: when, ns since 1970."""
        said = {"t": event.t, "kind": event.kind, "text": event.text}
        self._add(_EVENTS, arrival, json.dumps(said).encode())

    def skipped(self, arrival: int, first: int, count: int) -> None:
        """Pieces of bytes that were not estimated with. arrival: of the last, ns since 1970. first: how many came before
        the first of them."""
        self._add(_SKIPPED, arrival, json.dumps({"first": first, "count": count}).encode())

    def _add(self, channel: int, stamp: int, data: bytes) -> None:
        with self._lock:
            at = len(self._body)
            if not at:
                self._first = time.monotonic()
            self._index.setdefault(channel, array("Q")).extend((stamp, at))
            self._body += _HEAD.pack(
                Opcode.MESSAGE, _HEAD.size - 9 + len(data), channel, self._counts[channel], stamp, stamp
            )
            self._body += data
            self._counts[channel] += 1
        if at > _LARGEST:
            self.flush(now=True)

    def flush(self, *, now: bool = False) -> None:
        """Write what is older than `CHUNK`, or all of it. What fails is kept in `error`, and ends the recording."""
        with self._writing:
            with self._lock:  # not while a disk is waited for: others have more to record
                if self._first is None or not (now or time.monotonic() - self._first >= CHUNK):
                    return
                body, index = self._body, self._index
                self._body, self._index, self._first = bytearray(), {}, None
            if self.error is None:
                self._chunk(body, index)

    def _flushes(self) -> None:
        while not self._ends.wait(CHUNK / 2.0):
            self.flush()

    def _chunk(self, body: bytearray, index: dict[int, array[int]]) -> None:
        start = min(min(entries[::2]) for entries in index.values())
        end = max(max(entries[::2]) for entries in index.values())
        at = self._size
        head = struct.pack("<QQQII", start, end, len(body), zlib.crc32(body), 0) + struct.pack(
            "<Q", len(body)
        )
        chunk = struct.pack("<BQ", Opcode.CHUNK, len(head) + len(body)) + head + body
        offsets, tail = {}, b""
        for channel, entries in index.items():
            offsets[channel] = at + len(chunk) + len(tail)
            packed = struct.pack(f"<{len(entries)}Q", *entries)
            tail += struct.pack("<BQHI", Opcode.MESSAGE_INDEX, 6 + len(packed), channel, len(packed)) + packed
        try:
            self._append(chunk + tail)
        except OutputError as error:
            self.error = error
            return
        self._written += 1
        self._whole = [min(self._whole[0], start), max(self._whole[1], end)]
        self._chunks += _bytes(
            ChunkIndex(
                chunk_start_offset=at, chunk_length=len(chunk), message_start_time=start, message_end_time=end,
                message_index_offsets=offsets, message_index_length=len(tail), compression="",
                compressed_size=len(body), uncompressed_size=len(body),
            )
        )  # fmt: skip

    def _append(self, data: bytes) -> None:
        """All of it or none of it."""
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:]) or 0
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise OutputError(f"{self.path}: the recording ends here: {error.strerror}") from None
        self._size += len(data)

    def close(self) -> None:
        """Write what is left, and the index that viewers look for. Raises OutputError where that fails, or writing
        has failed."""
        self._ends.set()
        self._thread.join()
        self.flush(now=True)
        with self._writing:
            try:
                if self.error is None:
                    self._end()
            except OutputError as error:
                self.error = error
            finally:
                self._file.close()
        if self.error is not None:
            raise self.error

    def _end(self) -> None:
        end = _bytes(DataEnd(data_section_crc=0))
        start = self._size + len(end)
        messages = sum(self._counts.values())
        statistics = Statistics(
            attachment_count=1, channel_count=len(self._channels), channel_message_counts=self._counts,
            chunk_count=self._written, message_count=messages, metadata_count=1,
            message_start_time=self._whole[0] if self._written else 0, message_end_time=self._whole[1],
            schema_count=len(self._schemas),
        )  # fmt: skip
        summary = _bytes(*self._schemas, *self._channels, statistics)
        summary += self._chunks + _bytes(self._attachment, self._metadata)
        footer = struct.pack("<BQQQ", Opcode.FOOTER, 20, start, 0)
        crc = zlib.crc32(footer, zlib.crc32(summary))
        last = _bytes(Footer(summary_start=start, summary_offset_start=0, summary_crc=crc))
        self._append(end + summary + last + MAGIC)


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _bytes(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return bytes(builder.end())


class Recorded:
    """A recording to replay. airframe: the text of its TOML. settings: of the session. cut: whether its end is
    missing or parts of it are damaged, known once all was read. Raises LogError for a file that cannot be read,
    LogFormatError for an MCAP file that is no recording of a session."""

    def __init__(self, path: Path) -> None:
        self.path, self.cut = path, False
        about = McapWalk(self._content())
        self.airframe = about.attachments.get(AIRFRAME, b"").decode("utf-8", "replace")
        self.settings = about.metadata.get(SETTINGS, {})
        if not self.settings or not self.airframe:
            raise LogFormatError(
                f"{path}: an MCAP file, but no recording of `rotorid live`; `rotorid track` may be able to read it"
            )

    def received(self) -> Iterator[tuple[int, bytes]]:
        """The bytes of the link in the order of their arrival, and when that was, ns since 1970."""
        return self._messages(TOPIC)

    def estimates(self) -> Iterator[dict]:
        """The estimates that were made when it was recorded."""
        return (json.loads(data) for _, data in self._messages("estimates"))

    def events(self) -> Iterator[dict]:
        """What happened when it was recorded."""
        return (json.loads(data) for _, data in self._messages("events"))

    def skipped(self) -> list[range]:
        """Which of the pieces that `received` gives were not estimated with when it was recorded, by number from 0, in
        order."""
        found = (json.loads(data) for _, data in self._messages("skipped"))
        return [range(s["first"], s["first"] + s["count"]) for s in found]

    def clocks(self) -> Iterator[dict]:
        """How the vehicle's clock stood to ours."""
        return (json.loads(data) for _, data in self._messages("clock"))

    def _messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        content = self._content()
        walk = McapWalk(content, lambda channel: channel.topic == topic)
        for _, stamp, data in walk.messages():
            yield stamp, data
        self.cut = walk.truncated or walk.damaged > 0 or content[-len(MAGIC) :] != MAGIC

    def _content(self) -> memoryview:
        """What is in the file, mapped: an hour of flight need not be in memory at once."""
        try:
            with open(self.path, "rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise LogError(f"{self.path}: cannot be read: {error}") from None
