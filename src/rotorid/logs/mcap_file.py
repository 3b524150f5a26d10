"""The MCAP container: which channels a file holds and their messages.

After 8 bytes of magic come records: uint8 opcode, uint64 length, content. Schemas and channels say what messages are;
messages stand by themselves or in chunks, which may be compressed. What a crash left without its end is read up to
there. https://mcap.dev/spec
"""

from __future__ import annotations

import contextlib
import dataclasses
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

MAGIC: Final = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _METADATA, _DATA_END = 3, 4, 5, 6, 0x0C, 0x0F
_RECORD: Final = struct.Struct("<BQ")
_MESSAGE_HEAD: Final = struct.Struct("<HIQ")  # channel, sequence, log time; the time of publishing follows
_DAMAGED: Final = (struct.error, UnicodeDecodeError, IndexError)


@dataclasses.dataclass
class Channel:
    """One stream of messages.

    encoding: of its messages ("json", "cdr", "mavlink"). schema, schema_encoding, definition: what they are. times: ns,
    as logged. messages: their bytes; only of channels that were asked for.
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
        cut = ["the file is cut at its end; what was whole is used"] if self.truncated else []
        return cut + ([f"{self.damaged} damaged parts were left out"] if self.damaged else [])


def read_mcap(
    buffer: bytes | memoryview, wanted: Callable[[Channel], bool] = lambda channel: True
) -> McapContents:
    """The contents of an MCAP file, with the messages of the wanted channels."""
    walk = _Walk(wanted)
    truncated = walk.file(memoryview(buffer))
    return McapContents(list(walk.channels.values()), walk.metadata, walk.damaged, truncated)


class _Walk:
    def __init__(self, wanted: Callable[[Channel], bool]):
        self.wanted = wanted
        self.schemas: dict[int, tuple[str, str, bytes]] = {}
        self.channels: dict[int, Channel] = {}
        self.into: dict[int, tuple[list[int], list[bytes]]] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.damaged = 0

    def file(self, data: memoryview) -> bool:
        """Read all records; whether the file ends before its data do."""
        self._summary(data)
        for opcode, start, stop in _records(data, len(MAGIC)):
            if stop > len(data):
                return True
            if opcode == _DATA_END:
                return False
            try:
                if opcode == _CHUNK:
                    self._chunk(data[start:stop])
                else:
                    self._record(opcode, data[start:stop])
            except _DAMAGED:
                self.damaged += 1
        return True

    def _summary(self, data: memoryview) -> None:
        """The schemas and channels outside of chunks, which stand at the end again in case the first chunk is damaged."""
        for opcode, start, stop in _records(data, len(MAGIC)):
            if stop <= len(data) and opcode in (_SCHEMA, _CHANNEL):
                with contextlib.suppress(*_DAMAGED):
                    self._record(opcode, data[start:stop])

    def _chunk(self, data: memoryview) -> None:
        size, crc = struct.unpack_from("<QI", data, 16)
        compression, at = _text(data, 28)
        (length,) = struct.unpack_from("<Q", data, at)
        packed = data[at + 8 : at + 8 + length]
        try:
            content = memoryview(_unpacked(compression, packed, size))
        except (OSError, ValueError, MemoryError):
            self.damaged += 1
            return
        if len(content) != size or (crc and zlib.crc32(content) != crc):
            self.damaged += 1
            return
        into = self.into
        for opcode, start, stop in _records(content, 0):
            if opcode == _MESSAGE:
                channel, _, time = _MESSAGE_HEAD.unpack_from(content, start)
                if channel in into:
                    into[channel][0].append(time)
                    into[channel][1].append(bytes(content[start + 22 : stop]))
            else:
                self._record(opcode, content[start:stop])

    def _record(self, opcode: int, data: memoryview) -> None:
        if opcode == _MESSAGE:
            channel, _, time = _MESSAGE_HEAD.unpack_from(data)
            if channel in self.into:
                self.into[channel][0].append(time)
                self.into[channel][1].append(bytes(data[22:]))
        elif opcode == _SCHEMA:
            (number,) = struct.unpack_from("<H", data)
            name, at = _text(data, 2)
            encoding, at = _text(data, at)
            (size,) = struct.unpack_from("<I", data, at)
            self.schemas[number] = name, encoding, bytes(data[at + 4 : at + 4 + size])
        elif opcode == _CHANNEL:
            number, schema = struct.unpack_from("<HH", data)
            topic, at = _text(data, 4)
            encoding, at = _text(data, at)
            if number not in self.channels:
                channel = Channel(topic, encoding, *self.schemas.get(schema, ("", "", b"")), _map(data, at))
                self.channels[number] = channel
                if self.wanted(channel):
                    self.into[number] = channel.times, channel.messages
        elif opcode == _METADATA:
            name, at = _text(data, 0)
            self.metadata[name] = _map(data, at)


def _records(data: memoryview, position: int) -> Iterator[tuple[int, int, int]]:
    """Opcode of each record, and where its content starts and stops: behind the data where it is cut."""
    while position + 9 <= len(data):
        opcode, length = _RECORD.unpack_from(data, position)
        start, position = position + 9, position + 9 + length
        yield opcode, start, position


def _text(data: memoryview, at: int) -> tuple[str, int]:
    """A text after its length, and where it ends."""
    (size,) = struct.unpack_from("<I", data, at)
    if at + 4 + size > len(data):
        raise IndexError
    return bytes(data[at + 4 : at + 4 + size]).decode(), at + 4 + size


def _map(data: memoryview, at: int) -> dict[str, str]:
    (size,) = struct.unpack_from("<I", data, at)
    at, end, out = at + 4, at + 4 + size, {}
    while at < end:
        key, at = _text(data, at)
        out[key], at = _text(data, at)
    return out


def _unpacked(compression: str, packed: memoryview, size: int) -> bytes | memoryview:
    """Raises OSError or ValueError where it cannot be."""
    if not compression:
        return packed
    import pyarrow as pa

    if compression not in ("zstd", "lz4"):
        raise ValueError(compression)
    if size > 1 << 32:
        raise ValueError("too large")
    return memoryview(pa.decompress(packed, decompressed_size=size, codec=compression))
