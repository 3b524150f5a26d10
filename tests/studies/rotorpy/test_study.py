"""The study of RotorPy flights: statistics of given results, resumption, the page, and the recovery of short flights."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.studies.page_parts import Numbers
from rotorid.studies.rotorpy import study
from rotorid.studies.rotorpy.flights import Task
from rotorid.studies.rotorpy.page import headline, rotorpy_page, targets_of
from rotorid.studies.rotorpy.study import FULL, Size, groups_of, rotorpy_study, strided, tasks_of, track_pairs
from rotorid.studies.rotorpy.vehicles import VEHICLES, parameters_of, true_values

pytest.importorskip("rotorpy", reason="RotorPy is not installed: pip install 'rotorid[referee]'")

SIZE = Size(VEHICLES[:2], (True, False), ("still", "gusts"), ("rotor_command", "rotor_speed"))


def _synthetic_identification(task: Task, folder: Path) -> bytes:
    """Estimates whose errors have the estimated standard deviations; those of the drag along are five times as large."""
    rng = np.random.default_rng(task.seed)
    if task.seed == 1:
        return json.dumps({"error": "no excitation"}).encode()
    truth = true_values(parameters_of(task.vehicle), task.rotors)
    quantities = {}
    for name, value in truth.items():
        std = 0.02 * value + 1e-9
        quantities[name] = [
            value,
            value + std * rng.standard_normal(),
            std / 5.0 if name == "drag_along" else std,
        ]
    is_accepted = task.seed % 2 == 0
    reasons = [] if is_accepted else ["worse than constant velocity"]
    return json.dumps(
        {
            "quantities": quantities,
            "accepted": is_accepted,
            "reasons": reasons,
            "findings": [],
            "seconds": 2.0,
        }
    ).encode()


def _synthetic_track(pair: tuple[Task, Task], folder: Path) -> bytes:
    scores = {"rmspe": 1.0, "inside": 0.95, "ok_wrong": 0.2, "ok": 0.9, "wind_x inside": 0.5, "seconds": 1.0}
    curve = [[0.0, 1.0, 2.0], [1.0, 1.1, 1.2], [0.1, 0.1, 0.1], [1.0, 1.0, 1.2]]
    return json.dumps(
        {"known thrust": {**scores, "curve": curve}, "identified": {"error": "no mass"}}
    ).encode()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory):
    """The study of synthetic results, its resumption without new results, and the reported progress."""
    folder: Path = tmp_path_factory.mktemp("study") / "rotorpy"
    reports: list[tuple[str, int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "identify_task", _synthetic_identification)
        patch.setattr(study, "track_task", _synthetic_track)
        first = rotorpy_study(folder, size=SIZE, workers=1, progress=lambda *r: reports.append(r))
        patch.setattr(study, "identify_task", None)
        patch.setattr(study, "track_task", None)
        resumed = rotorpy_study(folder, size=SIZE, workers=1)
    return first, resumed, reports


def test_the_flights_of_the_full_study() -> None:
    tasks = tasks_of(FULL)
    assert len(tasks) == len({t.name for t in tasks}) == len({t.seed for t in tasks}) == 60
    assert sorted(strided(tasks)) == sorted(tasks)
    pairs = track_pairs(tasks)
    assert sum(t.has_payload for t, _ in pairs) == 15
    assert all(a.vehicle == b.vehicle and b.is_excited and b.wind == "still" for a, b in pairs)
    assert groups_of(tasks[0].name) == ("", "hummingbird", "excited", "still", "command")


def test_a_finished_study_is_read_from_its_files(results) -> None:
    first, resumed, reports = results
    assert list(map(str, first.rows)) == list(map(str, resumed.rows))
    assert first.flights == (16, 8)
    assert ("identify", 16, 16) in reports
    assert reports[-1] == ("track", 8, 8)


def test_statistics(results) -> None:
    n = Numbers(results[0].rows)
    inertia, along = (n.get("quantities", q, "coverage") for q in ("inertia_x", "drag_along"))
    assert inertia.flights == 15
    assert inertia.value > 0.8 > 0.6 > along.value
    assert n.get("all", "all", "identified").value == 15
    assert (
        n.get("all", "all", "accepted", setting="command").value
        + n.get("all", "all", "accepted", setting="speed").value
        == n.get("all", "all", "accepted").value
    )
    assert n.get("all", "all", "inertia, median error", setting="excited").value < 0.04
    assert n.get("all", "all", "largest z, accepted").value > 4.0
    assert n.get("tracks", "known thrust", "inside, mean", setting="payload").value == pytest.approx(0.95)
    assert n.get("tracks", "known thrust", "wind inside, mean").value == pytest.approx(0.5)
    assert math.isnan(n.get("tracks", "identified", "rmspe, median").value)


def test_page(results) -> None:
    missed = [t.name for t in targets_of(results[0].rows) if not t.is_met]
    assert "largest |z| of an accepted model" in missed
    assert "health ok and true mass outside, known thrust" in missed
    page = rotorpy_page(results[0].rows, results[0].curves, results[0].flights, 0)
    for text in ("worse than constant velocity", "no excitation", "Missed:", "drag across"):
        assert text in page, text
    assert headline([]) == ("No flight was identified.",)
