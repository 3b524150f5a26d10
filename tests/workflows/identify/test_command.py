"""`rotorid identify`: its output, its files and its errors."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.write import write_table
from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, with_numbers
from rotorid.results.text import Verdict
from rotorid.terminal.arguments import mass_and_std
from rotorid.workflows.identify.command import _show
from rotorid.workflows.identify.identify import identify_and_validate
from rotorid.workflows.identify.result import MassSegment
from tests.documented import documented
from tests.workflows.flights_for_tests import STEP, TRUTH, made_flight

FREE = ("inertia", "drag", "mass")


class Found(NamedTuple):
    """What the command left and said."""

    folder: Path
    code: int
    words: str
    summary: dict


def identify(folder: Path, *arguments: str, log: str = "flight.parquet", prior: str = "guess.toml"):
    given = ["identify", str(folder / log), "--airframe", str(folder / prior), *arguments]
    return CliRunner().invoke(app, given, env={"COLUMNS": "110"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flight, a guess of its airframe, and files that will not do."""
    path = tmp_path_factory.mktemp("identified")
    write_table(made_flight(), path / "flight.parquet")
    wrong = {"mass": 1.15, "inertia_x": 0.03, "inertia_y": 0.022, "drag": 0.4}
    (path / "guess.toml").write_text(airframe_toml(with_numbers(TRUTH, wrong)))
    (path / "bare.toml").write_text(airframe_toml(dataclasses.replace(TRUTH, rotors=())))
    kept = {n: s for n, s in made_flight().signals.items() if n != "rotor_command"}
    write_table(dataclasses.replace(made_flight(), signals=kept), path / "mute.parquet")
    start = made_flight()["body_rate"].times[0] + 1.0
    later = {}
    for name, s in made_flight().signals.items():
        rows = s.times >= start
        later[name] = dataclasses.replace(s, times=s.times[rows] - start, values=s.values[rows])
    (path / "plan").mkdir()
    write_table(dataclasses.replace(made_flight(), signals=later), path / "plan" / "planned_flight.parquet")
    slots = [{"name": name, "start": at} for name, at in (("chirp of roll", 0.5), ("fast climb", 6.5))]
    (path / "plan" / "summary.json").write_text(json.dumps({"manoeuvres": slots}))
    (path / "broken.parquet").write_bytes((path / "flight.parquet").read_bytes()[:3000])
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> Found:
    """One run, which all tests of its results share."""
    out = folder / "found"
    result = identify(folder, "-o", str(out), "--free", ",".join(FREE), "--plan", str(folder / "plan"))
    words = " ".join(result.output.split())
    return Found(out, result.exit_code, words, json.loads((out / "summary.json").read_text()))


def test_estimates_are_within_their_standard_deviations(found: Found) -> None:
    wanted = {"mass": 1.0, "inertia_x": 0.025, "inertia_y": 0.025, "inertia_z": 0.03, "drag": 0.6}
    assert set(found.summary["estimates"]["parameters"]) == set(wanted)
    for name, value in wanted.items():
        row = found.summary["estimates"]["parameters"][name]
        assert abs(row["value"] - value) < 4.0 * row["std"] + 0.02 * value, name
        assert row["std"] < row["prior_std"]
        assert row["information_gain"] > 0.5
    covariance = np.array(found.summary["estimates"]["covariance"])
    std = [found.summary["estimates"]["parameters"][n]["std"] for n in found.summary["estimates"]["names"]]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-9)


def test_the_airframe_has_the_estimates_and_their_validation(found: Found) -> None:
    written = load_airframe(found.folder / "airframe.toml")
    assert written.mass.number == found.summary["estimates"]["parameters"]["mass"]["value"]
    assert "identified from flight.parquet" in written.mass.source
    assert written.fly_back is not None
    assert written.fly_back.accepted == found.summary["accepted"]
    assert written.fly_back.fingerprint == fingerprint_of(written)
    assert found.code == (0 if found.summary["accepted"] else 1)


def test_the_held_out_part_is_not_fitted(found: Found) -> None:
    (flight,) = found.summary["data"]["flights"]
    held = found.summary["data"]["held_out"]["flight.parquet"]
    fitted = flight["fitted"]
    assert all(end <= a - 0.25 or start >= b + 0.25 for start, end in fitted for a, b in held)
    assert sum(b - a for a, b in held) == pytest.approx(0.25 * 14.0, abs=0.1)
    margins = 2 * 0.25 * len(held)
    assert sum(b - a for a, b in fitted) > 0.75 * 14.0 - margins - 0.1


def test_a_part_of_each_manoeuvre_of_the_plan_is_held_out(found: Found) -> None:
    (finding,) = [f for f in found.summary["findings"] if f["code"] == "planned_manoeuvres"]
    assert finding["values"]["start"] == pytest.approx(1.0, abs=0.05)
    assert finding["values"]["missing"] == []
    held = found.summary["data"]["held_out"]["flight.parquet"]
    for start in (1.5, 7.5):
        assert sum(max(0.0, min(b, start + 4.8) - max(a, start)) for a, b in held) >= 0.5


def test_the_terminal_and_the_page_say_so(found: Found) -> None:
    assert re.search(r"mass \S+ ± \S+ kg 1\.1 ± ", found.words)
    codes = [finding["code"] for finding in found.summary["findings"]]
    assert "thrust_known" in codes
    for finding in found.summary["findings"]:
        assert " ".join(finding["text"].split()) in found.words
        assert finding["severity"] in ("note", "warning", "error")
    page = (found.folder / "report.html").read_text()
    for heading in ("Findings", "Estimates", "Correlations", "Mass over time", "Predictions", "Residuals"):
        assert f"{heading}" in page
    share = found.summary["fit"]["residuals"]["body_rate"]["outside_band"]
    assert 0.0 <= share <= 1.0


def test_the_mass_over_time_is_a_table(found: Found) -> None:
    table = parquet.read_table(found.folder / "estimates.parquet")
    units = documented("`estimates.parquet` of `rotorid identify`")
    assert table.column_names == list(units)
    for name, unit in units.items():
        assert table.schema.field(name).metadata == ({b"unit": unit.encode()} if unit else None)
    (part,) = found.summary["estimates"]["masses"]
    assert set(table["mass"].to_pylist()) == {part["value"]}


@pytest.mark.parametrize(
    ("arguments", "log", "prior", "message"),
    [
        (
            ("--free", "colour"),
            "flight.parquet",
            "guess.toml",
            "no parameter 'colour' to identify; there are mass",
        ),
        (
            ("--free", "mass,thrust_curve"),
            "flight.parquet",
            "guess.toml",
            "only their ratio can be identified",
        ),
        (("--free", "mass", "--known", "mass"), "flight.parquet", "guess.toml", "give one of both"),
        (("--plan", "nowhere"), "flight.parquet", "guess.toml", "nowhere: not the folder of a plan"),
        (
            ("--plan", "plan", "--no-fly-back"),
            "flight.parquet",
            "guess.toml",
            "leave out --held-out and --no-fly-back",
        ),
        (("--known", "wind"), "flight.parquet", "guess.toml", "--known wind: give mass or thrust"),
        (
            ("--mass", "0.5+-half"),
            "flight.parquet",
            "guess.toml",
            "--mass 0.5+-half: give a mass in kg, such as 1.52",
        ),
        (("--known", "thrust=2"), "flight.parquet", "guess.toml", "--known thrust=2: give mass or thrust"),
        ((), "flight.parquet", "bare.toml", "[[rotor]] for each of the 4 rotors"),
        ((), "mute.parquet", "guess.toml", "none of rotor_command, rotor_thrust, rotor_speed in this log"),
        ((), "broken.parquet", "guess.toml", "broken.parquet"),
        ((), "none.parquet", "guess.toml", "none.parquet"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(folder: Path, arguments, log, prior, message) -> None:
    result = identify(folder, "-o", str(folder / "wrong"), *arguments, log=log, prior=prior)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not (folder / "wrong").exists()


def test_a_flight_too_short_for_validation_is_fitted(folder: Path) -> None:
    rows = round(9.0 / STEP)
    short = {
        n: dataclasses.replace(s, times=s.times[:rows], values=s.values[:rows])
        for n, s in made_flight().signals.items()
    }
    flight = dataclasses.replace(made_flight(), signals=short)
    model = identify_and_validate([flight], load_airframe(folder / "guess.toml"), FREE)
    assert not model.is_accepted
    assert model.model.airframe.fly_back is None
    (note,) = model.notes
    assert note.code == "not_validated"
    assert "9.0 s in the air are too few" in note.values["why"]
    assert abs(model.model.airframe.mass.number - 1.0) < 0.05


@pytest.mark.parametrize(
    ("text", "mass"),
    [
        (None, None),
        ("0.5", (0.5, 0.0025)),
        ("0.5+-0.01", (0.5, 0.01)),
        ("0.5 ± 0.01 kg", (0.5, 0.01)),
    ],
)
def test_a_weighed_mass_has_its_std(text: str | None, mass: tuple[float, float] | None) -> None:
    assert mass_and_std(text) == pytest.approx(mass)


def test_a_flight_is_given_once(folder: Path) -> None:
    log = str(folder / "flight.parquet")
    result = identify(folder, "-o", str(folder / "wrong"), "--held-out", log)
    assert result.exit_code == 2
    assert "given twice" in " ".join(result.output.split())


def test_the_name_of_a_flight_is_shown_as_it_is(tmp_path: Path) -> None:
    parts = [MassSegment("flight[bold].csv", start, start + 5.0, 1.0, 0.1) for start in (0.0, 5.0)]
    summary: Any = SimpleNamespace(
        verdict=Verdict("good", "Accepted.", ()),
        estimates=SimpleNamespace(parameters={}, masses=parts, hover={}),
        findings=(),
        fly_back=None,
        explained={},
        residual=None,
    )
    shown = io.StringIO()
    _show(summary, tmp_path, Console(file=shown, width=100))
    assert shown.getvalue().count("flight[bold].csv") == 2
