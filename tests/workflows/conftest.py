"""A flight table that every command can read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.write import write_table


@pytest.fixture
def flight_csv(tmp_path: Path) -> Path:
    """Ten seconds of hover, as a CSV flight table."""
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 10.0, 0.02)
    values = {
        "position": np.tile([0.0, 0.0, 2.0], (len(t), 1)) + 0.01 * rng.standard_normal((len(t), 3)),
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)),
        "specific_force": np.tile([0.0, 0.0, 9.81], (len(t), 1)) + 0.02 * rng.standard_normal((len(t), 3)),
        "thrust": 9.81 + 0.01 * rng.standard_normal((len(t), 1)),
    }
    signals = {n: Signal(n, t, x, "made") for n, x in values.items()}
    return write_table(Flight(signals, Path("made"), "table-csv"), tmp_path / "flight.csv")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Calls `rotorid` in a folder and in this process, which may have compiled what it needs; gives what it says."""

    def call(folder: Path, *arguments: str | Path) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
        with jax.enable_x64(True):
            result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        return result.stdout

    return call
