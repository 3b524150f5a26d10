"""`rotorid airframe`, and the commands that make an airframe from a log."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from rotorid.cli import app
from rotorid.models.airframe.airframe import load_airframe, parse_airframe
from tests.logs.make import ardupilot_hover, px4_hover


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A flight table, which has no parameters."""
    t = np.arange(0.0, 20.0, 0.02)
    columns = {"t": t} | {f"rotor_command_{i}": np.full(len(t), 0.5) for i in range(4)}
    columns |= {f"specific_force_{a}": np.full(len(t), 9.81 * (a == "z")) for a in "xyz"}
    columns |= {f"body_rate_{a}": np.zeros(len(t)) for a in "xyz"}
    path = tmp_path / "table.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_the_airframe_of_a_log_is_written(flights: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    log = flights / "ardupilot_propeller" / "good_hover_1.BIN"
    result = run("airframe", log, "--mass", "1.5+-0.02", "--span", "0.45", "-o", path)
    assert result.exit_code == 0, result.output
    airframe = load_airframe(path)
    assert (airframe.mass.number, airframe.mass.std) == (1.5, (0.02,))
    assert np.hypot(*airframe.rotors[0].position[:2]) == pytest.approx(0.225, abs=1e-6)
    assert airframe.arm_relative_std == 0.0
    printed = run("airframe", log, "--mass", "1.5±0.02", "--span", "0.45")
    assert printed.output == path.read_text()


def test_a_simulator_that_logs_its_parameters_needs_no_mass(flights: Path, tmp_path: Path) -> None:
    path = tmp_path / "sih.toml"
    assert run("airframe", flights / "px4_sih" / "default_logging.ulg", "-o", path).exit_code == 0
    made, shipped = load_airframe(path), load_airframe("px4-sih-quad")
    assert made.quantities["inertia"].value == pytest.approx(shipped.quantities["inertia"].value)
    assert made.rotors == shipped.rotors
    assert made.mass.number == 1.0


def test_the_json_has_every_entry_and_what_is_missing(flights: Path) -> None:
    log = flights / "ardupilot_propeller" / "good_hover_1.BIN"
    data = json.loads(run("airframe", log, "--mass", "1.5", "--json").stdout)
    entries = {entry["name"]: entry for entry in data["entries"]}
    assert entries["mass"] == {
        "name": "mass",
        "value": 1.5,
        "std": 0.0075,
        "has_default_std": False,
        "unit": "kg",
        "source": "given",
        "origin": "given",
    }
    assert entries["thrust_curve"]["origin"] == "stated"
    assert len(entries["thrust_curve"]["value"]) == len(entries["thrust_curve"]["std"]) == 3
    assert entries["inertia"]["origin"] == "prior"
    assert len(data["rotors"]) == 4
    missing = {entry["name"]: entry for entry in data["missing"]}
    assert set(missing) == {"span", "inertia", "motor_time_constant", "torque_ratio"}
    assert missing["span"]["option"] == "--span"
    arm = np.hypot(*data["rotors"][0]["position"][:2])
    assert missing["span"]["value"] == pytest.approx(2.0 * arm)
    assert missing["span"]["std"] / missing["span"]["value"] == pytest.approx(
        data["rotors"][0]["position_std"] / arm
    )
    assert missing["inertia"]["value"] == entries["inertia"]["value"]
    assert parse_airframe(data["toml"], "toml").rotors[0].position == tuple(data["rotors"][0]["position"])
    data = json.loads(run("airframe", log, "--mass", "1.5", "--span", "0.45", "--json").stdout)
    assert "span" not in {entry["name"] for entry in data["missing"]}


def test_the_json_without_a_mass_says_that_it_is_missing(flights: Path) -> None:
    result = run("airframe", flights / "ardupilot_propeller" / "good_hover_1.BIN", "--json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert [entry["name"] for entry in data["missing"]] == ["mass"]
    assert data["entries"] == []
    simulated = json.loads(run("airframe", flights / "px4_sih" / "default_logging.ulg", "--json").stdout)
    assert simulated["missing"] == []


@pytest.mark.parametrize("command", ["airframe", "identify", "track", "wrench"])
def test_a_log_that_does_not_say_is_one_line(command: str, table: Path) -> None:
    for arguments, message in (
        ((), "no log knows the mass of its vehicle"),
        (("--mass", "1.5"), "no parameters that say where the rotors are; give an airframe by --airframe"),
        (("--mass", "heavy"), "--mass heavy: give a mass in kg, such as 1.52 or 1.52+-0.01"),
        (("--mass", "1.5", "--span", "-1"), "--span -1.0: give a distance in m above 0"),
    ):
        result = run(command, table, *arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
        assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["airframe", "identify", "track", "wrench"])
def test_a_terminal_is_asked_for_the_mass(
    command: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rotorid.terminal.arguments._is_terminal", lambda: True)
    for answer, message in (
        ("\n", "can only be identified per kg; weigh the vehicle, or give a guess"),
        ("heavy\n", "mass heavy: give a mass in kg"),
        ("1.5+-0.1\n", "no parameters that say where the rotors are"),
    ):
        result = CliRunner().invoke(app, [command, str(table)], input=answer)
        assert result.exit_code == 2
        assert "Mass of the vehicle of table.csv as it flies" in result.stderr
        assert message in " ".join(result.stderr.split())


PLANE = (ardupilot_hover(), b"ArduCopter V4.6.3 (test)", b"ArduPlane V4.6.3 (test)\0")
ROVER = (ardupilot_hover(), b"ArduCopter V4.6.3 (test)", b"ArduRover V4.6.3 (test)\0")
PX4_PLANE = (px4_hover(), b"MAV_TYPE" + struct.pack("<i", 2), b"MAV_TYPE" + struct.pack("<i", 1))
PX4_ROVER = (px4_hover(), b"MAV_TYPE" + struct.pack("<i", 2), b"MAV_TYPE" + struct.pack("<i", 10))


@pytest.mark.parametrize("command", ["airframe", "identify", "track", "wrench"])
@pytest.mark.parametrize(
    ("name", "log", "words"),
    [
        ("plane.BIN", PLANE, "the vehicle is a plane (ArduPlane V4.6.3 (test))"),
        ("rover.BIN", ROVER, "the vehicle is a rover (ArduRover V4.6.3 (test))"),
        ("plane.ulg", PX4_PLANE, "the vehicle is a fixed wing (MAV_TYPE 1)"),
        ("rover.ulg", PX4_ROVER, "the vehicle is a rover (MAV_TYPE 10)"),
    ],
    ids=["plane.BIN", "rover.BIN", "plane.ulg", "rover.ulg"],
)
def test_a_log_of_another_kind_of_vehicle_is_refused(
    command: str, name: str, log: tuple[bytes, bytes, bytes], words: str, tmp_path: Path
) -> None:
    content, old, new = log
    assert old in content
    path = tmp_path / name
    path.write_bytes(content.replace(old, new))
    for arguments in ((), ("--mass", "1.5")):
        result = run(command, path, *arguments)
        assert result.exit_code == 2
        assert words in " ".join(result.output.split())


def test_a_span_is_not_for_an_airframe_with_rotors(table: Path) -> None:
    result = run("track", table, "--airframe", "quadrotor-x", "--span", "0.5")
    assert result.exit_code == 2
    assert "--span is for an airframe made from the log's parameters" in " ".join(result.output.split())


def test_track_writes_the_airframe_that_it_made(flights: Path, tmp_path: Path) -> None:
    log, folder = flights / "px4_sih" / "default_logging.ulg", tmp_path / "new" / "track"
    result = run("track", log, "--mass", "1.0", "--estimator", "ekf", "-o", folder)
    assert result.exit_code == 0, result.output
    assert load_airframe(folder / "airframe.toml").mass.source == "given"
    summary = json.loads((folder / "summary.json").read_text())
    assert [entry["role"] for entry in summary["inputs"]] == ["log"]


def test_without_a_log_it_asks_and_each_answer_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    answers = "hexa\nardupilot\n6\n+\n2.4+-0.02\n0.55\n0.4\n"
    result = CliRunner().invoke(app, ["airframe", "-o", str(path)], input=answers)
    assert result.exit_code == 0, result.output
    assert "Distance between opposite motors, m [0." in result.stderr
    airframe = load_airframe(path)
    assert (airframe.name, airframe.mass.number, airframe.mass.std, len(airframe.rotors)) == (
        "hexa",
        2.4,
        (0.02,),
        6,
    )
    assert max(rotor.position[0] for rotor in airframe.rotors) == pytest.approx(0.275, abs=1e-6)
    curve = airframe.thrust_curve
    assert curve is not None
    assert sum(curve.coefficients) == pytest.approx(2.4 * 9.81 / (6 * 0.4), rel=0.01)


def test_answers_may_be_left_out_and_must_be_possible(tmp_path: Path) -> None:
    kept = CliRunner().invoke(app, ["airframe", "--mass", "1.5"], input="\n" * 6)
    assert kept.exit_code == 0, kept.output
    airframe = parse_airframe(kept.stdout, "printed")
    assert (airframe.name, len(airframe.rotors)) == ("mine", 4)
    assert airframe.arm_relative_std > 0.1
    for answers, words in (
        ("", "no answer; give a LOG"),
        ("a\npixhawk\n", "'pixhawk' is none of px4, ardupilot"),
    ):
        wrong = CliRunner().invoke(app, ["airframe"], input=answers)
        assert wrong.exit_code == 2
        assert words in wrong.stderr
