"""The closed-loop study at a very small size: its means, its resumption, and its page."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rotorid.report.page import escape
from rotorid.simulation.closed_loop import GATE
from rotorid.studies.loop import flights as loop_flights
from rotorid.studies.loop import study, whole_model
from rotorid.studies.loop.model_page import MODEL_LABELS, WHOLE
from rotorid.studies.loop.page import LABELS, headline, loop_page, worst_cell
from rotorid.studies.page_parts import Numbers
from rotorid.studies.study_files import Row

SIZE = study.Size(("loop",), ("step",), 1, ("no output",), 1.5)
MASS_SOURCES = ("nominal", "known", "ekf, gated")
FAILURE_SOURCES = ("ekf", "ekf, gated")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory):
    """The study with some mass sources, its resumption without simulated flights, and the reported progress."""
    folder: Path = tmp_path_factory.mktemp("study") / "loop"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "MASS_SOURCES", MASS_SOURCES)
        patch.setattr(study, "FAILURE_SOURCES", FAILURE_SOURCES)
        patch.setattr(whole_model, "TEAM_LEAD", 0.6)
        patch.setattr(whole_model, "TEAM_WINDOW", 0.4)
        reports = []
        first = study.loop(folder, size=SIZE, workers=1, progress=lambda *report: reports.append(report))
        patch.setattr(study, "part_of_tasks", None)
        return first, study.loop(folder, size=SIZE, workers=1), reports


def test_a_finished_study_is_read_from_its_files(results) -> None:
    first, resumed, reports = results
    assert list(map(str, first.rows)) == list(map(str, resumed.rows))
    assert len(first.curves) == len(resumed.curves) > 0
    assert first.flights == 14 + 10 + 4
    assert reports[-1] == ("failure no output", 2, 2)


def test_means_agree_with_the_flights(results) -> None:
    n = Numbers(results[0].rows)
    nominal, known = (
        n.get("cells", p, "rms error", "loop", "step", "flight=0") for p in ("nominal", "known")
    )
    assert n.get("cells", "known", "of nominal", "loop", "step").value == pytest.approx(
        known.value / nominal.value
    )
    assert n.get("cells", "nominal", "of nominal").value == 1.0
    assert n.get("cells", "known", "error of the mass").value == pytest.approx(0.0, abs=1e-9)
    assert n.get("failures", "ekf", "of nominal", setting="no output").flights == 1
    assert n.get("step", "known", "of nominal").flights == 2
    assert n.get("hard", "nominal", "of nominal").value == 1.0
    assert n.get("hard", "nominal", "rms error").value > 1.2 * nominal.value
    assert known.value < nominal.value
    assert n.get("model", WHOLE, "path error of nominal").flights == 2
    assert n.get("model", WHOLE, "path error of nominal").value < 1.0
    assert n.get("team", "nominal", "of nominal").value == 1.0
    task = study.cell_tasks(SIZE, 0)[0]
    assert loop_flights.simulate_task(task) == loop_flights.simulate_task(task)


def test_summary_of_given_flights() -> None:
    def flight(part, source, trajectory, value, number, failure="", quantity="rms error"):
        setting = f"{failure}, flight={number}" if failure else f"flight={number}"
        return Row(part, source, quantity, value, "m", trajectory, "sine", setting, flights=1)

    rows = [flight("cells", "nominal", t, 0.04, k) for t in ("loop", "square") for k in range(2)]
    rows += [flight("cells", "ekf", t, 0.02, k) for t in ("loop", "square") for k in range(2)]
    rows += [
        flight("failures", "ekf", "loop", 0.06, 0, "late"),
        flight("failures", "ekf", "square", 0.05, 0, "late"),
    ]
    rows += [
        flight("failures", "ekf", t, float(k), 0, "late", "lost") for k, t in enumerate(("loop", "square"))
    ]
    n = Numbers(study.summary(rows))
    ratio = n.get("failures", "ekf", "of nominal", setting="late")
    assert (ratio.value, ratio.flights) == (pytest.approx(1.375), 2)
    assert ratio.standard_error == pytest.approx(0.125)
    assert n.get("failures", "ekf", "lost", setting="late").value == 1.0
    assert n.get("cells", "ekf", "of nominal", "square", "sine").value == pytest.approx(0.5)
    worst = worst_cell(n, "failures", ["ekf"])
    assert (worst.value, worst.trajectory) == (pytest.approx(1.5), "loop")
    assert math.isnan(worst_cell(n, "failures", ["known"]).value)


def test_page(results) -> None:
    first = results[0]
    page = loop_page(first.rows, first.curves, first.flights, GATE, 0)
    for text in (
        *headline(first.rows),
        *LABELS.values(),
        *MODEL_LABELS.values(),
        "there are no reports",
        "Effort and saturation",
        "0.5 to 1.5 kg",
    ):
        assert escape(text) in page, text
    assert "nan" not in page.split("<script")[0].lower()
