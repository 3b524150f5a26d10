"""The study of benchmarks: parts that are finished are not made again, and the numbers are on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from rotorid.models.airframe.airframe import load_airframe
from rotorid.studies.benchmarks import arpl, nanodrone
from rotorid.studies.benchmarks.page import benchmarks_page, headline
from rotorid.studies.benchmarks.study import Size, Study, benchmarks

SMALL = Size(nanodrone.Size(flights=1, windows=4, iterations=1, stride=300, identify=False))


@pytest.fixture(scope="module")
def data(flights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One training flight and one of the tests."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "nanodrone").mkdir()
    for name in ("random1_20251017_run1", nanodrone.TEST[0]):
        (folder / "nanodrone" / f"{name}.parquet").symlink_to(flights / "nanodrone" / f"{name}.parquet")
    return folder


def test_an_interrupted_study_resumes_and_shows_its_numbers(data: Path, tmp_path: Path) -> None:
    stages: list[str] = []

    def interrupt(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        if "residual" in stage:
            raise KeyboardInterrupt

    def run(progress) -> Study:
        return benchmarks(tmp_path / "out", data, size=SMALL, progress=progress)

    with pytest.raises(KeyboardInterrupt):
        run(interrupt)
    assert {"nano-drone: flights", "nano-drone: prediction"} <= set(stages)
    assert load_airframe(tmp_path / "out" / "airframes" / "nanodrone.toml").mass.number == 0.045
    resumed: list[str] = []
    study = run(lambda stage, done, total: resumed.append(stage))
    assert "nano-drone: prediction" not in resumed
    assert "nano-drone: residual" in resumed
    again: list[str] = []
    assert repr(run(lambda stage, done, total: again.append(stage)).rows) == repr(study.rows)
    assert again == []
    models = {r.method for r in study.rows if r.part == "nanodrone" and r.quantity == "position"}
    assert models == {
        *nanodrone.PUBLISHED,
        "nothing changes",
        "rotorid, physics",
        "rotorid, physics and residual",
    }
    shares = [r.value for r in study.rows if r.quantity.startswith("coverage")]
    assert len(shares) == 8
    assert all(0.0 < share <= 1.0 for share in shares)
    page = benchmarks_page(study.rows, study.curves, 0)
    assert "LSTM" in page
    assert headline(study.rows)[0].startswith("Nano-drone:")


def test_estimates_of_arpl_beside_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the estimates is 3 standard deviations off."""
    (tmp_path / "data" / arpl.FOLDER).mkdir(parents=True)
    exact = {name: arpl.Estimate(value, 0.1 * value) for name, (value, _) in arpl.PUBLISHED.items()}
    value = arpl.PUBLISHED["inertia_x"][0]
    estimates = {**exact, "inertia_x": arpl.Estimate(1.3 * value, 0.1 * value)}
    monkeypatch.setattr(arpl, "arpl", lambda folder, duration, progress: (3, estimates))
    study = benchmarks(tmp_path / "out", tmp_path / "data", size=SMALL)
    assert headline(study.rows) == (
        "ARPL's Crazyflie: 4 of 5 published numbers are within the 95 % bands of the estimates.",
    )
    page = benchmarks_page(study.rows, study.curves, 0)
    assert page.count(">no<") == 1
    assert "Nano-drone" not in page.split("Method")[0]


def test_published_numbers_of_arpl_are_corrected_for_g() -> None:
    assert arpl.PUBLISHED["inertia_x"][0] == pytest.approx(1.100e-5, rel=1e-3)
    assert arpl.PUBLISHED["thrust_near_hover"][0] == pytest.approx(0.0618, abs=1e-4)
    assert arpl.prior_airframe().mass.number == 0.027
