"""`rotorid plan`, as a person runs it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.errors import SettingError
from rotorid.simulation.free_flight.manoeuvres import Limits, manoeuvres
from rotorid.workflows.plan import plan as planning
from rotorid.workflows.plan.command import limits_of

AIRFRAME = "px4-sih-quad"
SETTINGS = {"COLUMNS": "90", "ROTORID_TRACEBACK": ""}


def call(*arguments: str):
    return CliRunner(env=SETTINGS).invoke(app, ["plan", *arguments])


def test_a_plan_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = ("fast multisines of all axes", "fast legs along x")
    monkeypatch.setattr(planning, "manoeuvres", lambda *of: [m for m in manoeuvres(*of) if m.name in choice])
    folder = tmp_path / "plan"
    result = call(
        "-a",
        AIRFRAME,
        "--for",
        "inertia",
        "--duration",
        "10",
        "--home",
        "47,8",
        "--no-simulate",
        "-o",
        str(folder),
    )
    assert result.exit_code == 0, result.output
    assert "targets_identifiable" in (folder / "summary.json").read_text()
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "summary.json", "setpoints.csv", "px4_offboard.py", "px4_logging.params", "mission.plan",
        "planned_flight.parquet",
    }  # fmt: skip
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["quantities"]["inertia_x"]["std"] < 0.2 * summary["quantities"]["inertia_x"]["hover_std"]
    assert max(summary["design"]["limit_usage"].values()) <= 1.0
    assert "estimated" not in result.output
    assert re.search(
        r"^ *inertia x  +0\.025  +0\.013  +\S+  +0\.01\d  +kg m² *$", result.output, re.MULTILINE
    )


def test_limits() -> None:
    assert limits_of("") == Limits()
    given = limits_of("speed=2, tilt=20deg, box=3x4x1.5m, rate=2rad/s, command=0.1-0.8")
    assert given == Limits(2.0, math.radians(20.0), (3.0, 4.0, 1.5), 2.0, (0.1, 0.8))
    for text, said in (
        ("height=3", "no limit 'height'"),
        ("box=4x4", "'box=4x4' cannot be read"),
        ("tilt=steep", "'tilt=steep' cannot be read"),
        ("speed=-1", "must be above 0"),
    ):
        with pytest.raises(SettingError, match=said):
            limits_of(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "mass", "-o", "x"], "mass is both a target and held fixed"),
        (["--for", "voltage_exponent"], "no parameter 'voltage_exponent'"),
        (["--for", ","], "no target parameter"),
        (["--for", "inertia", "--criterion", "E"], "no criterion 'E'"),
        (["--for", "inertia", "--home", "here"], "--home here: give latitude"),
        (["--for", "inertia", "--duration", "3"], "duration 3 s"),
        (["--for", "inertia", "--autopilot", "other"], "no autopilot 'other'"),
        (["--for", "inertia", "-o", "/dev/null/at/all"], "/dev/null is a file"),
    ],
)
def test_one_line_about_what_is_wrong(arguments: list[str], said: str) -> None:
    result = call("-a", AIRFRAME, *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1
