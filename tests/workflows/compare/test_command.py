"""`rotorid compare`: on a data set with a broken file in it, and on one log with truth and without."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest
from rich.console import Console

from rotorid.estimators.base import Health, prior
from rotorid.models.airframe.airframe import load_airframe
from rotorid.simulation.datasets.dataset import Dataset
from rotorid.terminal import console
from rotorid.workflows.compare.batch import BatchEvaluator, build_estimator, prepare_input
from rotorid.workflows.compare.scores import MassEstimate, compare_scores, score_flight
from rotorid.workflows.compare.terminal import show
from rotorid.workflows.track.track import track
from tests.running import here

FAST = ["--estimators", "ekf,ukf", "--system", "multirotor-bare"]


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch: pytest.MonkeyPatch):
    """float64 for the time of a test, and a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a data set of 2 cells x 2 flights x 3 s, its twin with a broken file, and logs of 5 s."""
    folder = tmp_path_factory.mktemp("compare")
    small = ["--flights", 2, "--duration", 3, "-t", "loop", "-m", "step,sine", "-w", 1]
    for name in ("whole", "broken"):
        assert here("dataset", folder / name, *small).exit_code == 0
    (folder / "broken/trajectory=loop/mass_profile=sine/00001.parquet").write_text("no flight")
    log = ["--seed", 3, "--duration", 5, "-o", folder / "flight.parquet"]
    assert here("simulate", *log).exit_code == 0
    pl.read_parquet(folder / "flight.parquet").drop("true_mass").write_parquet(folder / "unknown.parquet")
    (folder / "truth.csv").write_text("t,mass\n0,1.0\n")
    return folder


def test_a_data_set(place: Path, tmp_path: Path) -> None:
    result = here("compare", place / "whole", *FAST, "--prior-error", "-0.3", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= 80
    for words in ("4 flights", "EKF", "UKF", "RMSPE", "±", "loop, sine", "loop, step", "µs / update"):
        assert words in result.stdout
    assert "skipped" not in result.stdout
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        "comparison.json",
        "comparison.parquet",
        "report.html",
    ]

    table = pl.read_parquet(tmp_path / "out" / "comparison.parquet")
    rows = table.select("trajectory", "mass_profile", "estimator", "flights").rows()
    assert sorted(rows) == [("loop", m, e, 2) for m in ("sine", "step") for e in ("ekf", "ukf")]
    numbers = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert numbers["settings"]["airframe"] == "simulated-quad"
    assert numbers["settings"]["prior_error"] == -0.3
    assert (numbers["flights"], numbers["has_truth"], numbers["skipped"]) == (4, True, {})
    assert [f["code"] for f in numbers["findings"]] == ["score_definitions", "standard_errors"]
    for name, merit in numbers["estimators"].items():
        cells = table.filter(pl.col("estimator") == name)
        assert merit["metrics"]["rmspe"]["value"] == pytest.approx(cells["rmspe"].mean())
        assert merit["metrics"]["rmspe"]["standard_error"] > 0
        assert 0 < merit["seconds_per_update"] < 1e-2
        in_json = [numbers["cells"][f"loop/{m}"][name]["metrics"]["rmspe"]["value"] for m in ("sine", "step")]
        assert sorted(cells["rmspe"]) == sorted(in_json)


def test_a_wrong_prior_costs_most_at_the_start(place: Path) -> None:
    """The share that the mass starts wrong by is that of the true one, flight by flight."""
    airframe = load_airframe("simulated-quad")
    for _, flight in Dataset(place / "whole"):
        one = prepare_input(flight, airframe, "multirotor-bare")
        assert one.true_mass is not None
        start = prior(build_estimator("ekf", one, -0.3))
        true = float(one.true_mass[0])
        assert true == pytest.approx(flight["true_mass"].values[0, 0], rel=0.02)
        assert float(start.value[0]) == pytest.approx(0.7 * true)
        assert float(start.std[0]) == pytest.approx(0.3 * 0.7 * true)
        (score,) = BatchEvaluator(["ekf"], -0.3).score_stack([one])
        (better,) = BatchEvaluator(["ekf"], 0.0).score_stack([one])
        assert score.metrics.rmspe > better.metrics.rmspe


def test_stacked_flights_are_tracked_as_single_ones(place: Path) -> None:
    airframe = load_airframe("simulated-quad")
    flights = [flight for _, flight in Dataset(place / "whole")]
    together = list(
        BatchEvaluator(["ekf"]).score_flights(
            [prepare_input(f, airframe, "multirotor-bare") for f in flights], 4
        )
    )
    assert len(together) == 4
    for flight, score in zip(flights, together, strict=True):
        alone = track(flight, airframe, "ekf", "multirotor-bare")
        mass = alone.quantities["mass"]
        assert score.metrics.final == pytest.approx(float(mass.value[-1]), rel=1e-9)
        assert score.metrics.final_std == pytest.approx(float(mass.std[-1]), rel=1e-9)
        errors = mass.value / alone.truth["mass"] - 1.0
        assert score.metrics.rmspe == pytest.approx(100.0 * math.sqrt(np.mean(errors**2)), rel=1e-9)
        assert score.metrics.healthy == pytest.approx(alone.health_share(Health.OK))


def test_a_broken_flight_is_named_skipped_and_counted(place: Path, tmp_path: Path) -> None:
    result = here("compare", place / "broken", *FAST, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "3 flights" in result.stdout
    assert "1 flight skipped:" in result.stdout
    assert "mass_profile=sine/00001.parquet" in "".join(line.strip() for line in result.stdout.splitlines())
    numbers = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert list(numbers["skipped"]) == ["loop/sine/1"]
    finding = numbers["findings"][-1]
    assert (finding["code"], finding["values"]["flights"]) == ("flights_skipped", 1)
    assert finding["values"]["reasons"] == list(numbers["skipped"].values())
    assert numbers["cells"]["loop/sine"]["ekf"]["flights"] == 1
    assert numbers["cells"]["loop/sine"]["ekf"]["metrics"]["rmspe"]["standard_error"] is None


def test_the_first_flights_of_each_cell(place: Path) -> None:
    result = here("compare", place / "broken", *FAST, "--flights", "1")
    assert result.exit_code == 0, result.output
    assert "2 flights" in result.stdout
    assert "skipped" not in result.stdout


def test_a_data_set_without_any_whole_flight(place: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "dataset.json").write_bytes((place / "whole" / "dataset.json").read_bytes())
    result = here("compare", tmp_path / "set", *FAST, "-o", tmp_path / "out")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "no flight can be used for a comparison" in line
    assert "there is no such file" in line
    assert not (tmp_path / "out").exists()


def test_one_log(place: Path, tmp_path: Path) -> None:
    log = place / "flight.parquet", "-a", "simulated-quad", *FAST
    result = here("compare", *log, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    for words in ("1 flight ", "RMSPE", "NEES", "healthy"):
        assert words in result.stdout
    assert "missing" not in result.stdout
    table = pl.read_parquet(tmp_path / "out" / "comparison.parquet")
    assert table.select("trajectory", "mass_profile", "estimator").rows() == [
        (None, None, "ekf"),
        (None, None, "ukf"),
    ]
    numbers = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert [i["name"] for i in numbers["inputs"]] == ["flight.parquet"]
    assert numbers["cells"] == {}
    report = (tmp_path / "out" / "report.html").read_text()
    for words in ("RMSPE of the mass: ", "RMSPE, %", "95 % band", "EKF", "UKF"):
        assert words in report.replace("\u00a0", " ")


def test_a_log_with_its_mass_needs_no_airframe(flights: Path, tmp_path: Path) -> None:
    log = flights / "px4_sih" / "default_logging.ulg"
    result = here("compare", log, "--mass", "1.0", "-e", "ekf,ukf", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "airframe.toml",
        "comparison.json",
        "comparison.parquet",
        "report.html",
    ]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "within" in report
    assert "agreement does not prove accuracy" in report


def test_a_log_without_truth_says_so(place: Path, tmp_path: Path) -> None:
    result = here("compare", place / "unknown.parquet", "-a", "simulated-quad", *FAST, "-o", tmp_path / "o")
    assert result.exit_code == 0, result.output
    for words in ("mass, kg", "deviation, %", "NIS / dim.", "healthy", "µs / update"):
        assert words in result.stdout
    assert "RMSPE" not in result.stdout
    numbers = json.loads((tmp_path / "o" / "comparison.json").read_text())
    assert numbers["has_truth"] is False
    assert [f["code"] for f in numbers["findings"]] == ["true_mass_unknown"]
    assert numbers["estimators"]["ekf"]["metrics"]["rmspe"]["value"] is None
    assert numbers["estimators"]["ekf"]["metrics"]["median_deviation"]["value"] >= 0


def test_truth_from_a_table(place: Path) -> None:
    truth = "--truth", place / "truth.csv"
    result = here("compare", place / "unknown.parquet", "-a", "simulated-quad", *FAST, *truth)
    assert result.exit_code == 0, result.output
    assert "RMSPE" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["whole", "-e", "ekf,abc"], "no estimator 'abc'; there are ekf, ukf"),
        (["whole", "--system", "plane"], "no system 'plane'"),
        (["whole", "--prior-error", "-1"], "a prior error of -1 "),
        (["whole", "--truth", "truth.csv"], "--truth applies to a log"),
        (["whole", "--flights", "0"], "1 or more"),
        (["whole", "-o", "truth.csv"], "truth.csv: this is a file"),
        ([".", "-e", "ekf"], "not a data set"),
        (["flight.parquet"], "no log knows the mass of its vehicle"),
        (["whole", "--mass", "1.0"], "--mass applies to a log"),
        (["flight.parquet", "-a", "simulated-quad", "--flights", "1"], "--flights applies to a data set"),
        (["unknown.parquet", "-a", "simulated-quad", *FAST, "--prior-error", "0.3"], "needs the true mass"),
        (["gone.parquet", "-a", "simulated-quad"], "gone.parquet: there is no such file"),
    ],
)
def test_wrong_use_is_one_line(place: Path, arguments: list[str], said: str, monkeypatch) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    result = here("compare", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("rotorid: ")
    assert said in line
    assert sorted(place.rglob("*")) == before


def test_a_bar_counts_flights_and_estimators(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        console, "err", lambda: Console(file=terminal, force_terminal=True, width=80, highlight=False)
    )
    assert here("compare", place / "whole", *FAST).exit_code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "Comparing" in shown
    assert " 8/8 " in shown  # flights times estimators


def test_the_files_appear_both_or_none(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = here("compare", place / "whole", *FAST, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "could not be written, no space left on device" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("known", [True, False])
def test_five_estimators_fit_on_80_columns(known: bool) -> None:
    """However many digits there are: no number is broken over two lines."""
    t, rng = np.arange(0.0, 8.0, 0.01), np.random.default_rng(0)
    truth = np.where(t < 4.0, 1.3, 0.8)
    scores = []
    for cell in (("lemniscate", "exponential"), ("random", "steps")):
        for level in (-0.04, -0.12, -0.3):
            found = {}
            for name in ("ekf", "ukf", "msckf", "swls", "adaptive"):
                value = truth * (1.0 + level + 0.02 * rng.standard_normal(len(t)))
                health, dof = np.zeros(len(t), int), np.full(len(t), 3)
                found[name] = MassEstimate(t, value, 0.02 * truth, health, np.full(len(t), 3.3), dof, 1.3e-4)
            scores += score_flight(found, truth if known else None, cell)
    shown = io.StringIO()
    show(compare_scores(scores), [], None, Console(file=shown, width=80, highlight=False))
    lines = [line for line in shown.getvalue().splitlines() if " ± " in line and "std" not in line]
    assert len(lines) == (4 if known else 2)
    assert all(re.fullmatch(r".{10,14}( +\u2212?[\d.]+ ± [\d.]+){5} *", line) for line in lines), lines
