"""The folders that rotorid keeps for itself: its cache of compiled code, and its state between sessions."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rotorid.errors import SettingError


def cache_folder() -> Path:
    """The folder $ROTORID_CACHE, by default `rotorid` in the cache folder of the user."""
    if own := os.environ.get("ROTORID_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rotorid"


def state_folder() -> Path:
    """The folder $ROTORID_STATE, by default `rotorid` in the state folder of the user ($XDG_STATE_HOME, ~/.local/state)."""
    if own := os.environ.get("ROTORID_STATE"):
        return Path(own)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rotorid"


def code_folder(name: str) -> Path | None:
    """A folder of compiled code in the cache, which is created for this user alone (mode 0700).

    What lies in it is run, so no other user may write to it or to the cache folder around it.

    Returns:
        The folder; None where it cannot be created or written to, as in a read-only home folder.
    Raises:
        SettingError: another user owns one of the two folders, or may write to it.
    """
    folder = cache_folder() / name
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for place in (folder.parent, folder):
            place.mkdir(mode=0o700, exist_ok=True)
            _check_private(place)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and no other user may write to it."""
    return sys.platform == "win32" or (
        status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _check_private(folder: Path) -> None:
    """Raise SettingError if another user owns the folder or may write to it; else stop others from reading it."""
    status = folder.stat()
    if is_private(status):
        if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
        return
    if sys.platform != "win32" and status.st_uid != os.getuid():
        reason, remedy = f"belongs to another user ({status.st_uid})", ""
    else:
        reason, remedy = "can be written to by other users", f"delete it (rm -r '{folder}'), or "
    raise SettingError(
        f"{folder}: {reason}, and compiled code in it is run; {remedy}name a folder of your own in ROTORID_CACHE"
    )


def keep_compiled() -> None:
    """Enable JAX's cache of compiled code, which all runs and processes share. Raises SettingError as `code_folder` does."""
    import jax

    folder = code_folder("jax")
    if folder is None:
        return  # compilation is not cached
    _check_jax_entries()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def keeps_compiled() -> bool:
    """Whether JAX's cache of compiled code is enabled, as `keep_compiled` does, so that `compiling_anew` has an effect."""
    from jax._src import compilation_cache

    cache = getattr(compilation_cache, "_cache", None) or getattr(compilation_cache, "LRUCache", None)
    return hasattr(cache, "rotorid_sealed")


@contextmanager
def compiling_anew() -> Iterator[None]:
    """Compile what this thread compiles within the block without JAX's cache: neither take it from there nor keep it."""
    _anew.is_active = True
    try:
        yield
    finally:
        _anew.is_active = False


_anew = threading.local()


@functools.cache
def source_stamp() -> str:
    """Changes with every file of rotorid's source: names, sizes and times of modification."""
    root = os.path.dirname(__file__)
    stamps = [
        f"{path[len(root) :]} {status.st_size} {status.st_mtime_ns}\n"
        for folder, _, names in os.walk(root)
        for path in (os.path.join(folder, name) for name in names if name.endswith(".py"))
        for status in (os.stat(path),)
    ]
    return hashlib.sha256("".join(sorted(stamps)).encode()).hexdigest()


_MAGIC = b"rotorid1"


def sealed(content: bytes) -> bytes:
    """Content with its SHA-256 behind it, see `unsealed`. A decompressor of zstd or zlib ignores what is added."""
    return content + hashlib.sha256(content).digest() + _MAGIC


def unsealed(content: bytes) -> bytes | None:
    """The content that was sealed; None where it is not complete or was changed."""
    value, digest, magic = content[:-40], content[-40:-8], content[-8:]
    return value if magic == _MAGIC and hashlib.sha256(value).digest() == digest else None


def _check_jax_entries() -> None:
    """Seal the entries of JAX's cache: JAX runs a damaged one (which can end the process), or warns of it at every start.

    JAX has no public way to do so. Where the class of its cache has another place (held by a test), its entries are not sealed.
    """
    from jax._src import compilation_cache

    base = getattr(compilation_cache, "LRUCache", None)
    if base is None or hasattr(base, "rotorid_sealed"):
        return

    class SealedCache(base):
        rotorid_sealed = True

        def get(self, key: str) -> bytes | None:
            if getattr(_anew, "is_active", False):
                return None
            content = super().get(key)
            value = None if content is None else unsealed(content)
            if content is not None and value is None:
                for path in Path(str(self.path)).glob(f"{key}-*"):
                    path.unlink(missing_ok=True)  # `put` replaces no entry
            return value

        def put(self, key: str, value: bytes) -> None:
            if not getattr(_anew, "is_active", False):
                super().put(key, sealed(value))

    compilation_cache.LRUCache = SealedCache  # type: ignore[misc]
