"""The format of logs on the micro-SD card of a Crazyflie: which events a file holds, as numpy records.

Little endian: byte BC; uint16 version; uint16 number of event types; for each a uint16 id, a zero-terminated
name and a uint16 number of variables, each a zero-terminated "name(code)"; then events: uint16 id, a time
stamp (version 1: uint32 ms, version 2: uint64 us), the variables; at last the CRC-32 of all before.
"""

from __future__ import annotations

import dataclasses
import re
import struct
import zlib
from typing import Final

import numpy as np

from rotorid.logs.records import gather

MAGIC: Final = 0xBC
_CODES: Final = {
    "B": "<u1",
    "b": "<i1",
    "H": "<u2",
    "h": "<i2",
    "I": "<u4",
    "i": "<i4",
    "Q": "<u8",
    "q": "<i8",
    "e": "<f2",
    "f": "<f4",
    "d": "<f8",
}
_STAMPS: Final = {1: ("<u4", 1e-3), 2: ("<u8", 1e-6)}
_OWN: Final = ("_id", "_time")  # fields of a record that are no variables
_MOST_VARIABLES: Final = 1000  # of an event type; a card has tens
_VARIABLE: Final = re.compile(r"([\w.]+)\((\w)\)")


@dataclasses.dataclass(frozen=True)
class UsdContents:
    """events: name -> records, whose field "_time" is the time stamp. tick: s of one count of it. sound:
    whether the CRC is right. left: bytes at the end that are no whole event."""

    events: dict[str, np.ndarray]
    tick: float
    is_intact: bool
    remaining: int


def read_usd(buffer: bytes) -> UsdContents | None:
    """The events of a file; None where the header is damaged."""
    try:
        version, types, position = _header(buffer)
    except (struct.error, ValueError):
        return None
    stamp, tick = _STAMPS[version]
    dtypes = {
        identity: np.dtype([("_id", "<u2"), ("_time", stamp), *variables])
        for identity, (_, variables) in types.items()
    }
    is_intact = zlib.crc32(buffer[:-4]) == int.from_bytes(buffer[-4:], "little")
    rows, position = _events(buffer, position, {i: d.itemsize for i, d in dtypes.items()}, is_intact)
    events = {types[i][0]: gather(buffer, rows[i], dtypes[i]) for i in types}
    return UsdContents(events, tick, is_intact, len(buffer) - 4 * is_intact - position)


def _header(buffer: bytes) -> tuple[int, dict[int, tuple[str, list[tuple[str, str]]]], int]:
    """Version, event types (id -> name and variables), and where the events begin."""
    magic, version, count = struct.unpack_from("<BHH", buffer)
    if magic != MAGIC or version not in _STAMPS or not 0 < count < 1000:
        raise ValueError
    position, types = 5, {}
    for _ in range(count):
        (identity,) = struct.unpack_from("<H", buffer, position)
        name, position = _text(buffer, position + 2)
        (number,) = struct.unpack_from("<H", buffer, position)
        position += 2
        if number > _MOST_VARIABLES:
            raise ValueError
        variables: dict[str, str] = {}
        for _ in range(number):
            text, position = _text(buffer, position)
            match = _VARIABLE.fullmatch(text)
            if match is None or match[2] not in _CODES or match[1] in variables or match[1] in _OWN:
                raise ValueError
            variables[match[1]] = _CODES[match[2]]
        types[identity] = (name, list(variables.items()))
    return version, types, position


def _text(buffer: bytes, position: int) -> tuple[str, int]:
    end = buffer.index(0, position)
    return buffer[position:end].decode("ascii"), end + 1


def _events(
    buffer: bytes, position: int, sizes: dict[int, int], is_intact: bool
) -> tuple[dict[int, list[int]], int]:
    """Offsets of the whole events of each type, and where the last of them ends."""
    rows: dict[int, list[int]] = {identity: [] for identity in sizes}
    entries = {identity: (size, rows[identity].append) for identity, size in sizes.items()}
    end, entry_of = len(buffer) - 4 * is_intact, entries.get
    while position + 2 <= end:
        entry = entry_of(buffer[position] | buffer[position + 1] << 8)
        if entry is None:
            break
        size, append = entry
        if position + size > end:
            break
        append(position)
        position += size
    return rows, position
