"""The calibration study: statistics of given estimates, its resumption, its page, and its random airframes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.models.airframe.airframe import airframe_numbers
from rotorid.studies.identify import calibration as study
from rotorid.studies.identify.flights import Task, nees, prior, random_airframe, true_values
from rotorid.studies.identify.page import headline, identify_calibration_page, miscalibrated
from rotorid.studies.page_parts import Numbers

SIZE = study.Size(24, 30.0)
PART = "quantities"


def _synthetic_result(task: Task) -> bytes:
    """Estimates of two quantities: the errors of the first have the estimated standard deviation, those of the second three
    times that. One flight fails."""
    rng = np.random.default_rng(task.seed)
    if task.number == 5:
        return json.dumps({"error": "no excitation"}).encode()
    errors = rng.normal(0.0, [0.1, 0.6])
    quantities = {
        "mass": [1.0, 1.0 + errors[0], 0.1, 0.3, 0.7],
        "drag": [0.5, 0.5 + errors[1], 0.2, 0.4, 0.5],
    }
    z = errors / [0.1, 0.2]
    return json.dumps({"quantities": quantities, "nees": float(z @ z), "seconds": 2.0}).encode()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory):
    """The study of synthetic results, its resumption without new results, and the reported progress."""
    folder: Path = tmp_path_factory.mktemp("study") / "identify"
    reports: list[tuple[str, int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "identify_task", _synthetic_result)
        first = study.identify_calibration(
            folder, size=SIZE, workers=1, progress=lambda *r: reports.append(r)
        )
        patch.setattr(study, "identify_task", None)
        resumed = study.identify_calibration(folder, size=SIZE, workers=1)
    return first, resumed, reports


def test_a_finished_study_is_read_from_its_files(results) -> None:
    first, resumed, reports = results
    assert list(map(str, first.rows)) == list(map(str, resumed.rows))
    assert (first.flights, first.failed) == (24, 1)
    assert reports[-1] == ("flights", 24, 24)
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)


def test_too_small_standard_deviations_are_detected(results) -> None:
    n = Numbers(results[0].rows)
    mass, drag = (n.get(PART, q, "coverage") for q in ("mass", "drag"))
    assert mass.flights == 23
    assert mass.value > 0.85 > 0.75 > drag.value
    assert n.get(PART, "drag", "std of z").value == pytest.approx(3.0, rel=0.4)
    assert n.get(PART, "mass", "rms error").value == pytest.approx(0.1, rel=0.4)
    assert n.get("all", "all", "nees over dof").value > 2.0
    assert n.get("all", "all", "coverage").value < 0.8
    assert "drag" in miscalibrated(n, study.TARGET_COVERAGE)


def test_page(results) -> None:
    page = identify_calibration_page(
        results[0].rows, results[0].curves, results[0].flights, results[0].failed, study.TARGET_COVERAGE, 0
    )
    assert headline(results[0].rows, study.TARGET_COVERAGE)[1].startswith("Outside: drag")
    assert "flight=5: no excitation" in page
    assert page.count('class="chart"') == 3
    assert headline([], study.TARGET_COVERAGE) == ("The identification failed for all flights.",)


def test_intervals_and_nees() -> None:
    assert study.wilson(190, 200) == pytest.approx((0.9104, 0.9726), abs=2e-4)
    assert study.wilson(200, 200)[1] == pytest.approx(1.0)
    covariance = np.diag([1e-6, 4.0])
    assert nees(np.array([2e-3, 2.0]), covariance) == pytest.approx(5.0)
    assert math.isnan(nees(np.array([1.0, 1.0]), np.diag([0.0, 1.0])))


def test_random_airframes_have_the_distribution_of_the_prior() -> None:
    prior_numbers = airframe_numbers(prior())
    airframes = [true_values(random_airframe(seed)) for seed in range(150)]
    for name, (value, std) in prior_numbers.items():
        values = np.array([truth[name] for truth in airframes])
        imu_delay = 0.003 if name == "command_delay" else 0.0
        assert np.mean(values) - imu_delay == pytest.approx(value, abs=0.35 * std + 1e-12), name
        assert np.std(values) == pytest.approx(std, rel=0.25), name
    assert true_values(random_airframe(3)) == true_values(random_airframe(3))
