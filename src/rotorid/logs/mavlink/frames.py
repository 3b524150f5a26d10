"""MAVLink frames in bytes, of a recording (.tlog, with 8 bytes of arrival time before each frame) or of a link.

A frame of version 1 is FE, length, sequence, system, component, message (1 byte), payload, checksum; of version 2
FD, length, two bytes of flags, sequence, system, component, message (3 bytes), payload without zeros at its end,
checksum, and where flag 1 is set a signature of 13 bytes. The checksum is CRC-16/MCRF4XX over all after the first
byte and one byte more that depends on the message; only messages that are read can be checked, others must be
followed by a frame or by the end. https://mavlink.io/en/guide/serialization.html
"""

from __future__ import annotations

import binascii
import dataclasses
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64

from rotorid.logs.mavlink.messages import BY_NUMBER, Message

STAMP_BYTES: Final = 8
_V1, _V2 = 0xFE, 0xFD
_SIGNED: Final = 1
_LATEST: Final = (1 << 63) - 1
_REVERSED: Final = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))
_EXTRA: Final = {m.number: _REVERSED[m.crc_extra : m.crc_extra + 1] for m in BY_NUMBER.values()}


class Frame(NamedTuple):
    """One frame. start: offset in the bytes that were walked, of its arrival time where there is one. arrival: us,
    0 on a link. message: its number. payload, length: where its payload begins, and how many bytes it has."""

    start: int
    arrival: int
    system: int
    component: int
    sequence: int
    message: int
    payload: int
    length: int


@dataclasses.dataclass(frozen=True)
class Walk:
    """frames: in order. skipped: bytes that belong to no whole frame. rest: offset of a frame cut by the end of the
    bytes, or their length."""

    frames: list[Frame]
    skipped: int
    rest: int


def walk(buffer: bytes, stamped: bool = False, complete: bool = False) -> Walk:
    """The whole frames in these bytes; damage between them is skipped.

    stamped: whether the arrival time, big-endian us since 1970, stands before each frame. complete: whether a frame
    that the end cuts is damage, too.
    """
    stamp = STAMP_BYTES if stamped else 0
    reversed_bits = memoryview(buffer.translate(_REVERSED))
    frames: list[Frame] = []
    position, skipped, end, crc_of, extras = 0, 0, len(buffer), binascii.crc_hqx, _EXTRA
    while position < end:
        start = position + stamp
        if start >= end:
            break
        magic = buffer[start]
        if magic == _V2:
            if start + 12 > end:
                break
            head, signature = 10, 13 if buffer[start + 2] & _SIGNED else 0
            is_plausible = buffer[start + 2] <= _SIGNED
            sequence, system, component = buffer[start + 4], buffer[start + 5], buffer[start + 6]
            message = buffer[start + 7] | buffer[start + 8] << 8 | buffer[start + 9] << 16
        elif magic == _V1:
            if start + 8 > end:
                break
            head, signature, is_plausible = 6, 0, True
            sequence, system, component, message = (
                buffer[start + 2],
                buffer[start + 3],
                buffer[start + 4],
                buffer[start + 5],
            )
        else:
            position += 1
            skipped += 1
            continue
        tail = start + head + buffer[start + 1]
        after = tail + 2 + signature
        if is_plausible and after > end:
            inner = [] if complete else walk(buffer[position + 1 :], stamped, complete=True).frames
            if not complete and not any(f.message in extras for f in inner):
                break
            is_plausible = False
        if is_plausible:
            if message in extras:
                crc = crc_of(extras[message], crc_of(reversed_bits[start + 1 : tail], 0xFFFF))
                is_plausible = crc == reversed_bits[tail] << 8 | reversed_bits[tail + 1]
            else:
                is_plausible = after == end or (after + stamp < end and buffer[after + stamp] in (_V1, _V2))
        if not is_plausible:
            position += 1
            skipped += 1
            continue
        arrival = int.from_bytes(buffer[position:start], "big") & _LATEST if stamp else 0
        frames.append(
            Frame(position, arrival, system, component, sequence, message, start + head, buffer[start + 1])
        )
        position = after
    return Walk(frames, skipped, min(position, end))


class Link:
    """Frames of a link whose bytes come in pieces that may cut a frame (serial, TCP)."""

    def __init__(self) -> None:
        self.rest = b""
        self.skipped = 0

    def push(self, data: bytes) -> tuple[bytes, list[Frame]]:
        """The frames that are whole now, and the bytes that their offsets mean."""
        buffer = self.rest + data
        found = walk(buffer)
        self.rest = buffer[found.rest :]
        self.skipped += found.skipped
        return buffer, found.frames


def decode(buffer: bytes, frame: Frame) -> tuple[str, np.ndarray] | None:
    """Name and record (an array of one) of a frame; None of a message that is not read."""
    message = BY_NUMBER.get(frame.message)
    return None if message is None else (message.name, record(buffer, frame, message))


def record(buffer: bytes, frame: Frame, message: Message) -> np.ndarray:
    """The record (an array of one) of a frame of this message."""
    size = message.dtype.itemsize
    payload = buffer[frame.payload : frame.payload + min(frame.length, size)]
    return np.frombuffer(payload.ljust(size, b"\0"), message.dtype)


def records(
    buffer: bytes, message: Message, starts: Int64[np.ndarray, " n"], lengths: Int64[np.ndarray, " n"]
) -> np.ndarray:
    """The records of one message, whose payloads begin at `starts`: what the sender cut off is zero."""
    size = message.dtype.itemsize
    raw = np.frombuffer(buffer, np.uint8)
    payloads = np.zeros((len(starts), size), np.uint8)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        copied = min(int(length), size)
        payloads[rows, :copied] = raw[starts[rows, None] + np.arange(copied)]
    return payloads.view(message.dtype)[:, 0]
