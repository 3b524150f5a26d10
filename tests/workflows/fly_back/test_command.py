"""`rotorid fly-back`: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli.app import app
from rotorid.logs.write import write_table
from rotorid.models.airframe import load_airframe
from rotorid.models.airframe_numbers import with_numbers
from rotorid.models.airframe_toml import airframe_toml
from rotorid.models.fly_back import refusal
from tests.results.made_flown import TRUTH, made_flight


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flight, its true airframe, and one that is too strong."""
    path = tmp_path_factory.mktemp("flown")
    write_table(made_flight(), path / "flight.parquet")
    (path / "true.toml").write_text(airframe_toml(TRUTH))
    (path / "strong.toml").write_text(airframe_toml(with_numbers(TRUTH, {"thrust_curve_1": 5.5})))
    (path / "broken.parquet").write_bytes((path / "flight.parquet").read_bytes()[:3000])
    return path


def fly_back(folder: Path, *arguments: str, log: str = "flight.parquet"):
    given = [str(folder / a) if a.endswith((".toml", ".html")) else a for a in arguments]
    return CliRunner().invoke(app, ["fly-back", str(folder / log), *given], env={"COLUMNS": "100"})


def test_a_wrong_model_is_refused_and_the_file_says_so(folder: Path) -> None:
    models = ("--airframe", "strong.toml", "--prior", "true.toml")
    result = fly_back(folder, *models, "-o", "out.toml", "--report", "page.html", "--between", "0:12")
    assert result.exit_code == 1, result.output
    words = " ".join(result.output.split())
    assert "The model is refused. The vehicle pulls 0.9" in words
    assert "Velocity (m/s) 0.1 s" in words
    written = load_airframe(folder / "out.toml")
    assert written.fly_back is not None
    assert not written.fly_back.accepted
    assert written.fly_back.prior == TRUTH.name
    assert written.thrust_curve == load_airframe(folder / "strong.toml").thrust_curve
    assert "refused by fly-back: The vehicle pulls" in (refusal(written) or "")
    page = (folder / "page.html").read_text()
    assert "Model not to be used" in page
    assert "Answer to the rotors" in page


def test_another_model_beside_it(folder: Path) -> None:
    """The comparison is printed and on the page, with its bands; it decides nothing."""
    models = ("--airframe", "strong.toml", "--prior", "true.toml", "--against", "px4-sih-quad")
    result = fly_back(folder, *models, "--report", "beside.html", "--between", "0:12")
    assert result.exit_code == 1, result.output
    words = " ".join(result.output.split())
    assert "Beside px4-sih-quad" in words
    assert "The model predicts worse than px4-sih-quad at" in words
    assert "Velocity is predicted worse at 0.1 s" in words
    page = (folder / "beside.html").read_text()
    assert "95 % band" in page
    assert "Errors smaller than those of px4-sih-quad" in page


@pytest.mark.parametrize(
    ("arguments", "log", "message"),
    [
        (("-o", "out.txt"), "flight.parquet", "an airframe file ends in .toml"),
        (("--between", "9"), "flight.parquet", "--between 9: give start and end in s, as 24:60"),
        (("--between", "1:1.5"), "flight.parquet", "2 predictions of 0.1 s fit into its time in the air"),
        (("--against", "none.toml"), "flight.parquet", "none.toml"),
        ((), "none.parquet", "none.parquet"),
        ((), "broken.parquet", "broken.parquet"),
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments, log, message) -> None:
    result = fly_back(folder, "--airframe", "true.toml", "--prior", "true.toml", *arguments, log=log)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not (folder / "out.txt").exists()
