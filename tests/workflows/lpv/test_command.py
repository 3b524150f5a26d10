"""`rotorid lpv`: terminal output, files and error messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import scipy.io
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.control.gain_scheduling import Method, verify
from rotorid.control.heading import HeadingController, hover_lqr
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.lpv.bounds import Box
from rotorid.models.quadrotor.lpv import Subsystem, quadrotor_lpv
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.studies.lpv.control import as_flight, fly
from rotorid.workflows.lpv.lpv import method_of, subsystem_of
from rotorid.workflows.lpv.parameter_ranges import flight_variables, read_ranges

AIRFRAME = "quadrotor-plus"
SETTINGS = {"COLUMNS": "80", "ROTORID_TRACEBACK": ""}
RANGES = """
roll = [-0.5, 0.5]
pitch = [-0.5, 0.5]
roll_rate = [-2.0, 2.0]
pitch_rate = [-2.0, 2.0]
yaw_rate = [-1.0, 1.0]
rotor_speed = [150.0, 320.0]
rotor_speed_2 = [140.0, 320]
mass = [0.9, 1.5]
specific_thrust = [7.0, 13.0]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with ranges and a short flight in it."""
    folder = tmp_path_factory.mktemp("lpv")
    (folder / "ranges.toml").write_text(RANGES)
    vehicle = quadrotor()
    controller = HeadingController(vehicle, hover_lqr(vehicle), rotor_speed=(100.0, 500.0), uses_lift=True)
    flights = fly(controller, quadrotor(exact=True), [("spin", "sprayed")], duration=3.5)
    write_table(as_flight(flights, 0, vehicle), folder / "spin.parquet")
    return folder


@pytest.fixture(scope="module")
def run(place: Path):
    arguments = f"lpv spin.parquet -a {AIRFRAME} --subsystem full --components 3 --control"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return CliRunner(env=SETTINGS).invoke(app, arguments.split())


def here(monkeypatch, place: Path, *arguments: str) -> str:
    """The output of a command that runs in this process, in the folder."""
    monkeypatch.chdir(place)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture
def say(place: Path, monkeypatch):
    """The error message of a command: one line."""
    monkeypatch.chdir(place)

    def of(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["lpv", *arguments])
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1
        return result.stderr

    return of


def test_terminal_output(run) -> None:
    assert run.exit_code == 0, run.output
    assert run.stderr == ""
    assert max(len(line.rstrip()) for line in run.stdout.splitlines()) <= 80
    said = " ".join(run.stdout.split())
    for words in (
        "12 states and 15 parameters",
        "The controller is stable",
        "pull x pitch",
        "Certificate:",
        "rad/s",
    ):
        assert words in said
    assert "spin.parquet: 100 % of its rows are inside the bounds." in said
    assert "3 principal components explain" in said
    assert "Report: spin-lpv/report.html" in said


def test_files(run, place: Path) -> None:
    folder = place / "spin-lpv"
    assert sorted(f.name for f in folder.iterdir()) == [
        "controller.json", "controller.mat", "lpv.json", "lpv.mat", "report.html", "summary.json",
    ]  # fmt: skip
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["model"]["difference"] < 1e-12
    codes = ["model_difference", "rows_inside_bounds", "variance_explained", "certificate"]
    assert [f["code"] for f in summary["findings"]] == codes
    assert [i["name"] for i in summary["inputs"]] == ["spin.parquet"]
    assert summary["flights"][0]["inside"] == 1.0
    for p in summary["scheduling"]["parameters"].values():
        assert p["lower"] <= p["flight_lower"] <= p["flight_upper"] <= p["upper"]
    report = (folder / "report.html").read_text()
    assert 'src="http' not in report
    for words in (
        "Variation of the matrices",
        "Flights",
        "Reduction",
        "Certificate",
        "Poles",
        "pull y roll",
    ):
        assert words in report
    model = json.loads((folder / "lpv.json").read_text())
    here = quadrotor_lpv(quadrotor(), "full")
    np.testing.assert_array_equal(model["A"], here.A)
    assert np.shape(model["reduced"]["A"]) == (3, 12, 12)
    np.testing.assert_array_equal(scipy.io.loadmat(folder / "lpv.mat")["A0"], here.A0)


def test_the_certificate_that_is_written_holds(run, place: Path) -> None:
    """From the file alone: the gains make the sum of A'P + P A negative at every pair of vertices."""
    c = json.loads((place / "spin-lpv" / "controller.json").read_text())
    A0, A, B0, B, K = (np.array(c[name]) for name in ("A0", "A", "B0", "B", "gains"))
    vertices, P = np.array(c["vertices"]), np.array(c["certificate"]["P"])
    a, b = A0 + np.tensordot(vertices, A, 1), B0 + np.tensordot(vertices, B, 1)
    found = verify(a, b, K, P, np.eye(len(A0)), np.eye(b.shape[2]))
    assert found.is_stable
    assert found.decay == pytest.approx(c["certificate"]["decay"], rel=1e-3)
    mat = scipy.io.loadmat(place / "spin-lpv" / "controller.mat")
    np.testing.assert_array_equal(mat["K"][:, :, 5], K[5])


def test_bounds_of_ranges_and_the_same_bytes_twice(monkeypatch, place: Path) -> None:
    for folder in ("once", "twice"):
        here(monkeypatch, place, "lpv", "--ranges", "ranges.toml", "-a", AIRFRAME, "-o", folder)
    for file in (place / "once").iterdir():
        assert file.read_bytes() == (place / "twice" / file.name).read_bytes(), file.name
    summary = json.loads((place / "once" / "summary.json").read_text())
    assert summary["scheduling"]["parameters"]["rotor_speed_1"]["lower"] == 150.0
    assert summary["scheduling"]["parameters"]["rotor_speed_2"]["lower"] == 140.0
    lift = summary["scheduling"]["parameters"]["lift_0"]
    assert lift["lower"] == pytest.approx(np.cos(0.5) ** 2 * 150.0 / 1.5)
    assert lift["upper"] == pytest.approx(320.0 / 0.9)
    assert summary["control"] is None


def test_a_flight_gives_the_states_it_was_in(place: Path) -> None:
    """Attitude, rates and rotor speeds on their own clocks, and speeds from thrusts."""
    t, slow = np.arange(0.0, 4.0, 0.004), np.arange(0.0, 4.0, 0.02)
    yaw = 3.0 * t
    half = 0.5 * yaw
    attitude = np.stack([np.cos(half), 0 * t, 0 * t, np.sin(half)], axis=1)
    thrust = np.tile([2.0, 2.2, 2.4, 2.6], (len(slow), 1))
    signals = {
        "attitude": Signal("attitude", t, attitude, "made"),
        "body_rate": Signal("body_rate", slow, np.tile([0.1, -0.2, 3.0], (len(slow), 1)), "made"),
        "rotor_thrust": Signal("rotor_thrust", slow, thrust, "made"),
    }
    airframe = load_airframe(AIRFRAME)
    found = flight_variables(Flight(signals, Path("made"), "table-csv"), airframe, quadrotor(airframe))
    np.testing.assert_allclose(found.values["yaw"], 3.0 * found.t, atol=1e-9)  # turns on, beyond pi
    np.testing.assert_allclose(found.values["rotor_speed_3"], np.sqrt(2.6 / 54.2e-6))
    np.testing.assert_allclose(found.values["pitch_rate"], -0.2)
    np.testing.assert_allclose(found.rate_errors(), 0.0, atol=1e-9)


def test_a_log_outside_the_ranges_is_reported(monkeypatch, place: Path) -> None:
    (place / "narrow.toml").write_text("yaw_rate = [-0.1, 0.1]\nroll = [-0.3, 0.3]\n")
    arguments = ("lpv", "spin.parquet", "--ranges", "narrow.toml", "-a", AIRFRAME, "-o", "narrow")
    here(monkeypatch, place, *arguments)
    summary = json.loads((place / "narrow" / "summary.json").read_text())
    assert summary["flights"][0]["inside"] < 0.9
    assert summary["verdict"]["tone"] == "caution"
    assert "flight_outside_bounds" in [f["code"] for f in summary["verdict"]["findings"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-a quadrotor-plus", "no bounds: give a LOG, or --ranges FILE.toml"),
        ("--ranges ranges.toml -a crazyflie-2.1", "no [thrust_coefficient]"),
        ("--ranges ranges.toml -a fully-actuated-hexarotor", "is tilted"),
        ("--ranges none.toml -a quadrotor-plus", "none.toml"),
        ("none.csv -a quadrotor-plus", "none.csv"),
        ("--ranges ranges.toml -a quadrotor-plus --subsystem half", "no subsystem 'half'"),
        ("--ranges ranges.toml -a quadrotor-plus --control --method best", "no method 'best'"),
        ("--ranges ranges.toml -a quadrotor-plus --components 3", "principal components need flights"),
        ("spin.parquet -a quadrotor-plus --components 90", "90 components of 11 parameters"),
        ("spin.parquet -a quadrotor-plus --margin -1", "margin -1 must be 0 or more"),
        ("spin.parquet -a quadrotor-plus --control --decay 50", "no quadratic Lyapunov function"),
        ("spin.parquet -a x8-coaxial", "8 [[rotor]], and the log has 4"),
        ("spin.parquet -a quadrotor-plus -o ranges.toml", "this is a file"),
    ],
)
def test_bad_use_is_one_line(say, arguments: str, words: str) -> None:
    assert words in say(*arguments.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tilt = [0, 1]", "unknown range 'tilt'"),
        ("roll = 0.5", "roll must be two numbers"),
        ("roll = [0.5, -0.5]", "roll from 0.5 to -0.5"),
        ("roll = [0.0, inf]", "two finite numbers"),
        ("mass = [0.0, 1.0]", "must be positive"),
        ("rotor_speed = [-1.0, 1.0]", "must be 0 or more"),
        ("roll = [", "not valid TOML"),
        ("", "no ranges"),
        ("roll = [-0.1, 0.1]", "give it"),
    ],
)
def test_a_wrong_file_of_ranges_is_one_line(say, place: Path, text: str, words: str) -> None:
    (place / "wrong.toml").write_text(text)
    said = say("--ranges", "wrong.toml", "-a", AIRFRAME)
    assert words in said


def test_a_controller_needs_the_range_of_the_thrust(say, place: Path) -> None:
    kept = [line for line in RANGES.splitlines() if not line.startswith("specific")]
    (place / "few.toml").write_text("\n".join(kept))
    assert "needs the range of 'specific_thrust'" in say("--ranges", "few.toml", "-a", AIRFRAME, "--control")
    (place / "fewer.toml").write_text("\n".join(line for line in kept if not line.startswith("pitch_rate")))
    assert "'pitch_rate'" in say("--ranges", "fewer.toml", "-a", AIRFRAME)


def test_names_of_the_options_are_those_of_the_library(place: Path) -> None:
    assert [subsystem_of(name) for name in get_args(Subsystem)] == list(get_args(Subsystem))
    assert [method_of(name) for name in get_args(Method)] == list(get_args(Method))
    found = read_ranges(place / "ranges.toml", quadrotor())
    box = Box(tuple(found), *np.array(list(found.values())).T)
    assert box.contains(np.array([np.mean(v) for v in found.values()]))
