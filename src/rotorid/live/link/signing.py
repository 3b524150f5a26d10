"""Signed MAVLink 2: only messages signed with the user's key are read, and all that are sent are signed.

A signed frame has flag 1, and after its checksum 13 bytes: link id, time stamp (48 bits, 10 us since 2015, little-endian), and
the first 48 bits of SHA-256(key + frame from FD to checksum + link id + time stamp). The time stamps of a sender (system,
component, link id) must increase; the first one may be at most a minute behind this computer's. A vehicle without the time
takes it from the messages that it receives. https://mavlink.io/en/guide/message_signing.html
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from rotorid.errors import SettingError
from rotorid.live.link.address_book import SenderEvent
from rotorid.live.link.link import Link
from rotorid.live.link.message_sender import with_flags
from rotorid.logs.mavlink.frames import Frame, walk
from rotorid.logs.mavlink.frames import Link as FrameBuffer

SIGNED: Final = 1
"""Flag of a signed frame."""

SIGNATURE_BYTES: Final = 13

_KEY_BYTES: Final = 32
_EPOCH: Final = 1_420_070_400  # 1 January 2015, s since 1970
_UNITS: Final = 100_000  # time stamps per second
_OLDEST: Final = 60 * _UNITS  # of the first message of a sender, behind this computer's clock
_V2: Final = 0xFD
_LINK_ID: Final = 0
_MAX_SENDERS: Final = 1000
_MAX_PACKETS: Final = 64  # without a valid frame, before other work is done


class Signer:
    """Signs and verifies frames.

    Args:
        key: 32 bytes.
        now: time in s since 1970.
    """

    def __init__(self, key: bytes, now: Callable[[], float] = time.time) -> None:
        self._key, self._now = key, now
        self._sent = 0
        self._received: dict[tuple[int, int, int], int] = {}

    def signature(self, frame: bytes) -> bytes:
        """The 13 bytes that follow a frame, from FD to its checksum, with flag 1."""
        self._sent = max(self._stamp(), self._sent + 1)
        tail = bytes([_LINK_ID]) + self._sent.to_bytes(6, "little")
        return tail + self._hash(frame + tail)

    def is_valid(self, frame: bytes) -> bool:
        """Whether a frame, with its signature, is signed with the key and newer than the earlier ones of its sender."""
        if len(frame) < 12 + SIGNATURE_BYTES or frame[0] != _V2 or not frame[2] & SIGNED:
            return False
        if not hmac.compare_digest(self._hash(frame[:-6]), frame[-6:]):
            return False
        sender = frame[5], frame[6], frame[-SIGNATURE_BYTES]
        stamp = int.from_bytes(frame[-12:-6], "little")
        if stamp <= self._received.get(sender, self._stamp() - _OLDEST):
            return False
        if sender in self._received or len(self._received) < _MAX_SENDERS:
            self._received[sender] = stamp
        return True

    def _stamp(self) -> int:
        return max(round((self._now() - _EPOCH) * _UNITS), 0)

    def _hash(self, data: bytes) -> bytes:
        return hashlib.sha256(self._key + data).digest()[:6]


class SignedLink(Link):
    """A link on which only valid frames are received, and all frames are signed. link: below. signer: with the user's key."""

    datagrams: ClassVar[bool] = True

    def __init__(self, link: Link, signer: Signer) -> None:
        super().__init__(link.address)
        self._link, self._signer = link, signer
        self._buffer = None if link.datagrams else FrameBuffer()
        self._rejected = 0
        self._is_verified_below = link.set_verifier(self._valid_frames)

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        for _ in range(_MAX_PACKETS):
            packet = self._link.receive(timeout)
            if packet is None:
                return None
            arrival, data = packet
            valid = data if self._is_verified_below else self._valid_frames(data)
            if valid:
                return arrival, valid
            timeout = 0.0
        return None

    def _valid_frames(self, data: bytes) -> bytes:
        if self._buffer is None:
            buffer, frames = data, walk(data, complete=True).frames
        else:
            buffer, frames = self._buffer.push(data)
        found = [_bytes_of(buffer, frame) for frame in frames]
        valid = [frame for frame in found if self._signer.is_valid(frame)]
        self._rejected += len(found) - len(valid)
        return b"".join(valid)

    def _sign(self, frame: bytes) -> bytes:
        frame = with_flags(frame, SIGNED)
        return frame + self._signer.signature(frame)

    def send(self, data: bytes) -> None:
        self._link.send(self._sign(data))

    def send_to(self, system: int, component: int, data: bytes) -> None:
        self._link.send_to(system, component, self._sign(data))

    def take_connection_changes(self) -> list[str]:
        return self._link.take_connection_changes()

    def take_sender_events(self) -> list[SenderEvent]:
        return self._link.take_sender_events()

    def take_rejected(self) -> int:
        count, self._rejected = self._rejected, 0
        return count

    def close(self) -> None:
        self._link.close()


def read_key(path: Path) -> bytes:
    """The key in a file: 32 bytes, or 64 hexadecimal digits.

    Raises:
        SettingError: the file cannot be read, or has another content.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(1000)
    except OSError as error:
        raise SettingError(f"{path}: the key cannot be read: {error.strerror}") from None
    if len(content) == _KEY_BYTES:
        return content
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except (ValueError, UnicodeDecodeError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise SettingError(f"{path}: a signing key has 32 bytes, or 64 hexadecimal digits")
    return key


def _bytes_of(buffer: bytes, frame: Frame) -> bytes:
    """A frame with its signature, if it has one."""
    is_signed = buffer[frame.start] == _V2 and buffer[frame.start + 2] & SIGNED
    end = frame.payload + frame.length + 2 + (SIGNATURE_BYTES if is_signed else 0)
    return buffer[frame.start : end]
