"""Damage to a file, decided by a random generator: the same seed gives the same files."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from typing import Final

from rotorid.logs.mavlink.messages import BY_NUMBER
from tests.logs.mavlink.make_mavlink import x25crc

_BYTES: Final = (0, 1, 0x20, 0x5B, 0x7B, 0x7F, 0x80, 0xFE, 0xFF)
_FLOATS: Final = (float("nan"), float("inf"), 1e38, -1e38, 1e-45, 1e9, -1e9, 1.797e308)


def mutated(content: bytes, format: str, rng: random.Random) -> bytes:
    """The content with one to eight pieces of damage; checksums of records are right again in half of the files."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_DAMAGE)(damaged, rng)
    seal = _SEALS.get(format)
    return seal(bytes(damaged)) if seal is not None and rng.random() < 0.5 else bytes(damaged)


def _place(damaged: bytearray, rng: random.Random, size: int = 1) -> int:
    """An offset: near the start, near the end or anywhere."""
    last = max(0, len(damaged) - size)
    where = rng.random()
    if where < 0.4:
        return rng.randint(0, min(last, 600))
    return last - rng.randint(0, min(last, 300)) if where < 0.55 else rng.randint(0, last)


def _flip_bit(damaged: bytearray, rng: random.Random) -> None:
    if damaged:
        damaged[_place(damaged, rng)] ^= 1 << rng.randrange(8)


def _set_byte(damaged: bytearray, rng: random.Random) -> None:
    if damaged:
        damaged[_place(damaged, rng)] = rng.choice(_BYTES)


def _set_integer(damaged: bytearray, rng: random.Random) -> None:
    size = rng.choice((2, 4, 8))
    at = _place(damaged, rng, size)
    top = 1 << 8 * size
    value = rng.choice((0, 1, top - 1, top // 2, top // 2 - 1, top // 4, rng.randrange(top)))
    damaged[at : at + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _set_float(damaged: bytearray, rng: random.Random) -> None:
    value, code = rng.choice(_FLOATS), rng.choice("fd")
    packed = struct.pack(f"<{code}", value if code == "d" or abs(value) < 1e39 or value != value else 1e38)
    at = _place(damaged, rng, len(packed))
    damaged[at : at + len(packed)] = packed


def _cut(damaged: bytearray, rng: random.Random) -> None:
    del damaged[_place(damaged, rng) :]


def _delete(damaged: bytearray, rng: random.Random) -> None:
    at = _place(damaged, rng)
    del damaged[at : at + rng.randint(1, 64)]


def _insert(damaged: bytearray, rng: random.Random) -> None:
    at, size = _place(damaged, rng), rng.choice((1, 2, 8, 100, 5000))
    piece = rng.choice((rng.randbytes(size), bytes([rng.choice(_BYTES)]) * size))
    damaged[at:at] = piece


def _copy(damaged: bytearray, rng: random.Random) -> None:
    """A piece a second time, at another place or many times behind itself."""
    at, size = _place(damaged, rng), rng.randint(1, 400)
    piece = bytes(damaged[at : at + size]) * rng.choice((1, 1, 2, 50))
    to = rng.choice((at, _place(damaged, rng)))
    damaged[to:to] = piece


_DAMAGE: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (
    _flip_bit, _flip_bit, _set_byte, _set_byte, _set_integer, _set_integer, _set_float, _set_float, _cut, _delete, _insert,
    _copy,
)  # fmt: skip


def seal_tlog(content: bytes) -> bytes:
    """The recording with the checksums of the frames that follow each other from its start."""
    out = bytearray(content)
    position = 0
    while position + 20 < len(out) and out[position + 8] == 0xFD:
        body = position + 9
        stop = body + 9 + out[body]
        message = BY_NUMBER.get(int.from_bytes(out[body + 6 : body + 9], "little"))
        if message is not None and stop + 2 <= len(out):
            crc = x25crc(bytes(out[body:stop]) + bytes([message.crc_extra])).crc
            out[stop : stop + 2] = struct.pack("<H", crc)
        position = stop + 2
    return bytes(out)


def seal_usd(content: bytes) -> bytes:
    """The log of a Crazyflie with the right checksum at its end."""
    return content[:-4] + struct.pack("<I", zlib.crc32(content[:-4])) if len(content) > 4 else content


_SEALS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "mavlink-tlog": seal_tlog,
    "crazyflie-usd": seal_usd,
}
