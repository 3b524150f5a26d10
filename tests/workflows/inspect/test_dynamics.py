"""Noise, gain, lag and rate loop in the terminal, the JSON, the report and the verdict."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rotorid.signals.inspection.dynamics
from rotorid import write_table
from rotorid.cli import app
from rotorid.findings import Finding, Severity
from rotorid.signals.inspection.dynamics.estimate import Estimate, not_identified
from rotorid.signals.inspection.inspection import inspect_flight
from rotorid.workflows.inspect import dynamics
from rotorid.workflows.inspect.dynamics import rows, value_text
from rotorid.workflows.inspect.verdict import inspection_verdict
from tests.signals.rate_loop import Plant, fly


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (flight,) = fly(Plant(), 1, 25.0)
    path = tmp_path_factory.mktemp("dynamics") / "sticks.parquet"
    write_table(flight, path)
    return path


def test_every_reason_and_note_has_a_text() -> None:
    folder = Path(rotorid.signals.inspection.dynamics.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py"))
    places = (
        r'Finding\(\s*"(\w+)"',
        r'_none\(\s*(?:axis, |name, |thrust, )?"(\w+)"',
        r'return "(signal_\w+)"',
        r'reason = \("(\w+)"',
        r'_none_of\(\(.*?\), axis, "(\w+)"',
        r'not_identified\([^()]*?"(\w+)"(?:, values|, \{.*\})?\)',
        r'return _none\("(\w+)"',
    )
    codes = {code for place in places for code in re.findall(place, source)}
    assert len(codes) >= 18
    assert codes == set(dynamics._TEXTS)


def test_the_json_has_values_with_units_or_reasons(log: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(log), "--json"])
    assert result.exit_code == 0, result.output
    entries = {(e["quantity"], e["axis"]): e for e in json.loads(result.stdout)["dynamics"]}
    assert {e["group"] for e in entries.values()} == {"noise", "gain", "lag", "rate_loop"}
    gain = entries["angular_acceleration_per_command", "x"]
    assert abs(gain["value"] - 160.0) < 2.5 * gain["std"]
    assert (gain["unit"], gain["reason"]) == ("rad/s^2", None)
    assert "rad/s²" in gain["text"]
    for entry in entries.values():
        assert (entry["value"] is None) == (entry["std"] is None) == (entry["reason"] is not None)
        assert entry["text"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_terminal_has_a_table_for_each_group(log: Path, width: int) -> None:
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["inspect", str(log)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    for title in ("Noise", "Gain", "Lag", "Rate loop"):
        assert title in lines


def test_the_report_and_the_verdict_name_the_numbers(log: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(log), "-o", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Noise, gain, lag and rate loop" in page
    assert "angular acceleration per command" in page
    details = " ".join(json.loads(result.stdout)["verdict"]["details"])
    assert re.search(r"lag \+ delay x \d+(\.\d)? ± \d+(\.\d)? ms", details)


def test_values_have_the_units_of_engineers() -> None:
    def text(quantity: str, value: float, std: float, unit: str) -> str:
        return value_text(Estimate("lag", quantity, "x", value, std, unit))

    assert text("motor_lag", 0.0361, 0.0024, "s") == "36 ± 2 ms"
    assert text("overshoot", 0.123, 0.03, "1") == "12 ± 3 %"
    assert text("gyro_noise_density", 0.0123, 0.0004, "rad/s/Hz^0.5") == "0.0123 ± 0.0004 rad/s/√Hz"


def test_axes_with_the_same_reason_are_named_together() -> None:
    slow = {"signal": "rotor_command", "rate": 10.0, "required": 45.0}
    estimates = [not_identified("gain", "gain", axis, "rad/s^2", "signal_slow", slow) for axis in "xy"]
    note = Finding("from_frequency", Severity.OK, {"low": 1.6})
    estimates.append(Estimate("gain", "gain", "z", 13.31, 0.28, "rad/s^2", None, (note,)))
    (row,) = rows(estimates)
    assert row.text == (
        "x and y cannot be identified: rotor command is logged at 10 Hz, 45 Hz or more are required, z 13.3 ± 0.3 rad/s² "
        "(z from 1.6 Hz on)"
    )
    assert row.is_identified


def test_a_log_with_slow_commands_says_so(flights: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(flights / "ardupilot_sitl" / "dev.BIN"), "--json"])
    entries = json.loads(result.stdout)["dynamics"]
    reasons = {e["quantity"]: e["reason"]["code"] for e in entries if e["reason"]}
    assert reasons["angular_acceleration_per_command"] == "signal_slow"
    assert reasons["motor_lag"] == "signal_slow"
    assert reasons["bandwidth"] == "signal_slow"
    assert reasons["gyro_noise_density"] == "signal_slow"


def test_a_log_without_gyro_has_no_dynamics() -> None:
    (flight,) = fly(Plant(), 1, 10.0)
    bare = dataclasses.replace(flight, signals={"rotor_command": flight["rotor_command"]})
    inspection = inspect_flight(bare)
    assert not inspection.dynamics
    assert "gyro" not in inspection_verdict(inspection).text
