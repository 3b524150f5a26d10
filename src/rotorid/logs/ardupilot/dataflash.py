"""The DataFlash file format of ArduPilot (.BIN): which messages a file holds, as numpy records.

A message is the bytes A3 95, a type, and a payload whose layout a FMT message gave before. Where a message is
damaged, reading goes on at the next place where whole messages follow.
https://ardupilot.org/dev/docs/code-overview-adding-a-new-log-message.html
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from rotorid.logs.records import gather

MAGIC: Final = b"\xa3\x95"
FMT: Final = 128
_FMT_BYTES: Final = 89
_FMT_DTYPE: Final = np.dtype(
    [("type", "<u1"), ("length", "<u1"), ("name", "S4"), ("format", "S16"), ("columns", "S64")]
)
_CODES: Final[dict[str, tuple[str | tuple[str, int], float]]] = {
    "a": (("<i2", 32), 1.0),
    "b": ("<i1", 1.0),
    "B": ("<u1", 1.0),
    "h": ("<i2", 1.0),
    "H": ("<u2", 1.0),
    "i": ("<i4", 1.0),
    "I": ("<u4", 1.0),
    "f": ("<f4", 1.0),
    "g": ("<f2", 1.0),
    "d": ("<f8", 1.0),
    "n": ("S4", 1.0),
    "N": ("S16", 1.0),
    "Z": ("S64", 1.0),
    "c": ("<i2", 0.01),
    "C": ("<u2", 0.01),
    "e": ("<i4", 0.01),
    "E": ("<u4", 0.01),
    "L": ("<i4", 1e-7),
    "M": ("<u1", 1.0),
    "q": ("<i8", 1.0),
    "Q": ("<u8", 1.0),
}
"""Format code -> how numpy reads it, and the factor that gives the value in its unit."""
_TEXTS: Final = ("Name", "Message")


@dataclasses.dataclass(frozen=True)
class Messages:
    """All messages of one name: raw records, and the factor of each scaled column."""

    records: np.ndarray
    factors: dict[str, float]

    def __len__(self) -> int:
        return len(self.records)

    def __contains__(self, column: str) -> bool:
        """Whether there is a column of the kind that ArduPilot gives it: text in `Name` and `Message`, else numbers."""
        dtype = self.records.dtype
        return column in (dtype.names or ()) and dtype[column].kind in ("S" if column in _TEXTS else "iuf")

    def values(self, *names: str) -> np.ndarray:
        """Columns side by side, as float64 in their units: one row a message."""
        return np.stack(
            [self.records[n].astype(np.float64) * self.factors.get(n, 1.0) for n in names], axis=1
        )

    def times(self, clock: float) -> np.ndarray:
        """TimeUS as s after `clock`, which is in s of the autopilot's time since boot."""
        return (self.records["TimeUS"].astype(np.float64) - clock * 1e6) / 1e6

    def where(self, mask: np.ndarray) -> Messages:
        """The messages that `mask` selects."""
        return Messages(self.records[mask], self.factors)


@dataclasses.dataclass(frozen=True)
class DataflashContents:
    """messages: by name, of those asked for. skipped: damaged bytes. truncated: the last message is cut."""

    messages: dict[str, Messages]
    skipped: int
    truncated: bool


def read_dataflash(buffer: bytes, names: frozenset[str]) -> DataflashContents:
    """The messages of a DataFlash file, of the given names only."""
    walk = _Walk(buffer)
    walk.run()
    messages = {}
    for kind, (name, dtype, factors) in walk.formats.items():
        if name in names:
            records = gather(buffer, walk.rows.get(kind, []), dtype)
            messages[name] = Messages(records, factors)
    return DataflashContents(messages, walk.skipped, walk.truncated)


class _Walk:
    """One pass over the messages of a file."""

    def __init__(self, buffer: bytes):
        self.buffer = buffer
        self.lengths: dict[int, int] = {FMT: _FMT_BYTES}
        self.formats: dict[int, tuple[str, np.dtype, dict[str, float]]] = {}
        self.rows: dict[int, list[int]] = {}
        self.skipped = 0
        self.truncated = False

    def run(self) -> None:
        position, end = 0, len(self.buffer)
        while position < end:
            position = self._messages(position)
            if position >= end:
                break
            next_message = self._next_message(position + 1)
            if next_message == end and self._cut(position):
                self.truncated = True
            elif self.buffer[position:next_message].strip(
                b"\x00\xff"
            ):  # the rest of a page is filled with 00 or FF
                self.skipped += next_message - position
            position = next_message

    def _messages(self, position: int) -> int:
        """Read messages from `position` on; the offset of the first that is not whole, or the end."""
        buffer, lengths, rows, end = self.buffer, self.lengths, self.rows, len(self.buffer)
        while position + 3 <= end and buffer[position] == 0xA3 and buffer[position + 1] == 0x95:
            kind = buffer[position + 2]
            length = lengths.get(kind)
            if length is None or position + length > end:
                return position
            if kind == FMT:
                self._format(position + 3)
            else:
                rows.setdefault(kind, []).append(position + 3)
            position += length
        return position

    def _format(self, position: int) -> None:
        fmt = np.frombuffer(self.buffer, _FMT_DTYPE, 1, position)[0]
        kind, length = int(fmt["type"]), int(fmt["length"])
        codes, columns = (fmt[field].decode("ascii", "replace") for field in ("format", "columns"))
        names = columns.split(",")
        if kind == FMT or kind in self.formats or len(names) != len(codes) or len(set(names)) != len(names):
            return
        if not all(names):
            return
        if not set(codes) <= set(_CODES):
            return
        dtype = np.dtype([(name, _CODES[code][0]) for name, code in zip(names, codes, strict=True)])
        if dtype.itemsize + 3 != length:
            return
        factors = {n: _CODES[c][1] for n, c in zip(names, codes, strict=True) if _CODES[c][1] != 1.0}
        self.lengths[kind] = length
        self.formats[kind] = (fmt["name"].decode("ascii", "replace"), dtype, factors)

    def _message_end(self, position: int) -> int:
        """The end of the message at `position` if there is one, else 0."""
        if self.buffer[position : position + 2] != MAGIC or position + 3 > len(self.buffer):
            return 0
        stop = position + self.lengths.get(self.buffer[position + 2], len(self.buffer))
        return stop if stop <= len(self.buffer) else 0

    def _next_message(self, position: int) -> int:
        """The next offset where two messages follow each other, the end where there is none."""
        end = len(self.buffer)
        while (position := self.buffer.find(MAGIC, position)) >= 0:
            stop = self._message_end(position)
            if stop and (stop == end or self._message_end(stop) or self._cut(stop)):
                return position
            position += 1
        return end

    def _cut(self, position: int) -> bool:
        """Whether the message at `position` looks whole but for its end."""
        head = self.buffer[position : position + 3]
        return len(head) < 3 or (
            head[:2] == MAGIC and position + self.lengths.get(head[2], 0) > len(self.buffer)
        )
