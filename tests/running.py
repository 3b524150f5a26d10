"""`rotorid` as a person runs it, in a process of its own or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from rotorid.cli import app


def settings(**more: str) -> dict[str, str]:
    """Environment of a command: a terminal of 80 columns, and no traceback but where it is asked for."""
    return {k: v for k, v in os.environ.items() if k != "ROTORID_TRACEBACK"} | {"COLUMNS": "80"} | more


def process(folder: Path | None, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own. folder: where, None: here. more: of the environment."""
    command = [sys.executable, "-m", "rotorid", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=settings(**more))


def here(*arguments: str | Path):
    """A run in this process, which has imported and may have compiled what it needs."""
    return CliRunner().invoke(app, [*map(str, arguments)])
