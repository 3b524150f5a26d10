"""`rotorid inspect` on terminals of any width, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli import app


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_output_fits_the_terminal(flight_csv: Path, width: int) -> None:
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["inspect", str(flight_csv)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    assert "\x1b" not in result.stdout
    for words in (
        "flight.csv",
        "Signals",
        "Checks",
        "Identifiable from this log",
        "specific_force",
        "motor lag",
    ):
        assert words in result.stdout


def test_a_terminal_without_unicode_gets_ascii_icons(flight_csv: Path) -> None:
    import os
    import subprocess
    import sys

    environment = os.environ | {"PYTHONIOENCODING": "ascii:replace", "PYTHONUTF8": "0"}
    result = subprocess.run(
        [sys.executable, "-m", "rotorid", "inspect", str(flight_csv)], capture_output=True, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert b"+ yes" in result.stdout


def test_json_has_the_same_content(flight_csv: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(flight_csv), "--json"])
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["format"] == "table-csv"
    assert [s["name"] for s in data["signals"]] == ["position", "attitude", "specific_force", "thrust"]
    assert data["airborne"] == [[0.0, pytest.approx(9.98)]]
    assert {a["verdict"] for a in data["identifiability"]} <= {"yes", "weak", "no"}
    assert set(data["findings"][0]) == {"check", "code", "severity", "values", "signals", "message", "remedy"}


def test_every_recorded_flight_can_be_inspected(flights: Path) -> None:
    kinds = ("*/*.ulg", "*/*.BIN", "crazyflie_*/log*")
    for log in sorted(p for kind in kinds for p in flights.glob(kind)):
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["inspect", str(log)])
        assert result.exit_code == 0, result.output
        assert "Checks" in result.stdout


def test_several_logs_and_one_that_cannot_be_read(flight_csv: Path, tmp_path: Path) -> None:
    empty, copy = tmp_path / "empty.ulg", tmp_path / "copy.csv"
    empty.write_bytes(b"")
    copy.write_bytes(flight_csv.read_bytes())
    arguments = ["inspect", str(flight_csv), str(empty), str(copy)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [f"rotorid: {empty}: is empty; fetch it again from the vehicle"]
    assert result.stdout.count("Identifiable from this log") == 2
    assert result.stdout.index("flight.csv") < result.stdout.index("copy.csv")
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 2
    assert [Path(entry["file"]).name for entry in json.loads(result.stdout)] == ["flight.csv", "copy.csv"]
    result = CliRunner().invoke(app, ["inspect", str(empty), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_folder_gets_the_json_and_a_report(flight_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "inspection"
    result = CliRunner().invoke(app, ["inspect", str(flight_csv), "-o", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "summary.json"]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == json.loads(result.stdout)
    page = (folder / "report.html").read_text()
    assert summary["verdict"]["headline"] in page
    assert page.count('class="chart"') == len(summary["signals"])
    result = CliRunner().invoke(app, ["inspect", str(flight_csv), str(flight_csv), "-o", str(folder)])
    assert result.exit_code == 2
    assert "--output is for one log" in result.stderr
