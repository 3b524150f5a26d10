"""Messages of somebody who wants to disturb: valid frames with extreme content, garbled frames, random bytes, floods."""

from __future__ import annotations

import binascii
import math
import random
import struct

from rotorid.live.link.message_sender import _REVERSED
from rotorid.logs.mavlink.messages import MESSAGES, Message

_INTEGERS = (0, 1, 255, 65535, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 10**14, 1_700_000_000_000_000)
_FLOATS = (0.0, -1.0, math.nan, math.inf, -math.inf, 3.4e38, -3.4e38, 1e-45, 0.49)
_NAMES = (b"MPC_THR_HOVER", b"THR_MDL_FAC", b"PWM_MAIN_FUNC1", b"\xff" * 16, b"")


def hostile(rng: random.Random, message: Message, sequence: int, system: int = 1) -> bytes:
    """A valid frame of a system with extreme content."""
    raw = b""
    for name in message.dtype.names or ():
        field = message.dtype[name]
        for _ in range(math.prod(field.shape)):
            if field.base.kind == "f":
                raw += struct.pack("<f", rng.choice(_FLOATS))
            elif field.base.kind == "S":
                raw += rng.choice(_NAMES).ljust(16, b"\0")
            else:
                size = field.base.itemsize
                raw += (rng.choice(_INTEGERS) % (1 << (8 * size))).to_bytes(size, "little")
    raw = raw[: rng.choice((255, len(raw), rng.randrange(1, len(raw))))].rstrip(b"\0") or b"\0"
    head = struct.pack("<BBBBBB", len(raw), 0, 0, sequence % 256, system, 1) + message.number.to_bytes(
        3, "little"
    )
    crc = binascii.crc_hqx((head + raw + bytes([message.crc_extra])).translate(_REVERSED), 0xFFFF)
    return b"\xfd" + head + raw + bytes((_REVERSED[crc >> 8], _REVERSED[crc & 0xFF]))


def garbled(rng: random.Random, frame: bytes) -> bytes:
    """A frame with wrong bits, without its end, or twice."""
    kind = rng.randrange(3)
    if kind == 0:
        data = bytearray(frame)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    return frame[: rng.randrange(1, len(frame))] if kind == 1 else frame + frame


def hostile_datagram(rng: random.Random, sequence: int, systems: range) -> bytes:
    """A datagram of one of these systems: extreme content of any message or of a parameter, garbled, random or large."""
    name = rng.choice(("PARAM_VALUE", "AUTOPILOT_VERSION", "SYSTEM_TIME", "HEARTBEAT", "ATTITUDE", ""))
    message = MESSAGES[name] if name else rng.choice(list(MESSAGES.values()))
    frame = hostile(rng, message, sequence, rng.choice(systems))
    kind = rng.random()
    if kind < 0.7:
        return frame
    if kind < 0.85:
        return garbled(rng, frame)
    return rng.randbytes(rng.choice((0, 1, 20, 280, 1400)))
