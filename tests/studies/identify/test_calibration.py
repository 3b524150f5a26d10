"""The study of coverage: what it adds up from flights of which the answer is known, that it goes on, and its page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.models.airframe.airframe import airframe_numbers
from rotorid.studies.identify import calibration as study
from rotorid.studies.identify.flights import Task, drawn, nees, prior, truth_of
from rotorid.studies.identify.page import headline, identify_calibration_page, outside
from rotorid.studies.page_parts import Numbers

SIZE = study.Size(24, 30.0)
PART = "quantities"


def _invented(task: Task) -> bytes:
    """Of two quantities, one with the standard deviation that it says, the other with three times that; one flight fails."""
    rng = np.random.default_rng(task.seed)
    if task.number == 5:
        return json.dumps({"error": "nothing moves"}).encode()
    errors = rng.normal(0.0, [0.1, 0.6])
    rows = {
        "mass": [1.0, 1.0 + errors[0], 0.1, 0.3, 0.7],
        "drag": [0.5, 0.5 + errors[1], 0.2, 0.4, 0.5],
    }
    z = errors / [0.1, 0.2]
    return json.dumps({"quantities": rows, "nees": float(z @ z), "seconds": 2.0}).encode()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """The study of invented flights, and again with the making forbidden."""
    folder: Path = tmp_path_factory.mktemp("study") / "identify"
    told: list[tuple[str, int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "make", _invented)
        first = study.identify_calibration(folder, size=SIZE, workers=1, progress=lambda *w: told.append(w))
        patch.setattr(study, "make", None)
        again = study.identify_calibration(folder, size=SIZE, workers=1)
    return first, again, told


def test_it_goes_on_where_it_was(made) -> None:
    first, again, told = made
    assert list(map(str, first.rows)) == list(map(str, again.rows))
    assert (first.flights, first.failed) == (24, 1)
    assert told[-1] == ("flights", 24, 24)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_it_finds_who_is_too_sure(made) -> None:
    n = Numbers(made[0].rows)
    honest, sure = (n.get(PART, q, "coverage") for q in ("mass", "drag"))
    assert honest.flights == 23
    assert honest.value > 0.85 > 0.75 > sure.value
    assert n.get(PART, "drag", "std of z").value == pytest.approx(3.0, rel=0.4)
    assert n.get(PART, "mass", "rms error").value == pytest.approx(0.1, rel=0.4)
    assert n.get("all", "all", "nees over dof").value > 2.0
    assert n.get("all", "all", "coverage").value < 0.8
    assert "drag" in outside(n, study.WANTED)


def test_its_page_says_so(made) -> None:
    page = identify_calibration_page(
        made[0].rows, made[0].curves, made[0].flights, made[0].failed, study.WANTED, 0
    )
    assert "drag" in headline(made[0].rows, study.WANTED)[1]
    assert "flight=5: nothing moves" in page
    assert page.count('class="chart"') == 3
    assert headline([], study.WANTED) == ("No flight could be identified.",)


def test_intervals_and_nees() -> None:
    assert study.wilson(190, 200) == pytest.approx((0.9104, 0.9726), abs=2e-4)
    assert study.wilson(200, 200)[1] == pytest.approx(1.0)
    covariance = np.diag([1e-6, 4.0])
    assert nees(np.array([2e-3, 2.0]), covariance) == pytest.approx(5.0)
    assert math.isnan(nees(np.array([1.0, 1.0]), np.diag([0.0, 1.0])))


def test_airframes_are_drawn_as_the_prior_says() -> None:
    around = airframe_numbers(prior())
    many = [truth_of(drawn(seed)) for seed in range(150)]
    for name, (value, std) in around.items():
        drawn_of = np.array([truth[name] for truth in many])
        late = 0.003 if name == "command_delay" else 0.0
        assert np.mean(drawn_of) - late == pytest.approx(value, abs=0.35 * std + 1e-12), name
        assert np.std(drawn_of) == pytest.approx(std, rel=0.25), name
    assert truth_of(drawn(3)) == truth_of(drawn(3))
