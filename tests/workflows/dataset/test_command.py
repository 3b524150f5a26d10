"""`rotorid dataset`: makes the cells asked for, goes on after Ctrl-C, and shows how far it is."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.simulation.datasets.dataset import Dataset
from rotorid.terminal import console

SMALL = ["--flights", "2", "--duration", "1", "--trajectories", "square, loop", "--mass-profiles", "sine"]


def dataset(*arguments: str | Path):
    return CliRunner().invoke(app, ["dataset", *map(str, arguments)])


def test_it_makes_the_cells_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    result = dataset(folder, *SMALL, "--workers", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder}: 4 flights of 1 s, nominal preset, seed 0 simulated\n"
    assert Dataset(folder).cells == {("loop", "sine"): 2, ("square", "sine"): 2}
    assert len(list(Dataset(folder))) == 4
    (folder / "trajectory=loop/mass_profile=sine/00001.parquet").unlink()
    again = dataset(folder, *SMALL, "--workers", "1")
    said = f"{folder}: 1 flight of 1 s, nominal preset, seed 0 simulated, 3 existed already\n"
    assert again.stdout == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trajectories", "spin"], "no trajectory 'spin'; there are random, loop"),
        (["--mass-profiles", ","], "name at least one mass profile; there are linear"),
        (["--preset", "soft"], "no preset 'soft'"),
        (["--executor", "cloud"], "no executor 'cloud'"),
        (["--flights", "0"], "must be 1 or more"),
        (["--seed", "-1"], "the seed 0 or more"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: list[str], said: str) -> None:
    result = dataset(tmp_path / "set", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []


def test_other_settings_are_refused(tmp_path: Path) -> None:
    small = [*SMALL[2:], "--flights", "1", "--workers", "1"]
    assert dataset(tmp_path / "set", *small).exit_code == 0
    result = dataset(tmp_path / "set", *small, "--seed", "1")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "contains a data set with seed 0, not with seed 1" in line


def test_a_bar_counts_and_tells_the_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        console, "err", lambda: Console(file=terminal, force_terminal=True, width=80, highlight=False)
    )
    assert dataset(tmp_path / "set", *SMALL, "--workers", "1").exit_code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "Simulating" in shown
    assert "4/4" in shown
    assert re.search(r"\d:\d\d:\d\d", shown)


def test_ctrl_c_leaves_whole_files_and_the_next_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    command = [sys.executable, "-m", "rotorid", "dataset", str(folder), "-t", "loop", "-m", "step", "-w", "2"]
    arguments = [*command, "--duration", "8", "--flights", "6"]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60.0
    while not list(folder.rglob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines() == ["rotorid: interrupted"]
    there = [f for f in folder.rglob("*") if f.is_file() and f.name != "dataset.json"]
    assert 1 <= len(there) < 6
    assert all(re.fullmatch(r"\d{5}\.parquet", f.name) for f in there)
    with pytest.warns(UserWarning, match="there is no such file"):
        assert len(list(Dataset(folder))) == len(there)
    again = subprocess.run(arguments, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (0, "")
    assert f"{6 - len(there)} flight" in again.stdout
    assert f"{len(there)} existed already" in again.stdout
    assert len(list(Dataset(folder))) == 6
