"""`rotorid fit-dlm`: a season, a regressor and gaps, on one table; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.logs.tables.columns import read_columns, unit_of
from rotorid.workflows.fit_dlm.fit import SIGNAL, _stable, ljung_box

ROWS = 120


def process(rng: np.random.Generator) -> np.ndarray:
    """A first-order process with noise on top."""
    x = np.zeros(ROWS)
    for k in range(1, ROWS):
        x[k] = 0.8 * x[k - 1] + rng.normal()
    return x + rng.normal(size=ROWS)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A level that wanders, four seasons and a regressor of coefficient 1.5; 10 cells are missing."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=ROWS)
    level = 50.0 + np.cumsum(0.2 * rng.normal(size=ROWS))
    y = level + np.tile([1.0, -2.0, 0.5, 0.5], ROWS // 4) + 1.5 * x + 0.5 * rng.normal(size=ROWS)
    y[30:40] = np.nan
    columns = {
        "t": np.arange(ROWS) * 0.5,
        "y": y,
        "x": x,
        "flat": np.ones(ROWS),
        "truth": level,
        "process": process(rng),
    }
    lines = [
        ",".join("" if np.isnan(v) else repr(float(v)) for v in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join(columns) + ",word", *(f"{line},a" for line in lines)]) + "\n")
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    return path


def test_a_fit_of_a_table(table: Path) -> None:
    with jax.enable_x64(True):
        arguments = ["--column", "y", "--seasonal", "4", "--regress", "x", "--starts", "1", "--mcap"]
        result = CliRunner().invoke(app, ["fit-dlm", "table.csv", *arguments])
    assert result.exit_code == 0, result.output
    assert (table.parent / "table-dlm" / "estimates.mcap").read_bytes().startswith(b"\x89MCAP")
    assert "110 measurements" in " ".join(result.stdout.split())
    summary = json.loads((table.parent / "table-dlm" / "summary.json").read_text())
    found = summary["parameters"]
    for name, true in (("observation_variance", 0.25), ("level_variance", 0.04)):
        assert found[name]["lower"] < true < found[name]["upper"]
        assert 0.0 < found[name]["std"] < true
    assert summary["statistics"]["measured"] == 110
    assert abs(summary["states"]["x"]["final"] - 1.5) < 4.0 * summary["states"]["x"]["final_std"] < 0.4
    rows = parquet.read_table(table.parent / "table-dlm" / "estimates.parquet").to_pydict()
    assert set(rows["estimator"]) == {"filtered", "smoothed"}
    assert {"level", "level_std", "season", "x", SIGNAL, "health", "t"} <= set(rows)
    assert rows["t"][:3] == [0.0, 0.5, 1.0]
    smoothed = np.array(rows["estimator"]) == "smoothed"
    truth = parquet.read_table("table.parquet")["truth"].to_numpy()
    level, std = (np.array(rows[n])[smoothed] for n in ("level", "level_std"))
    assert np.mean(np.abs(level - truth) < 1.96 * std) > 0.85
    assert std[35] > 1.2 * std[60]  # wider where data are missing
    page = (table.parent / "table-dlm" / "report.html").read_text()
    assert "trend of order 1, season of 4 rows, regression on x" in page
    assert "Ljung-Box" in page


def test_a_table_is_the_same_in_both_forms(table: Path) -> None:
    csv, columnar = (
        read_columns(table.with_suffix(end), ["y"], ["x", "none"]) for end in (".csv", ".parquet")
    )
    assert set(csv.values) == set(columnar.values) == {"x", "y"}
    for name, values in csv.values.items():
        np.testing.assert_array_equal(values, columnar.values[name])
    semicolons = table.with_name("other.csv")
    semicolons.write_text(table.read_text().replace(",", ";"))
    np.testing.assert_array_equal(read_columns(semicolons, ["y"]).values["y"], csv.values["y"])
    assert (unit_of("thrust"), unit_of("y")) == ("N", "1")


def test_unidentifiable_directions_are_listed(table: Path) -> None:
    """Of an ARMA(1,1) process with noise on top, the noise cannot be told from the process's own."""
    with jax.enable_x64(True):
        arguments = [
            "--column",
            "process",
            "--trend",
            "0",
            "--arma",
            "1,1",
            "--starts",
            "2",
            "--forecast",
            "3",
        ]
        result = CliRunner().invoke(app, ["fit-dlm", "table.csv", *arguments, "-o", "out"])
    assert result.exit_code == 0, result.output
    summary = json.loads((table.parent / "out" / "summary.json").read_text())
    (words,) = summary["unidentifiable_directions"]
    assert words.startswith("observation_variance, arma_variance and ma_1 cannot be separated")
    assert summary["verdict"]["tone"] != "good"
    assert summary["parameters"]["ma_1"]["std"] is None
    assert summary["parameters"]["ar_1"]["std"] > 0.0
    assert "Observation variance" in " ".join(result.stdout.replace("_", " ").split())
    rows = parquet.read_table(table.parent / "out" / "estimates.parquet")
    assert rows.num_rows == 2 * (ROWS + 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--column", "z"], "table.csv: no column 'z'"),
        (["--column", "word"], "table.csv: line 2, column 'word': 'a' is not a number"),
        (["--column", "flat"], "column 'flat' is constant (1 in every row)"),
        (
            ["--column", "y", "--regress", "flat"],
            "level and flat cannot be separated: changing level by +1, flat by -1",
        ),
        (["--column", "x", "--regress", "y"], "column 'y' is empty in row 31"),
        (["--column", "y", "--seasonal", "119"], "has 110 numbers; this model needs at least 123"),
        (["--column", "y", "--seasonal", "1"], "--seasonal must be a period of 2 rows or more"),
        (["--column", "y", "--trend", "9"], "--trend must be 0, 1, 2 or 3"),
        (["--column", "y", "--arma", "1"], "--arma must be two whole numbers with a comma"),
        (["--column", "y", "--arma", "0,0"], "--arma must be p,q, each from 0 to 6 and not both 0"),
        (["--column", "y", "--regress", "y"], "each column can be used once"),
        (
            ["--column", "y", "--regress", "x", "--forecast", "2"],
            "a model with regressors cannot be forecast",
        ),
        (["--column", "y", "--time", "x"], "the time column needs a number in every row"),
        (["--column", "y", "--starts", "0"], "--starts must be 1 or more"),
    ],
    ids=lambda x: " ".join(x[1:]) if isinstance(x, list) else "",
)
def test_what_cannot_be_is_one_line(table: Path, arguments: list[str], words: str) -> None:
    with jax.enable_x64(True):
        result = CliRunner().invoke(app, ["fit-dlm", "table.csv", *arguments, "-o", "out"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert words in line
    assert not (table.parent / "out").exists()


def test_partial_autocorrelations_make_stable_processes() -> None:
    for seed in range(5):
        with jax.enable_x64(True):
            phi = np.asarray(
                _stable(jax.random.uniform(jax.random.key(seed), (4,), minval=-0.99, maxval=0.99))
            )
        assert np.abs(np.roots([1.0, *-phi])).max() < 1.0


def test_whiteness() -> None:
    z = np.random.default_rng(0).normal(size=(300, 200))
    z[::7] = np.nan
    p = [ljung_box(column) for column in z.T]
    assert 0.4 < np.mean(p) < 0.6
    assert ljung_box(np.cumsum(z[1:7, 0].repeat(20))) < 1e-6
    assert np.isnan(ljung_box(z[:4, 0]))
