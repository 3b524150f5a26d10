"""The study of every method, on a small data set: its numbers are those of the parts, and it goes on where it was."""

from __future__ import annotations

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
from rotorid.studies.sesame.adaptive import Seen, _detection
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
        folder, flights=2, duration=6.0, trajectories=trajectories, mass_profiles=profiles, workers=2
    )
    return folder


@pytest.fixture(scope="module")
def study(flights: Path, tmp_path_factory: pytest.TempPathFactory):
    """The study of these by some of the methods, and its folder."""
    folder = tmp_path_factory.mktemp("study") / "sesame"
    with pytest.MonkeyPatch.context() as patch:
        for module in (sesame_methods, sesame_hard):
            patch.setattr(module, "EVERY_METHOD", ("ekf", "adaptive"))
        for module in (sesame, sesame_methods, sesame_adaptive):
            patch.setattr(module, "FIXED", ("ekf", "ukf"))
        return sesame.sesame(folder, size=SIZE, flights=flights), folder


def test_its_numbers_are_those_of_a_comparison(study, flights):
    rows = study[0].rows
    every = list(sesame._ready(Dataset(flights), "simulated-quad"))
    scores = list(BatchEvaluator(("ekf",), PRIOR_ERROR).score_flights(every, len(every)))
    want = compare_scores(scores)
    assert len(list(group_flights(every))) == 1
    for cell, merits in {("", ""): want.estimators, **want.cells}.items():
        for quantity in ("rmspe", "rmspe_late", "coverage", "healthy"):
            mean = getattr(merits["ekf"].metrics, quantity)
            found = the(rows, "methods", "ekf", quantity, *cell)
            assert (found.value, found.flights) == (mean.value, mean.flights)


def the(rows, part, method, quantity, trajectory="", profile="", setting="") -> Row:
    keys = (part, method, quantity, trajectory, profile, setting)
    (row,) = [
        r for r in rows if (r.part, r.method, r.quantity, r.trajectory, r.mass_profile, r.setting) == keys
    ]
    return row


def test_the_adaptive_estimator_beats_the_best_fixed_tuning_and_known_jumps_are_no_worse(study):
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
    mine = the(rows, "adaptive", "adaptive", "rmspe_late").value
    assert ratio.value == pytest.approx(mine / min(best))
    assert ratio.value < 0.75
    known, late = (
        the(rows, "adaptive", m, "rmspe_late").value for m in ("known jumps", "known jumps, one sample late")
    )
    assert known < mine
    assert known < late
    assert the(rows, "adaptive", "adaptive", "detected jumps").value == 1.0
    assert the(rows, "adaptive", "adaptive", "ratio to known jumps").value == pytest.approx(mine / known)


def test_the_lemniscate_asks_for_more(study):
    rows = study[0].rows
    thrusts = [
        the(rows, "figure 11", "control", "thrust, standard deviation", t).value
        for t in ("lemniscate", "loop")
    ]
    assert thrusts[0] > thrusts[1] > 0.0


def test_the_hard_flights_are_of_the_same_kinds(study, flights):
    rows, folder = study[0].rows, study[1]
    hard = Dataset(folder / "flights-hard")
    assert list(hard.cells.values()) == [1, 1, 1, 1]
    assert list(hard.cells) == list(Dataset(flights).cells)
    assert hard.settings["duration"] == 6.0
    assert {r.setting for r in rows if r.part == "hard"} == {"multirotor", "multirotor-bare"}
    assert study[0].hard_flights == len(hard) == 4


def test_it_goes_on_where_it_was(study, flights, monkeypatch):
    found, folder = study
    (folder / PARTS / "tunings-results.parquet").unlink()
    done = []
    monkeypatch.setattr(sesame_methods, "FIXED", ("ekf", "ukf"))
    again = sesame.sesame(
        folder, size=SIZE, flights=flights, progress=lambda what, n, total: done.append(what)
    )
    assert {"methods", "adaptive", "elm", "hard"}.isdisjoint(done)
    assert "tunings" in done
    assert list(map(repr, again.rows)) == list(map(repr, found.rows))


def seen(truth: np.ndarray, since: np.ndarray) -> Seen:
    t = np.arange(len(truth)) / 100.0
    return Seen(t, truth, np.ones_like(t), truth, since, ("loop", "step"))


def test_detection_by_hand():
    """A jump at 5 s of which the filter is convinced 0.03 s later, one at 7 s that it misses, and an alarm at 9 s."""
    t = np.arange(1200) / 100.0
    truth = np.where(t < 5.0, 1.0, np.where(t < 7.0, 1.3, 1.0))
    since = np.where(t >= 5.03, t - 5.01, 1e6)
    since = np.where(t >= 9.0, t - 9.0, since)
    numbers = {r.quantity: r.value for r in _detection([seen(truth, since)])}
    assert np.flatnonzero(is_jump(truth)).tolist() == [500, 700]
    assert (numbers["jumps"], numbers["detected jumps"]) == (2.0, 0.5)
    assert numbers["median detection delay"] == pytest.approx(0.03)
    assert numbers["median changepoint error"] == pytest.approx(0.01)
    assert numbers["false alarms in 10 minutes"] == pytest.approx(600.0 / (t[-1] - 1.0))


def test_without_jumps_there_is_no_delay():
    numbers = {r.quantity: r.value for r in _detection([seen(np.ones(500), np.full(500, 1e6))])}
    assert numbers["false alarms in 10 minutes"] == 0.0
    assert math.isnan(numbers["median detection delay"])
