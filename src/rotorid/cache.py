"""Where rotorid keeps what it can compute again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$ROTORID_CACHE, else a folder in the user's cache."""
    if own := os.environ.get("ROTORID_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rotorid"


def keep_compiled() -> None:
    """Keep what JAX compiles between runs, for other processes as well."""
    import jax

    folder = cache_folder() / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a read-only home: only slower
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
