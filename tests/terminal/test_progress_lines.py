"""Progress as JSON lines for programs."""

from __future__ import annotations

import io
import json
import re
import threading
import time
from typing import Any

import pytest
from rich.console import Console

from rotorid.terminal import console
from rotorid.terminal.console import count_items, progress_bar, status


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.fixture
def _json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTORID_PROGRESS", "json")


@pytest.mark.usefixtures("_json_lines")
def test_every_kind_of_progress_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with status("Reading"):
        pass
    assert list(count_items("ab", "Fitting", 2)) == ["a", "b"]
    with progress_bar("Starting") as progress:
        progress("Searching", 3, 3)
    lines = [tuple(line.values()) for line in written(capsys)]
    assert lines == [
        ("Reading", 0, 0),
        ("Fitting", 0, 2),
        ("Fitting", 2, 2),
        ("Starting", 0, 0),
        ("Searching", 3, 3),
    ]


@pytest.mark.usefixtures("_json_lines")
def test_few_lines_are_written_and_the_last_is(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Fitting") as progress:
        for k in range(10_001):
            progress("Fitting", k, 10_000)
    lines = written(capsys)
    assert len(lines) < 100
    assert lines[-1] == {"stage": "Fitting", "done": 10_000, "total": 10_000}


def test_nothing_is_written_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    with status("Reading"):
        assert list(count_items("ab", "Fitting")) == ["a", "b"]
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_json_lines")
def test_a_long_step_repeats_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a program sees that the work goes on; the line is that of the latest report, also of one that was not written."""
    monkeypatch.setattr("rotorid.terminal.progress_lines._REPEAT", 0.05)
    with progress_bar("Starting") as progress:
        for k in range(3):
            progress("Fitting", k, 9)
        time.sleep(0.4)
    lines = [tuple(line.values()) for line in written(capsys)]
    assert lines[:2] == [("Starting", 0, 0), ("Fitting", 0, 9)]
    assert 2 <= lines.count(("Fitting", 2, 9)) <= 9
    assert not [t for t in threading.enumerate() if t.daemon and "repeat" in t.name]


def test_a_terminal_shows_the_stage_its_time_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        console, "err", lambda: Console(file=terminal, force_terminal=True, width=90, highlight=False)
    )
    with progress_bar("Starting") as progress:
        time.sleep(0.15)
        progress("Fitting", 3, 20)
        time.sleep(0.15)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"Starting .*0:00:0\d", shown)
    assert re.search(r"Fitting .*3/20 0:00:0\d left:", shown)
    assert "Starting" not in shown[shown.index("Fitting") :]
