"""`rotorid fleet`: what it shows and leaves, and how it refuses."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import polars as pl
import pytest

from rotorid.workflows.fleet import fleet as fleets
from rotorid.workflows.fleet import worker
from tests.running import here
from tests.workflows.fleet.test_fleet import write

rotorid = functools.partial(here, "fleet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two logs and a broken one, looked at in this process."""

    def serial(make, keys, workers, lost, limit):
        yield from ((key, make(key)) for key in keys)

    monkeypatch.setattr(fleets, "run_local", serial)
    monkeypatch.setattr(worker, "prepare_worker", lambda: None)
    monkeypatch.setenv("COLUMNS", "90")
    for k in range(2):
        write(tmp_path / "quad[x]-1" / f"{k}.parquet", k, k)
    (tmp_path / "quad[x]-1" / "bad.tlog").write_bytes(b"no log")
    return tmp_path


def test_it_shows_the_vehicles_and_leaves_tables_and_a_page(folder: Path) -> None:
    out = folder / "out"
    result = rotorid(folder, "-o", out, "-a", "px4-sih-quad")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for words in (
        "2 flights of 1 vehicle; detection of changes needs at least 5 flights",
        "quad[x]-1",
        "px4-sih-quad",
        "Failed: ",
        "bad.tlog",
        "report.html",
    ):
        assert words.replace(" ", "") in "".join(result.stdout.split())  # long paths are broken anywhere
    assert sorted(f.name for f in out.iterdir()) == [
        "changes.parquet", "flights.parquet", "progress.jsonl", "report.html", "summary.json",
    ]  # fmt: skip
    assert pl.read_parquet(out / "changes.parquet").height == 0
    (finding,) = json.loads((out / "summary.json").read_text())["findings"]["quad[x]-1/0.parquet"]
    assert (finding["code"], finding["values"]) == ("not_identified", {"parameter": "drag"})
    before = (out / "flights.parquet").read_bytes()
    again = rotorid(folder, "-o", out, "-a", "px4-sih-quad")
    assert "3 logs were analysed before, 0 in this run." in again.stdout
    assert (out / "flights.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-a", "no-such"], "no airframe 'no-such'"),
        (["-a", "crazyflie-2.1", "--airframes", "map.toml"], "give either --airframe"),
        (["--airframes", "map.toml"], "the map cannot be read"),
        (["--known", "drag"], "--known drag: must be thrust or mass"),
        (["--vehicle-from", "quad"], "a regular expression with a group"),
        (["--workers", "0"], "--workers 0: must be 1 or more"),
        (["--mapping", "none.toml"], "the mapping cannot be read"),
    ],
)
def test_wrong_use_is_one_line(folder: Path, options: list[str], words: str) -> None:
    result = rotorid(folder, "-o", folder / "out", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "out").exists()


def test_nothing_to_look_at_is_one_line(folder: Path) -> None:
    (folder / "empty").mkdir()
    for source, words in (("empty", "no log found"), ("none", "there is no such file or folder")):
        result = rotorid(folder / source, "-o", folder / "out")
        assert result.exit_code == 2
        assert words in result.stderr
    (folder / "file").write_text("")
    assert "this is a file" in rotorid(folder, "-o", folder / "file").stderr
