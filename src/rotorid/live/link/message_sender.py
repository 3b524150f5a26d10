"""Encodes and sends the MAVLink 2 messages that a session sends. Fields are in wire order, largest types first.

A frame is: FD, length, two bytes of flags, sequence, system, component, message (3 bytes), payload without trailing
zeros, and a checksum (CRC-16/MCRF4XX of all bytes after the first and of one byte that depends on the message).
https://mavlink.io/en/guide/serialization.html
"""

from __future__ import annotations

import binascii
import struct
import threading
from typing import Final

from rotorid.live.link.link import Link

SYSTEM, COMPONENT = 250, 191
"""MAVLink ids of the sender: those of an onboard computer."""

_REAL: Final = 9  # MAV_PARAM_TYPE_REAL32
_MAX_FLOAT: Final = 3.4028234e38  # of float32

_ONBOARD, _NO_AUTOPILOT, _ACTIVE, _VERSION = 18, 8, 4, 3
_LAYOUTS: Final = {
    "HEARTBEAT": (0, 50, "<IBBBBB"),
    "PARAM_REQUEST_READ": (20, 214, "<hBB16s"),
    "PARAM_SET": (23, 168, "<fBB16sB"),
    "COMMAND_LONG": (76, 152, "<fffffffHBBB"),
    "DEBUG_VECT": (250, 49, "<Qfff10s"),
    "NAMED_VALUE_FLOAT": (251, 170, "<If10s"),
}
_EXTRA: Final = {number: extra for number, extra, _ in _LAYOUTS.values()}
_REVERSED: Final = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))


class MessageSender:
    """Sends messages on a link. It is safe to use from several threads."""

    def __init__(self, link: Link) -> None:
        self._link, self._sequence, self._lock = link, 0, threading.Lock()

    def heartbeat(self) -> None:
        """Send HEARTBEAT, so that the vehicle sends to this address."""
        self._send("HEARTBEAT", 0, _ONBOARD, _NO_AUTOPILOT, 0, _ACTIVE, _VERSION)

    def command(self, system: int, component: int, command: int, *parameters: int | float) -> None:
        """Send COMMAND_LONG with up to seven parameters."""
        fields = *parameters, *(0.0,) * (7 - len(parameters)), command, system, component, 0
        self._send("COMMAND_LONG", *fields, to=(system, component))

    def request_parameter(self, system: int, component: int, name: str) -> None:
        """Send PARAM_REQUEST_READ for a parameter name."""
        self._send("PARAM_REQUEST_READ", -1, system, component, name.encode(), to=(system, component))

    def set_parameter(self, system: int, component: int, name: str, value: float) -> None:
        """Send PARAM_SET for a float parameter."""
        fields = value, system, component, name.encode(), _REAL
        self._send("PARAM_SET", *fields, to=(system, component))

    def named_value(self, t: float, name: str, value: float, of: tuple[int, int] | None = None) -> None:
        """Send NAMED_VALUE_FLOAT.

        Args:
            t: s since the vehicle's boot.
            name: at most ten characters.
            value: to send.
            of: system and component of the vehicle among several on the link; it is sent to this vehicle, as by an onboard
                computer of it. None for the only vehicle.
        """
        self._send(
            "NAMED_VALUE_FLOAT", round(t * 1e3) & 0xFFFFFFFF, _limit(value), name.encode(), to=of, of=of
        )

    def debug_vector(
        self, t: float, name: str, x: float, y: float, z: float, of: tuple[int, int] | None = None
    ) -> None:
        """Send DEBUG_VECT. x, y, z: to send. Other arguments as of `named_value`."""
        stamp = min(max(round(t * 1e6), 0), (1 << 64) - 1)
        self._send("DEBUG_VECT", stamp, _limit(x), _limit(y), _limit(z), name.encode(), to=of, of=of)

    def _send(
        self,
        name: str,
        *fields: int | float | bytes,
        to: tuple[int, int] | None = None,
        of: tuple[int, int] | None = None,
    ) -> None:
        """Send a message. to: system and component of its receiver, None for everybody. of: those of a vehicle whose onboard
        computer is the sender; None for a system of its own."""
        with self._lock:
            self._sequence = (self._sequence + 1) % 256
            system = SYSTEM if of is None else of[0]
            frame = encode_frame(name, self._sequence, *fields, system=system)
            if to is None:
                self._link.send(frame)
            else:
                self._link.send_to(*to, frame)


def _limit(value: float) -> float:
    """A value within the range of float32; nan stays nan."""
    return value if value != value else min(max(value, -_MAX_FLOAT), _MAX_FLOAT)


def encode_frame(
    name: str, sequence: int, *fields: int | float | bytes, system: int = SYSTEM, component: int = COMPONENT
) -> bytes:
    """The bytes of one message. fields: in wire order."""
    number, extra, layout = _LAYOUTS[name]
    payload = struct.pack(layout, *fields).rstrip(b"\0") or b"\0"
    head = struct.pack("<BBBBBB", len(payload), 0, 0, sequence, system, component) + number.to_bytes(
        3, "little"
    )
    return b"\xfd" + head + payload + _checksum(head + payload, extra)


def with_flags(frame: bytes, flags: int) -> bytes:
    """A frame of `encode_frame` with other flags (incompatibility flags of MAVLink 2), and the checksum that belongs to it."""
    extra = _EXTRA[int.from_bytes(frame[7:10], "little")]
    body = frame[1:2] + bytes([flags]) + frame[3:-2]
    return frame[:1] + body + _checksum(body, extra)


def _checksum(body: bytes, extra: int) -> bytes:
    """Checksum of a frame. body: its bytes after the first. extra: byte that depends on the message."""
    crc = binascii.crc_hqx((body + bytes([extra])).translate(_REVERSED), 0xFFFF)
    return bytes((_REVERSED[crc >> 8], _REVERSED[crc & 0xFF]))
