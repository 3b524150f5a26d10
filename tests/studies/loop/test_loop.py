"""The study of the closed loop in a tiny form: what it adds up, that it goes on where it was, and its page."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rotorid.report.page import escape
from rotorid.simulation.closed_loop import GATE
from rotorid.studies.loop import flights as loop_flights
from rotorid.studies.loop import study
from rotorid.studies.loop.page import LABELS, headline, loop_page, worst
from rotorid.studies.page_parts import Numbers
from rotorid.studies.study_files import Row

SIZE = study.Size(("loop",), ("step",), 1, ("no output",), 1.5)
PILOTS = ("nominal", "known", "ekf, gated")
FAILING = ("ekf", "ekf, gated")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """The study by some pilots, and again with the flights forbidden."""
    folder: Path = tmp_path_factory.mktemp("study") / "loop"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "PILOTS", PILOTS)
        patch.setattr(study, "FAILING", FAILING)
        told = []
        first = study.loop(folder, size=SIZE, workers=1, progress=lambda *what: told.append(what))
        patch.setattr(study, "flown", None)
        return first, study.loop(folder, size=SIZE, workers=1), told


def test_it_goes_on_where_it_was(made) -> None:
    first, again, told = made
    assert list(map(str, first.rows)) == list(map(str, again.rows))
    assert len(first.curves) == len(again.curves) > 0
    assert first.flights == 14
    assert told[-1] == ("failure no output", 2, 2)


def test_its_numbers_are_those_of_its_flights(made) -> None:
    n = Numbers(made[0].rows)
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
    task = study.cell_tasks(SIZE, 0)[0]
    assert loop_flights.make(task) == loop_flights.make(task)


def test_what_a_summary_makes_of_flights() -> None:
    def flight(part, pilot, trajectory, value, number, failure="", quantity="rms error"):
        setting = f"{failure}, flight={number}" if failure else f"flight={number}"
        return Row(part, pilot, quantity, value, "m", trajectory, "sine", setting, flights=1)

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
    of = n.get("failures", "ekf", "of nominal", setting="late")
    assert (of.value, of.flights) == (pytest.approx(1.375), 2)
    assert of.standard_error == pytest.approx(0.125)
    assert n.get("failures", "ekf", "lost", setting="late").value == 1.0
    assert n.get("cells", "ekf", "of nominal", "square", "sine").value == pytest.approx(0.5)
    most = worst(n, "failures", ["ekf"])
    assert (most.value, most.trajectory) == (pytest.approx(1.5), "loop")
    assert math.isnan(worst(n, "failures", ["known"]).value)


def test_the_page_says_it_all(made) -> None:
    found = made[0]
    page = loop_page(found.rows, found.curves, found.flights, GATE, 0)
    for words in (
        *headline(found.rows),
        *LABELS.values(),
        "there are no reports",
        "Effort and saturation",
        "0.5 to 1.5 kg",
    ):
        assert escape(words) in page, words
    assert "nan" not in page.split("<script")[0].lower()
