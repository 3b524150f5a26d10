"""Where rotorid keeps what it can compute again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$ROTORID_CACHE, else a folder in the user's cache."""
    if own := os.environ.get("ROTORID_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rotorid"
