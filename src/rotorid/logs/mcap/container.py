"""The MCAP container: channels of a file and their messages, all at once or one after the other.

After 8 bytes of magic come records: uint8 opcode, uint64 length, content. Schemas and channels describe messages;
messages are single records or in chunks, which may be compressed. A file without an end (after a crash) is read as far as
it is complete. Chunks that unpack to more than `MOST_UNPACKED` in all are refused. https://mcap.dev/spec
"""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from rotorid.errors import LogFormatError

MAGIC: Final = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _ATTACHMENT, _METADATA, _DATA_END = 3, 4, 5, 6, 9, 0x0C, 0x0F
_RECORD: Final = struct.Struct("<BQ")
_MESSAGE_HEAD: Final = struct.Struct("<HIQ")  # channel, sequence, log time; the time of publishing follows
MOST_UNPACKED: Final = 32_000_000, 20
"""Bytes that chunks may unpack to: so many in any case, or this number of times the file if that is more."""
_DAMAGED: Final = (struct.error, UnicodeDecodeError, IndexError)


@dataclasses.dataclass
class Channel:
    """One stream of messages.

    encoding: of its messages ("json", "cdr", "mavlink"). schema, schema_encoding, definition: what they are. times: ns,
    as logged. messages: their bytes; only of requested channels.
    """

    topic: str
    encoding: str
    schema: str
    schema_encoding: str
    definition: bytes
    metadata: dict[str, str]
    times: list[int] = dataclasses.field(default_factory=list)
    messages: list[bytes] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class McapContents:
    """channels: in the order of the file. metadata: by name. damaged: chunks left out. truncated: the end is cut."""

    channels: list[Channel]
    metadata: dict[str, dict[str, str]]
    damaged: int
    truncated: bool

    @property
    def notes(self) -> list[str]:
        """What the user should know of the file."""
        cut = ["the file is cut at its end; only the complete part is used"] if self.truncated else []
        return cut + ([f"{self.damaged} damaged parts were left out"] if self.damaged else [])


def read_mcap(
    buffer: bytes | memoryview, is_wanted: Callable[[Channel], bool] = lambda channel: True
) -> McapContents:
    """The contents of an MCAP file, with the messages of the wanted channels."""
    walk = McapWalk(buffer, is_wanted)
    for channel, time, message in walk.messages():
        channel.times.append(time)
        channel.messages.append(message)
    return McapContents(list(walk.channels.values()), walk.metadata, walk.damaged, walk.truncated)


class McapWalk:
    """A file from its beginning to its end, message by message.

    channels: by number; metadata, attachments: by name; all records outside of chunks are read at once. damaged,
    truncated: as in `McapContents`, complete after all messages were read.
    """

    def __init__(
        self, buffer: bytes | memoryview, is_wanted: Callable[[Channel], bool] = lambda channel: True
    ) -> None:
        self._data, self._is_wanted = memoryview(buffer), is_wanted
        self._schemas: dict[int, tuple[str, str, bytes]] = {}
        self._into: dict[int, Channel] = {}
        self.channels: dict[int, Channel] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.attachments: dict[str, bytes] = {}
        self.damaged, self.truncated = 0, False
        base, factor = MOST_UNPACKED
        self._left = max(base, factor * len(self._data))
        for opcode, start, stop in _records(self._data, len(MAGIC)):
            if stop <= len(self._data) and opcode not in (_CHUNK, _MESSAGE):
                try:
                    self._record(opcode, self._data[start:stop])
                except _DAMAGED:
                    self.damaged += 1

    def messages(self) -> Iterator[tuple[Channel, int, bytes]]:
        """The messages of the wanted channels in the order of the file, each with its channel and log time, ns. Once."""
        data = self._data
        self.truncated = True
        for opcode, start, stop in _records(data, len(MAGIC)):
            if stop > len(data):
                return
            if opcode == _DATA_END:
                self.truncated = False
                return
            try:
                if opcode == _CHUNK:
                    yield from self._chunk(data[start:stop])
                elif opcode == _MESSAGE:
                    channel, _, time = _MESSAGE_HEAD.unpack_from(data, start)
                    if channel in self._into:
                        yield self._into[channel], time, bytes(data[start + 22 : stop])
            except _DAMAGED:
                self.damaged += 1

    def _chunk(self, data: memoryview) -> Iterator[tuple[Channel, int, bytes]]:
        size, crc = struct.unpack_from("<QI", data, 16)
        compression, position = _text(data, 28)
        (length,) = struct.unpack_from("<Q", data, position)
        packed = data[position + 8 : position + 8 + length]
        if compression:
            self._left -= size
            if self._left < 0:
                raise LogFormatError(
                    f"an MCAP file that unpacks to more than {MOST_UNPACKED[0] / 1e6:.0f} MB and {MOST_UNPACKED[1]} times its "
                    "size, which no log does"
                )
        try:
            content = memoryview(_unpacked(compression, packed, size))
        except (OSError, ValueError, MemoryError):
            self.damaged += 1
            return
        if len(content) != size or (crc and zlib.crc32(content) != crc):
            self.damaged += 1
            return
        into = self._into
        for opcode, start, stop in _records(content, 0):
            if opcode == _MESSAGE:
                channel, _, time = _MESSAGE_HEAD.unpack_from(content, start)
                if channel in into:
                    yield into[channel], time, bytes(content[start + 22 : stop])
            elif opcode in (_SCHEMA, _CHANNEL):
                self._record(opcode, content[start:stop])
            elif opcode == 0:  # no record
                self.damaged += 1
                return

    def _record(self, opcode: int, data: memoryview) -> None:
        if opcode == _SCHEMA:
            (number,) = struct.unpack_from("<H", data)
            name, position = _text(data, 2)
            encoding, position = _text(data, position)
            (size,) = struct.unpack_from("<I", data, position)
            self._schemas[number] = name, encoding, bytes(data[position + 4 : position + 4 + size])
        elif opcode == _CHANNEL:
            number, schema = struct.unpack_from("<HH", data)
            topic, position = _text(data, 4)
            encoding, position = _text(data, position)
            if number not in self.channels:
                channel = Channel(
                    topic, encoding, *self._schemas.get(schema, ("", "", b"")), _map(data, position)
                )
                self.channels[number] = channel
                if self._is_wanted(channel):
                    self._into[number] = channel
        elif opcode == _METADATA:
            name, position = _text(data, 0)
            self.metadata[name] = _map(data, position)
        elif opcode == _ATTACHMENT:
            name, position = _text(data, 16)
            _, position = _text(data, position)
            (size,) = struct.unpack_from("<Q", data, position)
            self.attachments[name] = bytes(data[position + 8 : position + 8 + size])


def _records(data: memoryview, position: int) -> Iterator[tuple[int, int, int]]:
    """Opcode of each record, and where its content starts and stops: behind the data where it is cut."""
    while position + 9 <= len(data):
        opcode, length = _RECORD.unpack_from(data, position)
        start, position = position + 9, position + 9 + length
        yield opcode, start, position


def _text(data: memoryview, position: int) -> tuple[str, int]:
    """A text after its length, and where it ends."""
    (size,) = struct.unpack_from("<I", data, position)
    if position + 4 + size > len(data):
        raise IndexError
    return bytes(data[position + 4 : position + 4 + size]).decode(), position + 4 + size


def _map(data: memoryview, position: int) -> dict[str, str]:
    (size,) = struct.unpack_from("<I", data, position)
    position, end, entries = position + 4, position + 4 + size, {}
    while position < end:
        key, position = _text(data, position)
        entries[key], position = _text(data, position)
    return entries


def _unpacked(compression: str, packed: memoryview, size: int) -> bytes | memoryview:
    """Raises OSError or ValueError where it cannot be."""
    if not compression:
        return packed
    import pyarrow as pa

    if compression not in ("zstd", "lz4"):
        raise ValueError(compression)
    return memoryview(pa.decompress(packed, decompressed_size=size, codec=compression))
