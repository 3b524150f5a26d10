"""`rotorid fly-back`: its output, its files and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.write import write_table
from rotorid.models.airframe.acceptance import rejection_reason
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, with_numbers
from tests.workflows.flights_for_tests import TRUTH, made_flight


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flight, its true airframe, and one with too much thrust."""
    path = tmp_path_factory.mktemp("flown")
    write_table(made_flight(), path / "flight.parquet")
    (path / "true.toml").write_text(airframe_toml(TRUTH))
    (path / "strong.toml").write_text(airframe_toml(with_numbers(TRUTH, {"thrust_curve_1": 5.5})))
    (path / "broken.parquet").write_bytes((path / "flight.parquet").read_bytes()[:3000])
    return path


def fly_back(folder: Path, *arguments: str, log: str = "flight.parquet"):
    given = [str(folder / a) if a.endswith((".toml", ".html")) else a for a in arguments]
    return CliRunner().invoke(app, ["fly-back", str(folder / log), *given], env={"COLUMNS": "100"})


def test_a_wrong_model_is_rejected_in_the_output_and_the_file(folder: Path) -> None:
    models = ("--airframe", "strong.toml", "--prior", "true.toml")
    result = fly_back(folder, *models, "-o", "out[bold].toml", "--report", "page.html", "--between", "0:12")
    assert result.exit_code == 1, result.output
    words = " ".join(result.output.split())
    assert "out[bold].toml" in "".join(words.split())
    assert "The model failed validation." in words
    assert "Velocity (m/s) 0.1 s" in words
    written = load_airframe(folder / "out[bold].toml")
    assert written.fly_back is not None
    assert not written.fly_back.accepted
    assert written.fly_back.prior == TRUTH.name
    assert written.thrust_curve == load_airframe(folder / "strong.toml").thrust_curve
    assert written.fly_back.reasons[0] in words
    assert f"rejected by fly-back: {written.fly_back.reasons[0]}" in (rejection_reason(written) or "")
    page = (folder / "page.html").read_text()
    assert "Model not to be used" in page
    assert "Response gains" in page


def test_the_comparison_with_another_model(folder: Path) -> None:
    """The comparison is printed and on the page, with its bands; it decides nothing."""
    models = ("--airframe", "strong.toml", "--prior", "true.toml", "--against", "px4-sih-quad")
    result = fly_back(folder, *models, "--report", "compared.html", "--between", "0:12")
    assert result.exit_code == 1, result.output
    words = " ".join(result.output.split())
    assert "Comparison with px4-sih-quad" in words
    assert "The model predicts worse than px4-sih-quad at" in words
    page = (folder / "compared.html").read_text()
    assert "95 % band" in page
    assert "Errors compared with px4-sih-quad" in page


@pytest.mark.parametrize(
    ("arguments", "log", "message"),
    [
        (("-o", "out.txt"), "flight.parquet", "an airframe file ends in .toml"),
        (("--between", "9"), "flight.parquet", "--between 9: give start and end in s, as 24:60"),
        (("--between", "1:1.5"), "flight.parquet", "2 predictions of 0.1 s fit into the airborne parts"),
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
