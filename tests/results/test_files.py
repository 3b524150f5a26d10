"""Result files: exact columns, equal bytes, whole or not at all."""

from __future__ import annotations

import io
import json
import os
import resource
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from mcap.reader import make_reader

from rotorid.errors import OutputError
from rotorid.estimators.base import Health
from rotorid.results import files
from rotorid.results.files import check_folder, file_input, write_folder
from rotorid.workflows.track.files import estimates_mcap, estimates_parquet, write_results
from rotorid.workflows.track.summary import Settings, summarise
from tests.workflows.tracks_for_tests import T, made_flight, made_track, quantity

SETTINGS = Settings("track", ("ekf", "ukf"), "multirotor", "made")


@pytest.fixture(scope="module")
def tracks():
    drag = quantity(0.6, 0.02, "N s/m")
    mass = quantity(np.where(T < 1.0, np.nan, 1.0))
    health = np.where(T < 1.0, int(Health.NO_INFORMATION), int(Health.OK))
    return [made_track(mass, health=health, drag=drag, truth=1.01), made_track(1.0, estimator="ukf")]


@pytest.fixture(scope="module")
def summary(tracks):
    return summarise(tracks, made_flight(), SETTINGS, (), 3.0)


def test_estimates(tracks) -> None:
    table = pl.read_parquet(io.BytesIO(estimates_parquet(tracks)))
    assert table.columns == ["t", "estimator", "mass", "mass_std", "drag", "drag_std", "health"]
    assert table.height == 2 * len(T)
    ekf, ukf = (table.filter(pl.col("estimator") == e) for e in ("ekf", "ukf"))
    np.testing.assert_array_equal(ekf["t"], T)
    np.testing.assert_array_equal(ekf["mass_std"], tracks[0].quantities["mass"].std)
    assert ekf["mass"].null_count() == int(np.sum(T < 1.0))
    assert ukf["drag"].null_count() == ukf["drag_std"].null_count() == len(T)
    assert ekf["health"].unique().sort().to_list() == ["no_information", "ok"]


def test_units_travel_with_the_columns(tracks) -> None:
    import pyarrow.parquet as parquet

    schema = parquet.read_schema(io.BytesIO(estimates_parquet(tracks)))
    assert schema.field("drag_std").metadata == {b"unit": b"N s/m"}


def test_the_same_estimates_as_mcap(tracks) -> None:
    reader = make_reader(io.BytesIO(estimates_mcap(tracks, 12.5)), validate_crcs=True)
    found: dict[str, list[dict]] = {}
    for schema, channel, message in reader.iter_messages():
        row = json.loads(message.data)
        found.setdefault(channel.topic, []).append(row)
        assert message.log_time == round((12.5 + row["t"]) * 1e9)
        assert set(row) <= set(json.loads(schema.data)["properties"])
        if channel.topic == "/estimates/ekf":
            assert json.loads(schema.data)["properties"]["drag_std"]["description"] == "N s/m"
    assert set(found) == {"/estimates/ekf", "/estimates/ukf", "/truth"}
    table = pl.read_parquet(io.BytesIO(estimates_parquet(tracks)))
    for row in table.iter_rows(named=True):
        said = found[f"/estimates/{row.pop('estimator')}"].pop(0)
        assert said == {name: value for name, value in row.items() if value is not None}
    assert found["/truth"][0]["mass"] == 1.01


def test_mcap_of_an_earlier_run_does_not_stay(tracks, summary, tmp_path: Path) -> None:
    write_results(tmp_path / "results", tracks, summary, "", mcap=True)
    assert (tmp_path / "results" / "estimates.mcap").is_file()
    write_results(tmp_path / "results", tracks, summary, "")
    assert len(list((tmp_path / "results").iterdir())) == 3


def test_changes_of_an_estimator_with_change_detection() -> None:
    step = np.where(T < 30.0, 1.0, 1.25)
    detecting = made_track(step, estimator="adaptive", changes=(10.0, 30.0))
    data = json.loads(summarise([made_track(step), detecting], made_flight(), SETTINGS).to_json())[
        "estimators"
    ]
    assert (data["ekf"]["jumps"], data["ekf"]["unconfirmed_changes"]) == (None, 0)
    (jump,) = data["adaptive"]["jumps"]
    assert set(jump) == {"time", "before", "before_std", "after", "after_std", "size", "size_std"}
    assert (jump["time"], jump["before"], jump["after"], jump["size"]) == pytest.approx(
        (30.0, 1.0, 1.25, 0.25)
    )
    assert data["adaptive"]["unconfirmed_changes"] == 1


def test_summary(summary, tmp_path: Path) -> None:
    data = json.loads(summary.to_json())
    assert data["versions"].keys() == {"rotorid", "jax"}
    assert data["log"]["time_origin"] == 12.5
    assert data["settings"]["estimators"] == ["ekf", "ukf"]
    assert data["log"]["notes"] == ["a note with <tags>"]
    headline = data["verdict"]["findings"][0]
    assert headline.keys() == {"code", "severity", "values", "text"}
    assert (headline["code"], headline["severity"], headline["values"]["value"]) == ("constant", "ok", 1.0)
    assert headline["text"] == data["verdict"]["headline"]
    mass = data["estimators"]["ekf"]["quantities"]["mass"]
    assert mass["unit"] == "kg"
    assert mass["final"] == mass["median"] == 1.0
    assert mass["final_std"] == pytest.approx(0.01)
    assert mass["rmspe"] == pytest.approx(100 * 0.01 / 1.01)
    assert mass["coverage"] == 1.0
    assert data["estimators"]["ekf"]["consistency"] == 1.0
    assert data["estimators"]["ekf"]["health"]["ok"] == pytest.approx(59 / 60)
    assert data["estimators"]["ukf"]["quantities"].keys() == {"mass"}


def test_a_number_that_is_none_is_null() -> None:
    broken = made_track(quantity(np.full(len(T), np.nan)), health=Health.DIVERGED, nis=np.nan)
    text = summarise([broken], made_flight(), SETTINGS).to_json()
    assert json.loads(text)["estimators"]["ekf"]["quantities"]["mass"]["final"] is None


def test_inputs_have_hashes(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"abc")
    found = file_input("log", tmp_path / "log.csv")
    assert found.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (found.name, found.bytes) == ("log.csv", 3)
    again = file_input("log", tmp_path)  # a folder, as some bags are
    assert (again.sha256, again.bytes) == (found.sha256, 3)


def test_equal_results_are_equal_bytes(tracks, summary, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_results(tmp_path / name, tracks, summary, "<p>report</p>")
    written = [{f.name: f.read_bytes() for f in (tmp_path / n).iterdir()} for n in ("a", "b")]
    assert written[0] == written[1]
    assert sorted(written[0]) == ["estimates.parquet", "report.html", "summary.json"]


def test_a_second_run_replaces_its_files_only(tracks, summary, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_results(folder, tracks, summary, "old")
    (folder / "mine.txt").write_text("mine")
    write_results(folder, tracks, summary, "new")
    assert (folder / "report.html").read_text() == "new"
    assert (folder / "mine.txt").read_text() == "mine"
    assert len(list(folder.iterdir())) == 4
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_in_the_way(tracks, summary, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    with pytest.raises(OutputError, match="this is a file; name a folder"):
        write_results(tmp_path / "results", tracks, summary, "")
    assert (tmp_path / "results").read_text() == "mine"


def test_parents_are_made_and_removed_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "deep" / "results"
    check_folder(folder)
    assert not list(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(OutputError, match="nothing was changed"):
            write_folder(folder, {"a.txt": b"a"})
    assert not list(tmp_path.iterdir())
    write_folder(folder, {"a.txt": b"a"})
    assert (folder / "a.txt").read_bytes() == b"a"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="file is a file; name another folder"):
        check_folder(tmp_path / "file" / "results")


def test_a_sub_folder_replaces_an_earlier_one(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_folder(folder, {"a.txt": b"a", "many/0/b.txt": b"b", "many/1/b.txt": b"b"})
    (folder / "mine.txt").write_text("mine")
    write_folder(folder, {"a.txt": b"c", "many/0/b.txt": b"d"})
    assert {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()} == {
        "a.txt": "c",
        "many/0/b.txt": "d",
        "mine.txt": "mine",
    }
    assert [p.name for p in tmp_path.iterdir()] == ["results"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission"):
        check_folder(tmp_path / "results")


@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_what_was(tracks, summary, tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "results"
    if exists:
        write_results(folder, tracks, summary, "old")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="results could not be written") as caught:
            write_results(folder, tracks, summary, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert list(tmp_path.iterdir()) == ([folder] if exists else [])


def test_an_interrupt_leaves_nothing(tracks, summary, tmp_path: Path, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_results(tmp_path / "results", tracks, summary, "")
    assert list(tmp_path.iterdir()) == []
