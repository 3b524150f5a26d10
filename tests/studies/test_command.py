"""`rotorid reproduce`: errors in its arguments, and the files it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.studies.sesame import study
from rotorid.studies.study_files import Curve, Row


def reproduce(*arguments: str | Path):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no study 'nothing'; choose from sesame, nemo, lpv"),
        (["sesame", "-o", "FILE"], "this is a file; name a folder"),
        (["sesame", "-o", "OUT", "--flights", "."], "not a data set"),
        (["benchmarks", "-o", "OUT"], "benchmarks needs --data FOLDER"),
        (["sesame", "-o", "OUT", "--data", "."], "--data is for benchmarks only"),
        (["benchmarks", "-o", "OUT", "--data", "FILE"], "there is no such folder"),
        (["benchmarks", "-o", "OUT", "--data", "."], "none of the folders nanodrone, nanobench, neurobem"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "FILE").write_text("")
    names = {"FILE": tmp_path / "FILE", "OUT": tmp_path / "out", ".": tmp_path}
    result = reproduce(*(names.get(a, a) for a in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("rotorid: ")
    assert result.stderr.count("\n") == 1


def test_files_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of a few numbers: they are in the files and on the page, which has a dash for each missing number."""
    t = np.arange(100) / 100.0
    curve = Curve("methods", "ekf", "loop", "step", t, 1.0 + t, np.full(100, 0.1), 1.0 + t)
    rows = (
        Row("tunings", "ekf", "best drift", 0.028),
        Row("tunings", "ekf", "rmspe_late", 1.87, "%", setting="drift=0.028"),
        Row("adaptive", "adaptive", "rmspe_late", 0.913, "%"),
        Row("adaptive", "adaptive", "jumps found", 1.0),
        Row("methods", "ekf", "rmspe", 2.21, "%", "loop", "step", standard_error=0.12, flights=3),
        Row("table 1", "elm", "rmspe", 1.29, "%", setting="hidden=500", published=1.8922),
    )
    arguments = {}

    def run_study(folder: Path, **settings):
        arguments.update(settings)
        settings["progress"]("methods", 1, 1)
        folder.mkdir()
        return study.Study(rows, (curve,), 50, 25)

    monkeypatch.setattr(study, "sesame", run_study)
    result = reproduce("sesame", "-o", tmp_path / "out", "--quick", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert (arguments["size"], arguments["seed"], arguments["flights"]) == (study.QUICK, 3, None)
    assert "adaptive 0.913 %" in result.stdout
    assert "(EKF) 1.87 %" in " ".join(result.stdout.split())
    table = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert [line["value"] for line in table] == [row.value for row in rows]
    assert parquet.read_table(tmp_path / "out" / "curves.parquet").num_rows == 100
    page = (tmp_path / "out" / "report.html").read_text()
    for text in ("2.21 ± 0.12", "1.29", "1.89", "Figure 6: loop", "50 flights", "\u2013"):
        assert text.replace(" ± ", "\u00a0±\u00a0") in page or text in page, text
