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
    mirrored = memoryview(buffer.translate(_REVERSED))
    frames: list[Frame] = []
    position, skipped, end, crc_of, extras = 0, 0, len(buffer), binascii.crc_hqx, _EXTRA
    while position < end:
        at = position + stamp
        if at >= end:
            break
        magic = buffer[at]
        if magic == _V2:
            if at + 12 > end:
                break
            head, signature = 10, 13 if buffer[at + 2] & _SIGNED else 0
            sound = buffer[at + 2] <= _SIGNED
            sequence, system, component = buffer[at + 4], buffer[at + 5], buffer[at + 6]
            message = buffer[at + 7] | buffer[at + 8] << 8 | buffer[at + 9] << 16
        elif magic == _V1:
            if at + 8 > end:
                break
            head, signature, sound = 6, 0, True
            sequence, system, component, message = (
                buffer[at + 2],
                buffer[at + 3],
                buffer[at + 4],
                buffer[at + 5],
            )
        else:
            position += 1
            skipped += 1
            continue
        tail = at + head + buffer[at + 1]
        after = tail + 2 + signature
        if sound and after > end:
            inner = [] if complete else walk(buffer[position + 1 :], stamped, complete=True).frames
            if not complete and not any(f.message in extras for f in inner):
                break
            sound = False
        if sound:
            if message in extras:
                crc = crc_of(extras[message], crc_of(mirrored[at + 1 : tail], 0xFFFF))
                sound = crc == mirrored[tail] << 8 | mirrored[tail + 1]
            else:
                sound = after == end or (after + stamp < end and buffer[after + stamp] in (_V1, _V2))
        if not sound:
            position += 1
            skipped += 1
            continue
        arrival = int.from_bytes(buffer[position:at], "big") if stamp else 0
        frames.append(
            Frame(position, arrival, system, component, sequence, message, at + head, buffer[at + 1])
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
    out = np.zeros((len(starts), size), np.uint8)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        kept = min(int(length), size)
        out[rows, :kept] = raw[starts[rows, None] + np.arange(kept)]
    return out.view(message.dtype)[:, 0]
