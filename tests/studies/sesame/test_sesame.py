"""The sesame study on a small data set: its scores, its hard flights, its resumption, and the detection of jumps."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.simulation.datasets.dataset import Dataset
from rotorid.simulation.datasets.generation import generate_dataset
from rotorid.studies.sesame import adaptive as sesame_adaptive
from rotorid.studies.sesame import hard as sesame_hard
from rotorid.studies.sesame import methods as sesame_methods
from rotorid.studies.sesame import study as sesame
from rotorid.studies.sesame.adaptive import VariantEstimate, _detection_rows
from rotorid.studies.sesame.methods import PRIOR_ERROR
from rotorid.studies.study_files import PARTS, Row
from rotorid.workflows.compare.batch import BatchEvaluator, group_flights
from rotorid.workflows.compare.scores import compare_scores, is_jump

SIZE = sesame.Size(2, 1, 1)


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two flights of 6 s of each of four cells."""
    folder = tmp_path_factory.mktemp("flights") / "set"
    trajectories, profiles = ("loop", "lemniscate"), ("step", "linear")
    generate_dataset(
        folder, flights=2, duration=6.0, trajectories=trajectories, mass_profiles=profiles, workers=1
    )
    return folder


@pytest.fixture(scope="module")
def study(flights: Path, tmp_path_factory: pytest.TempPathFactory):
    """The study of these flights with some of the methods, and its folder."""
    folder = tmp_path_factory.mktemp("study") / "sesame"
    with pytest.MonkeyPatch.context() as patch:
        for module in (sesame_methods, sesame_hard):
            patch.setattr(module, "EVERY_METHOD", ("ekf", "adaptive"))
        for module in (sesame, sesame_methods, sesame_adaptive):
            patch.setattr(module, "FIXED", ("ekf", "ukf"))
        here = functools.partial(generate_dataset, workers=1)
        patch.setattr(sesame, "generate_dataset", here)
        return sesame.sesame(folder, size=SIZE, flights=flights), folder


def test_scores_agree_with_a_comparison_of_the_methods(study, flights):
    rows = study[0].rows
    inputs = list(sesame._inputs(Dataset(flights), "simulated-quad"))
    scores = list(BatchEvaluator(("ekf",), PRIOR_ERROR).score_flights(inputs, len(inputs)))
    comparison = compare_scores(scores)
    assert len(list(group_flights(inputs))) == 1
    for cell, cell_scores in {("", ""): comparison.estimators, **comparison.cells}.items():
        for quantity in ("rmspe", "rmspe_late", "coverage", "healthy"):
            mean = getattr(cell_scores["ekf"].metrics, quantity)
            row = row_of(rows, "methods", "ekf", quantity, *cell)
            assert (row.value, row.flights) == (mean.value, mean.flights)


def test_steps_of_the_mass_are_overshot_by_less_than_four_percent(study):
    rows = [r for r in study[0].rows if (r.part, r.quantity) == ("methods", "overshoot")]
    assert {(r.method, r.trajectory, r.mass_profile) for r in rows} == {
        (m, *cell)
        for m in ("ekf", "adaptive")
        for cell in (("", ""), ("loop", "step"), ("lemniscate", "step"))
    }
    assert 0.0 < row_of(rows, "methods", "ekf", "overshoot").value < 4.0


def row_of(rows, part, method, quantity, trajectory="", profile="", setting="") -> Row:
    keys = (part, method, quantity, trajectory, profile, setting)
    (row,) = [
        r for r in rows if (r.part, r.method, r.quantity, r.trajectory, r.mass_profile, r.setting) == keys
    ]
    return row


def test_the_adaptive_error_is_between_those_of_fixed_tunings_and_of_known_jumps(study):
    rows = study[0].rows
    (ratio,) = [
        r
        for r in rows
        if r.method == "adaptive" and r.quantity == "ratio to the best fixed tuning" and not r.trajectory
    ]
    best = [
        r.value
        for r in rows
        if r.part == "tunings"
        and r.quantity == "rmspe_late"
        and not r.trajectory
        and r.method == ratio.setting
    ]
    adaptive = row_of(rows, "adaptive", "adaptive", "rmspe_late").value
    assert ratio.value == pytest.approx(adaptive / min(best))
    assert ratio.value < 0.75
    known, late = (
        row_of(rows, "adaptive", m, "rmspe_late").value
        for m in ("known jumps", "known jumps, one sample late")
    )
    assert known < adaptive
    assert known < late
    assert row_of(rows, "adaptive", "adaptive", "detected jumps").value == 1.0
    assert row_of(rows, "adaptive", "adaptive", "ratio to known jumps").value == pytest.approx(
        adaptive / known
    )


def test_the_lemniscate_has_a_larger_thrust_variation_than_the_loop(study):
    rows = study[0].rows
    thrusts = [
        row_of(rows, "figure 11", "control", "thrust, standard deviation", t).value
        for t in ("lemniscate", "loop")
    ]
    assert thrusts[0] > thrusts[1] > 0.0


def test_hard_flights_have_the_cells_and_the_duration_of_the_data_set(study, flights):
    rows, folder = study[0].rows, study[1]
    hard = Dataset(folder / "flights-hard")
    assert list(hard.cells.values()) == [1, 1, 1, 1]
    assert list(hard.cells) == list(Dataset(flights).cells)
    assert hard.settings["duration"] == 6.0
    assert {r.setting for r in rows if r.part == "hard"} == {"multirotor", "multirotor-bare"}
    assert study[0].hard_flights == len(hard) == 4


def test_only_missing_parts_are_made_again(study, flights, monkeypatch):
    first, folder = study
    (folder / PARTS / "tunings-results.parquet").unlink()
    stages = []
    monkeypatch.setattr(sesame_methods, "FIXED", ("ekf", "ukf"))
    resumed = sesame.sesame(
        folder, size=SIZE, flights=flights, progress=lambda stage, done, total: stages.append(stage)
    )
    assert {"methods", "adaptive", "elm", "hard"}.isdisjoint(stages)
    assert "tunings" in stages
    assert list(map(repr, resumed.rows)) == list(map(repr, first.rows))


def exact_estimate(truth: np.ndarray, since_change: np.ndarray) -> VariantEstimate:
    t = np.arange(len(truth)) / 100.0
    return VariantEstimate(t, truth, np.ones_like(t), truth, since_change, ("loop", "step"))


def test_detection_of_given_changes():
    """A jump at 5 s that is detected 0.03 s later, a missed jump at 7 s, and a false alarm at 9 s."""
    t = np.arange(1200) / 100.0
    truth = np.where(t < 5.0, 1.0, np.where(t < 7.0, 1.3, 1.0))
    since = np.where(t >= 5.03, t - 5.01, 1e6)
    since = np.where(t >= 9.0, t - 9.0, since)
    numbers = {r.quantity: r.value for r in _detection_rows([exact_estimate(truth, since)])}
    assert np.flatnonzero(is_jump(truth)).tolist() == [500, 700]
    assert (numbers["jumps"], numbers["detected jumps"]) == (2.0, 0.5)
    assert numbers["median detection delay"] == pytest.approx(0.03)
    assert numbers["median changepoint error"] == pytest.approx(0.01)
    assert numbers["false alarms in 10 minutes"] == pytest.approx(600.0 / (t[-1] - 1.0))


def test_the_delay_is_nan_without_jumps():
    numbers = {
        r.quantity: r.value for r in _detection_rows([exact_estimate(np.ones(500), np.full(500, 1e6))])
    }
    assert numbers["false alarms in 10 minutes"] == 0.0
    assert math.isnan(numbers["median detection delay"])
