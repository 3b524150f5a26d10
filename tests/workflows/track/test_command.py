"""`rotorid track` and `rotorid simulate`, as a person runs them."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.mcap.container import read_mcap
from rotorid.workflows.track.summary import Settings, summarise
from rotorid.workflows.track.terminal import show
from tests.running import process, settings
from tests.workflows.tracks_for_tests import T, made_flight, made_track, quantity

QUANTITIES = [
    "mass",
    "drag",
    "axial_drag_ratio",
    "lift_factor",
    "wind_force_x",
    "wind_force_y",
    *(f"accelerometer_bias_{k}" for k in "xyz"),
    "motor_time_constant",
    "wind_x",
    "wind_y",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a short simulated flight in it."""
    folder = tmp_path_factory.mktemp("track")
    result = process(folder, "simulate", "--seed", "3", "--duration", "5", "-o", "flight.parquet")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("5 s of loop with steps, seed 3: flight.parquet")
    return folder


@pytest.fixture(scope="module")
def run(place: Path) -> subprocess.CompletedProcess[str]:
    return process(place, "track", "flight.parquet", "--airframe", "simulated-quad")


def test_simulated_flights_come_again(call, place: Path, tmp_path: Path) -> None:
    more = ("--trajectory", "loop", "--mass-profile", "steps", "--seed", "3", "--duration", "5")
    call(tmp_path, "simulate", *more, "-o", "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (place / "flight.parquet").read_bytes()


def test_what_it_says(run) -> None:
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert max(len(line.rstrip()) for line in run.stdout.splitlines()) <= 80
    assert "\x1b" not in run.stdout
    said = " ".join(run.stdout.split())
    for words in ("Mass ", "EKF", "UKF", "±", "kg", "N s/m", "healthy", "Report: flight-track/report.html"):
        assert words in said
    assert "RMS error relative to the known mass" in said


def test_what_it_leaves(run, place: Path) -> None:
    folder = place / "flight-track"
    assert sorted(f.name for f in folder.iterdir()) == ["estimates.parquet", "report.html", "summary.json"]
    table = pl.read_parquet(folder / "estimates.parquet")
    pairs = [column for q in QUANTITIES for column in (q, f"{q}_std")]
    assert table.columns == ["t", "estimator", *pairs, "health"]
    assert table["estimator"].unique().sort().to_list() == ["ekf", "ukf"]
    summary = json.loads((folder / "summary.json").read_text())
    assert [i["name"] for i in summary["inputs"]] == ["flight.parquet"]
    assert len(summary["inputs"][0]["sha256"]) == 64
    assert summary["estimators"]["ekf"]["quantities"]["mass"]["rmspe"] < 10.0
    assert summary["settings"]["airframe"] == "simulated-quad"
    report = (folder / "report.html").read_text()
    assert 'src="http' not in report
    assert len(report) < 2_000_000
    assert summary["verdict"]["headline"].split()[0] in report


def test_the_same_again_is_the_same_bytes(call, run, place: Path) -> None:
    call(place, "track", "flight.parquet", "-a", "simulated-quad", "-o", "again")
    for name in ("estimates.parquet", "report.html", "summary.json"):
        assert (place / "again" / name).read_bytes() == (place / "flight-track" / name).read_bytes()


def test_truth_from_a_table_and_one_estimator(call, place: Path) -> None:
    (place / "truth.csv").write_text("t,mass\n0,1.0\n2,1.1\n")
    call(
        place, "track", "flight.parquet", "-a", "simulated-quad", "-e", "EKF", "--truth", "truth.csv",
        "--system", "multirotor-bare", "-o", "bare", "--mcap",
    )  # fmt: skip
    channels = {c.topic: c for c in read_mcap((place / "bare" / "estimates.mcap").read_bytes()).channels}
    assert set(channels) == {"/estimates/ekf", "/truth"}
    table = pl.read_parquet(place / "bare" / "estimates.parquet")
    assert len(channels["/estimates/ekf"].messages) == len(table)
    assert table.columns == ["t", "estimator", "mass", "mass_std", "health"]
    assert table["estimator"].unique().to_list() == ["ekf"]
    summary = json.loads((place / "bare" / "summary.json").read_text())
    assert {i["role"] for i in summary["inputs"]} == {"log", "truth"}
    assert summary["estimators"]["ekf"]["quantities"]["mass"]["rmspe"] > 5.0


def test_the_adaptive_filter_tells_when_the_mass_changed(call, place: Path) -> None:
    call(place, "simulate", "-m", "step", "--seed", "3", "--duration", "6", "-o", "step.parquet")
    said = call(place, "track", "step.parquet", "-a", "simulated-quad", "-e", "adaptive", "-o", "jumps")
    assert max(len(line.rstrip()) for line in said.splitlines()) <= 80
    table = pl.read_parquet(place / "step.parquet")
    steps = np.diff(table["true_mass"].to_numpy())
    row = int(np.argmax(np.abs(steps)))
    summary = json.loads((place / "jumps" / "summary.json").read_text())
    (jump,) = summary["estimators"]["adaptive"]["jumps"]
    assert jump["time"] == pytest.approx(table["t"][row + 1], abs=0.1)
    assert abs(jump["size"] - steps[row]) < 4.0 * jump["size_std"]
    assert f"in one step at {jump['time']:.1f} s." in " ".join(said.split())
    assert "<h3>Jumps " in (place / "jumps" / "report.html").read_text()
    assert "jump of the mass at" in said


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("changes", [(), (30.0,), (10.0, 30.0)])
def test_five_estimators_fit(width: int, changes: tuple[float, ...]) -> None:
    names = ("ekf", "ukf", "msckf", "swls", "adaptive")
    wide = {f"accelerometer_bias_{k}": quantity(-0.0123, 0.0111, "m/s^2", informed=k != "z") for k in "xyz"}
    mass = np.where(T < 30.0, 1.0, 1.25)
    tracks = [
        made_track(mass, estimator=e, changes=changes if e == "adaptive" else None, **wide) for e in names
    ]
    summary = summarise(tracks, made_flight(), Settings("track", names, "multirotor", "made"))
    console = Console(width=width, file=io.StringIO())
    show(summary, Path("out"), console)
    said = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert max(len(line) for line in said.splitlines()) <= width
    assert "…" not in said
    for name in ("EKF", "UKF", "MSCKF", "SWLS", "adaptive"):
        assert f" {name}" in said
    assert said.count("1.250 ± 0.010") >= 5
    assert said.count("Accelerometer bias x") >= 2
    assert "EKF, UKF, MSCKF, SWLS and adaptive: healthy 100 %" in said
    assert ("+0.250 ± 0.014" in said) == (30.0 in changes)
    assert ("no jump of the mass detected" in said) == (30.0 not in changes)
    assert ("1 more change detected but not confirmed" in said) == (10.0 in changes)


AIRFRAME = 'name = "mine"\n[mass]\nvalue = {value}\nunit = "{unit}"\n'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.ulg", "-a", "simulated-quad"], "missing.ulg: there is no such file"),
        (["flight.parquet", "-a", "nothing"], "no airframe 'nothing'"),
        (["flight.parquet", "-a", "grams.toml"], "[mass] has unit 'g'; give it in 'kg'"),
        (["flight.parquet", "-a", "negative.toml"], "[mass] value -1 kg must be positive"),
        (
            ["flight.parquet", "-a", "simulated-quad", "-e", "ekf,abc"],
            "no estimator 'abc'; there are ekf, ukf, msckf, swls, adaptive",
        ),
        (
            ["flight.parquet", "-a", "simulated-quad", "-e", ","],
            "no estimator ','; there are ekf, ukf, msckf, swls, adaptive",
        ),
        (["flight.parquet", "-a", "simulated-quad", "--system", "plane"], "no system 'plane'"),
        (
            ["flight.parquet", "-a", "simulated-quad", "--known-mass", "-2"],
            "known mass -2 kg must be positive",
        ),
        (["flight.parquet", "-a", "simulated-quad", "-o", "grams.toml"], "grams.toml: this is a file"),
        (["flight.parquet", "-a", "simulated-quad", "-o", "grams.toml/results"], "grams.toml is a file"),
        (["flight.parquet", "-a", "simulated-quad", "--truth", "no.csv"], "no.csv: there is no such file"),
        (
            ["ground.csv", "-a", "simulated-quad"],
            "ground.csv: none of rotor_command, thrust, rotor_thrust, rotor_speed in this log",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_cannot_be_is_one_line(place: Path, arguments: list[str], words: str, monkeypatch) -> None:
    (place / "grams.toml").write_text(AIRFRAME.format(value=1000, unit="g"))
    (place / "negative.toml").write_text(AIRFRAME.format(value=-1, unit="kg"))
    (place / "ground.csv").write_text("t,velocity_x,velocity_y,velocity_z\n0,0,0,0\n1,0,0,0\n2,0,0,0\n")
    before = sorted(place.iterdir())
    monkeypatch.chdir(place)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    result = CliRunner().invoke(app, ["track", *arguments])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rotorid: ")
    assert words in line
    assert result.stdout == ""
    assert sorted(place.iterdir()) == before


def test_a_full_disk_leaves_nothing(run, place: Path) -> None:
    before = sorted(place.iterdir())
    arguments = "track flight.parquet -a simulated-quad -o full"
    limited = f"ulimit -f 500; exec {sys.executable} -m rotorid {arguments}"  # kB: less than a report
    result = subprocess.run(
        ["bash", "-c", limited],
        capture_output=True,
        text=True,
        cwd=place,
        env=settings(),
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rotorid: full: the results could not be written")
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("after", [1.0, 3.0])
def test_ctrl_c_leaves_nothing(run, place: Path, after: float) -> None:
    cache = place / "empty-cache"
    cache.mkdir(exist_ok=True)
    before = sorted(place.iterdir())
    arguments = ["track", "flight.parquet", "-a", "simulated-quad", "-o", "interrupted"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rotorid", *arguments],
        cwd=place,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=settings(ROTORID_CACHE=str(cache)),
    )
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines() == ["rotorid: interrupted"]
    assert sorted(place.iterdir()) == before
