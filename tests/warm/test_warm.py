"""`rotorid warm` leaves nothing to compile for `track` and `live`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.codegen.native import compiler
from rotorid.estimators.compiled import estimator as compiled
from rotorid.estimators.compiled import trace
from rotorid.logs.write import write_table
from rotorid.simulation.flight import simulate

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("warm")
    write_table(simulate("loop", "steps", 1, duration=8.0), place / "flight.csv")
    return place


def call(*arguments: object) -> str:
    with jax.enable_x64(True):
        result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def refuse(*_: object, **__: object) -> None:
    pytest.fail("something was traced or compiled")


@pytest.mark.parametrize("source", ["airframe", "log"])
def test_track_compiles_nothing_afterwards(
    folder: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTORID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "_forms", {})
    options = ("-a", "simulated-quad", "-e", "ekf")
    log = folder / "flight.csv"
    warm = ("warm", *((log,) if source == "log" else ()), *options)
    said = call(*warm)
    assert "Compiled in" in said
    assert str(tmp_path / "cache") in said.replace("\n", "")
    monkeypatch.setattr(compiled, "_forms", {})
    monkeypatch.setattr(subprocess, "run", refuse)
    if source == "log":  # of an airframe, the numbers of a log are not known
        monkeypatch.setattr(trace.TracedEstimator, "_traced", refuse)
    call("track", log, *options, "-o", tmp_path / "track")
    call(*warm)


def test_a_log_without_a_mass_is_one_line(flights: Path) -> None:
    result = CliRunner().invoke(app, ["warm", str(flights / "ardupilot_sitl" / "dev.BIN"), "-e", "ekf"])
    assert result.exit_code == 2
    assert "weigh it" in result.stderr.replace("\n", " ")
