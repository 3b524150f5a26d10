"""Damage to a file, decided by a random generator: the same seed gives the same files."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Final

from rotorid.logs.mavlink.messages import BY_NUMBER
from tests.logs.mavlink.make_mavlink import x25crc

_BYTES: Final = (0, 1, 0x20, 0x5B, 0x7B, 0x7F, 0x80, 0xFE, 0xFF)
_FLOATS: Final = (float("nan"), float("inf"), 1e38, -1e38, 1e-45, 1e9, -1e9, 1.797e308)
_NUMBERS: Final = (
    b"-1",
    b"0",
    b"4096",
    b"65535",
    b"4294967295",
    b"1e308",
    b"nan",
    b"-inf",
    b"9" * 30,
    b"9" * 5000,
)
_NAMES: Final = (
    b"\x1b[2J", b"\r\n", b"\0", b"\xff\xfe", b"../../x", b"%s%n", b"{0.__class__}", b"__dict__", b"*/", b"'\";--", b"[]", b" ",
)  # fmt: skip
_BRACKETS: Final = (b"[", b"{", b"(", b'{"a":', b"<a>", b"\x1c", b"\x0a\x02")
_WORD: Final = re.compile(rb"[A-Za-z_]{3,}")
_NUMBER: Final = re.compile(rb"[0-9]+")


def mutated(content: bytes, format: str, rng: random.Random) -> bytes:
    """The content with one to eight pieces of damage; checksums of records are right again in half of the files, and half of
    the archives hold a damaged log in place of being damaged."""
    if format in _ARCHIVES and rng.random() < 0.5:
        unpack, pack = _ARCHIVES[format]
        return pack(mutated(unpack(content), "", rng))
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


def _repeat_block(damaged: bytearray, rng: random.Random) -> None:
    """A large block many times: up to 1 MB."""
    at, size = _place(damaged, rng), rng.choice((16, 256, 4096, 65536))
    block = bytes(damaged[at : at + size])
    damaged[at:at] = block * min(rng.choice((2, 20, 1000)), 1_000_000 // max(len(block), 1))


def _swap_blocks(damaged: bytearray, rng: random.Random) -> None:
    size = rng.choice((8, 64, 1024))
    a, b = sorted((_place(damaged, rng, size), _place(damaged, rng, size)))
    if b >= a + size:
        damaged[a : a + size], damaged[b : b + size] = damaged[b : b + size], damaged[a : a + size]


def _splice(damaged: bytearray, rng: random.Random) -> None:
    """The start of the log before another part of it, or two whole logs in one file."""
    other = bytes(damaged)
    start = rng.choice((0, _place(damaged, rng)))
    del damaged[rng.choice((len(damaged), _place(damaged, rng))) :]
    damaged += other[start:]


def _set_run(damaged: bytearray, rng: random.Random) -> None:
    """Extreme lengths, counts and time stamps of any size and alignment; many continuation bytes of a variable length."""
    size = rng.choice((3, 5, 8, 10, 16))
    at = _place(damaged, rng, size)
    run = bytes([rng.choice((0xFF, 0x80, 0x7F, 0x00))]) * (size - 1) + bytes(
        [rng.choice((0x7F, 0x0F, 0x01, 0xFF))]
    )
    damaged[at : at + size] = rng.choice((run, run[::-1]))


def _set_number(damaged: bytearray, rng: random.Random) -> None:
    """Another number in text."""
    if found := _NUMBER.search(damaged, _place(damaged, rng)):
        damaged[found.start() : found.end()] = rng.choice(_NUMBERS)


def _set_name(damaged: bytearray, rng: random.Random) -> None:
    """A hostile name in the place of a word, of its length in half of the files; or a name that another word has."""
    found = _WORD.search(damaged, _place(damaged, rng))
    if found is None:
        return
    other = _WORD.search(damaged, _place(damaged, rng))
    name = other[0] if other is not None and rng.random() < 0.3 else rng.choice(_NAMES)
    length = len(found[0])
    if rng.random() < 0.5:
        name = (name * length)[:length]
    elif rng.random() < 0.1:
        name *= 10_000
    damaged[found.start() : found.end()] = name


def _nest(damaged: bytearray, rng: random.Random) -> None:
    """Thousands of open brackets: of JSON, of type names, and of Thrift and protobuf structures."""
    at = _place(damaged, rng)
    damaged[at:at] = rng.choice(_BRACKETS) * rng.choice((40, 1100, 20_000))


_DAMAGE: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (
    _flip_bit, _flip_bit, _set_byte, _set_byte, _set_integer, _set_integer, _set_float, _set_float, _cut, _delete, _insert,
    _copy, _repeat_block, _swap_blocks, _splice, _set_run, _set_number, _set_name, _nest,
)  # fmt: skip


def _unzip(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(archive.infolist()[0])


def zipped(content: bytes) -> bytes:
    """A zip archive with a log in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.ulg", content)
    return buffer.getvalue()


_ARCHIVES: Final[dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    "gzip": (gzip.decompress, gzip.compress),
    "xz": (lzma.decompress, lzma.compress),
    "zip": (_unzip, zipped),
}


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
