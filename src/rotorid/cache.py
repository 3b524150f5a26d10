"""The folders that rotorid keeps for itself: its cache of compiled code, and its state between sessions."""

from __future__ import annotations

import os
from pathlib import Path


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


def keep_compiled() -> None:
    """Enable JAX's cache of compiled code, which all runs and processes share."""
    import jax

    folder = cache_folder() / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # read-only home folder: compilation is not cached
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
