"""`rotorid learn-mass`, and its networks in `rotorid track`."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.codegen.native import compiler
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.simulation.flight import simulate

Call = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two flights with a known, changing mass."""
    place = tmp_path_factory.mktemp("flights")
    for seed in (1, 2):
        write_table(simulate("loop", "steps", seed, duration=12.0), place / f"flight{seed}.csv")
    return place


TRAIN = ("learn-mass", "flight1.csv", "--airframe", "simulated-quad", "-o", "net")


def test_a_network_tracks_another_flight_of_the_vehicle(folder: Path, call: Call) -> None:
    said = call(folder, *TRAIN)
    assert "Error of the mass on held-out rows" in said
    assert sorted(p.name for p in (folder / "net").iterdir()) == [
        "airframe.toml",
        "model.json",
        "summary.json",
        "weights.safetensors",
    ]
    summary = json.loads((folder / "net" / "summary.json").read_text())
    assert summary["flights"][0]["name"] == "flight1.csv"
    assert 0.0 < summary["held_out_rms"] < 0.2
    first = {p.name: p.read_bytes() for p in (folder / "net").iterdir()}
    call(folder, *TRAIN)
    assert first == {p.name: p.read_bytes() for p in (folder / "net").iterdir()}

    call(folder, "track", "flight2.csv", "-e", "ekf,elm", "--model", "net", "-o", "both")
    table = pl.read_parquet(folder / "both" / "estimates.parquet").filter(pl.col("estimator") == "elm")
    assert table["drag"].is_null().all()
    healthy = table.filter(pl.col("health") == "ok")
    assert len(healthy) > 100
    numbers = json.loads((folder / "both" / "summary.json").read_text())
    assert numbers["estimators"]["elm"]["quantities"].keys() == {"mass"}
    truth = read(folder / "flight2.csv")["true_mass"]
    true_mass = truth.values[np.searchsorted(truth.times, healthy["t"].to_numpy(), side="right") - 1, 0]
    assert (
        np.mean(np.abs(healthy["mass"].to_numpy() - true_mass) < 1.96 * healthy["mass_std"].to_numpy()) > 0.9
    )
    assert any(i["role"] == "model" for i in numbers["inputs"])
    assert "vehicle_unconfirmed" in {finding["code"] for finding in numbers["verdict"]["findings"]}

    call(folder, "track", "flight2.csv", "-e", "elm", "--model", "net", "-o", "alone")
    assert "NIS" not in (folder / "alone" / "report.html").read_text().split("<script")[0]
    alone = pl.read_parquet(folder / "alone" / "estimates.parquet")
    assert np.array_equal(alone["mass"], table["mass"])


def test_compare_scores_a_network(folder: Path, call: Call) -> None:
    call(folder, *TRAIN)
    call(folder, "compare", "flight2.csv", "-e", "ekf,elm", "--model", "net", "-o", "compared")
    document = json.loads((folder / "compared" / "comparison.json").read_text())
    table = pl.read_parquet(folder / "compared" / "comparison.parquet")
    assert set(table["estimator"]) == {"ekf", "elm"}
    own = table.filter(pl.col("estimator") == "elm")
    assert 0.0 < own["rmspe"][0] < 20.0
    assert own["undetected_errors"][0] < 20.0
    assert 0.0 < own["healthy"][0] < 100.0
    assert any(i["role"] == "model" for i in document["inputs"])


@pytest.mark.skipif(shutil.which("make") is None or compiler() is None, reason="needs make and a C compiler")
@pytest.mark.parametrize("options", [(), ("--flight", "flight2.csv"), ("--precision", "float")])
def test_the_exported_network_gives_the_same_numbers(
    folder: Path, call: Call, options: tuple[str, ...]
) -> None:
    """`make check` compares all numbers of the golden test with JAX's, to 1e-10 in double precision."""
    call(folder, *TRAIN)
    target = folder / ("c" + "".join(options).replace("/", ""))
    call(folder, "export", "elm", "-a", "simulated-quad", "--model", "net", "-o", target, *options)
    golden = (target / "golden.csv").read_text().splitlines()
    health = golden[0].split(",").index("health")
    seen = {float(row.split(",")[health]) for row in golden[2:]}
    assert len(seen) > 1, "the network was never used"
    done = subprocess.run(["make", "check"], cwd=target, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_errors_are_one_line(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call(folder, *TRAIN)
    call(folder, *TRAIN[:-1], "bare", "--system", "multirotor-bare")
    (folder / "cut").mkdir(exist_ok=True)
    for path in (folder / "net").iterdir():
        content = path.read_bytes()
        (folder / "cut" / path.name).write_bytes(content[:-100] if path.suffix == ".safetensors" else content)
    flight = simulate("loop", "steps", 2, duration=12.0)
    for name, missing in (("still.csv", "velocity"), ("unknown.csv", "true_mass")):
        signals = {n: signal for n, signal in flight.signals.items() if n != missing}
        write_table(dataclasses.replace(flight, signals=signals), folder / name)

    def refused(*arguments: str) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "500")
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 2, result.output
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        assert len(lines) == 1, result.stderr
        return lines[0]

    use = ("track", "flight2.csv", "-a", "simulated-quad", "-o", "none", "-e")
    assert "--model" in refused(*use, "elm")
    assert "elm" in refused(*use, "ekf", "--model", "net")
    assert "--known-mass" in refused(*use, "elm", "--model", "net", "--known-mass", "1")
    assert "--same-vehicle is for --model" in refused(*use, "ekf", "--same-vehicle")
    assert "learn-mass" in refused(*use, "elm", "--model", "nowhere")
    assert "learn-mass" in refused(*use, "elm", "--model", "flight1.csv")
    assert "not a complete mass network" in refused(*use, "elm", "--model", "cut")
    assert "multirotor-bare" in refused(*use, "elm", "--model", "bare")
    assert "velocity" in refused("track", "still.csv", "-e", "elm", "--model", "net", "-o", "none")
    assert "--model" in refused("compare", "flight2.csv", "-a", "simulated-quad", "-e", "elm")
    assert "multirotor-bare" in refused("compare", "flight2.csv", "-e", "elm", "--model", "bare")
    export = ("export", "elm", "-o", "none", "-a")
    assert "learn-mass" in refused(*export, "simulated-quad")
    assert "not a complete mass network" in refused(*export, "simulated-quad", "--model", "cut")
    assert "simulated-quad" in refused(*export, "quadrotor-x", "--model", "net")
    assert "elm" in refused("export", "ekf", "-o", "none", "-a", "simulated-quad", "--model", "net")
    other = refused("track", "flight2.csv", "-a", "quadrotor-x", "-e", "elm", "--model", "net", "-o", "none")
    assert "simulated-quad" in other
    assert "mass is not known" in refused("learn-mass", "unknown.csv", *TRAIN[2:-1], "none")
    assert "2 masses" in refused(*TRAIN[:-1], "none", "--masses", "1,2")
    assert "kg" in refused(*TRAIN[:-1], "none", "--masses", "heavy")
    assert "above 0" in refused(*TRAIN[:-1], "none", "--masses", "-1")
    assert not (folder / "none").exists()


def test_the_band_holds_for_a_similar_vehicle(folder: Path, call: Call) -> None:
    """Its rotors have 10 % less thrust at the same command; no serial number tells the vehicles apart."""
    call(folder, *TRAIN)
    flight = simulate("loop", "steps", 2, duration=12.0)
    thrust = flight["thrust"]
    signals = flight.signals | {"thrust": dataclasses.replace(thrust, values=thrust.values / 0.9)}
    write_table(dataclasses.replace(flight, signals=signals), folder / "weaker.csv")

    def coverage(*options: str) -> tuple[float, set[str]]:
        call(folder, "track", "weaker.csv", "-e", "elm", "--model", "net", "-o", "similar", *options)
        table = pl.read_parquet(folder / "similar" / "estimates.parquet").filter(pl.col("health") == "ok")
        true_mass = flight["true_mass"]
        rows = np.searchsorted(true_mass.times, table["t"].to_numpy(), side="right") - 1
        errors = np.abs(table["mass"].to_numpy() - true_mass.values[rows, 0])
        numbers = json.loads((folder / "similar" / "summary.json").read_text())
        codes = {finding["code"] for finding in numbers["verdict"]["findings"]}
        assert len(table) > 100
        return float(np.mean(errors < 1.96 * table["mass_std"].to_numpy())), codes

    inside, codes = coverage()
    assert inside > 0.9
    assert "vehicle_unconfirmed" in codes
    inside_as_the_same, codes = coverage("--same-vehicle")
    assert inside_as_the_same < inside
    assert "vehicle_unconfirmed" not in codes


def test_masses_may_be_given(folder: Path, call: Call) -> None:
    call(folder, *TRAIN[:-1], "given", "--masses", "1.1")
    summary = json.loads((folder / "given" / "summary.json").read_text())
    assert summary["flights"][0]["masses"] == [1.1, 1.1]
