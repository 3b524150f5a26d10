"""Limits of the size to which `rosbags` unpacks the chunks of a bag.

The library unpacks a chunk whatever it contains: some kilobytes can become gigabytes. Its decompressors are replaced by ones
with a limit: the size that the chunk states (MCAP), or a multiple of its packed size (ROS 1, whose chunks state none that is
passed on).
"""

from __future__ import annotations

import bz2
from typing import Any, Final

MOST_CHUNK: Final = 64_000_000, 50
"""Bytes of an unpacked chunk: so many in any case, or this number of times its packed size if that is more."""


def limit_unpacking() -> None:
    """Put limits on the decompressors of `rosbags`, once in a process. Raises ImportError without it."""
    from rosbags.rosbag1 import reader
    from rosbags.rosbag2 import storage_mcap

    reader.decompressors |= {"bz2": _bz2, "lz4": _lz4}
    storage_mcap.DECOMPRESSORS |= {"lz4": _sized("lz4"), "zstd": _sized("zstd")}


def _sized(codec: str) -> Any:
    def unpacked(packed: bytes, size: int) -> bytes:
        import pyarrow as pa

        if size > _most(packed):
            raise ValueError(f"a chunk of {len(packed)} bytes that unpacks to {size}, which no log does")
        return pa.decompress(packed, decompressed_size=size, codec=codec, asbytes=True)

    return unpacked


def _bz2(packed: bytes) -> bytes:
    return _whole(bz2.BZ2Decompressor(), packed)


def _lz4(packed: bytes) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    return _whole(LZ4FrameDecompressor(), packed)


def _whole(decompressor: Any, packed: bytes) -> bytes:
    content = decompressor.decompress(packed, _most(packed))
    if not decompressor.eof:
        raise ValueError(
            f"a chunk of {len(packed)} bytes that is cut, or unpacks to more than {_most(packed)}"
        )
    return content


def _most(packed: bytes) -> int:
    base, factor = MOST_CHUNK
    return max(base, factor * len(packed))
