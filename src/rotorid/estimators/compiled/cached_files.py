"""Files in the cache of what is traced and compiled, named by all that it depends on, and read only if complete and private."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from rotorid.cache import code_folder, is_private, sealed, source_stamp, unsealed
from rotorid.estimators.compiled.structure import structure_digest


def cached_file(static: Any, arrays: Any, others: object, suffix: str) -> Path | None:
    """The file of a program; None where there is no cache, or no digest of what is static.

    Args:
        static: all that the program depends on and that is no argument, see `structure_digest`.
        arrays: pytree of the arguments, of which places, shapes and types count.
        others: more that the program depends on, with a text that is equal in every process.
        suffix: of the file's name.
    """
    structure = structure_digest(static)
    folder = None if structure is None else code_folder("traces")
    if structure is None or folder is None:
        return None
    leaves, _ = jax.tree_util.tree_flatten_with_path(arrays)
    shapes = [(jax.tree_util.keystr(place), leaf.shape, str(leaf.dtype)) for place, leaf in leaves]
    text = repr((structure, shapes, _versions(), source_stamp(), others))
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.{suffix}"


@functools.cache
def _versions() -> tuple[str, ...]:
    return sys.version, *(version(name) for name in ("jax", "jaxlib", "equinox", "numpy"))


def read_cached(path: Path) -> bytes | None:
    """The content of a file that this user wrote; None where it is missing or damaged."""
    try:
        with path.open("rb") as file:
            return unsealed(file.read()) if is_private(os.fstat(file.fileno())) else None
    except OSError:
        return None


def write_cached(path: Path, content: bytes) -> None:
    """Write a file, whole or, where the cache cannot be written to, not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(sealed(content))
        os.replace(file.name, path)
    except OSError:
        return
