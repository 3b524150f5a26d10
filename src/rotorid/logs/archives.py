"""Compressed logs: the one log in a .gz, .xz or .zip file, unpacked in memory.

A damaged archive, an archive in an archive, several logs in one, and more than `MAX_SIZE` bytes or `MAX_RATIO` times the
compressed size are refused.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from rotorid.errors import LogFormatError
from rotorid.logs.reader_base import HEAD, LogFile

ARCHIVES: Final = frozenset((".gz", ".xz", ".zip"))
"""Suffixes of archives."""
MAX_SIZE: Final = 2 << 30
"""Bytes of an unpacked log, at most."""
MAX_RATIO: Final = 200
"""Size of an unpacked log over that of its compressed bytes, at most, from `_RATIO_FROM` bytes on."""
_RATIO_FROM: Final = 16 << 20
_CHUNK: Final = 1 << 20

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\0"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_OTHERS: Final = (b"7z\xbc\xaf\x27\x1c", b"BZh", b"\x28\xb5\x2f\xfd", b"Rar!")
_DAMAGE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ValueError, IndexError)


def is_archive(head: bytes) -> bool:
    """Whether these are the first bytes of a file that `unpack` opens."""
    return head.startswith((_GZIP, _XZ, *_ZIP))


def unpack(file: LogFile, is_log: Callable[[LogFile], bool]) -> LogFile:
    """The log in an archive, under the path of the archive.

    Args:
        file: the archive.
        is_log: whether a file of a zip archive is a log.
    Raises:
        LogError: the file cannot be read.
        LogFormatError: it is damaged, too large, or has no log, several logs or another archive in it.
    """
    buffer, path = file.content, file.path
    if buffer.startswith(_ZIP):
        content = _only_log(path, buffer, is_log)
    else:
        opener, kind = (gzip.open, "gzip") if buffer.startswith(_GZIP) else (lzma.open, "xz")
        try:
            with opener(io.BytesIO(buffer)) as stream:
                content = _unpacked(path, stream, len(buffer))
        except _DAMAGE as error:
            raise _damaged(path, f"{kind} file", error) from None
    if not content:
        raise LogFormatError(f"{path}: the compressed file is empty; fetch the log again from the vehicle")
    if is_archive(content) or content.startswith(_OTHERS) or content[257:262] == b"ustar":
        raise LogFormatError(f"{path}: an archive in an archive; unpack it and give the log in it")
    return LogFile(path, file.mapping, content)


def packed_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and first bytes of each file in an archive, as far as it is intact; the name in a .gz or .xz is that of the archive
    without this suffix. Files in an archive of archives are not looked at.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    if not (member.is_dir() or _is_hidden(member.filename) or member.flag_bits & 1):
                        with archive.open(member) as stream:
                            yield member.filename, stream.read(HEAD)
            return
        with path.open("rb") as file:
            opener = gzip.open if file.read(2) == _GZIP else lzma.open
        with opener(path) as stream:
            yield path.stem, stream.read(HEAD)
    except (*_DAMAGE, NotImplementedError, RuntimeError):
        return


def _only_log(path: Path, buffer: bytes, is_log: Callable[[LogFile], bool]) -> bytes:
    """The log in a zip archive: its only file, or the only one that is a log."""
    try:
        with zipfile.ZipFile(io.BytesIO(buffer)) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not _is_hidden(m.filename)]
            if locked := next((m for m in members if m.flag_bits & 1), None):
                raise LogFormatError(
                    f"{path}: {locked.filename} is encrypted; unpack it and give the log in it"
                )
            logs = members if len(members) == 1 else [m for m in members if _is_log(archive, m, path, is_log)]
            if len(logs) != 1:
                raise LogFormatError(_not_one(path, logs or members, bool(logs)))
            with archive.open(logs[0]) as stream:
                return _unpacked(path, stream, logs[0].compress_size)
    except (*_DAMAGE, NotImplementedError, RuntimeError) as error:
        raise _damaged(path, "zip archive", error) from None


def _is_hidden(name: str) -> bool:
    """Whether a file is one that an operating system adds."""
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _is_log(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, is_log: Callable[[LogFile], bool]
) -> bool:
    with archive.open(member) as stream:
        return is_log(LogFile(path.with_name(PurePosixPath(member.filename).name), None, stream.read(HEAD)))


def _not_one(path: Path, members: list[zipfile.ZipInfo], are_logs: bool) -> str:
    if not members:
        return f"{path}: the zip archive is empty"
    names = ", ".join(member.filename for member in members[:6])
    if len(members) > 6:
        names += f" and {len(members) - 6} more"
    if are_logs:
        return f"{path}: {len(members)} logs in one zip archive ({names}); unpack it and give one of them"
    return f"{path}: no log in the zip archive ({names})"


def _unpacked(path: Path, stream: IO[bytes] | gzip.GzipFile | lzma.LZMAFile, compressed: int) -> bytes:
    content = bytearray()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if len(content) > MAX_SIZE:
            raise LogFormatError(
                f"{path}: more than {MAX_SIZE >> 30} GiB when unpacked; unpack it and give the log in it"
            )
        if len(content) > max(_RATIO_FROM, MAX_RATIO * compressed):
            raise LogFormatError(
                f"{path}: more than {MAX_RATIO} times as large when unpacked, which no log is"
            )
    return bytes(content)


def _damaged(path: Path, kind: str, error: Exception) -> LogFormatError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:120].rstrip(".")
    return LogFormatError(f"{path}: a {kind} that is cut or damaged ({reason}); copy it again")
