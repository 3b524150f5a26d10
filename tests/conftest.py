"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def flights() -> Path:
    """The folder of recorded flights, no part of the project; tests on it are skipped where it is absent."""
    folder = Path(os.environ.get("ROTORID_FLIGHTS", Path(__file__).parents[2] / "shared" / "flights"))
    if not folder.is_dir():
        pytest.skip(f"no recorded flights at {folder} (set ROTORID_FLIGHTS)")
    return folder
