"""A folder of the app that comes from others: nothing in it is run, nothing outside of it is read or written."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rotorid.app.jobs import Command
from rotorid.app.store import Store, files_of
from rotorid.app.workspace import Job, Workspace
from rotorid.errors import OutputError
from rotorid.progress import no_progress
from rotorid.results.files import REPORT, SUMMARY

RECORD = Job("track", ("log",), ["track", "logs/log/log.csv"], "done").record()
ABOUT = {
    name: []
    for name in ("format", "duration", "airborne", "verdict", "findings", "identifiability", "vehicle")
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "work")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside that of the app, with a log in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.csv").write_text("t,thrust\n")
    return folder


def started(store: Store, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose commands are not run."""

    def spawn(work: Any) -> None:
        work.close()

    workspace = Workspace(store)
    monkeypatch.setattr(workspace, "_spawn", spawn)
    workspace.start()
    json.dumps(workspace.state(), allow_nan=False, ensure_ascii=False).encode()
    return workspace


def add_log(store: Store, name: str = "log", about: Any = None, **record: Any) -> Path:
    folder = store.folder / "logs" / name
    (folder / "inspect").mkdir(parents=True)
    (folder / "log.csv").write_text("t,thrust\n")
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "inspect" / REPORT).touch()
    (folder / "inspect" / SUMMARY).write_text(json.dumps(ABOUT if about is None else about))
    return folder


def test_no_module_of_the_folder_is_imported(tmp_path: Path) -> None:
    for name in ("rotorid", "numpy", "typer", "json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    ended = asyncio.run(Command(["--version"], tmp_path, no_progress).run())
    assert not (tmp_path / "ran").exists()
    assert (ended.code, ended.error) == (0, "")


@pytest.mark.parametrize(
    "name", ["1x-track-log", "-1-x", "1-a b", "\u0661-track-log", "1-\x1b[2J", "9" * 200 + "-x", "x", "1"]
)
def test_results_with_odd_names_are_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for key in (name, "2-track-log"):
        (store.folder / "results" / f"{key}.json").write_text(json.dumps(RECORD))
    assert list(started(store, monkeypatch).jobs) == ["2-track-log"]
    assert store.new_result("track", "log") == "3-track-log"


@pytest.mark.parametrize(
    "change",
    [{"logs": 5}, {"logs": [5]}, {"arguments": [{}]}, {"arguments": "x"}, {"output": 5}, {"error": None},
     {"started": "x"}, {"verdict": []}, {"state": "odd"}, {"seconds": float("nan")}, {"error": "\ud800"}],
)  # fmt: skip
def test_records_of_results_that_are_not_valid_are_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    (store.folder / "results" / "1-a.json").write_text(json.dumps(RECORD | change))
    (store.folder / "results" / "2-b.json").write_text("[" * 100_000)
    os.mkfifo(store.folder / "results" / "3-c.json")
    (store.folder / "results" / "4-d.json").write_text(json.dumps(RECORD | {"state": "running"}))
    jobs = started(store, monkeypatch).jobs
    assert {key: job.state for key, job in jobs.items()} == {"4-d": "interrupted"}


@pytest.mark.parametrize(
    "about", [{"format": "x"}, ABOUT | {"findings": 5}, ABOUT | {"findings": [{}]}, ABOUT | {"identifiability": "x"}]
)  # fmt: skip
def test_an_inspection_that_is_not_valid_is_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, about: Any
) -> None:
    add_log(store, "bad", about)
    add_log(store, "good")
    states = {key: log.inspection.state for key, log in started(store, monkeypatch).logs.items()}
    assert states == {"bad": "queued", "good": "done"}


@pytest.mark.parametrize(
    "vehicle",
    [{"airframe": "file:../../outside/x"}, {"airframe": "shipped:--output"}, {"mass": "--version"}, {"mass": 5}, [], None],
)  # fmt: skip
def test_the_form_of_a_vehicle_is_checked(
    store: Store, monkeypatch: pytest.MonkeyPatch, vehicle: Any
) -> None:
    add_log(store, vehicle=vehicle)
    form = started(store, monkeypatch).logs["log"].vehicle
    assert (form.airframe, form.mass, form.span) == ("", "", "")


def test_links_out_of_the_folder_are_not_followed(
    store: Store, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, results = store.folder / "logs", store.folder / "results"
    (logs / "linked").symlink_to(outside)
    for name in ("file", "inspected"):
        (logs / name).mkdir()
    (logs / "file" / "log.csv").symlink_to(outside / "secret.csv")
    (logs / "inspected" / "log.csv").touch()
    (logs / "inspected" / "inspect").symlink_to(outside)
    (results / "1-a.json").write_text(json.dumps(RECORD))
    (results / "1-a").symlink_to(outside)
    (results / "2-b.json").symlink_to(outside / "secret.csv")
    (store.folder / "airframes" / "x.toml").symlink_to(outside / "secret.csv")
    (store.folder / ".upload-x").mkdir()
    workspace = started(Store(store.folder), monkeypatch)
    assert (list(workspace.logs), list(workspace.jobs), store.airframes()) == ([], [], [])
    assert list(files_of(outside)) == ["secret.csv"]


def test_linked_parts_of_the_folder_are_refused(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "results").symlink_to(outside)
    with pytest.raises(OutputError, match="symbolic link"):
        Store(tmp_path / "work")
