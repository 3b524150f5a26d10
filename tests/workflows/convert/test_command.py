"""`rotorid convert`: the same flight comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.read import read


@pytest.mark.parametrize("ending", ["csv", "parquet", "mcap"])
def test_the_same_flight_comes_out(flight_csv: Path, tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"again.{ending}"
    result = CliRunner().invoke(app, ["convert", str(flight_csv), str(output)])
    assert result.exit_code == 0, result.output
    before, after = read(flight_csv), read(output)
    assert list(before.signals) == list(after.signals)
    for name in before.signals:
        np.testing.assert_array_equal(before[name].values, after[name].values)
    said = " ".join(result.stdout.split())
    assert "500 rows, 12 columns" in said
    assert "Not in this log: velocity, body_rate" in said


@pytest.mark.parametrize("name", ["out.txt", "out", "flight.csv"])
def test_outputs_that_cannot_be(flight_csv: Path, tmp_path: Path, name: str) -> None:
    before = flight_csv.read_bytes()
    result = CliRunner().invoke(app, ["convert", str(flight_csv), str(tmp_path / name)])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert flight_csv.read_bytes() == before
    assert list(tmp_path.iterdir()) == [flight_csv]


def test_folders_are_made_where_none_is_in_the_way(flight_csv: Path, tmp_path: Path) -> None:
    made = tmp_path / "new" / "out.csv"
    assert CliRunner().invoke(app, ["convert", str(flight_csv), str(made)]).exit_code == 0
    assert made.is_file()
    result = CliRunner().invoke(app, ["convert", str(flight_csv), str(made / "out.csv")])
    assert result.exit_code == 2
    assert "could not be written" in result.stderr
