"""Progress as JSON lines for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
