"""`rotorid wrench`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import load_airframe
from rotorid.simulation.wrench.flights import LogNoise, simulate_wrench_flight
from tests.running import process

HEXAROTOR = "fully-actuated-hexarotor"
COMPONENTS = [f"{name}_{axis}" for name in ("force", "torque") for axis in "xyz"]
TRUE_FORCE = [f"true_{c}" for c in COMPONENTS[:3]]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a short flight in it, of a hexarotor that is pushed three times."""
    folder = tmp_path_factory.mktemp("wrench")
    flight = simulate_wrench_flight(
        load_airframe(HEXAROTOR), "hover-wrench", seed=1, duration=8.0, noise=LogNoise()
    )
    write_table(flight, folder / "pushed.parquet")
    return folder


@pytest.fixture(scope="module")
def run(place: Path) -> subprocess.CompletedProcess[str]:
    return process(place, "wrench", "pushed.parquet", "--airframe", HEXAROTOR)


def test_what_it_says(run) -> None:
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert max(len(line.rstrip()) for line in run.stdout.splitlines()) <= 80
    assert "\x1b" not in run.stdout
    said = " ".join(run.stdout.split())
    for words in (
        "3 contacts detected",
        "Force x",
        "Torque z",
        "±",
        "N m",
        "contact at",
        "Momentum observer: healthy",
    ):
        assert words in said
    assert "Report: pushed-wrench/report.html" in said


def test_what_it_leaves(run, place: Path) -> None:
    folder = place / "pushed-wrench"
    assert sorted(f.name for f in folder.iterdir()) == ["estimates.parquet", "report.html", "summary.json"]
    table = pl.read_parquet(folder / "estimates.parquet")
    pairs = [column for q in COMPONENTS for column in (q, f"{q}_std")]
    assert table.columns == ["t", "estimator", *pairs, "health"]
    assert table["estimator"].unique().to_list() == ["mo"]
    summary = json.loads((folder / "summary.json").read_text())
    assert [i["name"] for i in summary["inputs"]] == ["pushed.parquet"]
    assert summary["settings"]["rotor_input"] == "rotor_speed"
    assert all(c["coverage"] > 0.9 for c in summary["components"].values())
    report = (folder / "report.html").read_text()
    assert 'src="http' not in report
    assert summary["verdict"]["headline"].split()[0] in report
    for words in ("Lines of action", "All six components", "Uncertainty", "Seen from above"):
        assert words in report


def test_the_pushes_are_those_that_were_made(run, place: Path) -> None:
    flown = pl.read_parquet(place / "pushed.parquet")
    t, force = flown["t"].to_numpy(), flown.select(TRUE_FORCE).to_numpy()
    pushed = np.flatnonzero(np.diff((np.linalg.norm(force, axis=1) > 0).astype(int)))
    summary = json.loads((place / "pushed-wrench" / "summary.json").read_text())
    assert len(summary["events"]) == 3 == len(pushed) // 2
    for event, begin, end in zip(summary["events"], pushed[::2], pushed[1::2], strict=True):
        assert event["start"] == pytest.approx(t[begin], abs=0.1)
        assert event["end"] == pytest.approx(t[end], abs=0.1)
        apart = np.array(event["force"]["value"]) - force[begin + 2]
        assert np.all(np.abs(apart) < 4.0 * np.array(event["force"]["std"]))


def test_the_same_again_is_the_same_bytes(run, place: Path) -> None:
    again = process(place, "wrench", "pushed.parquet", "-a", HEXAROTOR, "-o", "again")
    assert again.returncode == 0
    for name in ("estimates.parquet", "report.html", "summary.json"):
        assert (place / "again" / name).read_bytes() == (place / "pushed-wrench" / name).read_bytes()


def test_another_observer_with_a_truth_of_its_own(call, place: Path) -> None:
    (place / "truth.csv").write_text("t,fx,fy,fz,qx,qy,qz\n0,1,2,3,0,0,0\n")
    call(
        place, "wrench", "pushed.parquet", "-a", HEXAROTOR, "--observer", "Acceleration", "--gain", "5",
        "--truth", "truth.csv", "-o", "other", "--mcap",
    )  # fmt: skip
    assert (place / "other" / "estimates.mcap").read_bytes().startswith(b"\x89MCAP")
    summary = json.loads((place / "other" / "summary.json").read_text())
    assert (summary["settings"]["observer"], summary["settings"]["gain"]) == ("acceleration", 5.0)
    assert {i["role"] for i in summary["inputs"]} == {"log", "truth"}
    assert (
        summary["components"]["force_y"]["rmse"] > 0.5
    )  # what is true east is 2 N by this table, and north 1 N
    assert "accelerometer_bias" in summary["observer"]["uncertain"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.ulg", "-a", HEXAROTOR], "missing.ulg: there is no such file"),
        (["pushed.parquet", "-a", "nothing"], "no airframe 'nothing'"),
        (
            ["pushed.parquet", "-a", HEXAROTOR, "--observer", "abc"],
            "no observer 'abc'; there are mo, acceleration, ekf",
        ),
        (["pushed.parquet", "-a", HEXAROTOR, "--gain", "0"], "the observer gain 0 1/s must be positive"),
        (["pushed.parquet", "-a", "quadrotor-x"], "4 [[rotor]], and the log has 6 columns of rotor_speed"),
        (["pushed.parquet", "-a", "simulated-quad"], "[[rotor]] for each of the 6 rotors"),
        (["pushed.parquet", "-a", HEXAROTOR, "-o", "pushed.parquet"], "pushed.parquet: this is a file"),
        (["pushed.parquet", "-a", HEXAROTOR, "-o", "pushed.parquet/results"], "pushed.parquet is a file"),
        (["hover.csv", "-a", "quadrotor-x"], "none of rotor_thrust, rotor_speed, rotor_command in this log"),
        (["blind.csv", "-a", "quadrotor-x"], "no attitude and no body_rate and no velocity in this log"),
    ],
)
def test_what_cannot_be_is_one_line(place: Path, arguments: list[str], words: str, monkeypatch) -> None:
    t = np.arange(0.0, 5.0, 0.02)
    position = Signal("position", t, np.zeros((len(t), 3)), "made")
    command = Signal("rotor_command", t, np.full((len(t), 4), 0.5), "made")
    write_table(Flight({"position": position}, Path("made"), "table-csv"), place / "hover.csv")
    write_table(
        Flight({"position": position, "rotor_command": command}, Path("made"), "table-csv"),
        place / "blind.csv",
    )
    before = sorted(place.iterdir())
    monkeypatch.chdir(place)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    result = CliRunner().invoke(app, ["wrench", *arguments])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rotorid: ")
    assert words in line
    assert result.stdout == ""
    assert sorted(place.iterdir()) == before
