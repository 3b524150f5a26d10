"""Writes the recording of a session: an MCAP file that is only appended to, readable up to its last chunk at any time.

The channels are described in `channels.py`. An attachment holds the airframe and a metadata record the settings, so that a
replay needs no other file. Each chunk holds `CHUNK` s and is passed to the operating system at once: a process that is killed
loses at most that. After a power failure, what the file system had not written is lost. The index at the end is made from the
file itself: entries kept in memory would grow by 10 MB an hour. https://mcap.dev/spec
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import struct
import threading
import time
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Statistics,
)

from rotorid.errors import OutputError
from rotorid.live.link.clock import ClockState
from rotorid.live.recording.channels import (
    AIRFRAME,
    CHANNELS,
    SCHEMAS,
    SETTINGS,
    Topic,
    estimates_content,
    event_content,
)
from rotorid.live.snapshot import Event, Snapshot
from rotorid.logs.mcap.container import MAGIC

CHUNK: Final = 0.04
"""s: age of its first message at which a chunk is written."""

_MAX_BYTES: Final = 1 << 18  # bytes of a chunk
_MESSAGE_HEADER: Final = struct.Struct("<BQHIQQ")
_RECORD: Final = struct.Struct("<BQ")
_CHUNK_HEAD: Final = struct.Struct("<QQQ")  # first and last time stamp, ns; size of the content
_INDEX_HEAD: Final = struct.Struct("<H")  # channel
_BUFFER: Final = 1 << 16  # bytes of the summary that are written at once


class Recorder:
    """Writes a recording. It can be used from several threads and does not block: a thread of its own writes to the disk.

    Args:
        path: file to create.
        airframe: text of the airframe file (TOML).
        settings: of the session.
    Raises:
        OutputError: the file exists or cannot be written.

    error: why writing failed; None while it has not.
    """

    def __init__(self, path: Path, airframe: str, settings: Mapping[str, str]) -> None:
        self.path = path
        self.error: OutputError | None = None
        self._lock, self._write_lock, self._closed = threading.Lock(), threading.Lock(), threading.Event()
        self._body = bytearray()
        self._index: dict[int, array[int]] = {}  # time stamp and offset of each message, alternating
        self._chunk_start: float | None = None
        self._chunk_count = 0
        self._time_range = [1 << 63, 0]  # ns since 1970
        self._counts = dict.fromkeys(CHANNELS, 0)
        self._clocks: dict[str, ClockState] = {}  # by vehicle
        try:
            self._file: io.FileIO = open(path, "x+b", buffering=0)  # noqa: SIM115
        except FileExistsError:
            raise OutputError(
                f"{path}: this file exists already and is not overwritten; use another name with --record"
            ) from None
        except OSError as error:
            raise OutputError(f"{path}: the file cannot be written: {error.strerror}") from None
        self._size = 0
        try:
            self._write_header(airframe, settings)
        except OutputError:
            self._file.close()
            raise
        self._thread = threading.Thread(target=self._flush_repeatedly, name="rotorid recording", daemon=True)
        self._thread.start()

    def _write_header(self, airframe: str, settings: Mapping[str, str]) -> None:
        self._append(MAGIC + _bytes(Header(profile="", library="rotorid"), *SCHEMAS, *CHANNELS.values()))
        now, offset = time.time_ns(), self._size
        text = airframe.encode()
        self._append(
            _bytes(
                Attachment(
                    create_time=0, log_time=now, name=AIRFRAME, media_type="application/toml", data=text
                )
            )
        )
        self._attachment = AttachmentIndex(
            offset=offset, length=self._size - offset, log_time=now, create_time=0, data_size=len(text), name=AIRFRAME,
            media_type="application/toml",
        )  # fmt: skip
        offset = self._size
        self._append(_bytes(Metadata(name=SETTINGS, metadata=dict(settings))))
        self._metadata = MetadataIndex(offset=offset, length=self._size - offset, name=SETTINGS)
        self._first_chunk = self._size

    @property
    def count(self) -> int:
        """Number of packets."""
        return self._counts[Topic.MAVLINK]

    def add_packet(self, arrival: int, data: bytes) -> None:
        """Add a packet of the link. arrival: ns since 1970."""
        self._add(Topic.MAVLINK, arrival, data)

    def add_snapshot(self, arrival: int, snapshot: Snapshot) -> None:
        """Add a snapshot: its events, its readings, and the state of the vehicle's clock if that is new.

        Args:
            arrival: of the packet that it follows from, ns since 1970.
            snapshot: snapshot of the session.
        """
        vehicle = {"vehicle": snapshot.vehicle} if snapshot.vehicle else {}
        for event in snapshot.events:
            self.add_event(arrival, event, snapshot.vehicle)
        clock = snapshot.link.clock
        if clock is not None and clock is not self._clocks.get(snapshot.vehicle):
            self._clocks[snapshot.vehicle] = clock
            content = {"t": snapshot.t} | dataclasses.asdict(clock) | vehicle
            self._add(Topic.CLOCK, arrival, json.dumps(content).encode())
        if snapshot.readings:
            content = estimates_content(snapshot) | vehicle
            self._add(Topic.ESTIMATES, arrival, json.dumps(content).encode())

    def add_event(self, arrival: int, event: Event, vehicle: str = "") -> None:
        """Add an event. arrival: ns since 1970. vehicle: of `Snapshot`."""
        content = event_content(event) | ({"vehicle": vehicle} if vehicle else {})
        self._add(Topic.EVENTS, arrival, json.dumps(content).encode())

    def add_skipped(self, arrival: int, first: int, count: int) -> None:
        """Add a range of skipped packets. arrival: of the last, ns since 1970. first: its number, from 0."""
        self._add(Topic.SKIPPED, arrival, json.dumps({"first": first, "count": count}).encode())

    def _add(self, channel: int, stamp: int, data: bytes) -> None:
        with self._lock:
            offset = len(self._body)
            if not offset:
                self._chunk_start = time.monotonic()
            self._index.setdefault(channel, array("Q")).extend((stamp, offset))
            self._body += _MESSAGE_HEADER.pack(
                Opcode.MESSAGE,
                _MESSAGE_HEADER.size - 9 + len(data),
                channel,
                self._counts[channel],
                stamp,
                stamp,
            )
            self._body += data
            self._counts[channel] += 1
        if offset > _MAX_BYTES:
            self.flush(now=True)

    def flush(self, *, now: bool = False) -> None:
        """Write a chunk if it is older than `CHUNK`, or `now`. A failure is kept in `error` and ends the recording."""
        with self._write_lock:
            with self._lock:  # released before writing, so that other threads can add messages
                if self._chunk_start is None or not (now or time.monotonic() - self._chunk_start >= CHUNK):
                    return
                body, index = self._body, self._index
                self._body, self._index, self._chunk_start = bytearray(), {}, None
            if self.error is None:
                self._write_chunk(body, index)

    def _flush_repeatedly(self) -> None:
        while not self._closed.wait(CHUNK / 2.0):
            self.flush()

    def _write_chunk(self, body: bytearray, index: dict[int, array[int]]) -> None:
        start = min(min(entries[::2]) for entries in index.values())
        end = max(max(entries[::2]) for entries in index.values())
        head = struct.pack("<QQQII", start, end, len(body), zlib.crc32(body), 0) + struct.pack(
            "<Q", len(body)
        )
        chunk = struct.pack("<BQ", Opcode.CHUNK, len(head) + len(body)) + head + body
        tail = b""
        for channel, entries in index.items():
            packed = struct.pack(f"<{len(entries)}Q", *entries)
            tail += struct.pack("<BQHI", Opcode.MESSAGE_INDEX, 6 + len(packed), channel, len(packed)) + packed
        try:
            self._append(chunk + tail)
        except OutputError as error:
            self.error = error
            return
        self._chunk_count += 1
        self._time_range = [min(self._time_range[0], start), max(self._time_range[1], end)]

    def _append(self, data: bytes) -> None:
        """Write all of the data or none."""
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:]) or 0
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise OutputError(f"{self.path}: the recording has stopped: {error.strerror}") from None
        self._size += len(data)

    def close(self) -> None:
        """Write the rest and the index. Raises OutputError if this or an earlier write failed."""
        self._closed.set()
        self._thread.join()
        self.flush(now=True)
        with self._write_lock:
            try:
                if self.error is None:
                    self._write_summary()
            except OutputError as error:
                self.error = error
            finally:
                self._file.close()
        if self.error is not None:
            raise self.error

    def _write_summary(self) -> None:
        data_end = self._size
        try:
            end = _bytes(DataEnd(data_section_crc=0))
            start, crc, pending = self._size + len(end), 0, end
            for records in self._summary(data_end):
                crc, pending = zlib.crc32(records, crc), pending + records
                if len(pending) > _BUFFER:
                    self._append(pending)
                    pending = b""
            footer = struct.pack("<BQQQ", Opcode.FOOTER, 20, start, 0)
            crc = zlib.crc32(footer, crc)
            last = _bytes(Footer(summary_start=start, summary_offset_start=0, summary_crc=crc))
            self._append(pending + last + MAGIC)
        except OutputError:
            with contextlib.suppress(OSError):
                self._file.truncate(data_end)
            raise

    def _summary(self, data_end: int) -> Iterator[bytes]:
        """The records of the summary. data_end: offset at which the chunks end."""
        messages = sum(self._counts.values())
        statistics = Statistics(
            attachment_count=1, channel_count=len(CHANNELS), channel_message_counts=self._counts,
            chunk_count=self._chunk_count, message_count=messages, metadata_count=1,
            message_start_time=self._time_range[0] if self._chunk_count else 0, message_end_time=self._time_range[1],
            schema_count=len(SCHEMAS),
        )  # fmt: skip
        yield _bytes(*SCHEMAS, *CHANNELS.values(), statistics)
        position = self._first_chunk
        while position < data_end:
            entry, position = self._chunk_index(position, data_end)
            yield _bytes(entry)
        yield _bytes(self._attachment, self._metadata)

    def _chunk_index(self, position: int, data_end: int) -> tuple[ChunkIndex, int]:
        """The index entry of the chunk at an offset of the file, and the offset of the next chunk."""
        _, length = _RECORD.unpack(self._read(position, _RECORD.size))
        start, end, size = _CHUNK_HEAD.unpack(self._read(position + _RECORD.size, _CHUNK_HEAD.size))
        after = index = position + _RECORD.size + length
        offsets: dict[int, int] = {}
        while after < data_end:
            opcode, length = _RECORD.unpack(self._read(after, _RECORD.size))
            if opcode != Opcode.MESSAGE_INDEX:
                break
            (channel,) = _INDEX_HEAD.unpack(self._read(after + _RECORD.size, _INDEX_HEAD.size))
            offsets[channel] = after
            after += _RECORD.size + length
        entry = ChunkIndex(
            chunk_start_offset=position, chunk_length=index - position, message_start_time=start, message_end_time=end,
            message_index_offsets=offsets, message_index_length=after - index, compression="",
            compressed_size=size, uncompressed_size=size,
        )  # fmt: skip
        return entry, after

    def _read(self, position: int, size: int) -> bytes:
        try:
            self._file.seek(position)
            data = self._file.read(size)
            self._file.seek(self._size)
        except OSError as error:
            raise OutputError(f"{self.path}: its index cannot be made: {error.strerror}") from None
        if data is None or len(data) != size:
            raise OutputError(
                f"{self.path}: its index cannot be made: the file was changed by another program"
            )
        return data


def _bytes(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return bytes(builder.end())
