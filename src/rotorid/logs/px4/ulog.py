"""The ULog file format of PX4: which topics a file holds and their rows, as numpy records.

A file is a 16-byte header and then messages: uint16 size, uint8 type, `size` bytes. Formats (`F`) and
subscriptions (`A`) say how the data messages (`D`) are laid out. Where a message is damaged, reading goes on
at the next place where whole messages follow. A message has at most 65535 bytes, and so a format; larger ones, and those that
are nested more than five times, are left out. https://docs.px4.io/main/en/dev_log/ulog_file_format.html
"""

from __future__ import annotations

import dataclasses
import re
import struct
from typing import Final

import numpy as np

from rotorid.logs.records import gather

MAGIC: Final = b"ULog\x01\x12\x35"
_HEADER_BYTES: Final = 16
_KINDS: Final = frozenset(b"BFIMPQARDLCSO")
_SCALARS: Final = {
    "int8_t": "<i1",
    "uint8_t": "<u1",
    "int16_t": "<i2",
    "uint16_t": "<u2",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "float": "<f4",
    "double": "<f8",
    "bool": "?",
    "char": "S1",
}
_RECOGNISABLE: Final = {
    ord("D"): re.compile(b""),
    ord("F"): re.compile(rb"\w{1,200}:\w"),
    ord("A"): re.compile(rb"(?s:...)\w{3,200}\Z"),
    ord("I"): re.compile(rb"(?s:.)[\w\[\]]{1,200} \w"),
    ord("P"): re.compile(rb"(?s:.)(float|int32_t) \w"),
}
"""Types of messages that can be recognised in damaged data, with the start of their payload."""
_FIELD: Final = re.compile(r"(\w+)(?:\[(\d{1,6})\])? (\w+)")
_MOST_BYTES: Final = 65535 - 2  # of a record: what a message has room for
_MOST_FAILURES: Final = 100  # subscriptions without a sound format, after which no more are looked at
_LATEST_START: Final = 1 << 53  # us: 285 years, and all numbers up to it are exact as floats


@dataclasses.dataclass(frozen=True)
class ULogContents:
    """What a ULog file holds.

    start: when logging began, in us of the vehicle's clock; 0 where its stamp cannot be right (has_start). topics: the rows of
    each (topic, instance) asked for. information, parameters: as first written. changed: names of parameters written again.
    dropouts: durations in ms. skipped: damaged bytes. truncated: the last message is cut.
    """

    start: int
    topics: dict[tuple[str, int], np.ndarray]
    information: dict[str, str]
    parameters: dict[str, float]
    changed: tuple[str, ...]
    dropouts: tuple[int, ...]
    skipped: int
    truncated: bool
    has_start: bool = True


def read_ulog(buffer: bytes, topics: frozenset[str]) -> ULogContents | None:
    """The contents of a ULog file, of the named topics only; None where even the header is not whole."""
    if len(buffer) < _HEADER_BYTES or not buffer.startswith(MAGIC):
        return None
    walk = _Walk(buffer, topics)
    walk.run()
    (start,) = struct.unpack_from("<Q", buffer, 8)
    has_start = start < _LATEST_START
    return ULogContents(
        start=start if has_start else 0,
        has_start=has_start,
        topics={
            walk.subscriptions[i][0]: gather(buffer, offsets, walk.subscriptions[i][1])
            for i, offsets in walk.rows.items()
        },
        information=walk.information,
        parameters=walk.parameters,
        changed=tuple(sorted(walk.changed)),
        dropouts=tuple(walk.dropouts),
        skipped=walk.skipped,
        truncated=walk.truncated,
    )


class _Walk:
    """One pass over the messages of a file."""

    def __init__(self, buffer: bytes, topics: frozenset[str]):
        self.buffer, self.wanted = buffer, topics
        self.formats: dict[str, str] = {}
        self.layouts: dict[
            str, tuple[list[tuple], int]
        ] = {}  # fields and bytes of the formats that were asked for
        self.dtypes: dict[str, tuple[np.dtype, int]] = {}  # without trailing padding, and bytes with it
        self.failures = 0
        self.sizes: dict[
            int, tuple[int, int]
        ] = {}  # message id -> payload bytes without and with trailing padding
        self.subscriptions: dict[int, tuple[tuple[str, int], np.dtype]] = {}
        self.rows: dict[int, list[int]] = {}
        self.information: dict[str, str] = {}
        self.parameters: dict[str, float] = {}
        self.changed: set[str] = set()
        self.dropouts: list[int] = []
        self.skipped = 0
        self.truncated = False

    def run(self) -> None:
        position, end = _HEADER_BYTES, len(self.buffer)
        appended_offsets = self._appended_offsets()
        while position < end:
            limit = next((a for a in appended_offsets if a > position), end)
            message_end = self._messages(position, limit)
            if message_end >= limit:
                position = limit
                continue
            next_message = self._next_message(message_end + 1, limit)
            if limit == end and next_message == end and self._cut(message_end):
                self.truncated = True
            elif next_message < limit or limit == end:
                self.skipped += next_message - message_end
            position = next_message

    def _appended_offsets(self) -> list[int]:
        """Offsets where data begin that were appended after a crash; the message before one may be cut."""
        position = _HEADER_BYTES
        if len(self.buffer) < position + 43 or self.buffer[position + 2] != 0x42:  # B
            return []
        offsets = struct.unpack_from("<3Q", self.buffer, position + 19)
        return sorted(o for o in offsets if _HEADER_BYTES < o < len(self.buffer))

    def _messages(self, position: int, limit: int) -> int:
        """Read messages from `position` on; the offset of the first that is not whole, or `limit`."""
        buffer, sizes, rows = self.buffer, self.sizes, self.rows
        while position + 3 <= limit:
            size = buffer[position] | buffer[position + 1] << 8
            kind = buffer[position + 2]
            stop = position + 3 + size
            if kind not in _KINDS or stop > limit:
                return position
            if kind == 0x44:  # D
                if size < 2:
                    return position
                identity = buffer[position + 3] | buffer[position + 4] << 8
                if identity in sizes:
                    if size not in sizes[identity]:
                        return position
                    if identity in rows:
                        rows[identity].append(position + 5)
                elif not self._plausible(stop, limit):
                    return position
            elif self._plausible(stop, limit):
                self._definition(kind, buffer[position + 3 : stop])
            else:
                return position
            position = stop
        return position

    def _plausible(self, position: int, limit: int) -> bool:
        """Whether a message may begin at `position`, or the file end there."""
        if position + 5 > limit:
            return True
        size = self.buffer[position] | self.buffer[position + 1] << 8
        kind = self.buffer[position + 2]
        if kind != 0x44:
            return kind in _KINDS
        identity = self.buffer[position + 3] | self.buffer[position + 4] << 8
        return size in self.sizes.get(identity, (size,))

    def _definition(self, kind: int, payload: bytes) -> None:
        match chr(kind):
            case "F":
                name, _, fields = payload.decode("ascii", "replace").partition(":")
                self.formats.setdefault(name, fields)
            case "A" if len(payload) > 3:
                self._subscribe(payload)
            case "I" | "P":
                self._key_and_value(kind, payload)
            case "O" if len(payload) >= 2:
                self.dropouts.append(struct.unpack_from("<H", payload)[0])

    def _subscribe(self, payload: bytes) -> None:
        instance, identity = struct.unpack_from("<BH", payload)
        name = payload[3:].decode("ascii", "replace")
        if identity in self.sizes or self.failures > _MOST_FAILURES:
            return
        found = self._layout(name, ())
        if found is None:
            self.failures += 1
            return
        if name not in self.dtypes:
            layout, _ = found
            is_padded = str(layout[-1][0]).startswith("_padding")
            self.dtypes[name] = np.dtype(layout[:-1] if is_padded else layout), np.dtype(layout).itemsize
        dtype, size = self.dtypes[name]
        self.sizes[identity] = (dtype.itemsize + 2, size + 2)
        if name in self.wanted and "timestamp" in (dtype.names or ()):
            self.subscriptions[identity] = ((name, instance), dtype)
            self.rows[identity] = []

    def _layout(self, name: str, outer: tuple[str, ...]) -> tuple[list[tuple], int] | None:
        """Fields of a format, as numpy describes them, and its bytes; None where the format is missing or damaged."""
        if name in self.layouts:
            return self.layouts[name]
        if name in outer or len(outer) > 4:
            return None
        layout: list[tuple] = []
        names: set[str] = set()
        total = 0
        for text in filter(None, self.formats.get(name, "").split(";")):
            if (match := _FIELD.fullmatch(text)) is None:
                return None
            kind, count, field = match.groups()
            scalar: str | np.dtype | None = _SCALARS.get(kind)
            size = 0
            if scalar is not None:
                size = int(scalar[-1]) if scalar != "?" else 1
            elif (inner := self._layout(kind, (*outer, name))) is not None:
                scalar, size = np.dtype(inner[0]), inner[1]
            total += size * int(count or 1) if scalar is not None else 0
            if scalar is None or total > _MOST_BYTES or int(count or 1) > 4096 or field in names:
                return None
            names.add(field)
            layout.append((field, scalar) if count is None else (field, scalar, (int(count),)))
        if not layout:
            return None
        self.layouts[name] = layout, total
        return self.layouts[name]

    def _key_and_value(self, kind: int, payload: bytes) -> None:
        if not payload or len(payload) <= 1 + payload[0]:
            return
        value_type, _, key = payload[1 : 1 + payload[0]].decode("ascii", "replace").partition(" ")
        value = payload[1 + payload[0] :]
        if kind == 0x49:  # I
            if value_type.startswith("char"):
                self.information.setdefault(key, value.decode("utf-8", "replace"))
        elif value_type in ("float", "int32_t") and len(value) == 4:
            number = float(struct.unpack("<f" if value_type == "float" else "<i", value)[0])
            if self.parameters.setdefault(key, number) != number:
                self.changed.add(key)

    def _message_end(self, position: int, limit: int) -> int:
        """The end of the message at `position` if it is one beyond doubt, else 0."""
        if position + 5 > limit:
            return 0
        size = self.buffer[position] | self.buffer[position + 1] << 8
        kind = self.buffer[position + 2]
        stop = position + 3 + size
        if kind not in _RECOGNISABLE or stop > limit:
            return 0
        if kind == 0x44:  # D
            identity = self.buffer[position + 3] | self.buffer[position + 4] << 8
            return stop if size in self.sizes.get(identity, ()) else 0
        return stop if _RECOGNISABLE[kind].match(self.buffer, position + 3, stop) else 0

    def _next_message(self, position: int, limit: int) -> int:
        """The next offset where two sound messages follow each other, `limit` where there is none."""
        raw = np.frombuffer(self.buffer, np.uint8)
        block, size = position, 256
        while block < limit:
            kinds = raw[block + 2 : min(block + size + 2, limit)]
            for offset in np.flatnonzero(np.isin(kinds, list(_RECOGNISABLE))).tolist():
                stop = self._message_end(block + offset, limit)
                if stop and (stop == limit or self._message_end(stop, limit)):
                    return block + offset
            block, size = block + size, min(2 * size, 65536)
        return limit

    def _cut(self, position: int) -> bool:
        """Whether the message at `position` looks whole but for its end."""
        if position + 3 > len(self.buffer):
            return True
        size = self.buffer[position] | self.buffer[position + 1] << 8
        return self.buffer[position + 2] in _KINDS and position + 3 + size > len(self.buffer)
