"""`rotorid calibrate`, `rotorid demo` and `rotorid airframes`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.models.airframe.airframe import load_airframe, shipped_airframes
from tests.running import process as rotorid


def test_a_demo_and_a_calibration_on_its_flight(tmp_path: Path) -> None:
    demo = rotorid(tmp_path, "demo", "--mcap", "-o", "demo")
    assert demo.returncode == 0, demo.stderr
    assert "mass fell from" in " ".join(demo.stdout.split())
    assert "Report: demo/report.html" in demo.stdout
    names = ["estimates.mcap", "estimates.parquet", "flight.parquet", "report.html", "summary.json"]
    assert sorted(f.name for f in (tmp_path / "demo").iterdir()) == names
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert summary["settings"]["seed"] == 0
    for found in summary["estimators"].values():
        assert found["quantities"]["mass"]["rmspe"] < 2.0
        assert found["quantities"]["drag"]["final"] == pytest.approx(0.25, rel=0.15)

    table = ["simulate", "--mass-profile", "linear", "--duration", "5", "-o", "a.csv"]
    assert rotorid(tmp_path, *table).returncode == 0
    result = rotorid(
        tmp_path,
        "calibrate",
        "a.csv",
        "a.csv",
        "--airframe",
        "simulated-quad",
        "--mass",
        "1.0",
        "-o",
        "my.toml",
    )
    assert result.returncode == 0, result.stderr
    assert "Thrust scale" in result.stdout
    wrong = rotorid(
        tmp_path, "calibrate", "a.csv", "-a", "simulated-quad", "--mass", "900", "-o", "wrong.toml"
    )
    assert wrong.returncode == 2
    assert "which no calibration corrects; check the known mass of 900 kg" in wrong.stderr
    assert not (tmp_path / "wrong.toml").exists()
    scale = load_airframe(tmp_path / "my.toml").get("thrust_scale")
    assert scale is not None
    assert scale.std is not None
    assert scale.source == "calibrated on a.csv, a.csv with a known mass of 1 kg"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.csv", "--mass", "1", "-o", "my.toml"], "missing.csv: there is no such file"),
        (["missing.csv", "--mass", "1", "-o", "my.txt"], "must end in .toml"),
        (["missing.csv", "--mass", "0", "-o", "my.toml"], "the known mass 0 kg must be positive"),
    ],
    ids=["missing", "ending", "mass"],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, monkeypatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    result = CliRunner().invoke(app, ["calibrate", "-a", "crazyflie-2.1", *arguments])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert words in line
    assert list(tmp_path.iterdir()) == []


def test_simulations_that_cannot_be(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    for arguments in (
        ["-o", "flight.txt"],
        ["-o", "flight.csv", "--trajectory", "lop"],
        ["-o", "flight.csv", "--mass-profile", "stairs"],
        ["-o", "flight.csv", "--duration", "-1"],
    ):
        result = CliRunner().invoke(app, ["simulate", *arguments])
        assert result.exit_code == 2, result.output
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_airframes() -> None:
    result = CliRunner().invoke(app, ["airframes"])
    assert result.exit_code == 0
    for name in shipped_airframes():
        assert name in result.stdout
    printed = CliRunner().invoke(app, ["airframes", "px4-sih-quad"])
    assert "[thrust_curve]" in printed.stdout
    assert CliRunner().invoke(app, ["airframes", "none"]).exit_code == 2
